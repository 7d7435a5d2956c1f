"""One rule, or one measurement with several thresholds, per file; see `registry.py`."""
