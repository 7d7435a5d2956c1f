"""Lines to a tracker that fails, is slow, or has some of them already."""

import threading
import time

import pytest

from bert_tf.training.tracking.tracker import TrackerSender


def line(step, split="train"):
    return {"step": step, "split": split, "time": 0.5 * step, "loss": 1.0}


class Tracker:
    """One that has lines already, and fails as it should."""

    def __init__(self, newest=(), failures=()):
        self.made = time.time()
        self.newest = dict(newest)
        self.failures = list(failures)
        self.lines = []
        self.ended = []

    def newest_steps(self):
        return self.newest

    def write(self, line, seconds):
        assert self.made <= seconds <= time.time()
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        self.lines.append((line["split"], line["step"]))

    def close(self, *, is_finished):
        self.ended.append(is_finished)


def send(open_tracker, lines, kept=(), is_finished=True, **options):
    """Warnings about a run that resumes after some lines."""
    warnings = []
    sender = TrackerSender("mlflow", open_tracker, kept, warn=warnings.append, **options)
    for each in lines:
        sender.write(each)
    sender.close(is_finished=is_finished)
    return warnings


def test_what_the_tracker_has_is_not_sent_again_and_what_it_lacks_is():
    tracker = Tracker(newest={"train": 30, "eval": 10})
    kept = [line(10), line(10, "eval"), line(20), line(20, "eval")]
    assert not send(lambda: tracker, [line(30), line(40)], kept=kept, is_finished=False)
    assert tracker.lines == [("eval", 20), ("train", 40)]
    assert tracker.ended == [False]


def test_failures_cost_one_warning_and_no_line():
    tracker = Tracker(failures=[None, ConnectionError("refused\nby the server"), OSError("again")])
    warnings = send(lambda: tracker, [line(step) for step in range(5)], retry_seconds=0.0)
    assert tracker.lines == [("train", step) for step in range(5)]
    assert warnings == [
        "mlflow: cannot be written to (refused); training continues and missing entries will be "
        "retried"
    ]
    assert tracker.ended == [True]


def test_a_tracker_that_opens_late_gets_all_lines():
    tracker, answers = Tracker(), [ConnectionError("refused"), SystemExit()]

    def open_tracker():
        if answers:
            raise answers.pop(0)
        return tracker

    assert len(send(open_tracker, [line(1), line(2)], kept=[line(0)], retry_seconds=0.0)) == 1
    assert tracker.lines == [("train", 0), ("train", 1), ("train", 2)]


def test_a_tracker_that_is_away_is_tried_a_minute_later_and_at_the_end():
    tries = []

    def open_tracker():
        tries.append(1)
        raise ConnectionError("refused")

    warnings = send(open_tracker, [line(step) for step in range(100)])
    assert len(tries) == 2
    assert warnings[-1] == "mlflow: 100 lines of the run could not be sent; metrics.jsonl has them"
    assert len(warnings) == 2


def test_a_tracker_that_hangs_holds_nothing_up():
    answer = threading.Event()
    warnings = send(answer.wait, [line(1), line(2)], kept=[line(0)], closing_seconds=0.05)
    assert warnings == ["mlflow: 3 lines of the run could not be sent; metrics.jsonl has them"]
    answer.set()


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_run_without_lines_is_opened_and_ended(is_finished):
    tracker = Tracker()
    assert not send(lambda: tracker, [], is_finished=is_finished)
    assert tracker.ended == [is_finished]
