"""YAML, then `--set`, then flags; unknown names are refused wherever they stand."""

import pytest

from bert_tf.config.errors import ConfigError, UsageError
from bert_tf.config.resolve import resolve
from bert_tf.config.sections import TrainConfig

FLAGS = {"data": "data", "output": "run", "size": "tiny"}


def test_later_sources_win(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("train:\n  steps: 1\n  batch_size: 2\n  seed: 3\nvocab:\n  vocab_size: 9000\n")
    config = resolve(
        TrainConfig,
        config_file=str(path),
        assignments=("train.batch_size=20", "train.seed=30"),
        flags={**FLAGS, "seed": "300", "steps": None},
    )
    assert (config.steps, config.batch_size, config.seed) == (1, 20, 300)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("steps=1", "--set steps=1: expected section.key=value"),
        ("train.steps", "--set train.steps: expected section.key=value"),
        ("trian.steps=1", "unknown section 'trian'; did you mean 'train'?"),
        ("train.step=1", "--set: unknown key 'train.step'; did you mean 'train.steps'?"),
    ],
)
def test_a_wrong_assignment_is_refused(assignment, message):
    with pytest.raises(ConfigError) as caught:
        resolve(TrainConfig, assignments=(assignment,), flags=FLAGS)
    assert message in str(caught.value)
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: [", "not valid YAML"),
        ("- train", "expected sections such as"),
        ("trains:\n  steps: 1", "unknown section 'trains'; did you mean 'train'"),
        ("train: 7", "section 'train' holds 7"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        resolve(TrainConfig, config_file=str(path), flags=FLAGS)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        resolve(TrainConfig, config_file=str(tmp_path / "none.yaml"), flags=FLAGS)


@pytest.mark.parametrize(
    ("named", "got"), [({}, "none of them"), ({"size": "tiny", "init": "x"}, "--size and --init")]
)
def test_the_model_is_named_exactly_once(named, got):
    with pytest.raises(ConfigError, match=f"got {got}"):
        resolve(TrainConfig, flags={"data": "data", "output": "run", **named})
