"""Exit codes and messages of the command line, and its names, which stay."""

import signal
import weakref
from importlib import metadata

import pytest
from click.testing import CliRunner

from bert_tf.base.errors import InputError, StoppedEarly, UsageError
from bert_tf.tasks.registry import TASKS
from pipeline.cli.main import COMMANDS, _explain, bert_pipeline, main

# Names that other people's scripts depend on.
CONTRACT = {
    "init": "--from --init --output --set",
    "vocab": "--input --output --vocab-size --lowercase --cased --runner --workers",
    "preprocess": (
        "--input --vocab --output --max-seq-length --max-predictions-per-seq --masked-lm-prob "
        "--dupe-factor --short-seq-prob --whole-word-mask --seed --eval-fraction --num-shards"
    ),
    "train": (
        "--data --output --size --model-config --strategy --steps --batch-size --init --resume"
    ),
    "finetune": (
        "--train --eval --init --output --text-column --text-pair-column --label-column --epochs "
        "--batch-size --learning-rate --max-seq-length --seed"
    ),
    "label-errors": "--train --init --output --folds --text-column --label-column --epochs --seed",
    "evaluate": "--model --data --output",
    "export": "--run --output --format --pooling --normalize",
    "score": (
        "--model --input --output --text-column --text-pair-column --question-column "
        "--context-column --limit"
    ),
    "try": "--port",
    "embed": (
        "--model --input --output --tokens --text-column --pooling --layers --layer-combination "
        "--normalize --max-seq-length --limit"
    ),
    "search": (
        "--queries --corpus --model --output --top-k --similarity --index --text-column --pooling "
        "--normalize"
    ),
    "summarize": (
        "--model --input --output --sentences --ratio --mmr-lambda --text-column --pooling --limit"
    ),
    "import-weights": "--output",
    "inspect": "",
    "report": "--output",
    "verify": "",
    "lineage": "--format",
    "schema": "",
    "demo": "",
    "doctor": "",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_its_flags(name, help_of):
    result = CliRunner().invoke(bert_pipeline, [name, "--help"])
    assert result.exit_code == 0
    assert f"bert-pipeline {name}" in result.output
    shown = result.output
    if name == "finetune":
        shown = "".join(help_of(name, task, "--help") for task in TASKS)
    names = CONTRACT[name].split()
    if name not in ("verify", "lineage", "schema"):  # which load nothing that prints
        names.append("--verbose")
    missing = [flag for flag in names if flag not in shown]
    assert not missing


TRAIN = ["train", "--data", "d", "--output", "r", "--size", "tiny"]
TRACEBACK = (
    "Traceback (most recent call last):\n  File 'x.py', line 1\n{} [while running 'Write']\n"
)


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (InputError("a.txt: is empty"), 1, "error: a.txt: is empty\n"),
        (UsageError("no column 'x'"), 2, "error: no column 'x'\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), 1, "error: a.txt: No such file\n"),
        (StoppedEarly("saved; run again", signal.SIGINT), 130, "saved; run again\n"),
        (KeyError("x"), 1, "error: unexpected KeyError: 'x'"),
        (
            RuntimeError(TRACEBACK.format("RuntimeError: OSError: [Errno 28] No space left: 'x'")),
            1,
            "error: x: no space left on device; free some space, then run the same command again\n",
        ),
        (OSError(28, "No space left"), 1, "error: no space left on device; free some space"),
        (PermissionError(13, "No", "a.txt"), 1, "error: a.txt: permission denied; change its"),
        (
            RuntimeError(TRACEBACK.format("ValueError: odd")),
            1,
            "error: unexpected ValueError: odd (set BERT_PIPELINE_TRACEBACK=1",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures_are_one_line_and_an_exit_code(run, outcome, code, message):
    got, out, err, _ = run(TRAIN, outcome)
    assert got == code
    assert message in err
    assert err.startswith("error: ") == (code in (1, 2))
    assert "Traceback" not in err
    assert out == ""


def test_what_a_failure_holds_ends_before_the_process(run):
    """TensorFlow's iterators warn on stderr where Python has ended before them."""

    class Iterator:
        pass

    held = []

    def fail():
        iterator = Iterator()
        held.append(weakref.ref(iterator))
        error = InputError("a.txt: is empty")  # its traceback has this frame, which has it
        raise error

    code, _, _, _ = run(TRAIN, fail)
    assert code == 1
    assert held[0]() is None


def test_a_failure_inside_a_runner_keeps_its_message(run):
    wrapped = RuntimeError("worker died [while running Read]")
    wrapped.__cause__ = InputError("a.txt:3: broken")
    assert run(TRAIN, wrapped)[::2] == (1, "error: a.txt:3: broken\n")


def test_no_command_shows_the_help_and_exits_2(run):
    code, out, err, _ = run([])
    assert (code, out) == (2, "")
    assert err.startswith("Usage: bert-pipeline ")
    assert "import-weights" in err


def test_the_version_is_shown_with_those_of_what_it_stands_on():
    lines = CliRunner().invoke(bert_pipeline, ["--version"]).output.splitlines()
    versions = dict(line.split(" ", 1) for line in lines)
    assert versions["bert-pipeline"] == metadata.version("bert-pipeline")
    assert versions["tensorflow"] == metadata.version("tensorflow")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("exp", "plain,export"),
        ("score --eng", "plain,--engine"),
        ("score --engine openv", "plain,openvino"),
        ("finetune simi", "plain,similarity"),
        ("label-errors class", "plain,classification"),
        ("init pre", "plain,pretrain"),
        *(
            (line, f"file,{line.split()[-1]}")  # the shell completes the path
            for line in (
                *("finetune qa --train tr", "score --input ne", "vocab --output vo"),
                *("train --config co", "import-weights be", "inspect da", "init qa --from da"),
            )
        ),
    ],
)
def test_a_shell_completes_commands_flags_values_and_paths(words, completed, monkeypatch, capsys):
    line = f"bert-pipeline {words}"
    monkeypatch.setenv("_BERT_PIPELINE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == [completed]


def test_a_lack_of_memory_is_not_unexpected(capsys):
    assert _explain(MemoryError()) == 1
    assert "error: out of memory" in capsys.readouterr().err
