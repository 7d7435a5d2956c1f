"""Documents to pretraining records: pools, segments, masks, shards."""
