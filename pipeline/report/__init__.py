"""Descriptions of artifacts, runs and corpora, as text and as pages."""
