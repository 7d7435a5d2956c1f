"""The jobs `export` and `score` on a tiny model: files, manifests, resuming, refusing."""

from __future__ import annotations

import collections
import contextlib
import csv
import dataclasses
import gzip
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from behavior.engines import check_engine
from behavior.scoring_runs import TASK, Log, config_of, fail, write_rows, write_run
from constant_engine import CONSTANT, ConstantEngine
from memory_storage import MemoryFileSystem

from bert_tf import load
from bert_tf.base.checksums import read_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.sections import ExportConfig, RunnerConfig
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.engines.probes import PROBES
from bert_tf.engines.registry import ENGINES
from bert_tf.engines.saved_model import SavedModelEngine
from bert_tf.tasks.base.prediction_rows import FAR_TEXT
from bert_tf.tasks.profile.distance import TrainingDistance
from bert_tf.tasks.profile.profile import Profile
from bert_tf.weights.model_directory import read_model_directory
from pipeline.jobs import exporting, scoring
from pipeline.outputs.lock import holding_output
from pipeline.outputs.place import OutputPlace
from pipeline.scoring import running
from pipeline.scoring.parts import write_part

pytestmark = pytest.mark.slow  # exports a model, and scores with worker processes

RUNNER = RunnerConfig()


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def model(run_directory) -> Path:
    output = run_directory.parent / "model"
    config = ExportConfig(run=str(run_directory), output=str(output))
    log = Log()
    manifest = exporting.run(config, log.options())
    assert "its run is unfinished; taking its best model so far" in log.stream.getvalue()
    assert manifest["next"].startswith(f"bert-pipeline score --model {output}")
    return output


def test_export_is_a_model_directory_with_a_card(model):
    names = {path.name for path in model.iterdir()}
    assert names >= {
        *("saved_model.pb", "variables", "config.json", "vocab.txt", "model.safetensors"),
        *("task.json", "tokenizer_config.json", "README.md", "manifest.json"),
    }
    assert read_model_directory(model).task == TASK


def test_rows_are_scored_as_the_model_predicts_them(model, tmp_path):
    texts = write_rows(tmp_path / "new.csv")
    log = Log()
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "scored.csv")
    manifest = scoring.run(config, RUNNER, log.options())
    with (tmp_path / "scored.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    wanted = SavedModelEngine(model).predict({"text": texts})
    assert [row["n"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [row["predicted_label"] for row in rows] == wanted["predicted_label"].tolist()
    in_python = load(model).predict([{"body": text} for text in texts])
    assert [row["predicted_label"] for row in in_python] == wanted["predicted_label"].tolist()
    scores = [float(row["predicted_score"]) for row in rows]
    assert scores == pytest.approx(wanted["predicted_score"].tolist(), abs=1e-5)
    assert manifest["counts"] == {
        "rows_in": 5,
        "rows_out": 5,
        "rows_rejected": 0,
        "rejected": {},
        "rows_cut": 0,
        "tokens_lost": 0,
    }
    assert manifest["metrics"]["rows_per_second"] > 0
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        *("new.csv", "scored.csv", "scored.csv.manifest.json", "scored.csv.rejects.jsonl"),
        "scored.csv.report.html",
    }

    again = scoring.run(config, RUNNER, log.options())
    assert again["already_done"]
    with pytest.raises(UsageError, match="made with another config"):
        scoring.run(dataclasses.replace(config, limit=3), RUNNER, log.options())


def test_rows_that_are_cut_are_counted(model, tmp_path):
    rows = ["red film", "good " * 20, "bad " * 14, "blue " * 15]
    (tmp_path / "new.csv").write_text("\n".join(["body", *rows, ""]))
    log = Log()
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "scored.csv", block_rows=2)
    counts = scoring.run(config, RUNNER, log.options())["counts"]
    room = TASK["max_seq_length"] - 2
    lost = [max(0, len(row.split()) - room) for row in rows]
    assert counts["tokens_lost"] == sum(lost)
    assert counts["rows_cut"] == np.count_nonzero(lost)
    assert "warning: 2 of 4 rows (50.0%) are too long for the model and lose 7 tokens" in (
        log.stream.getvalue()
    )


def test_all_probabilities_go_to_columns_and_objects(model, tmp_path):
    texts = write_rows(tmp_path / "new.csv")
    wanted = SavedModelEngine(model).predict({"text": texts})["probabilities"]
    for ending, read in (("csv", pacsv.read_csv), ("parquet", pq.read_table)):
        output = tmp_path / f"scored.{ending}"
        config = config_of(model, tmp_path / "new.csv", output=output, scores="all")
        manifest = scoring.run(config, RUNNER, Log().options())
        table = read(output)
        names = [f"predicted_probabilities_{label}" for label in TASK["labels"]]
        assert table.column_names == ["n", "body", *manifest["columns"]["added"]]
        assert manifest["columns"]["added"][2:] == names
        np.testing.assert_allclose(
            np.array([table[name] for name in names]).T, wanted, rtol=0, atol=1e-6
        )
    output = tmp_path / "scored.jsonl"
    config = config_of(model, tmp_path / "new.csv", output=output, scores="top-1")
    scoring.run(config, RUNNER, Log().options())
    for line in output.read_text().splitlines():
        row = json.loads(line)
        assert row["predicted_ranking"] == [
            {"label": row["predicted_label"], "score": row["predicted_score"]}
        ]


def test_a_dry_run_writes_nothing(model, tmp_path):
    write_rows(tmp_path / "new.csv")
    log = Log()
    config = config_of(
        model, tmp_path / "new.csv", output=tmp_path / "out.csv", dry_run=True, block_rows=9
    )
    found = scoring.run(config, RUNNER, log.options())
    assert found["tables"][0]["rows"] == 5
    assert "nothing was written" in log.stream.getvalue()
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_formulas_of_objects_alone_are_refused(model, tmp_path):
    write_rows(tmp_path / "new.csv")
    output = tmp_path / "out.jsonl"
    config = config_of(model, tmp_path / "new.csv", output=output, escape_formulas=True)
    with pytest.raises(UsageError, match="--escape-formulas: is only for CSV and TSV"):
        scoring.run(config, RUNNER, Log().options())


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_rows_below_a_probability_have_no_label(model, tmp_path, ending):
    texts = write_rows(tmp_path / "new.csv")
    predicted = SavedModelEngine(model).predict({"text": texts})
    below = round(float(np.median(predicted["predicted_score"])), 6)
    output = tmp_path / f"scored.{ending}"
    log = Log()
    config = config_of(model, tmp_path / "new.csv", output=output, abstain_below=below)
    counts = scoring.run(config, RUNNER, log.options())["counts"]
    if ending == "csv":
        with output.open(newline="") as stream:
            rows = [
                {**row, "predicted_label": row["predicted_label"] or None}
                for row in csv.DictReader(stream)
            ]
    else:
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    labels = predicted["predicted_label"].tolist()
    for row, label in zip(rows, labels, strict=True):
        assert row["predicted_label"] == (label if float(row["predicted_score"]) >= below else None)
    undecided = sum(row["predicted_label"] is None for row in rows)
    assert 0 < undecided < 5
    assert (counts["rows_out"], counts["rows_abstained"]) == (5, undecided)
    coverage = (5 - undecided) / 5
    assert f"decided: {5 - undecided} of 5 rows (coverage {coverage:.4f})" in log.stream.getvalue()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_texts_far_from_the_training_rows_have_no_label_but_a_reason(model, tmp_path, ending):
    texts = write_rows(tmp_path / "new.csv")
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    settings = EmbedderSettings.of_model(json.loads((folder / "task.json").read_text()))
    vectors = settings.load(folder).predict({"text": texts})["embedding"]
    distance = TrainingDistance.of(vectors[:3], np.array([0, 1, 1]), vectors)
    Profile(distance=distance).write(folder)
    limit = distance.limit(0.5, "--abstain-far")
    output = tmp_path / f"scored.{ending}"
    log = Log()
    config = config_of(folder, tmp_path / "new.csv", output=output, abstain_far=0.5)
    counts = scoring.run(config, RUNNER, log.options())["counts"]
    if ending == "csv":
        with output.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
    else:
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    reasons = [row["abstained"] or None for row in rows]
    is_far = [reason == FAR_TEXT for reason in reasons]
    assert set(reasons) == {FAR_TEXT, None}
    assert [bool(row["predicted_label"]) for row in rows] == [not far for far in is_far]
    # Of rows as far as the limit, the last bits of the vectors decide.
    beyond = distance.distances(vectors) - limit
    is_clear = np.abs(beyond) > 1e-3
    assert np.array(is_far)[is_clear].tolist() == (beyond > 0)[is_clear].tolist()
    far = sum(is_far)
    assert (counts["rows_abstained"], counts["rows_far"]) == (far, far)
    assert f"farther from the training rows ({far}, beyond" in log.stream.getvalue()


def test_a_model_is_hashed_once(model, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    hashed: collections.Counter[str] = collections.Counter()
    file_digest = hashlib.file_digest

    def count(stream, name):
        path = Path(stream.name)
        if path.is_relative_to(model):
            hashed[str(path.relative_to(model))] += 1
        return file_digest(stream, name)

    monkeypatch.setattr(hashlib, "file_digest", count)
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "scored.csv")
    scoring.run(config, RUNNER, Log().options())
    assert hashed.keys() >= read_sums(model).keys()
    assert hashed.pop("task.json") > 1, "it is small, and checked wherever it is read"
    assert set(hashed.values()) == {1}


def test_a_damaged_model_ends_the_job_before_a_row_is_read(model, tmp_path):
    write_rows(tmp_path / "new.csv")
    folder = shutil.copytree(model, tmp_path / "model")
    weights = next((folder / "variables").glob("variables.data*"))
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    config = config_of(folder, tmp_path / "new.csv", output=tmp_path / "scored.csv")
    with pytest.raises(InputError, match=r"variables\.data.*: has changed since it was written"):
        scoring.run(config, RUNNER, Log().options())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "new.csv"]


def test_files_that_the_engine_does_not_read_may_be_edited(model, tmp_path):
    write_rows(tmp_path / "new.csv")
    folder = shutil.copytree(model, tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"")
    config = config_of(folder, tmp_path / "new.csv", output=tmp_path / "scored.csv")
    assert scoring.run(config, RUNNER, Log().options())["counts"]["rows_out"] == 5


def test_several_tables_go_to_a_folder(model, tmp_path):
    write_rows(tmp_path / "a.csv")
    (tmp_path / "b.jsonl").write_text('{"body": "good", "n": 1.0}\n{"body": ""}\n')
    config = config_of(model, tmp_path / "*.csv", tmp_path / "*.jsonl", output=tmp_path / "out")
    log = Log()
    manifest = scoring.run(config, RUNNER, log.options())
    assert manifest["counts"]["rows_in"] == 7
    place = f"{tmp_path / 'b.jsonl'}:2"
    assert f"1 of 7 rows rejected\n  1  column 'body' is empty, first at {place}\n" in (
        log.stream.getvalue()
    )
    assert manifest["counts"]["rejected"] == {"column 'body' is empty": 1}
    (line,) = (tmp_path / "out" / "b.jsonl").read_text().splitlines()
    assert line.startswith('{"body": "good", "n": 1.0, "predicted_label": "')
    assert len((tmp_path / "out" / "a.csv").read_text().splitlines()) == 6
    (reject,) = (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["line"] == 2


def test_tables_on_other_storage_are_reached_with_its_options(model, tmp_path, files, monkeypatch):
    write_rows(tmp_path / "a.csv")
    files["memory://b/a.csv"] = (tmp_path / "a.csv").read_bytes()
    files["memory://b/b.jsonl.gz"] = gzip.compress(b'{"body": "good"}\n{"body": 1}\n')
    seen = []
    monkeypatch.setattr(
        MemoryFileSystem,
        "__init__",
        lambda self, pipeline_options: seen.append(pipeline_options.get_all_options()),
    )
    config = config_of(model, output=tmp_path / "out", input=["memory://b/*"])
    runner = dataclasses.replace(RUNNER, options=("--s3_region_name=eu-west-1",))
    manifest = scoring.run(config, runner, Log().options())
    assert {given["s3_region_name"] for given in seen} == {"eu-west-1"}
    assert [item["path"] for item in manifest["inputs"]][1:] == list(files)
    (reject,) = (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["source"] == "memory://b/b.jsonl.gz"
    local = config_of(model, tmp_path / "a.csv", output=tmp_path / "local.csv")
    scoring.run(local, RUNNER, Log().options())
    assert (tmp_path / "out" / "a.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_workers_may_have_another_working_folder(model, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    (tmp_path / "elsewhere").mkdir()
    run_pipeline = running.run_pipeline

    def run_elsewhere(*arguments, **options):
        with contextlib.chdir(tmp_path / "elsewhere"):
            run_pipeline(*arguments, **options)

    monkeypatch.setattr(running, "run_pipeline", run_elsewhere)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(model)
    config = config_of(Path("model"), Path("new.csv"), output=Path("scored.csv"))
    manifest = scoring.run(config, RUNNER, Log().options())
    assert manifest["counts"]["rows_out"] == 5
    assert manifest["inputs"][1]["path"] == "new.csv"
    assert len(Path("scored.csv").read_text().splitlines()) == 6


def test_a_worker_that_does_not_see_the_output_reports_it(model, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "scored.csv")
    parts = tmp_path / ".scored.csv.parts"
    run_pipeline = running.run_pipeline

    def run_without_the_folder(*arguments, **options):
        parts.rmdir()
        try:
            run_pipeline(*arguments, **options)
        finally:
            parts.mkdir()

    monkeypatch.setattr(running, "run_pipeline", run_without_the_folder)
    with pytest.raises(UsageError, match=r"\.scored\.csv\.parts: worker \S+ does not see"):
        scoring.run(config, RUNNER, Log().options())


def test_rows_without_a_header_in_another_encoding_are_scored(model, tmp_path):
    (tmp_path / "new.csv").write_bytes("7,film café\n8,bad\n".encode("latin-1"))
    numbered = {"header": False, "encoding": "latin-1", "text_column": "2"}
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "scored.csv", **numbered)
    manifest = scoring.run(config, RUNNER, Log().options())
    assert manifest["counts"]["rows_out"] == 2
    lines = (tmp_path / "scored.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[:2] for line in lines] == [["7", "film café"], ["8", "bad"]]


def test_a_killed_job_leaves_no_output_and_resumes(model, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "scored.csv")

    def fail_at_the_second_block(scored, plan):
        if scored.block.reference.number == 1:
            raise InputError("killed")
        write_part(scored, plan)

    monkeypatch.setattr(running.TableJob, "write_part", staticmethod(fail_at_the_second_block))
    with pytest.raises(InputError, match="killed"):
        scoring.run(config, RUNNER, Log().options())
    assert not (tmp_path / "scored.csv").exists()
    parts = tmp_path / ".scored.csv.parts"
    finished = sorted(path.name for path in parts.glob("*.done.json"))
    assert "part-00000-00000001.done.json" not in finished

    monkeypatch.undo()
    log = Log()
    manifest = scoring.run(config, RUNNER, log.options())
    assert "resuming with the finished blocks of an earlier run" in log.stream.getvalue()
    assert manifest["counts"]["rows_out"] == 5
    assert manifest["metrics"].keys() == {"padding_fraction"}, "some rows were done before"
    assert not parts.exists()


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """Scored rows, one of them rejected; the folder and the manifest."""
    folder = tmp_path_factory.mktemp("whole")
    write_rows(folder / "new.csv")
    with (folder / "new.csv").open("a") as rows:
        rows.write("6\n")
    config = config_of(model, folder / "new.csv", output=folder / "scored.csv")
    return folder, scoring.run(config, RUNNER, Log().options())


@pytest.fixture(scope="module")
def stopped(model, whole, tmp_path_factory):
    """Return the folder of a job that was interrupted when all rows were scored."""
    folder = tmp_path_factory.mktemp("stopped")
    config = config_of(model, whole[0] / "new.csv", output=folder / "scored.csv")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(running, "join_parts", fail)
        scoring.run(config, RUNNER, Log().options())
    return folder


@pytest.mark.parametrize("kind", [".rows", ".rejects.jsonl", ".done.json", "table-00000.json"])
def test_what_was_damaged_after_an_interruption_is_scored_again(
    model, whole, stopped, tmp_path, kind
):
    folder, wanted = whole
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    config = config_of(model, folder / "new.csv", output=tmp_path / "scored.csv")
    damaged = [path for path in (tmp_path / ".scored.csv.parts").iterdir() if kind in path.name]
    assert damaged
    for path in damaged:
        content = path.read_bytes()
        path.write_bytes(
            content[:-4] + bytes([content[-4] ^ 1]) + content[-3:] if content else b"x"
        )
    manifest = scoring.run(config, RUNNER, Log().options())
    assert manifest["counts"] == wanted["counts"]
    for name in ("scored.csv", "scored.csv.rejects.jsonl"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_wrong_column_ends_the_job_before_anything_is_written(model, tmp_path):
    write_rows(tmp_path / "new.csv")
    config = config_of(model, tmp_path / "new.csv", output=tmp_path / "out", text_column="text")
    with pytest.raises(UsageError, match=r"no column 'text'; it has 'n', 'body'"):
        scoring.run(config, RUNNER, Log().options())
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


@pytest.fixture
def any_engine_model(model, tmp_path, monkeypatch) -> Path:
    """Return a model in the formats of two engines, one of them registered for the test."""
    engines = {"tensorflow": ENGINES["tensorflow"], CONSTANT.name: CONSTANT}
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", engines)
    monkeypatch.setattr("bert_tf.config.registries.REGISTRIES.engines", engines)
    folder = shutil.copytree(model, tmp_path / "model")
    (folder / "constant.txt").write_text("fine 0.75")
    (folder / PROBES).unlink()  # scores of the other engine
    return folder


def test_the_engine_of_these_tests_is_one(tmp_path):
    engines = []
    for name, score in (("fine", "0.75"), ("diverged", "nan")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "constant.txt").write_text(f"fine {score}")
        engines.append(ConstantEngine(tmp_path / name))
    check_engine(engines[0], {"text": ["a", "", "b c"]}, diverged=engines[1])


def test_another_engine_scores_and_is_another_config(any_engine_model, tmp_path):
    write_rows(tmp_path / "new.csv")
    files = (any_engine_model, tmp_path / "new.csv")
    config = config_of(*files, output=tmp_path / "scored.csv", engine="constant")
    log = Log()
    manifest = scoring.run(config, RUNNER, log.options())
    assert manifest["engine"] == manifest["config"]["engine"] == "constant"
    assert "engine: constant\n" in log.stream.getvalue()
    header, *rows = (tmp_path / "scored.csv").read_text().splitlines()
    assert header == "n,body,predicted_label,predicted_score"
    assert [row.rpartition("fine,")[2] for row in rows] == ["0.75"] * 5

    automatic = dataclasses.replace(config, engine="auto")
    log = Log()
    assert scoring.run(automatic, RUNNER, log.options())["engine"] == "constant", "it is finished"
    assert "engine:" not in log.stream.getvalue()
    with pytest.raises(UsageError, match="engine: 'constant' then, 'tensorflow' now"):
        scoring.run(dataclasses.replace(config, engine="tensorflow"), RUNNER, Log().options())
    log = Log()
    manifest = scoring.run(automatic, RUNNER, log.options(overwrite=True))
    assert manifest["engine"] == "tensorflow"
    assert manifest["precision"] == "float32"
    assert "engine: tensorflow float32\n" in log.stream.getvalue()
    assert "fine" not in (tmp_path / "scored.csv").read_text()


def test_a_second_run_on_the_same_output_is_refused(any_engine_model, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    files = (any_engine_model, tmp_path / "new.csv")
    output = tmp_path / "scored.csv"
    config = config_of(*files, output=output, engine="constant")
    tried: list[str] = []  # an engine takes its time, which the other process needs
    monkeypatch.setattr(scoring, "choose_engine", lambda *_: tried.append("engine"))
    with (
        holding_output(OutputPlace(output=str(output), is_directory=False), "score", Console()),
        pytest.raises(UsageError, match=r"is being written by another process \(pid .* score"),
    ):
        scoring.run(config, RUNNER, Log().options())
    assert not output.exists()
    assert not tried


def test_parts_of_one_engine_are_not_joined_by_another(any_engine_model, tmp_path, monkeypatch):
    write_rows(tmp_path / "new.csv")
    files = (any_engine_model, tmp_path / "new.csv")
    constant = config_of(*files, output=tmp_path / "scored.csv", engine="constant")
    with monkeypatch.context() as patch:
        patch.setattr(running, "join_parts", fail)
        with pytest.raises(RuntimeError):
            scoring.run(constant, RUNNER, Log().options())
    assert list((tmp_path / ".scored.csv.parts").glob("*.done.json"))
    scoring.run(dataclasses.replace(constant, engine="tensorflow"), RUNNER, Log().options())
    assert "fine" not in (tmp_path / "scored.csv").read_text()
    whole = config_of(*files, output=tmp_path / "whole.csv", engine="tensorflow")
    scoring.run(whole, RUNNER, Log().options())
    assert (tmp_path / "scored.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
