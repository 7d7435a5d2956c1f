"""Engines that run an exported model over rows of texts; a file per engine."""
