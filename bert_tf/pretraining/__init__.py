"""Masked-LM and next-sentence pretraining from records to a model directory."""
