"""Words of several tokens at a mask: their scores are products over as many masks."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.data.rows import candidate_words
from bert_tf.engines.token_ids import TokenIdsEngine
from bert_tf.export.loading import directory_for_task, load_trained_model
from bert_tf.serving.signatures import BATCHED
from bert_tf.tasks.fill_mask.declaration import FillMaskConfig
from bert_tf.weights.model_directory import read_model_directory

WORDS = ["paris", "walking", "Zürich", "walks", "rome", "xyz"]
TEXTS = ["the capital of italy is [MASK].", "[MASK] is [MASK] of rome", "no mask"]


def directory_of(folder, words, tmp_path, **values):
    path = tmp_path / "words.txt"
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    given = {"run": str(folder), "output": "out", "task": "fill-mask", "candidates": str(path)}
    config = build_section(FillMaskConfig, {**given, **values})
    return directory_for_task(read_model_directory(folder), config)


@pytest.fixture(scope="module")
def worded(folder, tmp_path_factory):
    directory = directory_of(folder, WORDS, tmp_path_factory.mktemp("words"), top_k=len(WORDS))
    return load_trained_model(directory)


def defined_score(trained, text, mask, word):
    """The product of the probabilities of a word's tokens at as many masks, in a row of its own."""
    tokenizer = trained.tokenizer
    tokens = tokenizer.tokenize_texts([word]).ids
    parts = text.split("[MASK]")
    ids = [tokenizer.cls_id]
    places = []
    for number, part in enumerate(parts):
        ids += tokenizer.tokenize_texts([part]).ids.tolist()
        if number == mask:
            places = list(range(len(ids), len(ids) + len(tokens)))
            ids += [tokenizer.mask_id] * len(tokens)
        elif number < len(parts) - 1:
            ids.append(tokenizer.mask_id)
    row = tf.constant([[*ids, tokenizer.sep_id]])
    batch = {
        "input_word_ids": row,
        "input_mask": tf.ones_like(row),
        "input_type_ids": tf.zeros_like(row),
        "masked_lm_positions": tf.constant([places]),
    }
    likely = tf.nn.softmax(trained.model(batch, training=False)).numpy()[0]
    return np.prod(likely[np.arange(len(tokens)), tokens].astype(np.float64))


@pytest.mark.parametrize("way", ["graph", "host"])
def test_scores_are_those_of_the_definition(worded, way):
    if way == "host":
        outputs = worded.task.host_predictions(worded.model, worded.tokenizer, {"text": TEXTS})
        found = outputs["predicted_tokens"]
        filled = outputs["predicted_text"]
    else:
        graph = worded.task.serving_module(worded.model, worded.tokenizer).signatures()[BATCHED]
        outputs = graph(text=tf.constant(TEXTS), batch_tokens=tf.constant(32))
        found = [json.loads(text) for text in outputs["predicted_tokens"].numpy()]
        filled = [text.decode() for text in outputs["predicted_text"].numpy()]
    assert [len(masks) for masks in found] == [1, 2, 0]
    for text, masks in zip(TEXTS, found, strict=True):
        for number, candidates in enumerate(masks):
            assert sorted(each["token"] for each in candidates) == sorted(WORDS)
            scores = [each["score"] for each in candidates]
            assert scores == sorted(scores, reverse=True)
            for each in candidates:
                expected = defined_score(worded, text, number, each["token"])
                assert each["score"] == pytest.approx(expected, rel=1e-4, abs=2e-6)
                parts = text.split("[MASK]")
                before = "[MASK]".join(parts[: number + 1])
                after = "[MASK]".join(parts[number + 1 :])
                assert each["text"] == before + each["token"] + after
    assert "[MASK]" not in filled[1]


MASKED = ["[MASK] runs", "of [MASK] is", "[MASK] [MASK]", "is [MASK]"]


@pytest.fixture
def most_logits(worded, monkeypatch):
    """Let a batch have the logits of two rows of the longest word."""
    lengths = [len(worded.tokenizer.tokenize_texts([word]).ids) for word in WORDS]
    most = 2 * max(lengths) * worded.model.config.vocab_size
    monkeypatch.setattr(candidate_words, "MOST_LOGITS", most)
    return most


def test_the_logits_of_a_batch_are_bounded(worded, monkeypatch, most_logits):
    """Words of several tokens have logits at as many masks of each row."""
    lengths = {len(worded.tokenizer.tokenize_texts([word]).ids) for word in WORDS}
    computed = []
    head = worded.model.head

    def recorded(encoded, inputs, dropout_key):
        logits = head(encoded, inputs, dropout_key)
        tf.py_function(lambda shape: computed.append(shape.numpy()), [tf.shape(logits)], [])
        return logits

    monkeypatch.setattr(worded.model, "head", recorded)
    graph = worded.task.serving_module(worded.model, worded.tokenizer).signatures()[BATCHED]
    computed.clear()
    graph(text=tf.constant(MASKED), batch_tokens=tf.constant(2048))
    assert {shape[1] for shape in computed} == lengths
    assert max(np.prod(shape) for shape in computed) <= most_logits
    assert sum(shape[0] for shape in computed) == 5 * len(lengths)


@pytest.mark.parametrize("has_few_shapes", [False, True])
def test_the_logits_of_a_batch_of_an_engine_are_bounded(
    worded, folder, tmp_path, most_logits, has_few_shapes
):
    shutil.copy(folder / "vocab.txt", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    (tmp_path / "task.json").write_text(json.dumps(worded.task.settings()))
    entries = worded.model.config.vocab_size
    computed = []

    def run(inputs):
        logits = np.zeros((*inputs["masked_lm_positions"].shape, entries), np.float32)
        computed.append(logits.size)
        return {"logits": logits}

    class Engine(TokenIdsEngine):
        pass

    Engine.has_few_shapes = has_few_shapes
    found = Engine(tmp_path, run).predict({"text": MASKED}, batch_tokens=2048)
    assert len(found["predicted_text"]) == len(MASKED)
    assert max(computed) == most_logits
    assert len(computed) > 1


def test_the_words_are_kept_with_the_model(worded, trained):
    assert json.loads(json.dumps(worded.task.settings()))["candidates"] == WORDS
    assert "candidates" not in trained.task.settings()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["rome", "北"], r"words.txt:2: '北' cannot be written with the vocabulary"),
        (["rome", "rome"], "words.txt:2: 'rome' is in line 1 already"),
        (["rome", "a" * 40], "words.txt:2: .* has 40 tokens; give words of up to 16"),
        ([""], "has 0 words"),
        (["rome", "paris"], "--top-k 5: .*words.txt has 2 entries"),
    ],
)
def test_words_that_cannot_be_used_are_named(folder, tmp_path, words, fault):
    with pytest.raises(UsageError, match=fault) as raised:
        directory_of(folder, words, tmp_path)
    assert "\n" not in str(raised.value)
