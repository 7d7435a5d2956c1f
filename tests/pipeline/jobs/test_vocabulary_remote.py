"""The vocab job with its output on other storage."""

import io
import json

import pytest
from behavior.remote_outputs import FAULTY, SCHEMES, forget_process, local_files, stored_files
from memory_storage import FAULTS, FILES

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, VocabConfig
from pipeline.jobs import vocabulary
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("files")]  # run whole jobs

DATA = ("vocab.txt", "vocab.txt.rejects.jsonl", "vocab.txt.duplicates.jsonl")


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    texts = [f"The quick brown fox number {n % 90} jumps." for n in range(100)]
    lines = [json.dumps({"text": text}) for text in texts]
    path.write_text("\n".join([*lines, "{broken"]) + "\n")
    return path


def run(corpus, output, **values):
    said = io.StringIO()
    overwrite = values.pop("overwrite", False)
    values = {"input": (str(corpus),), "output": output, "vocab_size": 80, **values}
    manifest = vocabulary.run(
        build_section(VocabConfig, {"duplicates": "exact", **values}),
        RunnerConfig(),
        RunOptions(console=Console(said), overwrite=overwrite),
    )
    return manifest, said.getvalue()


def whole(folder, expected):
    """Return whether the vocabulary and all beside it are there, and nothing else."""
    found = stored_files(folder)
    assert found.keys() == {*DATA, "vocab.txt.manifest.json"}
    return {name: found[name] for name in DATA} == expected


@pytest.fixture
def expected(corpus, tmp_path):
    run(corpus, str(tmp_path / "out" / "vocab.txt"))
    made = local_files(tmp_path / "out")
    return {name: made[name] for name in DATA}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_its_bytes_are_those_of_a_local_one(corpus, expected, scheme):
    folder = f"{scheme}://bucket/out"
    manifest, _ = run(corpus, f"{folder}/vocab.txt")
    assert whole(folder, expected)
    assert read_manifest(f"{folder}/vocab.txt")["counts"] == manifest["counts"]
    assert [item["path"] for item in manifest["outputs"]] == [
        "vocab.txt", "vocab.txt.rejects.jsonl", "vocab.txt.duplicates.jsonl",
    ]  # fmt: skip
    forget_process()
    assert run(corpus, f"{folder}/vocab.txt")[0]["already_done"]
    with pytest.raises(UsageError, match=f"{folder}/vocab.txt: made with another config"):
        run(corpus, f"{folder}/vocab.txt", vocab_size=70)
    run(corpus, f"{folder}/vocab.txt", vocab_size=70, overwrite=True)
    assert FILES[f"{folder}/vocab.txt"].count(b"\n") == 70


@pytest.mark.parametrize("fault", FAULTY, ids=lambda fault: "-".join(map(str, fault)))
def test_what_fails_leaves_nothing_or_all(corpus, expected, fault):
    folder = "memory://bucket/out"
    FAULTS.fails = fault
    try:
        run(corpus, f"{folder}/vocab.txt")
    except Exception as error:
        assert "fails on purpose" in str(error)
        finished = read_manifest(f"{folder}/vocab.txt")
        assert finished is None or {name: FILES[f"{folder}/{name}"] for name in DATA} == expected
    forget_process()
    run(corpus, f"{folder}/vocab.txt")
    assert {name: FILES[f"{folder}/{name}"] for name in DATA} == expected
    assert read_manifest(f"{folder}/vocab.txt") is not None
