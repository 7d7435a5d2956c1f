"""The contracts that the Beam jobs and the trainer share: text layer, records, pure functions."""
