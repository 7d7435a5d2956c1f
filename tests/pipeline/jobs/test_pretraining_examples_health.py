"""The health check of records: warned of, refused, and the same in manifest, page and report."""

import io
import json
import random

import pytest
from tokenizers import BertWordPieceTokenizer

import pipeline
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig, VocabConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.data.text.vocabulary_files import write_vocabulary_files
from pipeline.jobs import pretraining_examples, vocabulary
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest
from pipeline.report.page import artifact_page

pytestmark = pytest.mark.slow  # whole jobs

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
HINDI = "राम घर जा रहा है।\nसीता किताब पढ़ रही है।\n\nबच्चे मैदान में खेल रहे हैं।\nआज मौसम अच्छा है।\n"


@pytest.fixture
def folder(tmp_path):
    source = random.Random(0)
    documents = [
        "\n".join(" ".join(source.choices(WORDS, k=8)) + " ." for _ in range(12)) for _ in range(30)
    ]
    (tmp_path / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *WORDS, "."]) + "\n")
    return tmp_path


def values_of(folder, **values):
    return {
        "input": [str(folder / "corpus.txt")],
        "vocab": str(folder / "vocab.txt"),
        "output": str(folder / "data"),
        "max_seq_length": 32,
        "eval_fraction": 0,
        "text_layout": "sentences",
        **values,
    }


def run(folder, *, job=pretraining_examples, section=PreprocessConfig, **values):
    said = io.StringIO()
    config = build_section(
        section, values_of(folder, **values) if "input" not in values else values
    )
    manifest = job.run(
        config, build_section(RunnerConfig, {"workers": 1}), RunOptions(console=Console(said))
    )
    return manifest, said.getvalue()


def test_a_good_corpus_is_told_in_a_line_without_warnings(folder):
    manifest, said = run(folder)
    assert manifest["notes"] == [] and "warning" not in said
    counts, metrics = manifest["counts"], manifest["metrics"]
    line = "1 file, text: a sentence per line, blank lines between documents, "
    line += "Latin script, 30 documents"
    assert said.startswith(f"{line}\n")
    lengths = manifest["corpus"].pop("document_tokens")
    assert sum(lengths.values()) == 30
    assert manifest["corpus"] == {
        "line": line,
        "layouts": {"sentences": 1}, "language": "Latin script", "documents_about": 30,
        "documents_read": 30,
    }  # fmt: skip
    assert f"health: {metrics['reached_fraction']:.1%} of the tokens are in a record, " in said
    assert metrics["reached_fraction"] == round(counts["tokens_reached"] / counts["tokens"], 6)
    assert metrics["unknown_fraction"] == metrics["one_sentence_fraction"] == 0
    assert metrics["masked_fraction"] == pytest.approx(0.15, abs=0.01)


def test_rows_of_one_sentence_warn_on_the_page_and_are_an_error_if_strict(folder):
    rows = [json.dumps({"text": " ".join(WORDS[i : i + 9])}) for i in range(30)]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    values = values_of(folder, input=[str(folder / "rows.jsonl")])
    values.pop("text_layout")
    for _ in range(2):  # also of what is finished already
        with pytest.raises(InputError, match="data: finished, but --strict: 100% of the examples"):
            pipeline.preprocess(**values, strict=True, console=Console(io.StringIO()))
        manifest = read_manifest(folder / "data")
    assert manifest["counts"]["random_next"] == sum(manifest["counts"]["examples"].values())
    random_next, one_sentence = manifest["notes"]
    assert "pair_task=none" in random_next and "100% of the documents" in one_sentence
    assert random_next in artifact_page(str(folder / "data"), samples=0)
    assert PretrainingData.from_manifest(folder / "data", manifest).notes == (
        random_next,
        one_sentence,
    )
    with pytest.raises(UsageError, match="score: has no health check"):
        pipeline.score(model="m", input=["a"], output="b", strict=True)


@pytest.mark.parametrize("is_sampled", [True, False])
def test_a_vocabulary_of_another_language_leaves_nothing_finished(folder, monkeypatch, is_sampled):
    (folder / "corpus.txt").write_text(HINDI, encoding="utf-8")
    if is_sampled:
        monkeypatch.setattr(pretraining_examples, "_make_shards", None)
    else:
        monkeypatch.setattr(pretraining_examples, "_check_sample", lambda *_: None)
    with pytest.raises(InputError, match="100% of [0-9]+ tokens are .UNK., so the vocabulary does"):
        run(folder)
    assert read_manifest(folder / "data") is None


def test_some_unknown_tokens_warn(folder):
    with (folder / "corpus.txt").open("a", encoding="utf-8") as stream:
        stream.write("\n" + HINDI * 4)
    manifest, said = run(folder)
    (note,) = manifest["notes"]
    assert f"warning: {note}\n" in said
    unknown = manifest["counts"]["tokens_unknown"]
    assert unknown == 4 * len(HINDI.replace("।", " ।").split())
    assert note.startswith(f"{unknown / manifest['counts']['tokens']:.1%} of the tokens are [UNK]")


def test_masks_of_whole_words_are_told_to_do_nothing_for_chinese(folder):
    source = random.Random(0)
    characters = [chr(code) for code in range(0x4E00, 0x4E40)]
    documents = ["\n".join("".join(source.choices(characters, k=9)) for _ in range(9))] * 4
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *characters]) + "\n")
    (note,) = (
        note
        for note in run(folder, whole_word_mask=True, pair_task="none")[0]["notes"]
        if "whole-word" in note
    )
    assert note.startswith("--whole-word-mask does nothing for 100% of the tokens")


def test_the_vocabulary_decides_whether_texts_are_lower_cased(folder):
    """The manifest says that one is cased; extended and used, it stays cased."""
    names = ["Anna", "Berta", "Carl", "Emil", "Oslo", "Rome"]
    lines = [f"{a} went from {b} to {c} in May ." for a in names for b in names for c in names[:3]]
    (folder / "corpus.txt").write_text("\n".join(lines[:50]) + "\n\n" + "\n".join(lines[50:]))
    made = {"input": [str(folder / "corpus.txt")], "min_frequency": 1, "vocab_size": 120}
    cased, more = str(folder / "cased.txt"), str(folder / "more.txt")
    kinds = {"job": vocabulary, "section": VocabConfig}
    run(folder, **kinds, **made, output=cased, lowercase=False)
    extended, _ = run(folder, **kinds, **{**made, "vocab_size": 130}, output=more, extend=cased)
    assert extended["config"]["lowercase"] is False
    assert "anna" not in (folder / "more.txt").read_text().splitlines()
    for vocab in (cased, more):
        manifest, _ = run(folder, vocab=vocab, output=f"{vocab}-data")
        assert manifest["records"]["lowercase"] is False
        assert manifest["counts"]["tokens_unknown"] == 0
    with pytest.raises(UsageError, match=r"cased.txt: the vocabulary is cased .*--lowercase out"):
        run(folder, vocab=cased, lowercase=True)


def test_accents_that_are_kept_travel_to_the_model(folder):
    """Hindi's vowel signs are marks, and Ukrainian's й without its mark is и."""
    text = HINDI.replace("\n\n", "\n") + "Йому й їй. Мій дім.\nЇжак і йод.\n\n"
    (folder / "corpus.txt").write_text(text * 4, encoding="utf-8")
    made = {"input": [str(folder / "corpus.txt")], "min_frequency": 1, "vocab_size": 200}
    vocab = str(folder / "marks.txt")
    manifest, _ = run(
        folder, job=vocabulary, section=VocabConfig, **made, output=vocab, keep_accents=True
    )
    assert "--keep-accents" in manifest["next"]
    entries = (folder / "marks.txt").read_text(encoding="utf-8").splitlines()
    assert {"किताब", "йому"} <= set(entries) and "иому" not in entries
    manifest, _ = run(folder, vocab=vocab, duplicates="exact", pair_task="none")
    assert manifest["counts"]["tokens_unknown"] == 0
    data = PretrainingData.from_manifest(folder / "data", manifest)
    assert data.lowercase == KEEP_ACCENTS
    write_vocabulary_files(folder / "data", entries, lowercase=data.lowercase, max_length=32)
    settings = json.loads((folder / "data" / "tokenizer_config.json").read_text())
    theirs = BertWordPieceTokenizer(
        vocab, lowercase=settings["do_lower_case"], strip_accents=settings["strip_accents"]
    )
    assert theirs.encode("Йому किताब", add_special_tokens=False).tokens == ["йому", "किताब"]
