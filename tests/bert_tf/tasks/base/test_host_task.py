"""Fields of a task in `task.json`: which must be there."""

import dataclasses
import json

import pytest

from bert_tf.tasks.base.host_task import (
    added_fields,
    fields_as_settings,
    fields_from_settings,
    learned,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Base:
    column: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example(Base):
    scale: float
    labels: tuple[str, ...] = learned(())
    temperature: float | None = None


FIELDS = added_fields(Example, Base)


def test_settings_come_back_through_json():
    example = Example(column="a", scale=2.0, labels=("x", "y"), temperature=0.5)
    settings = json.loads(json.dumps(fields_as_settings(FIELDS, example)))
    assert settings == {"scale": 2.0, "labels": ["x", "y"], "temperature": 0.5}
    assert Example(column="a", **fields_from_settings(FIELDS, settings)) == example


def test_a_field_with_a_default_may_be_missing():
    settings = {"scale": 2.0, "labels": ["x"], "of another release": 1}
    assert fields_from_settings(FIELDS, settings) == {"scale": 2.0, "labels": ("x",)}


@pytest.mark.parametrize("missing", ["scale", "labels"])
def test_options_and_what_was_learned_may_not(missing):
    settings = {"scale": 2.0, "labels": ["x"]}
    del settings[missing]
    with pytest.raises(KeyError, match=missing):
        fields_from_settings(FIELDS, settings)
