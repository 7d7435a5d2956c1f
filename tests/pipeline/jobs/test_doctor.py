"""`doctor` on what is not installed."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bert_tf.base.errors import BertPipelineError
from pipeline.jobs import doctor

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_packages_of_extras_may_be_missing_and_others_may_not(monkeypatch):
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    names = [Requirement(line).name for lines in extras.values() for line in lines]
    monkeypatch.setattr(doctor, "package_versions", lambda: dict.fromkeys(names, "not installed"))
    assert names[0] in doctor._packages()
    monkeypatch.setattr(
        doctor, "package_versions", lambda: {"numpy": "not installed", "keras": "3"}
    )
    with pytest.raises(BertPipelineError, match="numpy not installed; pip install numpy"):
        doctor._packages()
