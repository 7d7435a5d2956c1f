"""How many random examples a property test draws."""

from hypothesis import settings


def fewer_examples(share: float) -> settings:
    """Return a share of what the profile says, for tests of which each example takes long."""
    return settings(max_examples=max(5, round(share * settings.default.max_examples)))
