"""TopKSelector, TopKClassifier and TopKRegressor."""
