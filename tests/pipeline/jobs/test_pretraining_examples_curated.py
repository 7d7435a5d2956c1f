"""The preprocess job with rules: the list of dropped documents, the manifest and the card."""

import io
import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from pipeline.jobs import pretraining_examples
from pipeline.outputs.job_spec import RunOptions
from pipeline.report.artifact import describe_artifact
from pipeline.report.corpus.data_card import data_card
from pipeline.report.lineage import lineage_json, lineage_lines, trace
from pipeline.report.page import artifact_page

pytestmark = pytest.mark.slow  # complete jobs

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
EXTRA = ["the", "{", "JavaScript", "#"]
VOCAB = [*SPECIAL_TOKENS, *WORDS, *map(str.lower, EXTRA), "."]


def texts_of(seed: int) -> list[str]:
    """Sixty documents; rules drop some, and some of their lines."""
    source = random.Random(seed)

    def sentence(words: int) -> str:
        return (
            " ".join(
                [
                    *source.choices(WORDS + EXTRA[:1], k=words),
                    *source.choices(["", "{", "JavaScript", "# # #"], [40, 1, 1, 1]),
                ]
            ).strip()
            + "."
        )

    made = [
        "\n".join(sentence(source.randint(1, 9)) for _ in range(source.randint(1, 20)))
        for _ in range(58)
    ]
    return [*made, made[3], ""]


def write_corpus(folder: Path) -> Path:
    """Write a corpus in three formats, with rows that cannot be read, and a vocabulary."""
    (folder / "corpus").mkdir()
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    rows = [
        json.dumps({"text": text, "url": f"https://www{n % 3}.example.com/{n}", "license": "mit"})
        for n, text in enumerate(texts_of(0))
    ]
    (folder / "corpus/a.jsonl").write_text("\n".join([*rows[:9], "no row", "", *rows[9:]]) + "\n")
    urls = [f"http://example.org/{n}" for n in range(60)]
    pq.write_table(pa.table({"text": texts_of(1), "url": urls}), folder / "corpus/b.parquet")
    text = "\n\n".join(filter(None, texts_of(2)))
    (folder / "corpus/c.txt").write_bytes(text.encode() + b"\n\nba \xff be.\n")
    return folder


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_corpus(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, dict, str]:
    """Return the folder of a corpus and its records, their manifest, and the job's output."""
    folder = write_corpus(tmp_path_factory.mktemp("curated"))
    return folder, *run(folder)


def run(folder: Path, name: str = "data", *, workers: int = 1, **values):
    said = io.StringIO()
    config = {
        "input": [str(folder / "corpus/*")],
        "vocab": str(folder / "vocab.txt"),
        "output": str(folder / name),
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "eval_fraction": 0.1,
        "num_shards": 2,
        "curation": ["c4", "gopher_min_words=10", "gopher_max_hashes"],
        "min_document_words": 20,
        "duplicates": "exact",
        "duplicate_lines": "drop",
        **values,
    }
    manifest = pretraining_examples.run(
        build_section(PreprocessConfig, config),
        build_section(RunnerConfig, {"workers": workers}),
        RunOptions(console=Console(said)),
    )
    return manifest, said.getvalue()


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_documents_are_kept_dropped_by_rule_or_rejected(made):
    folder, manifest, said = made
    counts = manifest["counts"]
    listed = Counter(each["rule"] for each in lines_of(folder / "data/dropped.jsonl"))
    copies = Counter(each["reason"] for each in lines_of(folder / "data/duplicates.jsonl"))
    assert len(listed) > 3
    assert listed + copies + Counter({"blank line": 1}) == counts["dropped"]
    assert counts["documents"] + sum(counts["dropped"].values()) == 60 + 1 + 60 + 59
    assert sum(counts["rejected"].values()) == 2
    assert "dropped.jsonl" in {each["path"] for each in manifest["outputs"]}
    assert "dropped documents, with the rule of each" in said


def test_the_manifest_has_rules_with_samples_and_tallies(made):
    folder, manifest, _ = made
    rules = {rule["name"]: rule for rule in manifest["rules"]}
    left_out = manifest["counts"]["dropped"] | manifest["counts"]["dropped_lines"]
    assert {name: rule["dropped"] for name, rule in rules.items()} == {
        name: left_out.get(name, 0) for name in rules
    }
    words = rules["gopher_min_words"]
    assert words["set_by"] == "curation: gopher_min_words=10"
    assert (words["minimum"], words["of"]) == (10, "documents")
    assert words["paper"].startswith("Rae et al. 2021")
    assert words["fraction"] == round(words["dropped"] / (60 + 60 + 59), 6)
    listed = {
        (each["source"], each["line"], each["value"])
        for each in lines_of(folder / "data/dropped.jsonl")
        if each["rule"] == "gopher_min_words"
    }
    shown = {(each["source"], each["line"], each["value"]) for each in words["samples"]}
    assert shown <= listed
    assert len(shown) == min(len(listed), 20)
    corpus = manifest["corpus"]
    example_com = {f"www{n}.example.com": 20 for n in range(3)}
    assert corpus["domains"] == {"example.org": 60, **example_com}
    assert (corpus["licenses"], corpus["documents_read"]) == ({"mit": 60}, 179)
    assert sum(corpus["document_tokens"].values()) == manifest["counts"]["documents"]
    traced = trace(folder / "data", manifest)
    told = lineage_lines(traced)
    assert f"  rule: gopher_min_words=10: {words['dropped']} documents dropped" in told
    assert lineage_json(traced)["rules"][0].keys() >= {"name", "set_by", "dropped"}
    page = artifact_page(str(folder / "data"), samples=1)
    assert "Rae et al. 2021 (arXiv:2112.11446), A.1.1" in page and "Dropped: c4_max_braces" in page
    shown = "\n".join(describe_artifact(str(folder / "data"), samples=1))
    assert "| gopher_min_words | at least 10 | curation: gopher_min_words=10 | Rae et al." in shown


def test_the_card_says_what_the_manifest_counts(made):
    folder, manifest, _ = made
    card = (folder / "data/DATA_CARD.md").read_text(encoding="utf-8")
    assert data_card(manifest) == card
    assert "DATA_CARD.md" in {each["path"] for each in manifest["outputs"]}
    assert str(folder) not in card
    assert f"| read | {60 + 2 + 60 + 59 + 1} |" in card


def test_all_files_are_the_same_with_any_workers_blocks_and_order(folder):
    (folder / "eval.txt").write_text("\n\n".join(text[-200:] for text in texts_of(2)[::7]))
    values = {
        "duplicates": "near",
        "languages": ["en", "unknown"],
        "language_threshold": 0.9,
        "personal_data": ["all"],
        "exclude": [str(folder / "eval.txt")],
    }
    expected, _ = run(folder, **values)
    assert expected["counts"]["dropped"]["excluded text"] > 1
    files = files_in(folder / "data")
    lists = {f"{name}.jsonl" for name in ("dropped", "duplicates", "excluded", "rejects")}
    assert files.keys() > {"DATA_CARD.md", *lists}
    names = ("c.txt", "a.jsonl", "b.parquet")
    shuffled = [str(folder / "corpus" / name) for name in names]
    values |= {"input": shuffled, "block_megabytes": 0.01}
    manifest, _ = run(folder, "otherwise", workers=2, **values)
    found = files_in(folder / "otherwise")
    assert [each for each in files if files[each] != found.get(each)] == []
    for key in ("counts", "rules", "corpus"):
        assert manifest[key] == expected[key]


def files_in(folder: Path) -> dict[str, bytes]:
    notes = ("manifest.json", "config.yaml", "job.log")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in notes}


def test_documents_with_text_of_evaluation_data_are_dropped(folder):
    """The records are those of a corpus without them."""
    plain = {"input": [str(folder / "corpus/a.jsonl")], "curation": [], "duplicates": "keep"}
    rows = (folder / "corpus/a.jsonl").read_text().splitlines()
    shared = [
        number for number in (4, 20, 40) if len(json.loads(rows[number])["text"].split()) > 20
    ]
    (folder / "eval").mkdir()
    texts = [json.loads(rows[number])["text"].replace("\n", " -- ").upper() for number in shared]
    (folder / "eval/a.tsv").write_text("id\ttext\n" + "".join(f"0\t{text}\n" for text in texts))
    (folder / "eval/b.txt").write_text("Nothing of it.\n\nIs anywhere.\n")
    (folder / "without.jsonl").write_text(
        "".join(f"{row}\n" for number, row in enumerate(rows) if number not in shared)
    )
    run(folder, "without", **plain | {"input": [str(folder / "without.jsonl")]})
    exclude = [str(folder / "eval/*")]
    manifest, said = run(folder, "data", exclude=exclude, **plain)
    for path in sorted((folder / "without").glob("*.tfrecord")):
        assert path.read_bytes() == (folder / "data" / path.name).read_bytes()
    counts = manifest["counts"]
    assert counts["dropped"]["excluded text"] == len(shared) > 1
    assert counts["excluded"] == {str(folder / "eval/a.tsv"): len(shared)}
    assert counts["documents"] + sum(counts["dropped"].values()) == 60 + 1
    listed = lines_of(folder / "data/excluded.jsonl")
    assert [each["line"] for each in listed] == [number + 1 for number in shared]
    assert [each["exclude_line"] for each in listed] == [*range(2, 2 + len(shared))]
    assert f"documents that share text with --exclude: {folder}/eval/a.tsv {len(shared)}" in said
    assert [each["path"] for each in manifest["inputs"] if each["key"] == "exclude"] == [
        str(folder / "eval/a.tsv"), str(folder / "eval/b.txt")
    ]  # fmt: skip


def test_paragraphs_with_text_of_evaluation_data_are_cut(folder):
    """The records are those of a corpus without them; a document of nothing else is dropped."""
    shared = " ".join(WORDS[:20])
    for name, rest in (("with", f"{shared}."), ("without", "")):
        rows = [
            {"text": "\n".join([*text.split("\n")[:1], rest, *text.split("\n")[1:]])}
            for text in texts_of(5)[:30]
        ]
        rows += [{"text": rest}] if rest else []
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    (folder / "eval.csv").write_text(f"text\n{shared.upper()}\n")
    # Without a splitter, which joins hard-wrapped lines by the longest one.
    plain = {"curation": [], "duplicates": "keep", "duplicate_lines": "keep"}
    plain |= {"sentence_splitter": "none"}
    values = {"exclude": [str(folder / "eval.csv")], "exclude_action": "cut"}
    run(folder, "without", input=[str(folder / "without.jsonl")], **plain)
    manifest, _ = run(folder, "data", input=[str(folder / "with.jsonl")], **values, **plain)
    for path in sorted((folder / "without").glob("*.tfrecord")):
        assert path.read_bytes() == (folder / "data" / path.name).read_bytes()
    counts = manifest["counts"]
    assert counts["dropped_lines"] == {"excluded text": 31}
    assert counts["dropped"]["excluded text"] == 1
    assert counts["excluded"] == {str(folder / "eval.csv"): 31}
    assert len(lines_of(folder / "data/excluded.jsonl")) == 31


def test_documents_that_another_corpus_has_are_dropped(folder):
    """The records are those of a corpus without them, by texts and by signatures of records."""
    plain = {"curation": [], "duplicates": "keep", "duplicate_lines": "keep"}
    rows = (folder / "corpus/a.jsonl").read_text().splitlines()
    shared = [4, 20, 40]
    texts = [json.loads(rows[number])["text"] for number in shared]
    other = folder / "other.jsonl"
    other.write_text("".join(json.dumps({"text": f"{text} -- "}) + "\n" for text in texts))
    (folder / "without.jsonl").write_text(
        "".join(f"{row}\n" for number, row in enumerate(rows) if number not in shared)
    )
    run(folder, "without", **plain | {"input": [str(folder / "without.jsonl")]})
    values = plain | {"input": [str(folder / "corpus/a.jsonl")]}
    against = {"duplicates_against": [str(other)]}
    manifest, said = run(folder, "data", **values, **against)
    signing = {"input": [str(other)], "write_signatures": True}
    run(folder, "former", **plain | signing)
    signatures = str(folder / "former/documents.signatures")
    run(folder, "again", **values, duplicates_against=[signatures])
    for path in sorted((folder / "without").glob("*.tfrecord")):
        for name in ("data", "again"):
            assert path.read_bytes() == (folder / name / path.name).read_bytes()
    assert manifest["counts"]["dropped"]["duplicate elsewhere"] == len(shared)
    listed = lines_of(folder / "data/duplicates.jsonl")
    assert sorted(each["line"] for each in listed) == [number + 1 for number in shared]
    assert {each["kept_source"] for each in listed} == {str(other)}
    assert "compared with 3 documents of --duplicates-against" in said
    inputs = [each["path"] for each in manifest["inputs"] if each["key"] == "duplicates_against"]
    assert inputs == [str(other)]
    assert artifact_page(str(folder / "data"), samples=1)
    other.write_text(json.dumps({"text": "another text"}) + "\n")
    with pytest.raises(UsageError, match="content of the inputs has changed"):
        run(folder, "data", **values, **against)
