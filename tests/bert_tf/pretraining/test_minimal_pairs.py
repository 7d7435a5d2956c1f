"""Minimal pairs: reading, ties, and the chance level of an untrained model."""

import json

import keras
import numpy as np
import pytest
from behavior.rounding import assert_same_but_for_rounding

from bert_tf.base.errors import InputError
from bert_tf.config.bert import BertConfig
from bert_tf.data.text.host_wordpiece import HostTokenizer
from bert_tf.models.heads import BertMaskedLM, BertPretrainingModel
from bert_tf.pretraining.minimal_pairs import (
    MinimalPairs,
    PairJudge,
    accuracy_error,
    read_minimal_pairs,
    right_fractions,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]


def model_of(kind, seed):
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=12,
        initializer_range=0.3,
    )
    keras.utils.set_random_seed(seed)
    model = kind(config, dtype="float32")
    model.build_weights()
    return model


def pairs_of(good, bad):
    lines = list(range(1, len(good) + 1))
    return MinimalPairs(source="pairs.jsonl", good=good, bad=bad, lines=lines)


def judge_of(pairs, kind=BertMaskedLM, seed=1):
    tokenizer = HostTokenizer(VOCAB, lowercase=True)
    return PairJudge(pairs, model=model_of(kind, seed), tokenizer=tokenizer)


def random_pairs(count, seed):
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(list(LETTERS), 6)) for _ in range(2 * count)]
    return pairs_of(texts[:count], texts[count:])


@pytest.mark.parametrize("kind", [BertMaskedLM, BertPretrainingModel])
def test_an_untrained_model_is_right_by_chance(kind):
    pairs = random_pairs(400, seed=3)
    accuracy = judge_of(pairs, kind).accuracy()
    assert abs(accuracy - 0.5) < 4 * accuracy_error(0.5, 400)


def test_what_is_good_and_bad_changes_the_sign_alone():
    pairs = random_pairs(50, seed=4)
    forward = judge_of(pairs).differences()
    back = judge_of(pairs_of(pairs.bad, pairs.good)).differences()
    assert_same_but_for_rounding(forward, -back, roundings=200)  # summands of a layer
    assert len(set(forward.tolist())) == 50


def test_equal_sentences_are_ties_and_count_as_half():
    judge = judge_of(pairs_of(["a b c", "a", "d e f g"], ["A  b c", "a", "d e f g"]))
    assert judge.accuracy() == 0.5
    assert right_fractions(np.array([-2.0, 0.0, 0.1])).tolist() == [0, 0.5, 1]


def test_differences_are_those_of_single_batches(monkeypatch):
    pairs = random_pairs(20, seed=5)
    whole = judge_of(pairs).differences()
    monkeypatch.setattr("bert_tf.pretraining.minimal_pairs._BATCH_TOKENS", 1)
    np.testing.assert_allclose(judge_of(pairs).differences(), whole, atol=1e-4)


@pytest.mark.parametrize(
    ("bad", "what"),
    [(" ".join(LETTERS), "has 16 tokens more than the 10 of the model"), ("\u200b", "no token")],
)
def test_a_sentence_that_cannot_be_scored_is_named(bad, what):
    with pytest.raises(InputError, match=rf"^pairs.jsonl:2: a sentence .*{what}"):
        judge_of(pairs_of(["a", "b"], ["c", bad]))


def test_pairs_are_read_with_their_lines(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [{"sentence_good": "a\u2028b", "sentence_bad": "c", "field": "syntax"}]
    path.write_text("\n" + json.dumps(rows[0], ensure_ascii=False) + "\n\n", encoding="utf-8")
    pairs = read_minimal_pairs(path)
    assert (pairs.good, pairs.bad, pairs.lines) == (["a\u2028b"], ["c"], [2])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"sentence_good": "a"}', "has no key 'sentence_bad'"),
        ('{"good": "a", "bad": "b"}', "has no key 'sentence_good'"),
        ('{"sentence_good": "a", "sentence_bad": " "}', "sentence_bad is not a text, or is empty"),
        ('{"sentence_good": 1, "sentence_bad": "a"}', "sentence_good is not a text"),
        ("a,b", "is not JSON"),
        ('["a", "b"]', "is not an object"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_bad_line_is_named_with_what_it_must_be(tmp_path, line, what):
    path = tmp_path / "pairs.jsonl"
    good = '{"sentence_good": "a", "sentence_bad": "b"}'
    path.write_text(f"{good}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_minimal_pairs(path)
    assert str(raised.value).startswith(f"{path}:2: ")
    assert what in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_without_pairs_is_refused(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n")
    with pytest.raises(InputError, match="has no pairs; every line is"):
        read_minimal_pairs(path)
