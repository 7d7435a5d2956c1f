"""The file of doubtful labels, and how the tasks that find them are declared."""

import csv

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections.finetuning import LabelErrorsSection
from bert_tf.tasks.registry import TASKS, label_error_tasks
from bert_tf.tasks.running.evaluation import DoubtedRow, write_doubted_rows

VALUES = {"task": "classification", "train": "t", "init": "i", "output": "o"}


def test_the_file(tmp_path):
    row = DoubtedRow(
        line=7,
        label="ham",
        label_probability=0.0123456789,
        suggested_label='sp"am',
        suggested_probability=0.9,
        texts={"text": "two\nlines, and a comma", "text_pair": "b"},
    )
    write_doubted_rows(tmp_path / "out.csv", [row], ("text", "text_pair"))
    with (tmp_path / "out.csv").open(newline="") as stream:
        (found,) = csv.DictReader(stream)
    assert found == {
        "line": "7",
        "label": "ham",
        "label_probability": "0.012346",
        "suggested_label": 'sp"am',
        "suggested_probability": "0.9",
        "text": "two\nlines, and a comma",
        "text_pair": "b",
    }


def test_the_options_are_those_of_fine_tuning_and_the_folds():
    for name, declared in label_error_tasks().items():
        assert issubclass(declared.options, TASKS[name].options)
        assert issubclass(declared.options, LabelErrorsSection)
        assert declared.example.startswith(f"bert-pipeline label-errors {name} ")
        config = build_section(declared.options, {**VALUES, "task": name})
        assert (config.section_name, config.folds) == ("label_errors", 5)


def test_there_are_no_rows_to_evaluate_on_and_no_models_to_track():
    options = label_error_tasks()["classification"].options
    with pytest.raises(ConfigError, match="eval: is not used, since all rows of --train are chec"):
        build_section(options, {**VALUES, "eval": "e"})
    with pytest.raises(ConfigError, match="report_to: is not used, since no model is kept"):
        build_section(options, {**VALUES, "report_to": ["mlflow"]})
