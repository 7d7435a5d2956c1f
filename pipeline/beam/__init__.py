"""Beam: runners, storage, files, blobs, progress, worker processes."""
