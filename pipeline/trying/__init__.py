"""Models tried by hand on a page of this machine."""
