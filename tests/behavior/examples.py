"""How many random examples a property test draws."""

from hypothesis import settings


def fewer_examples(share: float) -> settings:
    """Return a share of the profile's examples, for tests whose examples take long."""
    return settings(max_examples=max(5, round(share * settings.default.max_examples)))
