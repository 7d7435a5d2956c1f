"""Strategies, replicas, workers, precision and throughput."""
