"""The contracts between the Beam jobs and the trainer: text layer, records, pure functions."""
