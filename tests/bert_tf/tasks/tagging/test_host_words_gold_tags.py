"""Tags of labeled rows on words."""

from __future__ import annotations

import itertools
import json

import numpy as np
from tokenizers import BertWordPieceTokenizer

from bert_tf.tasks.tagging.host import encode_words, gold_tags
from bert_tf.tasks.tagging.rows import TagColumns
from bert_tf.tasks.tagging.tagged_texts import read_tagged_texts

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")


def read(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_tagged_texts(path, COLUMNS)


def encoded_words(tokenizer, texts):
    return encode_words(tokenizer, texts.texts, max_seq_length=64, stride=32)


def test_first_tokens_of_words_are_those_of_huggingface(pieces, tmp_path):
    """As `tokenize_and_align_labels` of its run_ner.py gives labels to tokens."""
    rows = [["don't", "London", "\u200b", "Adas"], ["Ada"], ["\u200b"], ["", "北京x", "é"]]
    texts = read(
        tmp_path / "a.jsonl", [{"tokens": words, "tags": ["O"] * len(words)} for words in rows]
    )
    encoded = encoded_words(pieces, texts)
    gold = gold_tags(texts, encoded.words, "bio")
    other = BertWordPieceTokenizer(
        {entry: number for number, entry in enumerate(pieces.vocab)}, lowercase=True
    )
    for row, words in enumerate(rows):
        ids = other.encode(words, is_pretokenized=True, add_special_tokens=False).word_ids
        expected = [ids.index(word) if word in ids else -1 for word in range(len(words))]
        first = gold.first[texts.offsets[row] : texts.offsets[row + 1]]
        found = np.where(first >= 0, encoded.positions[first] - 1, -1)
        assert found.tolist() == expected


def test_an_entity_has_every_word_that_it_touches(pieces, tmp_path):
    rows = [
        {"text": "Ada in London.", "entities": [[0, 3, "per"], [7, 13, "loc"]]},
        {"text": "don't \t London", "entities": [[1, 4, "a"], [4, 5, "b"], [6, 10, "c"]]},
        {"text": "LondonAda", "entities": [[0, 6, "loc"], [6, 9, "per"]]},
    ]
    texts = read(tmp_path / "a.jsonl", rows)
    words = encoded_words(pieces, texts).words
    gold = gold_tags(texts, words, "bio")
    assert gold.words is words
    assert [gold.tags[first:last] for first, last in itertools.pairwise(words.offsets)] == [
        ["B-per", "O", "B-loc", "O"],
        ["B-a", "I-a", "B-b", "B-c"],
        ["B-loc"],
    ]
    wide = gold_tags(texts, words, "bilou")
    assert wide.tags[4:7] == ["B-a", "L-a", "U-b"]
