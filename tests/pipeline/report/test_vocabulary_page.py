"""The page of a vocabulary."""

import pytest
from behavior.pages import check_page

from bert_tf.data.text.host_wordpiece import HostTokenizer
from pipeline.outputs.manifest import write_manifest
from pipeline.report.page import artifact_page
from pipeline.report.vocabulary_page import measure_pieces

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENTRIES = [*SPECIAL, "rain", "##s", "the", "it", "да", "r", "##x"]


def test_pieces_are_means_over_running_words():
    tokenizer = HostTokenizer(ENTRIES, lowercase=True)
    found = measure_pieces({"rain": 3, "rains": 1, "zz": 1}, tokenizer)
    assert found.words == 5
    assert found.per_word == pytest.approx((3 + 2 + 1) / 5)
    assert found.whole == pytest.approx(3 / 5) and found.unknown == pytest.approx(1 / 5)


@pytest.fixture
def vocabulary(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("It rains in the <b>. The rain is wet and it is cold in the rain.\n\n" * 40)
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{entry}\n" for entry in ENTRIES))
    size = corpus.stat().st_size
    inputs = [{"key": "input", "path": str(corpus), "bytes": size, "sha256": "0"}]
    manifest = {
        "command": "vocab", "config": {"lowercase": True}, "inputs": inputs,
        "metrics": {"held_out_words": 9, "held_out_pieces_per_word": 1.25},
    }  # fmt: skip
    write_manifest(path, manifest)
    return path


def test_a_vocabulary_shows_scripts_and_pieces_by_language(vocabulary):
    page = check_page(artifact_page(str(vocabulary), samples=3))
    shown = " ".join(" ".join(page.text).split())
    assert "entries 12 continue a word 2" in shown and "1.250" in shown
    assert "Pieces per word by language" in page.text and "English" in page.text
    assert "rain ##s" in page.text, "the word that costs most, as it is cut"
    by_script = shown[shown.index("Entries by script") :]
    assert "Latin 6" in by_script and "Cyrillic 1" in by_script


def test_a_vocabulary_without_its_corpus_says_so(vocabulary):
    (vocabulary.parent / "corpus.txt").unlink()
    page = check_page(artifact_page(str(vocabulary), samples=3))
    assert "Entries by script" in page.text and "Pieces per word by language" not in page.text
    assert "is missing or has changed" in " ".join(page.text)
