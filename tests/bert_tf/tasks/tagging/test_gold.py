"""Tags of labeled rows on words, to train on and to measure by."""

from __future__ import annotations

import itertools
import json

from tokenizers import BertWordPieceTokenizer

from bert_tf.tasks.tagging.gold import gold_words, learned_tags
from bert_tf.tasks.tagging.host import encode_words
from bert_tf.tasks.tagging.row_forms import TagColumns
from bert_tf.tasks.tagging.tagged_texts import read_tagged_texts

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")


def read(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_tagged_texts(path, COLUMNS)


def encoded_words(tokenizer, texts):
    return encode_words(tokenizer, texts.texts, max_seq_length=64, stride=32)


def test_tokens_with_a_tag_are_those_of_huggingface(pieces, tmp_path):
    """The reference is `tokenize_and_align_labels` of its run_ner.py.

    The first token of a word has its tag; with --label_all_tokens others have `I-` after `B-`.
    Here only those have one that begin a word of BERT's.
    """
    rows = [["don't", "London", "\u200b", "Adas"], ["Ada"], ["\u200b"], ["", "北京x", "é"]]
    tags = [["B-x", "I-x", "B-x", "O"], ["B-x"], ["B-x"], ["O", "B-x", "O"]]
    texts = read(
        tmp_path / "a.jsonl",
        [{"tokens": words, "tags": each} for words, each in zip(rows, tags, strict=True)],
    )
    encoded = encoded_words(pieces, texts)
    learned, found, _, skipped = learned_tags(texts, encoded.words, "bio")
    assert skipped == 3
    other = BertWordPieceTokenizer(
        {entry: number for number, entry in enumerate(pieces.vocab)}, lowercase=True
    )
    expected = []
    for number, (words, each) in enumerate(zip(rows, tags, strict=True)):
        given = other.encode(words, is_pretokenized=True, add_special_tokens=False)
        ids = given.word_ids
        for place, word in enumerate(ids):
            if not given.tokens[place].startswith("##"):
                is_first = ids.index(word) == place
                tag = each[word] if is_first else each[word].replace("B-", "I-")
                expected.append((number, 1 + place, tag))
    rows_of = encoded.texts[encoded.windows[learned]].tolist()
    assert [*zip(rows_of, encoded.positions[learned].tolist(), found, strict=True)] == expected
    gold = gold_words(texts, encoded.words, "bio")
    assert [item["tag"] for row in gold.listed() for item in row] == (
        ["B-x", "I-x", "O", "B-x", "B-x"] + ["O"] * ("é" in other.get_vocab())
    )


def test_an_entity_has_every_word_that_it_touches(pieces, tmp_path):
    rows = [
        {"text": "Ada in London.", "entities": [[0, 3, "per"], [7, 13, "loc"]]},
        {"text": "don't \t London", "entities": [[1, 4, "a"], [4, 5, "b"], [6, 10, "c"]]},
        {"text": "LondonAda", "entities": [[0, 6, "loc"], [6, 9, "per"]]},
    ]
    texts = read(tmp_path / "a.jsonl", rows)
    words = encoded_words(pieces, texts).words

    def tags(scheme):
        learned, found, weights, _ = learned_tags(texts, words, scheme)
        assert weights.tolist() == [1.0] * len(found)
        assert learned.tolist() == list(range(len(words.starts)))
        return [found[first:last] for first, last in itertools.pairwise(words.offsets)]

    assert tags("bio") == [
        ["B-per", "O", "B-loc", "O"],
        ["B-a", "I-a", "B-b", "B-c"],
        ["B-loc"],
    ]
    assert tags("bilou")[1] == ["B-a", "L-a", "U-b", "U-c"]
    gold = gold_words(texts, words, "bilou")
    assert [(text["start"], text["end"], text["tag"]) for text in gold.listed()[1]] == [
        (0, 4, "U-a"),
        (4, 5, "U-b"),
        (8, 14, "U-c"),
    ]
