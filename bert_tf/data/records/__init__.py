"""Pretraining records: schema, bytes, blocks of shards, parsing, batches in order of an epoch."""
