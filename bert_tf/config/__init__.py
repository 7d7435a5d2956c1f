"""Typed configuration; imports nothing else of this project."""
