import json

import pytest
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.training.metrics_log import MetricsLog, read_metrics
from pipeline.report.artifact import loss_curve_lines


def line(step, split="train", loss=1.0):
    return {"step": step, "split": split, "time": 0.5 * step, "loss": loss}


def write(path, lines, **keep_until):
    warnings = []
    log = MetricsLog(path, keep_until=keep_until, warn=warnings.append)
    for item in lines:
        log.write(item)
    log.close()
    assert not warnings


def plotted(path, split):
    """(step, loss) of every event by step, read by TensorFlow's own reader."""
    return sorted(
        (event.step, float(tf.make_ndarray(value.tensor)))
        for file in (path / "tensorboard" / split).iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
        if value.tag == "loss"
    )


def test_lines_beyond_the_checkpoint_are_cut(tmp_path):
    write(tmp_path, [line(10), line(20), line(20, "eval"), line(30), line(30, "eval")])
    write(tmp_path, [line(30, loss=2.0)], train=20, eval=20)
    assert read_metrics(tmp_path / "metrics.jsonl") == [
        line(10),
        line(20),
        line(20, "eval"),
        line(30, loss=2.0),
    ]
    assert plotted(tmp_path, "train") == [(10, 1.0), (20, 1.0), (30, 2.0)]
    assert plotted(tmp_path, "eval") == [(20, 1.0)]


def test_lines_that_the_checkpoint_does_not_know_are_cut(tmp_path):
    """The evaluation at its own step came after it."""
    write(tmp_path, [line(10), line(20), line(20, "eval")])
    write(tmp_path, [line(20, "eval", loss=2.0)], train=20)
    assert read_metrics(tmp_path / "metrics.jsonl") == [
        line(10),
        line(20),
        line(20, "eval", loss=2.0),
    ]
    assert plotted(tmp_path, "eval") == [(20, 2.0)]


def event_files(path):
    return {
        file: (file.read_bytes(), file.stat().st_ino)
        for file in (path / "tensorboard").glob("*/events.*")
    }


def test_event_files_without_events_beyond_the_checkpoint_stay_as_they_are(tmp_path):
    write(tmp_path, [line(10), line(10, "eval")])
    older = event_files(tmp_path)
    write(tmp_path, [line(20), line(30)], train=10, eval=10)
    assert event_files(tmp_path).items() >= older.items()
    write(tmp_path, [line(30, loss=2.0)], train=20, eval=10)
    assert event_files(tmp_path).items() >= older.items()
    assert plotted(tmp_path, "train") == [(10, 1.0), (20, 1.0), (30, 2.0)]
    assert plotted(tmp_path, "eval") == [(10, 1.0)]


def test_events_that_a_killed_process_had_not_written_are_written_again(tmp_path):
    write(tmp_path, [line(10), line(20)])
    [file] = (tmp_path / "tensorboard" / "train").iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    write(tmp_path, [line(30)], train=20)
    assert plotted(tmp_path, "train") == [(10, 1.0), (20, 1.0), (30, 1.0)]


def test_a_half_written_last_line_is_cut(tmp_path):
    write(tmp_path, [line(10)])
    with (tmp_path / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 20, "spl')
    write(tmp_path, [line(20)], train=10)
    assert read_metrics(tmp_path / "metrics.jsonl") == [line(10), line(20)]


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps(line(10)) + "\nnot json\n" + json.dumps(line(20)) + "\n")
    with pytest.raises(InputError, match=r"metrics.jsonl:2: not a line of metrics"):
        read_metrics(path)


def test_the_curve_falls_from_the_upper_left_to_the_lower_right(tmp_path):
    write(tmp_path, [line(step, loss=5.0 - step / 10) for step in range(10, 50, 10)])
    assert loss_curve_lines(tmp_path / "metrics.jsonl", width=4, height=4) == [
        "loss: * train",
        "    4.000 |*   ",
        "    3.000 | *  ",
        "    2.000 |  * ",
        "    1.000 |   *",
        "          +----",
        "           step 1040",
    ]


def test_one_line_is_no_curve(tmp_path):
    write(tmp_path, [line(10)])
    assert loss_curve_lines(tmp_path / "metrics.jsonl") == []
