"""Jobs that make vectors of texts: `embed`, and what compares these."""
