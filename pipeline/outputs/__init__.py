"""Outputs of jobs: manifests, places, unfinished work, the frame of a job."""
