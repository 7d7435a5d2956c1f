"""Pages of rows: scored ones, and those whose labels are doubted."""
