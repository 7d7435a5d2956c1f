"""`score --update`, which a scheduler runs every night on a folder that files are added to."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from constant_engine import CONSTANT

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.registry import ENGINES
from pipeline.cli.command import complaint_of_run
from pipeline.cli.preflight import check_request
from pipeline.jobs import scoring
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.rejects import RejectLimit
from pipeline.scoring import running, updating

TASK = {"task": "classification", "labels": ["fine"], "columns": {"text": "text", "label": "l"}}


class Night:
    """A model, a folder of inputs, and the command that a scheduler runs."""

    def __init__(self, place):
        self.place = place
        for name in ("model", "new"):
            (place / name).mkdir()
        self.train(0.75)

    def train(self, score):
        (self.place / "model" / "constant.txt").write_text(f"fine {score}")
        (self.place / "model" / "task.json").write_text(json.dumps(TASK))

    def write(self, name, *texts):
        rows = "".join(f"{text}\n" for text in texts)
        (self.place / "new" / name).write_text(f"text\n{rows}")

    def run(self, **values):
        config = build_section(
            ScoreConfig,
            {
                "model": str(self.place / "model"),
                "input": [str(self.place / "new" / "*.csv")],
                "output": str(self.place / "scored"),
                "engine": "constant",
                "update": True,
                **values,
            },
        )
        self.said = io.StringIO()
        finished = check_request("score", [config], overwrite=False)
        if finished is not None:
            return finished
        options = RunOptions(console=Console(self.said))
        return scoring.run(config, RunnerConfig(), options)

    def outputs(self):
        return {
            path.name: path.read_text().splitlines()[1:]
            for path in sorted((self.place / "scored").glob("*.csv"))
        }


@pytest.fixture
def night(tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES, CONSTANT.name, CONSTANT)
    return Night(tmp_path)


def test_only_new_and_changed_files_are_scored(night):
    assert night.run() == {}
    assert "no file matches yet; nothing to do" in night.said.getvalue()
    night.write("a.csv", "x")
    night.write("b.csv", "y", "", "z")
    assert night.run()["counts"]["rows_out"] == 3
    kept = (night.place / "scored" / "a.csv").stat()
    manifest = night.run()
    assert manifest["counts"]["rows_out"] == 3
    night.write("b.csv", "y", "", "new")
    night.write("c.csv", "w")
    manifest = night.run()
    assert "2 of 3 inputs to score" in night.said.getvalue()
    assert "unfinished" not in night.said.getvalue()
    assert manifest["counts"]["rows_out"] == 3
    assert night.outputs() == {
        "a.csv": ["x,fine,0.75"],
        "b.csv": ["y,fine,0.75", "new,fine,0.75"],
        "c.csv": ["w,fine,0.75"],
    }
    now = (night.place / "scored" / "a.csv").stat()
    assert (now.st_ino, now.st_mtime_ns) == (kept.st_ino, kept.st_mtime_ns)
    keys = {each["key"] for each in manifest["inputs"]}
    assert keys == {"model", "input[a.csv]", "input[b.csv]", "input[c.csv]"}
    assert {each["path"] for each in manifest["outputs"]} >= {"a.csv", "b.csv", "c.csv"}
    names = {path.name for path in (night.place / "scored").iterdir() if path.name[0] == "."}
    assert names <= {".seconds"}


def test_rejects_of_kept_files_stay_listed(night):
    night.write("a.csv", "x", '"" y', "z")
    night.write("b.csv", "y")
    night.run()
    night.write("b.csv", "y", '"" w')
    night.run()
    rejects = (night.place / "scored" / "rejects.jsonl").read_text().splitlines()
    lines = [
        (json.loads(each)["source"].rpartition("/")[2], json.loads(each)["line"])
        for each in rejects
    ]
    assert lines == [("a.csv", 3), ("b.csv", 3)]


def test_rejects_of_kept_files_outlive_a_killed_update(night, monkeypatch):
    night.write("a.csv", "x", '"" y')
    night.run()
    night.write("b.csv", "y")
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(scoring, "write_text_atomically", lambda *_: 1 / 0)  # the page, after joining
        night.run()
    night.run()
    [reject] = (night.place / "scored" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["source"].endswith("a.csv")
    assert not list((night.place / "scored").glob(".before*"))


def test_another_model_or_a_lost_output_is_scored_again(night):
    night.write("a.csv", "x")
    night.write("b.csv", "y")
    night.run()
    (night.place / "scored" / "a.csv").unlink()
    night.run()
    assert "1 of 2 inputs to score" in night.said.getvalue()
    night.train(0.5)
    night.run()
    assert night.outputs() == {"a.csv": ["x,fine,0.5"], "b.csv": ["y,fine,0.5"]}


def test_a_killed_update_goes_on_although_files_were_added(night, monkeypatch):
    night.write("a.csv", "x")
    night.run()
    for number in range(3):
        night.write("b.csv", f"y{number}")
        night.write(f"c{number}.csv", "z")
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            patch.setattr(running, "join_parts", lambda *_: 1 / 0)
            night.run()
    manifest = night.run()
    assert night.outputs() == {
        "a.csv": ["x,fine,0.75"],
        "b.csv": ["y2,fine,0.75"],
        **{f"c{number}.csv": ["z,fine,0.75"] for number in range(3)},
    }
    assert manifest["counts"]["rows_out"] == 4  # a.csv was up to date all the time
    assert night.run()["counts"]["rows_out"] == 4


def names_and_rows(night):
    scored = night.place / "scored"
    paths = sorted(scored.rglob("*.csv"))
    return {str(path.relative_to(scored)): path.read_text().splitlines()[1:] for path in paths}


def test_outputs_keep_their_names_when_files_of_the_same_name_are_added(night, monkeypatch):
    for folder in ("x", "y", "z"):
        (night.place / folder).mkdir()
    night.write("../x/a.csv", "one")
    inputs = [str(night.place / "[xyz]" / "*.csv")]
    night.run(input=inputs)
    assert names_and_rows(night) == {"a.csv": ["one,fine,0.75"]}
    night.write("../y/a.csv", "two")
    manifest = night.run(input=inputs)
    assert names_and_rows(night) == {"a.csv": ["one,fine,0.75"], "y/a.csv": ["two,fine,0.75"]}
    assert manifest["counts"]["rows_out"] == 1
    monkeypatch.chdir(night.place)  # the same files by other paths
    night.run(input=["x/*.csv", "y/*.csv"])
    assert "nothing to do" in night.said.getvalue()
    (night.place / "x" / "a.csv").unlink()
    night.write("../z/a.csv", "three")
    night.run(input=inputs)
    assert names_and_rows(night) == {
        "a.csv": ["one,fine,0.75"],
        "y/a.csv": ["two,fine,0.75"],
        "z/a.csv": ["three,fine,0.75"],
    }
    night.run(input=inputs)
    assert "nothing to do" in night.said.getvalue()


def test_kept_files_keep_rejects_and_drift_under_another_path(night, monkeypatch):
    night.write("a.csv", "x", '"" y')
    night.run(input=[str(night.place / "new" / "*.csv")])
    path = night.place / "scored" / "manifest.json"
    before = json.loads(path.read_text())
    drift = {"rows": 1, "rows_needed": 0, "differences": []}
    before["drift"] = [{**drift, "source": str(night.place / "new" / "a.csv")}]
    table = SimpleNamespace(name="a.csv", source="./new/a.csv")
    assert list(updating.kept_drift(before, [table])) == ["./new/a.csv"]
    monkeypatch.chdir(night.place)
    for number, folder in enumerate(("new", "./new", str(night.place / "new"), "new")):
        night.write(f"b{number}.csv", "z")
        manifest = night.run(input=[f"{folder}/*.csv"])
        assert manifest["counts"]["rows_out"] == 1
        [reject] = (night.place / "scored" / "rejects.jsonl").read_text().splitlines()
        [kept] = [each for each in manifest["files"]["kept"] if each.endswith("a.csv")]
        assert json.loads(reject)["source"] == kept
        assert (json.loads(reject)["line"], Path(kept)) == (3, Path(folder) / "a.csv")


def test_manifest_and_page_say_which_files_were_scored(night):
    night.write("a.csv", "x")
    night.write("b.csv", "y")
    night.run()
    night.write("b.csv", "z")
    manifest = night.run()
    names = {
        key: [source.rpartition("/")[2] for source in sources]
        for key, sources in manifest["files"].items()
    }
    assert names == {"scored": ["b.csv"], "kept": ["a.csv"]}
    page = (night.place / "scored" / "report.html").read_text()
    assert "1 other file of the folder stays as an earlier run scored" in page
    assert "Files of earlier runs" in page and "a.csv" in page


def test_the_page_names_files_of_one_name_by_their_folders(night):
    for folder in "xyz":
        (night.place / folder).mkdir()
        night.write(f"../{folder}/a.csv", folder)
    night.run(input=[str(night.place / "[xy]" / "*.csv")])
    page = (night.place / "scored" / "report.html").read_text()
    assert "x/a.csv" in page and "y/a.csv" in page
    night.run(input=[str(night.place / "[xyz]" / "*.csv")])
    earlier = (night.place / "scored" / "report.html").read_text().partition("Files of earlier")[2]
    assert "x/a.csv" in earlier and "y/a.csv" in earlier
    assert "z/a.csv" not in earlier


def test_another_config_and_a_single_file_are_refused(night):
    night.write("a.csv", "x")
    night.run()
    with pytest.raises(UsageError, match="made with another config .*scores"):
        night.run(scores="all")
    with pytest.raises(UsageError, match="--update: needs a folder as --output"):
        night.run(output=str(night.place / "one.csv"))


def test_a_new_file_without_rows_is_no_error_beside_finished_ones(night):
    night.write("a.csv", "x")
    night.run()
    night.write("b.csv")
    night.run()
    assert "b.csv: has no rows" in night.said.getvalue()
    assert night.outputs() == {"a.csv": ["x,fine,0.75"], "b.csv": []}
    night.run()
    assert "nothing to do" in night.said.getvalue()


def test_an_update_with_nothing_to_do_has_nothing_to_complain_of(night):
    night.write("a.csv", "x", '"" y')
    night.run()
    config = build_section(
        ScoreConfig, {"model": "m", "input": ["i"], "output": "o", "update": True}
    )
    options = RunOptions(console=Console(io.StringIO()), max_rejects=RejectLimit.parse("0"))
    manifest = night.run()
    assert manifest["already_done"]
    assert complaint_of_run(manifest, config, options) is None
    assert complaint_of_run({**manifest, "already_done": False}, config, options) is not None
    assert complaint_of_run({"dry_run": True}, config, options) is None


def test_only_files_that_an_update_scored_fail_on_drift():
    config = build_section(
        ScoreConfig,
        {"model": "m", "input": ["i"], "output": "o", "update": True, "fail_on_drift": True},
    )
    options = RunOptions(console=Console(io.StringIO()))
    drift = [{"source": "old.csv", "is_like_training": False}]
    manifest = {"drift": drift, "files": {"scored": ["new.csv"], "kept": ["old.csv"]}}
    assert complaint_of_run(manifest, config, options) is None
    manifest["files"]["scored"].append("old.csv")
    assert "old.csv" in str(complaint_of_run(manifest, config, options))
