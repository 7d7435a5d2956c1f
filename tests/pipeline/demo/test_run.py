"""The demo is refused before its first stage where a later one would be."""

import io

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from pipeline.demo import run as demo
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.lock import holding_output
from pipeline.outputs.place import OutputPlace


@pytest.fixture
def weights(tmp_path):
    """Return a folder that passes for HuggingFace's at first sight."""
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def run(output, weights):
    return demo.run(str(output), str(weights), RunOptions(console=Console(io.StringIO())))


@pytest.mark.parametrize("place", [".", "demo"])
def test_it_never_writes_into_the_weights(weights, place):
    with pytest.raises(UsageError, match="the input .*weights, which it would (replace|change)"):
        run(weights / place, weights)
    assert [path.name for path in weights.iterdir()] == ["config.json"]


def test_two_demos_do_not_share_a_folder(weights, tmp_path):
    output = tmp_path / "demo"
    with (
        holding_output(OutputPlace(output=str(output), is_directory=True), "demo", Console()),
        pytest.raises(UsageError, match=r"demo: is being written by another process \(pid \d+, "),
    ):
        run(output, weights)
    assert not output.exists()


def test_a_file_in_place_of_the_demo_folder_is_refused(weights, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"--output .*notes\.txt: is a file; give a folder$"):
        run(path, weights)
    assert path.read_text() == "mine"
