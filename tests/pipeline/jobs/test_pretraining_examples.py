"""The preprocess job: the same bytes however it runs, whole or not there, and its output."""

import io
import json
import random
from pathlib import Path

import apache_beam as beam
import pytest
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.parsing import feature_spec
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import match_files
from pipeline.beam.runner import run_pipeline
from pipeline.corpus.read import ReadDocuments
from pipeline.corpus.readers.formats import look_at_text
from pipeline.examples import steps, transforms
from pipeline.examples.plan import ExamplesPlan
from pipeline.examples.pool import NO_OTHER_DOCUMENT
from pipeline.examples.steps import ExamplesJob
from pipeline.examples.transforms import WriteExamples
from pipeline.jobs import pretraining_examples
from pipeline.outputs.job_spec import RunOptions
from pipeline.report.page import artifact_page
from pipeline.report.records import record_lines, summarize_records

pytestmark = pytest.mark.slow  # runs whole jobs, one of them on a job server

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
VOCAB = [*SPECIAL_TOKENS, *WORDS, "##s", "."]


@pytest.fixture(scope="module")
def documents() -> list[str]:
    """60 documents of 3 to 20 sentences, one of them twice."""
    source = random.Random(0)
    texts = [
        "\n".join(
            " ".join(source.choices(WORDS, k=source.randint(2, 12))) + " ."
            for _ in range(source.randint(3, 20))
        )
        for _ in range(60)
    ]
    return [*texts, texts[5]]


@pytest.fixture
def folder(tmp_path, documents) -> Path:
    write_corpus(tmp_path / "corpus.txt", documents)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    return tmp_path


def write_corpus(path: Path, documents: list[str]) -> None:
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")


def config_of(folder: Path, **values) -> PreprocessConfig:
    values = {
        "input": [str(folder / "corpus.txt")],
        "vocab": str(folder / "vocab.txt"),
        "output": str(folder / "data"),
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "eval_fraction": 0.1,
        "num_shards": 2,
        **values,
    }
    return build_section(PreprocessConfig, values)


def run(config: PreprocessConfig, *, overwrite: bool = False, **runner_values):
    """Run the job, and return its manifest and its output."""
    said = io.StringIO()
    runner = build_section(RunnerConfig, {"workers": 1, **runner_values})
    options = RunOptions(overwrite=overwrite, console=Console(said))
    return pretraining_examples.run(config, runner, options), said.getvalue()


def shards_in(folder: str | Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.tfrecord*"))}


def records_in(path: Path, names: str = "reference") -> dict[str, tf.Tensor]:
    compression = "GZIP" if path.name.endswith(".gz") else ""
    records = list(tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator())
    return tf.io.parse_example(records, feature_spec(32, 5, names))


def test_the_output_is_what_trainers_expect(folder):
    manifest, said = run(config_of(folder))
    data = PretrainingData.from_manifest(folder / "data", manifest)
    assert data.train_shards == (
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    )
    assert data.eval_shards == ("eval-00000-of-00001.tfrecord",)
    assert (folder / "data" / "vocab.txt").read_text() == "\n".join(VOCAB) + "\n"
    assert not (folder / "data" / "rejects.jsonl").exists()
    counts = manifest["counts"]
    assert counts["documents"] == counts["documents_train"] + counts["documents_eval"] == 61
    sizes = {
        split: sum(len(records_in(Path(path))["input_ids"]) for path in data.paths(split))
        for split in ("train", "eval")
    }
    assert counts["examples"] == sizes
    assert manifest["next"].startswith("bert-pipeline train --data")
    assert "61 documents" in said
    assert not list((folder / "data").glob(".*"))


def test_how_the_corpus_is_cut_and_listed_changes_nothing(folder, documents):
    run(config_of(folder))
    expected = shards_in(folder / "data")
    write_corpus(folder / "z.txt", documents[:20])
    write_corpus(folder / "a.txt", documents[20:])
    config = config_of(
        folder,
        input=[str(folder / "z.txt"), str(folder / "a.txt")],
        output=str(folder / "cut"),
        block_megabytes=0.01,
    )
    run(config)
    assert shards_in(folder / "cut") == expected
    run(config_of(folder, output=str(folder / "other"), seed=1))
    assert shards_in(folder / "other") != expected


def test_curation_is_counted_and_the_same_however_the_corpus_is_cut(folder, documents):
    rules = "gopher_min_words=60,c4_min_line_words=4"
    manifest, said = run(config_of(folder, curation=[rules]))
    short = sum(len(text.replace(".", "").split()) < 60 for text in documents)
    lines = [line for text in documents if len(text.replace(".", "").split()) >= 60
             for line in text.split("\n")]  # fmt: skip
    counts = manifest["counts"]
    assert 0 < short < 61
    assert counts["dropped"] == {"gopher_min_words": short}
    few = sum(len(line.split()) < 4 for line in lines)
    assert counts["dropped_lines"] == {"c4_min_line_words": few}
    assert counts["documents"] == 61 - short
    assert f"dropped: gopher_min_words {short}" in said
    write_corpus(folder / "corpus.txt", documents[::-1])
    cut = config_of(folder, output=str(folder / "cut"), curation=[rules], block_megabytes=0.01)
    run(cut)
    assert shards_in(folder / "cut") == shards_in(folder / "data")


def test_personal_data_is_in_no_output_and_counted(folder, documents):
    secrets = [b"ada.lovelace@example.org", b"203.104.153.10"]
    first = f"ba {secrets[0].decode()} be .\nbo bi {secrets[1].decode()} ."
    bad = b"\n\nba " + secrets[0] + b" \xff ."
    texts = [first, *documents, first.replace("bo", "bu"), f"be {{ {secrets[0].decode()} ."]
    (folder / "corpus.txt").write_bytes("\n\n".join(texts).encode() + bad)
    vocab = "".join(f"{piece}\n" for piece in [*VOCAB, "emailaddress", "ipaddress"])
    (folder / "vocab.txt").write_text(vocab, encoding="utf-8")
    values = {"personal_data": ["email,ip"], "duplicates": "near", "curation": ["c4_max_braces"]}
    manifest, said = run(config_of(folder, **values))
    assert manifest["counts"]["replaced"] == {"email": 2, "ip": 2}
    assert manifest["counts"]["tokens_unknown"] == 0  # the words are in the vocabulary
    assert "personal data replaced: email 2, ip 2" in said
    (rule,) = [each for each in manifest["rules"] if each["name"] == "c4_max_braces"]
    assert [sample["text"] for sample in rule["samples"]] == ["be { emailaddress ."]
    output = folder / "two"
    run(config_of(folder, output=str(output), block_megabytes=0.01, **values))
    assert shards_in(output) == shards_in(folder / "data")
    page = artifact_page(str(folder / "data"), samples=3)
    stored = [file.read_bytes() for file in (folder / "data").rglob("*") if file.is_file()]
    for text in (said.encode(), page.encode(), *stored):
        assert not any(secret in text for secret in secrets)
    assert b"email, replaced" in page.encode()


def test_a_job_server_changes_nothing(folder):
    """Beam's own for trying things; tests/runners has the real ones."""
    with (folder / "corpus.txt").open("ab") as stream:
        stream.write(b"\nba be \xff .\n")
    portable = {
        "runner": "flink",
        "workers": 0,
        "options": ("--job_endpoint=embed", "--environment_type=LOOPBACK"),
    }
    values = {"duplicates": "exact", "masking": "dynamic"}
    local, _ = run(config_of(folder, **values))
    output = str(folder / "portable")
    manifest, _ = run(config_of(folder, output=output, **values), **portable)
    assert shards_in(output) == shards_in(folder / "data")
    assert manifest["counts"] == local["counts"]


def write_with(folder: Path, name: str, store, pools: int) -> dict[str, bytes]:
    config = config_of(folder, output=str(folder / name), block_megabytes=0.01)
    (folder / name).mkdir()
    plan = ExamplesPlan(pools=pools, train_shards=2, eval_shards=1)
    job = ExamplesJob(config, VOCAB, plan, store, output=config.output, work=config.output)

    def build(pipeline: beam.Pipeline) -> None:
        files = match_files(config.input)
        blocks = pipeline | ReadDocuments(config, files, look_at_text(config, files).layouts)
        blocks | WriteExamples(job)

    runner = build_section(RunnerConfig, {"workers": 1})
    run_pipeline(runner, build, console=Console(io.StringIO()), input_bytes=0)
    return shards_in(folder / name)


def test_partitioning_in_one_level_or_two_is_the_same(folder, tmp_path_factory, monkeypatch):
    def store() -> BlobStore:
        return BlobStore(str(tmp_path_factory.mktemp("spill")))

    one_level = write_with(folder, "one", store(), pools=6)
    assert write_with(folder, "two", store(), pools=5) != one_level
    monkeypatch.setattr("pipeline.examples.plan.MAX_BUCKETS", 3)
    monkeypatch.setattr(transforms, "MAX_BUCKETS", 3)
    assert write_with(folder, "three", store(), pools=6) == one_level


def test_gzip_and_model_garden_names(folder):
    run(config_of(folder))
    values = {"compression": "gzip", "feature_names": "model-garden"}
    manifest, _ = run(config_of(folder, output=str(folder / "packed"), **values))
    assert manifest["records"]["train_shards"][0] == "train-00000-of-00002.tfrecord.gz"
    packed = records_in(folder / "packed" / manifest["records"]["train_shards"][0], "model-garden")
    plain = records_in(folder / "data" / "train-00000-of-00002.tfrecord")
    assert (packed["input_word_ids"] == plain["input_ids"]).numpy().all()
    assert (packed["input_type_ids"] == plain["segment_ids"]).numpy().all()


def test_a_failure_leaves_nothing_finished_and_a_rerun_completes(folder, monkeypatch):
    config = config_of(folder)
    run(config_of(folder, output=str(folder / "whole")))

    def failing(path, parts, *, compression):
        if "00001" in Path(path).name:
            raise InputError("disk full")
        return real(path, parts, compression=compression)

    real = steps.write_shard
    with monkeypatch.context() as patch:
        patch.setattr(steps, "write_shard", failing)
        with pytest.raises(InputError, match="disk full"):
            run(config)
    assert not (folder / "data" / "manifest.json").exists()
    (folder / "data" / ".unfinished").mkdir()  # what kill -9 leaves
    manifest, _ = run(config)
    assert not manifest["already_done"]
    assert shards_in(folder / "data") == shards_in(folder / "whole")


def test_running_again_does_nothing_and_another_config_is_refused(folder, documents):
    run(config_of(folder))
    assert run(config_of(folder, block_megabytes=1.0))[0]["already_done"]
    with pytest.raises(UsageError, match="dupe_factor: 2 then, 3 now"):
        run(config_of(folder, dupe_factor=3))
    write_corpus(folder / "corpus.txt", documents[:-1])
    with pytest.raises(UsageError, match="content of the inputs has changed"):
        run(config_of(folder))


def test_bad_lines_are_rejected_and_counted(folder):
    with (folder / "corpus.txt").open("ab") as stream:
        stream.write(b"\nba be \xff .\nba be .\n\n\xc2\xad\n")
    manifest, said = run(config_of(folder))
    assert sum(manifest["counts"]["rejected"].values()) == 1
    (reject,) = (folder / "data" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["source"] == str(folder / "corpus.txt")
    assert "1 rejected line, with reasons" in said
    assert "  1  invalid UTF-8, first at " in said
    assert "the file is UTF-8 except for such lines; correct them\n" in said


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (b"", "corpus.txt: no usable document"),
        (b"\xff\n", "no usable document .left out: 1 invalid UTF-8"),
        (b"ba be bi .\n", "no training example could be made of 1 document"),
    ],
)
def test_a_corpus_without_examples_is_refused_in_one_line(folder, corpus, message):
    (folder / "corpus.txt").write_bytes(corpus)
    with pytest.raises(InputError, match=message) as failure:
        run(config_of(folder, text_layout="sentences"))
    assert "\n" not in str(failure.value)
    assert not (folder / "data" / "manifest.json").exists()


def test_one_document_makes_examples_without_random_next_and_reports_so(folder, documents):
    write_corpus(folder / "corpus.txt", documents[:1])
    manifest, said = run(config_of(folder, text_layout="sentences"))
    assert manifest["counts"]["random_next"] == 0
    assert manifest["records"]["eval_shards"] == []
    assert "no example has a random second segment" in said
    assert "no document was held out for evaluation" in said
    assert not list((folder / "data").glob("eval-*"))


def test_chunks_that_are_left_out_are_no_documents(folder):
    """A document that begins with a sentence as long as a sequence, and one of nothing to see."""
    sentences = ["ba " * 28 + ".", *["be bi ."] * 12, "", "be bi .", "bo bu .", "", "\u200b"]
    write_corpus(folder / "corpus.txt", ["\n".join(sentences)])
    config = config_of(
        folder, text_layout="sentences", short_seq_prob=0, eval_fraction=0, pair_task="sop"
    )
    counts = run(config)[0]["counts"]
    assert counts["chunks_left_out"] == {NO_OTHER_DOCUMENT: config.dupe_factor}
    assert counts["examples"]["train"] == 3 * config.dupe_factor
    assert counts["sentences_cut"] == 0
    assert (counts["documents"], counts["dropped"]) == (2, {"no tokens": 1})


def test_a_sentence_longer_than_a_sequence_is_cut_and_counted_once(folder):
    write_corpus(folder / "corpus.txt", [" ".join(WORDS[:n]) for n in (45, 50)])
    config = config_of(folder, text_layout="lines", eval_fraction=0)
    counts = run(config)[0]["counts"]
    assert counts["sentences_cut"] == 2
    assert counts["chunks_left_out"] == {}


def test_a_missing_vocabulary_or_corpus_is_named(folder):
    with pytest.raises(UsageError, match="nowhere.txt: no such vocabulary"):
        run(config_of(folder, vocab=str(folder / "nowhere.txt")))
    with pytest.raises(UsageError, match="no file matches"):
        run(config_of(folder, input=[str(folder / "*.nothing")]))
    (folder / "vocab.txt").write_text("\n".join(SPECIAL_TOKENS))
    with pytest.raises(UsageError, match=r"vocab.txt: has no entry but \[PAD\]"):
        run(config_of(folder))
    assert not (folder / "data").exists()


def test_inspect_shows_examples_and_statistics(folder):
    manifest, _ = run(config_of(folder))
    lines = record_lines(summarize_records(folder / "data", samples=2))
    text = "\n".join(lines)
    assert sum(line.startswith("example ") for line in lines) == 2
    assert "[MASK→" in text and "with a random second segment" in text
    assert f"of the first {manifest['counts']['examples']['train']:,} records" in text
    page = artifact_page(str(folder / "data"), samples=2)
    assert page.count("<h4>example ") == 2
    assert '<span class="target mask">[MASK]<small> → ' in page
    assert "Most frequent tokens" in page and "<h2>Eval records</h2>" in page
    shard = folder / "data" / "train-00000-of-00002.tfrecord"
    shard.write_bytes(shard.read_bytes().replace(b"input_ids", b"input_idz", 1))
    with pytest.raises(InputError, match="damaged records"):
        record_lines(summarize_records(folder / "data", samples=1))
    shard.unlink()
    with pytest.raises(UsageError, match="00000-of-00002.tfrecord: is gone"):
        record_lines(summarize_records(folder / "data", samples=1))


def test_without_copies_it_is_the_same_as_if_they_had_never_been_there(folder, documents):
    """`documents` ends with a copy."""
    distinct = documents[:-1]
    longest = max(distinct, key=len)
    near = longest.replace(longest.split()[0], "ba", 1)
    write_corpus(folder / "distinct.txt", distinct)
    plain = {"input": [str(folder / "distinct.txt")], "output": str(folder / "plain")}
    run(config_of(folder, **plain))
    write_corpus(folder / "corpus.txt", [*documents, documents[5]])
    manifest, _ = run(config_of(folder, duplicates="exact"))
    assert shards_in(folder / "data") == shards_in(folder / "plain")
    assert manifest["counts"]["documents"] == len(distinct)
    assert manifest["counts"]["dropped"] == {"exact copy": 2}
    rows = (folder / "data" / "duplicates.jsonl").read_text().splitlines()
    assert sorted(json.loads(row)["similarity"] for row in rows) == [1, 1]
    write_corpus(folder / "corpus.txt", [*documents, near])
    values = {"duplicates": "near", "near_duplicate_threshold": 0.7}
    manifest, _ = run(config_of(folder, output=str(folder / "near"), **values))
    assert manifest["counts"]["documents"] == len(distinct)
    assert manifest["counts"]["dropped"] == {"exact copy": 1, "near duplicate": 1}
