"""The number of features, the ridge, stability and explanations."""
