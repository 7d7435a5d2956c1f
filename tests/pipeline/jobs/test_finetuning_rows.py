"""Rows of `finetune`: rejected ones, rows no model can learn, other encodings, no header."""

from __future__ import annotations

import dataclasses
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from behavior.finetuning_runs import (
    NO_DROPOUT,
    ROWS,
    check_rejects,
    make_config,
    quietly,
    write_inputs,
)

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, TooManyRejects, UsageError
from bert_tf.tasks.profile.profile import read_profile
from bert_tf.tasks.registry import finetune_config
from pipeline.jobs import finetuning
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.rejects import RejectLimit

pytestmark = pytest.mark.slow  # trains, and compiles the step each time

NUMBERED = {"header": False, "encoding": "latin-1", "text_column": "2", "label_column": "1"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("finetuning"))


@pytest.mark.parametrize("limit", ["1", "30%", "0.1"])
def test_too_many_rejected_rows_end_a_run_before_it_trains(place, limit):
    output = place / f"limited-{limit}"
    said = io.StringIO()
    options = RunOptions(console=Console(said), max_rejects=RejectLimit.parse(limit))
    with pytest.raises(TooManyRejects) as refused:
        finetuning.run(make_config(place, output.name), options)
    message = str(refused.value)
    assert f"rejected, more than --max-rejects {limit} allows: 1 × " in message
    assert f"(all in {output / 'rejects.jsonl'}); correct the rows or raise" in message
    assert "\n" not in message
    assert not (output / "metrics.jsonl").exists()
    assert not (output / "manifest.json").exists()
    check_rejects(place, output, said.getvalue())


@pytest.mark.parametrize(
    ("task", "labels", "message"),
    [
        (
            "classification",
            [" ", "x", ""],
            "2 of 3 rows rejected: 2 × .*empty.* of the rest: .*'x'",
        ),
        ("classification", ["", ""], "none of its 2 rows can be used: 2 × column 'label' is empty"),
        (
            "regression",
            ["0", "0", '"1,000"'],
            "1 of 3 rows rejected: 1 × .*'1,000'.* of the rest: ",
        ),
    ],
)
def test_a_run_that_ends_for_want_of_labels_says_why_rows_are_rejected(
    place, task, labels, message
):
    train, output = place / "labels.csv", place / "no-labels"
    train.write_text("text,label\n" + "".join(f"film,{label}\n" for label in labels))
    values = {"task": task, "train": str(train), "init": str(place / "init"), "output": str(output)}
    with pytest.raises(InputError, match=message) as refused:
        finetuning.run(finetune_config(values), RunOptions(console=Console(io.StringIO())))
    assert str(refused.value).endswith(f"(all rejected rows: {output / 'rejects.jsonl'})")
    assert (output / "rejects.jsonl").read_text().count("reason") == int(
        re.search(r"(\d+) ×", str(refused.value))[1]
    )


@pytest.mark.parametrize("side", ["train", "eval"])
def test_rows_that_no_model_can_learn_end_a_run_before_it_trains(place, side):
    """Each text has three labels, so the best possible accuracy is a third."""
    rows, output = place / f"contradictory-{side}.csv", f"contradictory-{side}"
    labels = ("good", "bad", "bad", "good", "good", "odd", "odd", "odd", "bad")
    cells = [f"{text},{label}" for text in ("red", "blue film") for label in labels]
    rows.write_text("\n".join(["text,label", *cells, ""]))
    config = dataclasses.replace(make_config(place, output), **{side: str(rows)})
    options = dataclasses.replace(quietly(), max_rejects=RejectLimit.parse("34%"))
    if side == "eval":
        rows.write_text(rows.read_text().replace("odd", "bad").replace("good\n", "bad\n", 2))
        config = dataclasses.replace(config, min_ceiling=0.9)
    with pytest.raises(
        InputError, match="accuracy can reach 0.* rows have the texts of"
    ) as refused:
        finetuning.run(config, options)
    assert "decide on one label for each text (--min-ceiling 0 continues" in str(refused.value)
    assert not (place / output / "metrics.jsonl").exists()
    assert not (place / output / "best").exists()


def test_latin_1_is_suggested_and_read_and_without_evaluation_the_last_model_is_kept(place):
    train = place / "latin.csv"
    train.write_bytes((ROWS + "film café,good\n").encode("latin-1"))
    config = dataclasses.replace(
        make_config(place, "latin", **NO_DROPOUT), train=str(train), epochs=2.0
    )
    said = io.StringIO()
    options = RunOptions(console=Console(said), max_rejects=RejectLimit.parse("0"))
    with pytest.raises(TooManyRejects, match="give --encoding cp1252, else correct the rows"):
        finetuning.run(dataclasses.replace(config, eval=None), options)
    read = dataclasses.replace(config, eval=None, eval_fraction=0.0, encoding="latin-1")
    manifest = finetuning.run(read, options)
    assert manifest["counts"]["rows_out"] == 7, "into the folder of before"
    assert (place / "latin" / "rejects.jsonl").read_text() == ""
    assert manifest["eval_rows"] is None
    assert manifest["best_model"] == {
        "step": 4, "epoch": 2.0, "phase": None, "metric": None, "value": None,
        "best_epoch": None, "best_value": None, "error": None, "rows": None,
    }  # fmt: skip
    line = "the model of the last epoch (step 4); there was no evaluation to choose by"
    assert line in said.getvalue()


def test_rows_without_a_header_are_trained_on_by_number(place):
    rows = place / "unnamed.csv"
    rows.write_bytes("good,film café\nbad,red film\n".encode("latin-1"))
    config = dataclasses.replace(
        make_config(place, "numbered", **NO_DROPOUT),
        train=str(rows),
        eval=str(rows),
        epochs=0.5,
        **NUMBERED,
    )
    manifest = finetuning.run(config, quietly())
    assert manifest["counts"]["train"]["rows_in"] == manifest["counts"]["eval"]["rows_in"] == 2
    assert manifest["task"]["columns"] == {"text": "2", "text_pair": None, "label": "1"}


def test_a_worker_beside_the_chief_writes_nothing(place, monkeypatch):
    trained = []
    monkeypatch.setattr(finetuning, "is_chief_process", lambda _: False)
    monkeypatch.setattr(finetuning, "finetune", lambda config, console, _: trained.append(config))
    config = make_config(place, "of_the_chief")
    assert finetuning.run(config, quietly()) == {}
    assert trained == [config]
    assert not (place / "of_the_chief").exists()


@pytest.mark.parametrize("flag", ["train", "eval", "init"])
def test_missing_inputs_are_named_by_their_flag(place, flag):
    config = dataclasses.replace(make_config(place, "never"), **{flag: "gone"})
    with pytest.raises(UsageError, match=f"--{flag} gone: no such file or folder"):
        finetuning.run(config, quietly())
    assert not (place / "never").exists()


def test_a_dry_run_shows_time_and_costs_and_writes_nothing(place):
    said = io.StringIO()
    config = dataclasses.replace(
        make_config(place, "dry"), dry_run=True, price_per_hour=3600.0, watts=3.6e6
    )
    found = finetuning.run(config, RunOptions(console=Console(said)))
    assert found["dry_run"] and found["rows"] == 6 and found["rejected"] == 2
    assert found["steps"] == 5 * 2
    assert found["cost"] == pytest.approx(found["seconds"])
    assert found["kwh"] == pytest.approx(found["seconds"])
    assert "  time here   0:00:" in said.getvalue() and " kWh" in said.getvalue()
    assert "dry run: nothing was written" in said.getvalue()
    assert not (place / "dry").exists()
    twice = finetuning.run(
        dataclasses.replace(config, seeds=2), RunOptions(console=Console(io.StringIO()))
    )
    assert twice["runs"] == 2


def test_the_means_that_are_kept_are_those_of_the_rows_of_each_label(monkeypatch, tmp_path):
    """Some of 2,500 rows are compared, and progress counts all of these."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 2500)
    # The vector of a text is what it says.
    texts = [f"{label * 4} {rng.normal():.3f}" for label in labels.tolist()]
    asked, shown = [], []

    class Embedder:
        def predict(self, columns, *, on_rows):
            asked.append(columns["text"])
            on_rows(len(columns["text"]))
            return {"embedding": np.array([text.split() for text in columns["text"]], np.float32)}

    class Shows(Console):
        def progress(self, advance):
            shown.append(advance.text)
            return super().progress(advance)

    settings = SimpleNamespace(load=lambda folder: Embedder())
    monkeypatch.setattr(finetuning.EmbedderSettings, "of_model", lambda task: settings)
    result = SimpleNamespace(
        task=SimpleNamespace(
            gold_numbers=lambda source: labels,
            texts=lambda source: {"text": source},
            settings=dict,
        ),
        train=SimpleNamespace(source=texts),
        evaluation=SimpleNamespace(source=texts[:1200]),
    )
    (tmp_path / "best").mkdir()
    stream = io.StringIO()
    config = SimpleNamespace(output=str(tmp_path / "best"))
    finetuning.note_distance(config, result, Shows(stream, log_seconds=0.0))
    assert [len(each) for each in asked] == [2000, 1000]
    distance = read_profile(tmp_path / "best").distance
    assert len(distance.evaluation) == 1000
    of_label = [
        np.mean(
            [np.float64(text.split()) for text in asked[0] if text.startswith(str(label * 4))], 0
        )
        for label in range(3)
    ]
    np.testing.assert_allclose(distance.means, of_label, rtol=1e-3, atol=1e-3)
    assert "2,000" in shown[0]
    assert "3,000" in shown[-1]
    assert "comparing rows" in stream.getvalue()
