"""A warning where the losses are those of a model that ignores the texts."""

from types import SimpleNamespace

import pytest

from bert_tf.tasks.running.finetuning import learning_doubts


def doubts(loss, chance, eval_loss=None, eval_chance=None):
    evaluated = eval_loss is not None
    result = SimpleNamespace(
        train=SimpleNamespace(chance_loss=chance),
        evaluation=SimpleNamespace(chance_loss=eval_chance) if evaluated else None,
        training=SimpleNamespace(
            train={} if loss is None else {"loss": loss},
            eval={"loss": eval_loss} if evaluated else None,
        ),
    )
    return list(learning_doubts(result))


@pytest.mark.parametrize(
    "losses",
    [
        (0.69, 0.6931),
        (0.75, 0.6931),
        (0.69, 0.6931, 0.695, 0.6931),
        (0.69, 0.6931, 0.4, None),
    ],
)
def test_at_chance(losses):
    (line,) = doubts(*losses)
    assert (
        f"ended at {losses[0]:.4f}, no better than a model that ignores the texts (0.6931)" in line
    )
    assert "learning rate" in line and "labels that do not belong to their rows" in line


@pytest.mark.parametrize(
    "losses",
    [(0.5, 0.6931), (None, 0.6931), (0.7, None), (0.5, 0.6931, 3.0, 0.6931)],
)
def test_below_chance_or_unknown(losses):
    assert not doubts(*losses)


def test_a_short_run_whose_evaluation_shows_that_it_learned():
    assert not doubts(0.69, 0.6931, 0.6, 0.6931)
