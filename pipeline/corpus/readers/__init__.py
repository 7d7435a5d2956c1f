"""Readers of formats: files to raw blocks."""
