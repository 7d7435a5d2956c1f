"""Pretraining records: schema, bytes, shards by block, parsing."""
