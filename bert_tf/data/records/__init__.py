"""Pretraining records: schema, bytes, blocks of shards, parsing, and batches of an epoch."""
