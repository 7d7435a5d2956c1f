"""YAML, then `--set`, then flags; unknown names are refused wherever they stand."""

import pytest

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.resolve import resolve
from bert_tf.config.sections import TrainConfig, VocabConfig

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
        ("train.step=1", "--set train.step: unknown key; did you mean 'train.steps'?"),
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


def test_a_flag_without_a_value_is_refused():
    """As an unset variable of the shell leaves it."""
    with pytest.raises(ConfigError, match="--tpu-address: expected a value, got an empty text"):
        resolve(TrainConfig, flags={**FLAGS, "tpu_address": ""})


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        resolve(TrainConfig, config_file=str(tmp_path / "none.yaml"), flags=FLAGS)


@pytest.mark.parametrize(
    ("named", "got"), [({}, "none of them"), ({"size": "tiny", "init": "x"}, "--size and --init")]
)
def test_the_model_is_named_exactly_once(named, got):
    with pytest.raises(ConfigError, match=f"got {got}"):
        resolve(TrainConfig, flags={"data": "data", "output": "run", **named})


def resolve_vocab(*assignments, config_file=None):
    return resolve(
        VocabConfig,
        config_file=config_file,
        assignments=("vocab.input=x", "vocab.output=y", *assignments),
    )


@pytest.mark.parametrize(
    "text",
    ["no", "010", "1.10", "@id", "*.txt", "[html", "a: b", "a #b", "2024-01-31", "null", "{"],
)
@pytest.mark.parametrize("key", ["text_column", "input"])
def test_text_is_taken_as_it_is_written(key, text):
    config = resolve_vocab(f"vocab.{key}={text}")
    assert getattr(config, key) == (text if key == "text_column" else (text,))


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("text_column='no'", "no"),
        ('text_column="a\\tb"', "a\tb"),
        ("input=[a.txt, 'b, c.txt']", ("a.txt", "b, c.txt")),
        ("cleaning=[html, nfc]", ("html", "nfc")),
        ("cleaning=html", ("html",)),
        ("extend=null", None),
        ("extend=", None),
        ("lowercase=no", False),
        ("vocab_size=0100", 64),
    ],
)
def test_what_else_is_assigned_is_yaml(assignment, value):
    config = resolve_vocab(f"vocab.{assignment}")
    assert getattr(config, assignment.partition("=")[0]) == value


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("vocab.vocab_size=[", "--set vocab.vocab_size=[: not valid YAML: "),
        ("vocab.vocab_size=*x", "not valid YAML: found undefined alias 'x'"),
        ("vocab.vocab_size=0x_", "vocab.vocab_size: expected a whole number, got '0x_'"),
        ("vocab.vocab_size=!!float x", "vocab.vocab_size: expected a whole number, got 'x'"),
        ("vocab.vocab_size=\x07", "not valid YAML: characters that YAML does not allow"),
        ("vocab.cleaning=[html", "expected one of html, controls, whitespace, nfc, boilerplate"),
        ("vocab.input=[yes]", "vocab.input: expected text, got True, as YAML reads yes, on and"),
    ],
)
def test_a_wrong_value_is_one_fault(assignment, message):
    with pytest.raises(ConfigError) as caught:
        resolve_vocab(assignment)
    (fault,) = caught.value.faults
    assert message in fault
    assert "\n" not in fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no", "text_column: expected text, got False, as YAML reads no, off and false; put the"),
        ("on", "text_column: expected text, got True, as YAML reads yes, on and true; put the wo"),
        ("010", "expected text, got 010, which YAML reads as the number 8; put it in quotes"),
        ("1.10", "expected text, got 1.10, which YAML reads as the number 1.1; put it in quotes"),
        ("12:30", "expected text, got 12:30, which YAML reads as the number 750; put it in quo"),
    ],
)
def test_text_that_yaml_takes_for_something_else_wants_quotes(tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(f"vocab:\n  text_column: {text}\n")
    with pytest.raises(ConfigError) as caught:
        resolve_vocab(config_file=str(path))
    assert f"{path}: vocab." in str(caught.value)
    assert message in str(caught.value)
    path.write_text(f"vocab:\n  text_column: '{text}'\n")
    config = resolve_vocab(config_file=str(path))
    assert config.text_column == text


@pytest.mark.parametrize("text", ["8", "1.5", "2024-01-31", "id"])
def test_text_that_yaml_leaves_as_it_is_wants_none(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(f"vocab:\n  text_column: {text}\n  vocab_size: 0x100\n")
    config = resolve_vocab(config_file=str(path))
    assert (config.text_column, config.vocab_size) == (text, 256)
    assert type(config.vocab_size) is int
