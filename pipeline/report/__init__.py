"""Artifacts described for a person: what they are, what is in them, how good they are."""
