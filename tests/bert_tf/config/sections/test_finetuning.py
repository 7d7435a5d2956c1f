"""Grids of settings as text."""

import pytest

from bert_tf.config.sections.finetuning import parse_grid


def test_every_combination():
    found = parse_grid("learning-rate=3e-5,5e-5 epochs=2,3,4")
    assert found == [
        {"learning_rate": rate, "epochs": epochs}
        for rate in ("3e-5", "5e-5")
        for epochs in ("2", "3", "4")
    ]
    assert parse_grid("") == [{}]


def test_the_published_grid():
    """README of google-research/bert: these batch sizes and learning rates."""
    found = {(each["batch_size"], each["learning_rate"]) for each in parse_grid("published")}
    assert found == {
        (size, rate)
        for size in ("8", "16", "32", "64", "128")
        for rate in ("3e-4", "1e-4", "5e-5", "3e-5")
    }


@pytest.mark.parametrize("text", ["published batch_size=16", "batch_size=16 published"])
def test_it_can_be_restricted(text):
    assert {each["batch_size"] for each in parse_grid(text)} == {"16"}
    assert len(parse_grid(text)) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("publish", "expected published or key=value,value, got 'publish'"),
        ("epochs=", "got 'epochs='"),
        ("=3", "got '=3'"),
        ("epochs=3,,4", "got 'epochs=3,,4'"),
        ("epochs=3,3", "has a value twice"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_grid(text)
