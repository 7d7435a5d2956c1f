"""The page of a corpus is a page like the others; records lead to theirs while it is there."""

import pytest
from behavior.pages import check_page

from bert_tf.config.sections import PreprocessConfig
from pipeline.outputs.inputs import fingerprint
from pipeline.report.corpus.page import Corpus, corpus_at, corpus_of_records
from pipeline.report.page import corpus_page

VOCAB = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("The <b> мир.\nThe <b> мир.\n\nAll rights reserved.\n")
    (tmp_path / "vocab.txt").write_text(VOCAB)
    return tmp_path


def test_everything_is_said_and_nothing_is_markup(folder):
    corpus = corpus_at(
        PreprocessConfig(input=(str(folder / "a.txt"),)), vocab=str(folder / "vocab.txt")
    )
    page = check_page(corpus_page(corpus, "a.txt", samples=2))
    for shown in (
        "Latin",
        "Cyrillic",
        "The <b> мир.",
        "boilerplate line",
        "Near copies of documents",
    ):
        assert any(shown in text for text in page.text), shown
    assert "b" not in page.elements
    assert "мир" in page.text  # an unknown word


def test_a_corpus_without_text_has_a_page(folder):
    (folder / "b.txt").write_text("\n\n")
    corpus = corpus_at(PreprocessConfig(input=(str(folder / "b.txt"),)))
    page = check_page(corpus_page(corpus, "b.txt", samples=2))
    assert any("No text." in text for text in page.text)


def test_records_lead_to_their_corpus_until_it_changes(folder):
    inputs = [
        {"key": key, **fingerprint(folder / name)}
        for key, name in (("input", "a.txt"), ("vocab", "vocab.txt"))
    ]
    manifest = {
        "inputs": inputs,
        "config": {"lowercase": False, "cleaning": ["nfc"], "unknown_key": 1},
    }
    found = corpus_of_records(folder, manifest)
    assert isinstance(found, Corpus)
    assert (found.lowercase, found.config.cleaning, len(found.vocab)) == (False, ("nfc",), 6)
    (folder / "a.txt").write_text("other")
    assert "a.txt: is missing or has changed" in corpus_of_records(folder, manifest)
