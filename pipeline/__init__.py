"""Batch jobs around BERT: Beam pipelines and the `bert-pipeline` command line."""
