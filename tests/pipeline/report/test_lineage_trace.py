"""The origin of artifacts: found, changed and missing inputs."""

from pathlib import Path

import pytest

from bert_tf.base.errors import InputError
from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.manifest import describe_files, read_manifest, write_manifest
from pipeline.report import lineage
from pipeline.report.lineage import CHANGED, MISSING, NOT_COMPARED, SAME, trace


def make(path, command, inputs):
    """Finishes an artifact that was made from other paths, as the manifest of a job has it."""
    read = [{"key": key, **fingerprint(source)} for key, source in inputs]
    write_manifest(
        path, {"command": command, "inputs": read, "outputs": describe_files(Path(path), {})}
    )


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """Return a scored file, from a model, from the best weights of a run, from rows.

    As relative paths.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "new.csv", "scored.csv", "run/best/weights", "model/weights"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    make("run", "finetune", [("train", "rows.csv")])
    make("model", "export", [("run", "run/best")])
    make("scored.csv", "score", [("model", "model"), ("input", "new.csv")])
    return tmp_path


def traced(path):
    return trace(path, read_manifest(path))


def test_every_step_is_followed_to_files_that_no_job_made(chain):
    made = traced(chain / "scored.csv")
    model, new = made.sources
    (run,) = model.made.sources
    (rows,) = run.made.sources
    assert [source.state for source in (model, new, run, rows)] == [SAME] * 4
    assert (new.made, rows.made) == (None, None)
    made_by = [each.manifest["command"] for each in (run.made, model.made, made)]
    assert made_by == ["finetune", "export", "score"]


def test_relative_paths_are_found_from_another_folder(chain, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    (rows,) = traced(chain / "run").sources
    assert rows.place == chain / "rows.csv"


def test_what_changed_or_is_gone_is_not_followed(chain):
    (chain / "new.csv").write_text("other")
    (chain / "model" / "weights").write_text("edited")
    model, new = traced(chain / "scored.csv").sources
    assert (model.state, model.made, new.state) == (CHANGED, None, CHANGED)
    (chain / "new.csv").unlink()
    assert traced(chain / "scored.csv").sources[1].state == MISSING


def test_long_content_is_not_compared(chain, monkeypatch):
    monkeypatch.setattr(lineage, "LARGEST_BYTES_HASHED", 3)
    model, new = traced(chain / "scored.csv").sources
    assert (model.state, new.state) == (NOT_COMPARED, NOT_COMPARED)
    assert model.made is not None


def test_a_file_beside_an_artifact_is_not_a_part_of_it(chain):
    (chain / "run" / "notes.txt").write_text("by hand")
    make("model", "export", [("run", "run/notes.txt")])
    (notes,) = traced(chain / "model").sources
    assert notes.made is None


def test_a_damaged_manifest_on_the_way_is_named(chain):
    path = chain / "run" / "manifest.json"
    path.write_text(path.read_text().replace("finetune", "pretrain"))
    with pytest.raises(InputError, match="run/manifest.json: damaged"):
        traced(chain / "scored.csv")
