"""The card of records: front matter that the Hub reads, and all counts of the manifest."""

import copy

import pytest
import yaml

from bert_tf.base.cards import read_front_matter
from bert_tf.config.sections import PreprocessConfig
from pipeline.report.corpus.data_card import DATA_CARD, data_card

SETTINGS = {"curation": ["c4"], "languages": ["en,de,unknown"], "personal_data": ["all"]}
MANIFEST = {
    "command": "preprocess",
    "config": {**PreprocessConfig().as_dict(), **SETTINGS},
    "inputs": [
        {"key": "vocab", "path": "/home/me/vocab.txt", "bytes": 7, "sha256": "c" * 64},
        {"key": "input", "path": "/home/me/de/a.txt", "bytes": 1234, "sha256": "b" * 64},
        {"key": "input", "path": "/home/me/da/a|b.txt", "bytes": 5, "sha256": "a" * 64},
    ],
    "counts": {
        "documents": 7,
        "tokens": 500,
        "examples": {"train": 900, "eval": 100},
        "dropped": {"c4_max_braces": 2},
        "dropped_lines": {"c4_min_line_words": 3},
        "replaced": {"email": 4},
        "excluded": {"/home/me/rte/dev.tsv": 3},
        "rejected": {"not JSON": 1},
        "copies": 0,
    },
    "rules": [
        {
            "name": "c4_max_braces", "maximum": 0, "paper": "Raffel et al. 2020", "dropped": 2,
            "of": "documents", "fraction": 0.222222, "set_by": "curation: c4_max_braces=0",
            "samples": [{"source": "a", "line": 1, "value": 1.0, "text": "{ secret"}],
        }
    ],
    "corpus": {
        "documents_read": 9,
        "document_tokens": {"64": 6, "128": 1},
        "languages": {"de": 6, "unknown": 2, "fr": 1},
        "licenses": {"cc-by-4.0": 9},
    },
    "records": {"max_seq_length": 128, "vocab_size": 30000},
    "versions": {"bert-pipeline": "1.0"},
}  # fmt: skip


def head_of(tmp_path, **corpus):
    manifest = copy.deepcopy(MANIFEST)
    manifest["corpus"] |= corpus
    (tmp_path / DATA_CARD).write_text(data_card(manifest), encoding="utf-8")
    return read_front_matter(tmp_path / DATA_CARD)


def test_the_head_is_what_the_hub_reads(tmp_path):
    assert head_of(tmp_path) == {
        "language": ["de"],
        "license": "cc-by-4.0",
        "pretty_name": "Pretraining records for BERT",
        "size_categories": ["1K<n<10K"],
        "task_categories": ["fill-mask"],
        "tags": ["bert", "bert-pipeline"],
    }


@pytest.mark.parametrize(
    "licenses",
    [
        {"mit": 8},
        {"mit": 8, "gpl": 1},
        {"see the page": 9},
        {"mit": 9, "gpl": 1},
    ],
)
def test_a_license_is_named_if_all_documents_have_it(tmp_path, licenses):
    assert "license" not in head_of(tmp_path, licenses=licenses)


def test_the_card_has_counts_rules_and_what_was_not_done():
    card = data_card(MANIFEST)
    for line in (
        f"| a\\|b.txt | input | 5 | `{'a' * 64}` |".replace("| a", "| da/a"),
        f"| vocab.txt | vocab | 7 | `{'c' * 64}` |",
        "| read | 10 |",
        "| dropped: c4_max_braces | 2 |",
        "| c4_max_braces | at most 0 | curation: c4_max_braces=0 | Raffel et al. 2020 | 2 | "
        "documents | 22.22% |",
        "| de | 6 |",
        "| 64 to 127 tokens | 6 |",
        "- Copies of documents were kept.",
        "| email | 4 |",
        "| dev.tsv | 3 |",
        "- Texts of evaluation sets were not looked for.",
    ):
        assert line in card.splitlines()
    assert "Languages were not identified" not in card and "Personal data was not" not in card
    assert "/home" not in card and "secret" not in card
    settings = yaml.safe_load(card.split("```yaml\n")[1].split("```")[0])["preprocess"]
    assert settings == {"seed": PreprocessConfig.seed, **SETTINGS}
