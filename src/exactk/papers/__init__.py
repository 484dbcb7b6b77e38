"""The methods, data sets and experiments of the papers. The core does not import this package."""
