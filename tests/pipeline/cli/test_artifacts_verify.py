"""What `verify` says of whole, damaged and unfinished artifacts."""

import json

import pytest

from pipeline.outputs.manifest import describe_files, write_manifest


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(bytes(1500))
    write_manifest(folder, {"command": "export", "outputs": describe_files(folder, {})})
    return folder


def test_whole_artifacts_are_ok(run, model):
    code, out, _, _ = run(["verify", str(model), str(model)])
    assert (code, out.splitlines()) == (0, [f"{model}: OK, 1 file unchanged (1.5 kB)"] * 2)


def test_differences_are_named_and_all_artifacts_are_read(run, model):
    (model / "weights").write_bytes(bytes(1499) + b"\1")
    code, out, _, _ = run(["verify", str(model), str(model)])
    assert code == 1
    assert out.splitlines() == 2 * [
        f"{model}: weights (another SHA-256)",
        f"{model}: FAILED, 1 of 1 file changed or missing",
    ]
    code, out, err, _ = run(["verify", str(model), "--json"])
    assert (code, err.count("FAILED")) == (1, 1)
    (found,) = json.loads(out)
    assert (found["is_whole"], found["differences"]) == (False, ["weights (another SHA-256)"])


def test_what_is_no_artifact_is_refused(run, tmp_path):
    code, _, err, _ = run(["verify", str(tmp_path)])
    assert code == 2
    assert "not an output of bert-pipeline" in err
