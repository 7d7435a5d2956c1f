"""The likeliest tokens for masked ones, by the head of pretraining."""
