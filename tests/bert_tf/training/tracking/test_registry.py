import dataclasses

import pytest

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.training.tracking.registry import TRACKERS


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    entry = dataclasses.replace(TRACKERS["mlflow"], packages=("no_such_package",))
    monkeypatch.setitem(TRACKERS, "mlflow", entry)
    TRACKERS["tensorboard"].check_installed()
    with pytest.raises(UsageError, match=r"pip install 'bert-pipeline\[mlflow\]'"):
        entry.check_installed()
    required = {"data": "data", "output": "run", "size": "tiny"}
    config = build_section(TrainConfig, {**required, "report_to": ["tensorboard", "mlflow"]})
    with pytest.raises(UsageError, match="report_to mlflow"):
        config.check_installed()


def test_trackers_are_a_list_that_may_be_empty():
    def report_to(value):
        return build_section(TrainConfig, {**required, "report_to": value}).report_to

    required = {"data": "data", "output": "run", "size": "tiny"}

    assert report_to(["mlflow", "wandb"]) == ("mlflow", "wandb")
    assert report_to([]) == ()
    assert build_section(TrainConfig, required).report_to == ("tensorboard",)
    with pytest.raises(ConfigError, match="did you mean 'wandb'"):
        report_to(["wandbb"])
