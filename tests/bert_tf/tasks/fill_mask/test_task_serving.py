"""Candidates for masks equal those of HuggingFace's fill-mask pipeline."""

import json
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.serving.signatures import BATCHED, MOST_CANDIDATE_BYTES, MOST_MASKS

pytestmark = pytest.mark.slow  # traces graphs of a model with all its words

CONTINUATION = "##"


class Served(NamedTuple):
    masks: list  # candidates of each mask of each text
    filled: list
    scores: np.ndarray
    lost_masks: np.ndarray


@pytest.fixture(scope="module", params=["graph", "host"])
def served(request, trained):
    """Run the graph that is exported and read the JSON, or do its steps on the host."""
    if request.param == "host":
        return lambda texts: host_candidates(trained, texts)
    module = trained.task.serving_module(trained.model, trained.tokenizer)
    graph = module.signatures()[BATCHED]

    def run(texts):
        outputs = graph(text=tf.constant(texts, tf.string), batch_tokens=tf.constant(64))
        masks = [json.loads(text) for text in outputs["predicted_tokens"].numpy()]
        filled = [text.decode() for text in outputs["predicted_text"].numpy()]
        return Served(
            masks, filled, outputs["predicted_score"].numpy(), outputs["lost_masks"].numpy()
        )

    return run


def host_candidates(trained, texts):
    outputs = trained.task.host_predictions(trained.model, trained.tokenizer, {"text": texts})
    names = ("predicted_tokens", "predicted_text", "predicted_score", "lost_masks")
    return Served(*(outputs[name] for name in names))


def with_token(before, token, after):
    if token.startswith(CONTINUATION):
        return before.rstrip() + token.removeprefix(CONTINUATION) + after
    return before + token + after


@pytest.mark.slow
def test_candidates_equal_huggingface(served, folder):
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    masks, _, scores, _ = served(expected["texts"])
    for text, ours, theirs, score in zip(
        expected["texts"], masks, expected["masks"], scores, strict=True
    ):
        assert len(ours) == text.count("[MASK]")
        for candidates, wanted in zip(ours, theirs, strict=True):
            tokens = [candidate["token"] for candidate in candidates]
            assert tokens == [candidate["token"] for candidate in wanted], text
            np.testing.assert_allclose(
                [candidate["score"] for candidate in candidates],
                [candidate["score"] for candidate in wanted],
                atol=1e-5,
            )
        best = np.prod([candidates[0]["score"] for candidates in theirs])
        assert score == pytest.approx(best, rel=1e-4)


def test_each_candidate_has_the_text_that_it_fills(served, folder):
    texts = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["texts"]
    masks, filled, *_ = served(texts)
    seen = set()
    for text, found, best in zip(texts, masks, filled, strict=True):
        parts = text.split("[MASK]")
        whole = parts[0]
        for number, candidates in enumerate(found):
            before = "[MASK]".join(parts[: number + 1])
            after = "[MASK]".join(parts[number + 1 :])
            for candidate in candidates:
                assert candidate["text"] == with_token(before, candidate["token"], after)
                seen.add(candidate["token"].startswith(CONTINUATION))
            whole = with_token(whole, candidates[0]["token"], parts[number + 1])
        assert best == whole
    assert seen == {True, False}, "both kinds of tokens"


def test_a_text_without_masks_stays_as_it_is(served):
    masks, filled, scores, _ = served(["rome is", "", "the [mask]"])
    assert masks == [[], [], []]
    assert filled == ["rome is", "", "the [mask]"]
    assert scores.tolist() == [1, 1, 1]


def test_no_text_at_all(served):
    masks, filled, scores, _ = served([])
    assert (masks, filled, scores.tolist()) == ([], [], [])


def test_of_a_long_text_the_tokens_around_each_mask_are_read(served):
    """A sequence has 32 tokens, 30 of the text: 15 before the mask and 14 after it."""
    before, after = ["of", "rome", "is"] * 20, ["the", "walk"] * 20
    long = " ".join([*before, "[MASK]", *after])
    near = " ".join([*before[-15:], "[MASK]", *after[:14]])
    at_the_start = " ".join(["[MASK]", *after])
    head = " ".join(["[MASK]", *after[:29]])
    at_the_end = " ".join([*before, "[MASK]"])
    tail = " ".join([*before[-29:], "[MASK]"])
    masks, *_ = served([long, near, at_the_start, head, at_the_end, tail])
    for one, other in ((0, 1), (2, 3), (4, 5)):
        ours, theirs = ([(c["token"], c["score"]) for c in masks[row][0]] for row in (one, other))
        assert ours == theirs
    masks, *_ = served([f"{long} {long}"])
    assert len(masks[0]) == 2, "no mask is lost"


def test_masks_beyond_the_most_of_a_text_stay_and_are_counted(served):
    many = "rome [MASK] " * (MOST_MASKS + 3)
    masks, filled, _, lost = served([many, "the [MASK]", many.replace("rome", "")])
    assert lost.tolist() == [3, 0, 3]
    assert [len(candidates) for candidates in masks[0]] == [4] * MOST_MASKS + [0] * 3
    assert len(masks[1]) == 1
    assert filled[0].endswith(" [MASK] rome [MASK] rome [MASK] ")
    assert [text.count("[MASK]") for text in filled] == [3, 0, 3]


def test_candidates_of_many_masks_of_a_long_text_have_no_text(served):
    """Four candidates of each of two masks, one of which would take up the limit alone."""
    long = "[MASK] rome" + " " * (MOST_CANDIDATE_BYTES // 4 - 20) + "[MASK]"
    short = "[MASK] rome [MASK]"
    (of_long, of_short, of_one), filled, _, lost = served([long, short, long[6:]])
    assert [candidate["text"] for mask in of_long for candidate in mask] == [None] * 8
    assert all(candidate["text"] for mask in [*of_short, *of_one] for candidate in mask)
    assert [mask[0]["token"] for mask in of_long] == [mask[0]["token"] for mask in of_short]
    assert filled[0].count("[MASK]") == 0 and not lost.any()
