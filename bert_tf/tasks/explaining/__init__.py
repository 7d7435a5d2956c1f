"""Explanations of predictions: the share of each word in a logit."""
