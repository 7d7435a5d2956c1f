"""Artifacts, runs and corpora described for people, as text and as pages."""
