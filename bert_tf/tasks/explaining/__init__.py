"""Why a model predicts what it does: the share of each word in a logit."""
