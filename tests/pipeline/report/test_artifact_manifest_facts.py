"""Numbers of manifests are shown as they are, and long lists of inputs in a few lines."""

from bert_tf.config.sections import ScoreConfig
from bert_tf.tasks.registry import TASKS
from pipeline.report.artifact import (
    changed_settings,
    duration,
    input_facts,
    measured_facts,
    setting_facts,
)


def test_small_settings_are_not_rounded():
    config = {"learning_rate": 5e-5, "adam_epsilon": 1e-6, "steps": 10_000, "size": None}
    assert setting_facts({**config, "phases": [], "cleaning": ["nfc", "html"]}) == [
        (("learning_rate",), "5e-05"),
        (("adam_epsilon",), "1e-06"),
        (("steps",), "10000"),
        (("cleaning",), "[nfc, html]"),
    ]


def test_counts_and_measures_are_to_be_read():
    metrics = {"train": {"split": "train", "loss": 6.43123456, "learning_rate": 1e-12}, "n": 12345}
    assert measured_facts(metrics) == [
        (("train", "loss"), "6.4312"),
        (("train", "learning_rate"), "1e-12"),
        (("n",), "12,345"),
    ]


def given(path, number, key=None):
    item = {"path": path, "bytes": number, "sha256": "0123456789abcdef"}
    return item if key is None else {"key": key, **item}


def test_many_inputs_are_the_first_and_a_total():
    files = [given(f"txt/{number}.txt", 1000) for number in range(403)]
    assert input_facts(files) == [
        ("input", "txt/0.txt  1.0 kB  sha256 0123456789ab"),
        ("input", "txt/1.txt  1.0 kB  sha256 0123456789ab"),
        ("input", "txt/2.txt  1.0 kB  sha256 0123456789ab"),
        ("input", "and 400 more; 403 in all, 403.0 kB"),
    ]
    assert len(input_facts(files[:4])) == 4


def test_inputs_are_listed_by_the_keys_that_name_them():
    inputs = [*(given(f"{n}", 1, f"input[{n}]") for n in range(9)), given("v.txt", 1, "vocab")]
    names = [name for name, _ in input_facts(inputs)]
    assert names == ["input", "input", "input", "input", "input vocab"]
    assert input_facts(inputs)[-1][1] == "v.txt  1 byte  sha256 0123456789ab"


def test_the_time_of_a_resumed_job_is_that_of_all_its_parts():
    assert duration({"total": 3.14}) == "3.1 s"
    assert duration({"total": 4021.0, "last_part": 21.0, "train": 20.0}) == (
        "4,021.0 s, of which 21.0 s since it was resumed"
    )


def test_settings_at_their_defaults_are_counted_and_left_out():
    config = {**ScoreConfig().as_dict(), "limit": 7, "older_key": 0}
    changed, defaults = changed_settings({"command": "score", "config": config})
    assert changed == {"limit": 7, "older_key": 0}
    assert defaults == len(setting_facts(config)) - len(setting_facts(changed))
    assert defaults > 0
    task = {**TASKS["qa"].options().as_dict(), "doc_stride": 5}
    changed, _ = changed_settings({"command": "finetune", "config": {**task, "task": "qa"}})
    assert changed["doc_stride"] == 5
    assert "max_answer_length" not in changed
    for command in ("finetune", "of another tool"):
        assert changed_settings({"command": command, "config": {"a": 1}}) == ({"a": 1}, 0)
