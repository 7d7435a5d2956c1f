"""The preprocess job with its output on other storage: the same bytes, resumed, whole or not."""

import io
import re

import pytest
from behavior.remote_outputs import FAULTY, SCHEMES, forget_process, local_files, stored_files
from behavior.stored_corpus import write_corpus
from memory_storage import FAULTS, FILES

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.jobs import pretraining_examples
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("files")]  # run whole jobs


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), 40)


def run(corpus, output, **changes):
    said = io.StringIO()
    values = {
        "input": (str(corpus / "corpus.jsonl"),),
        "vocab": str(corpus / "vocab.txt"),
        "output": output,
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "eval_fraction": 0.1,
        "num_shards": 2,
        "duplicates": "exact",
        "masking": "dynamic",
        **changes,
    }
    manifest = pretraining_examples.run(
        build_section(PreprocessConfig, values),
        RunnerConfig(),
        RunOptions(console=Console(said)),
    )
    return manifest, said.getvalue()


def content(files):
    """Return all files but those that tell when and where they were made."""
    return {
        name: data for name, data in files.items() if name not in ("manifest.json", "config.yaml")
    }


@pytest.fixture(scope="module")
def expected(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("local") / "data"
    run(corpus, str(folder))
    return content(local_files(folder))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_its_bytes_are_those_of_a_local_one(corpus, expected, scheme):
    folder = f"{scheme}://bucket/data"
    manifest, said = run(corpus, folder)
    assert content(stored_files(folder)) == expected
    assert [each["path"] for each in manifest["outputs"]] == sorted(expected)
    assert f"{folder}/train-*-of-00002.tfrecord  training records" in said
    assert manifest["next"].startswith(f"bert-pipeline train --data {folder} --output")
    forget_process()
    vocab = f"{scheme}://bucket/vocab.txt"
    FILES[vocab] = (corpus / "vocab.txt").read_bytes()
    assert run(corpus, folder, vocab=vocab)[0]["already_done"]
    with pytest.raises(UsageError, match=rf"{vocab}-: no such vocabulary"):
        run(corpus, folder, vocab=f"{vocab}-")


@pytest.mark.parametrize("fault", FAULTY, ids=lambda fault: fault[0])
def test_what_fails_is_taken_up_again(corpus, expected, fault):
    folder = "memory://bucket/data"
    FAULTS.fails = fault
    with pytest.raises(Exception, match="fails on purpose"):
        run(corpus, folder)
    assert read_manifest(folder) is None
    forget_process()
    _, said = run(corpus, folder)
    assert content(stored_files(folder)) == expected
    assert "found an unfinished run with the same config; resuming it" in said
    assert not [name for name in FILES if "unfinished" in name]


def test_finished_work_is_not_done_again(corpus, expected, monkeypatch):
    folder = "memory://bucket/data"

    def fail(*args, **values):
        raise RuntimeError("stopped before the shards")

    monkeypatch.setattr("pipeline.examples.steps.write_shard", fail)
    with pytest.raises(Exception, match="stopped before the shards"):
        run(corpus, folder)
    monkeypatch.undo()
    forget_process()
    monkeypatch.setattr("pipeline.examples.steps.tokenize_block", fail)
    monkeypatch.setattr("pipeline.outputs.lock._SETTLE_SECONDS", 0.0)
    manifest, said = run(corpus, folder)
    assert manifest["found_finished"] == {"blocks": 1, "pools": 1, "shards": 0}
    found = r"already finished: 1 block of text, 1 of at most \d+ tasks? on pools, 0 of \d+ shards"
    assert re.search(found, said)
    assert content(stored_files(folder)) == expected
