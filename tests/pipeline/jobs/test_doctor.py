"""`doctor` about packages that are not installed."""

import dataclasses
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bert_tf.base.errors import BertPipelineError
from bert_tf.engines.registry import ENGINES
from bert_tf.training import throughput
from pipeline.jobs import doctor

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_packages_of_extras_may_be_missing_and_others_may_not(monkeypatch):
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    needed = {Requirement(line).name for line in project["dependencies"]}
    lines = [line for lines in project["optional-dependencies"].values() for line in lines]
    names = [name for name in (Requirement(line).name for line in lines) if name not in needed]
    monkeypatch.setattr(doctor, "package_versions", lambda: dict.fromkeys(names, "not installed"))
    assert names[0] in doctor.CHECKS["packages"]()
    monkeypatch.setattr(
        doctor, "package_versions", lambda: {"numpy": "not installed", "keras": "3"}
    )
    with pytest.raises(BertPipelineError, match="numpy not installed; pip install numpy"):
        doctor.CHECKS["packages"]()


def test_checks_come_one_by_one_and_one_that_fails_is_not_the_end(monkeypatch):
    def fail():
        raise OSError("no such thing\nand more")

    monkeypatch.setitem(doctor.CHECKS, "processor", fail)
    findings = doctor.examine()
    first, _, second, third = (next(findings) for _ in range(4))
    assert first.name == "packages"
    assert (second.name, second.passed, second.detail) == (
        "processor",
        False,
        "OSError: no such thing",
    )
    assert (third.name, third.passed) == ("memory", True)
    total, available = (float(word.split()[0]) for word in third.detail.split(", "))
    assert 0 < available <= total


def test_a_reason_is_said_once(monkeypatch):
    def fail():
        raise BertPipelineError("tensorflow-text does not fit")

    for name in ("packages", "engines of score", "memory"):
        monkeypatch.setitem(doctor.CHECKS, name, fail)
    found = [finding for finding, _ in zip(doctor.examine(), range(4), strict=False)]
    assert [finding.passed for finding in found] == [False, False, True, False]
    details = [found[place].detail for place in (0, 1, 3)]
    assert details == ["tensorflow-text does not fit", "see packages", "see packages"]


def test_a_gpu_that_tensorflow_cannot_use_is_a_failed_check(monkeypatch):
    monkeypatch.setattr(doctor, "unusable_gpu", lambda: "NVIDIA A100 is not used: no driver")
    with pytest.raises(BertPipelineError, match="NVIDIA A100 is not used: no driver"):
        doctor.CHECKS["tensorflow devices"]()


def test_the_rate_is_the_peak_of_runs(monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)  # nothing is multiplied
    peaks = {"float32": 2e11, "mixed_bfloat16": 1.5e12}
    monkeypatch.setattr(throughput, "measure_matmul_peak", lambda policy, strategy: peaks[policy])
    assert doctor.CHECKS["matrix multiply"]() == "float32 200 GFLOP/s, bfloat16 1,500 GFLOP/s"
    monkeypatch.setattr(throughput, "measure_matmul_peak", lambda policy, strategy: None)
    assert (
        doctor.CHECKS["matrix multiply"]() == "not measured, because other processes use the cores"
    )


def test_sizes_have_one_unit_and_engines_are_listed(monkeypatch):
    absent = dataclasses.replace(ENGINES["openvino"], packages=("no_such_package",))
    monkeypatch.setitem(ENGINES, "openvino", absent)
    assert doctor.CHECKS["engines of score"]().startswith(
        "openvino not installed (pip install 'bert-pipeline[openvino]'), onnxruntime"
    )
    for name in ("memory", "disk", "temporary space"):
        detail = doctor.CHECKS[name]()
        assert " GB" in detail
        assert "iB" not in detail
