from types import SimpleNamespace
from typing import Any

import pytest

from bert_tf.config.sections.finetuning import Recipe
from bert_tf.tasks.running.finetuning import too_few_steps


def doubts(*, rows: int, batch_size: int, epochs: float, steps: int) -> list[str]:
    config: Any = SimpleNamespace(recipe=Recipe(epochs, batch_size, 5e-5))
    inputs: Any = SimpleNamespace(steps_per_epoch=steps / epochs)
    return list(too_few_steps(config, inputs, rows))


def test_a_few_dozen_rows_need_more_epochs():
    assert doubts(rows=40, batch_size=32, epochs=3.0, steps=6) == [
        "40 training rows in batches of 32 make 6 steps in 3 epochs, too few to learn from; give "
        "--epochs 50 for 100 steps, or a smaller --batch-size"
    ]


@pytest.mark.parametrize(
    ("rows", "steps", "epochs"), [(40, 20, 10), (6400, 600, 3), (400, 20, 1.5)]
)
def test_longer_runs_are_left_alone(rows, steps, epochs):
    assert not doubts(rows=rows, batch_size=32, epochs=epochs, steps=steps)


def test_the_epochs_that_it_names_are_enough():
    for rows in range(1, 200, 7):
        (line,) = doubts(rows=rows, batch_size=8, epochs=1.0, steps=1)
        epochs = int(line.split("--epochs ")[1].split()[0])
        steps_per_epoch = -(-rows // 8)
        assert 100 <= epochs * steps_per_epoch < 100 + steps_per_epoch
