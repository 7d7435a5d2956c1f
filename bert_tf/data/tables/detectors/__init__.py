"""Detectors of files that are read without a fault, though they mean something else."""
