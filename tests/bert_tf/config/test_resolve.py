"""YAML, then `--set`, then flags; unknown names are refused wherever they stand."""

import pytest
import yaml

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.resolve import resolve
from bert_tf.config.sections import TrainConfig, VocabConfig
from pipeline.cli.jobs import JOBS

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
        ("train: 7", "section 'train' holds '7'"),
        ("train:", "section 'train' holds None"),
        ("~: {}", "unknown section 'None'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        resolve(TrainConfig, config_file=str(path), flags=FLAGS)


def test_a_flag_without_a_value_is_refused():
    """An unset variable of the shell leaves such a flag."""
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


@pytest.mark.parametrize(
    ("assignments", "flags", "size", "init"),
    [
        ((), {"init": "run"}, None, "run"),
        (("train.init=run",), {}, None, "run"),
        (("train.size=base",), {}, "base", None),
        (("train.size=null",), {"init": "run"}, None, "run"),
        ((), {}, "mini", None),
    ],
)
def test_a_model_on_the_command_line_replaces_that_of_a_file(
    tmp_path, assignments, flags, size, init
):
    path = tmp_path / "train.yaml"
    path.write_text("train: {size: mini, data: data, output: run}", encoding="utf-8")
    config = resolve(TrainConfig, config_file=str(path), assignments=assignments, flags=flags)
    assert (config.size, config.init) == (size, init)


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
        ("lowercase=off", False),
        ("vocab_size=0100", 100),
        ("vocab_size=1_000", 1000),
    ],
)
def test_what_else_is_assigned_is_read_by_the_type_of_its_key(assignment, value):
    config = resolve_vocab(f"vocab.{assignment}")
    assert getattr(config, assignment.partition("=")[0]) == value


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("vocab.vocab_size=[", "--set vocab.vocab_size=[: not valid YAML: "),
        ("vocab.vocab_size=*x", "not valid YAML: a value that begins with * or & is an alias; put"),
        ("vocab.vocab_size=0x_", "vocab.vocab_size: expected an integer, got '0x_'"),
        (
            "vocab.vocab_size=!!float x",
            "not valid YAML: tag !!float is not supported; write only the",
        ),
        ("vocab.vocab_size=null", "vocab.vocab_size: needs a value, got nothing"),
        ("vocab.vocab_size=[[1]]", "vocab.vocab_size: expected an integer, got [['1']]"),
        ("vocab.text_column=", "vocab.text_column: needs a value, got nothing"),
        (f"vocab.vocab_size=1{'0' * 5000}", "expected an integer, got '1000000"),
        ("vocab.vocab_size=\x07", "not valid YAML: characters that YAML does not allow"),
        ("vocab.cleaning=[html", "expected one of html, controls, whitespace, nfc, boilerplate"),
        ("vocab.input=[[yes]]", "vocab.input: expected text, got ['yes']"),
    ],
)
def test_a_wrong_value_is_one_fault(assignment, message):
    with pytest.raises(ConfigError) as caught:
        resolve_vocab(assignment)
    (fault,) = caught.value.faults
    assert message in fault
    assert "\n" not in fault


PLAIN = ["no", "on", "yes", "010", "1_000", "1e6", "1.10", "12:30", "0x1F", "=", "2024-01-31", "id"]


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("written", ["{}", "'{}'", '"{}"', "!!str {}"])
def test_text_of_a_file_is_as_written_with_and_without_quotes(tmp_path, text, written):
    path = tmp_path / "run.yaml"
    path.write_text(f"vocab:\n  text_column: {written.format(text)}\n")
    assert resolve_vocab(config_file=str(path)).text_column == text


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("vocab_size: 010", 10),
        ("vocab_size: 1_000", 1000),
        ("vocab_size: 1e6", 1_000_000),
        ("vocab_size: '8000'", 8000),
        ("extra_pieces: .5", 0.5),
        ("extra_pieces: 1_000e-3", 1.0),
        ("lowercase: Off", False),
        ("lowercase: 'yes'", True),
        ("extend: ~", None),
        ("extend: 'null'", "null"),
        ("cleaning: [html, nfc]", ("html", "nfc")),
        ("cleaning: []", ()),
    ],
)
def test_a_value_of_a_file_is_read_by_the_type_of_its_key(tmp_path, line, value):
    path = tmp_path / "run.yaml"
    path.write_text(f"vocab:\n  {line}\n")
    got = getattr(resolve_vocab(config_file=str(path)), line.partition(":")[0])
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("text_column:", "vocab.text_column: needs a value, got nothing"),
        ("text_column: ''", "vocab.text_column: expected text, got nothing"),
        ("text_column: {a: b}", "vocab.text_column: expected text, got {'a': 'b'}"),
        ("vocab_size: 0x100", "vocab.vocab_size: expected an integer, got '0x100'"),
        ("vocab_size: 1:00", "vocab.vocab_size: expected an integer, got '1:00'"),
        ("vocab_size: 1.5", "vocab.vocab_size: expected an integer, got '1.5'"),
        ("lowercase: 1", "vocab.lowercase: expected true or false, got '1'"),
        ("~: 1", "unknown key; bert-pipeline vocab --help-all lists the keys"),
    ],
)
def test_a_wrong_value_of_a_file_is_one_fault(tmp_path, line, message):
    path = tmp_path / "run.yaml"
    path.write_text(f"vocab:\n  {line}\n")
    with pytest.raises(ConfigError) as caught:
        resolve_vocab(config_file=str(path))
    (fault,) = caught.value.faults
    assert message in fault
    assert "\n" not in fault


@pytest.mark.parametrize("written", ["on", "On", "yes", "true", "'on'"])
def test_a_choice_of_on_and_off_takes_what_yaml_calls_so(tmp_path, written):
    path = tmp_path / "run.yaml"
    path.write_text(f"train:\n  packing: {written}\n")
    assert resolve(TrainConfig, config_file=str(path), flags=FLAGS).packing == "on"


def test_label_errors_reads_what_init_wrote_for_finetune(tmp_path):
    path = tmp_path / "rows.yaml"
    values = {
        "task": "classification",
        "train": "train.csv",
        "eval_fraction": 0.1,
        "init": "minilm",
        "output": "rows-classification",
        "epochs": 4,
        "text_column": "body",
        "id_column": "ticket",
        "early_stop_loss": 2.0,
        "best_metric": "accuracy",
    }
    path.write_text(yaml.safe_dump({"finetune": values}))
    variants = JOBS["label-errors"].sections[0]
    config = variants.resolve(config_file=str(path), flags={"output": "doubted"})
    assert type(config).__name__ == "ClassificationLabelErrorsConfig"
    assert (config.train, config.output, config.epochs) == ("train.csv", "doubted", 4)
    assert (config.text_column, config.id_column, config.eval_fraction) == ("body", "ticket", 0.0)
    with pytest.raises(ConfigError, match=r"label_errors\.output: is required|--output"):
        variants.resolve(config_file=str(path), flags={})
    with pytest.raises(ConfigError, match="dry_run: label-errors has none; leave it out"):
        variants.resolve(config_file=str(path), flags={"output": "doubted", "dry_run": True})
    path.write_text(yaml.safe_dump({"finetune": {**values, "epoch": 3}}))
    with pytest.raises(ConfigError, match=r"rows\.yaml: finetune\.epoch: unknown key"):
        variants.resolve(config_file=str(path), flags={"output": "doubted"})
    own = {**values, "epochs": 2, "output": "mine"}
    for key in ("eval_fraction", "early_stop_loss", "best_metric"):
        del own[key]
    path.write_text(yaml.safe_dump({"finetune": values, "label_errors": own}))
    assert variants.resolve(config_file=str(path), flags={}).output == "mine"
