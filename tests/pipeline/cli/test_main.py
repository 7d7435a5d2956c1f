"""Exit codes and messages of the command line, and that its names stay what they are."""

import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import apache_beam as beam
import pytest
from click.testing import CliRunner

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, StoppedEarly, UsageError
from bert_tf.config.sections import SECTIONS, RunnerConfig
from bert_tf.tasks.registry import TASKS
from pipeline.beam.runner import run_pipeline
from pipeline.cli.main import COMMANDS, bert_pipeline, main
from pipeline.cli.startup.termination import Terminated, raising_on_signals

# Names that other people's scripts depend on.
CONTRACT = {
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
    "evaluate": "--model --data --output",
    "export": "--run --output --format",
    "score": (
        "--model --input --output --text-column --text-pair-column --question-column "
        "--context-column --limit"
    ),
    "import-weights": "--output",
    "inspect": "",
    "demo": "",
    "doctor": "",
}


class FakeJob:
    """Stands in for a job's module: returns a manifest, fails, or does something first."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.calls = []

    def run(self, *arguments):
        self.calls.append(arguments)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome() if callable(self.outcome) else self.outcome


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line against a fake job; gives exit code, stdout, stderr and the job."""

    def run_command(arguments, outcome=None, module="pretraining"):
        job = FakeJob(outcome if outcome is not None else {"counts": {}})
        monkeypatch.setitem(sys.modules, f"pipeline.jobs.{module}", job)
        with pytest.raises(SystemExit) as exited:
            main(arguments)
        captured = capsys.readouterr()
        return exited.value.code, captured.out, captured.err, job

    return run_command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_its_flags(name):
    result = CliRunner().invoke(bert_pipeline, [name, "--help"])
    assert result.exit_code == 0
    assert f"bert-pipeline {name}" in result.output
    shown = result.output
    if name == "finetune":
        shown = "".join(help_of(name, task, "--help") for task in TASKS)
    names = [*CONTRACT[name].split(), "--verbose"]
    missing = [flag for flag in names if flag not in shown]
    assert not missing


def help_of(*arguments):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(bert_pipeline, [*arguments])
    assert result.exit_code == 0
    return result.output


def test_finetune_shows_the_tasks_and_what_they_have_in_common():
    shown = help_of("finetune", "--help")
    assert all(f"\n    {name} " in shown for name in TASKS)
    assert "--learning-rate" in shown
    assert "--label-column" not in shown
    assert "doc" not in shown


@pytest.mark.parametrize("before", [[], ["--seed", "1"]])
def test_a_tasks_help_shows_its_own_options_alone(before):
    shown = help_of("finetune", *before, "qa", "--help-all")
    assert shown.startswith("Usage: bert-pipeline finetune [OPTIONS] qa\n")
    shown = " ".join(shown.split())
    assert "finetune.n_best_size=20" in shown
    assert "finetune.n_best_size" not in help_of("finetune", *before, "qa", "--help")
    for flag in ("--doc-stride", "--learning-rate", "exact_match", "(0: 384)"):
        assert flag in shown
    for flag in ("--label-column", "column of the text", "macro_f1", "classification"):
        assert flag not in shown


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (["classification", "--doc-stride", "3"], "--doc-stride"),
        (["classification", "--set", "finetune.n_best_size=3"], "--set finetune.n_best_size"),
        (["--config", "run.yaml"], "run.yaml: finetune.doc_stride"),
    ],
)
def test_a_key_of_another_task_is_refused_with_its_task(
    run, arguments, source, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("finetune: {task: classification, doc_stride: 3}\n")
    code, _, err, job = run(["finetune", *arguments, *FINETUNE])
    assert (code, job.calls) == (2, [])
    assert err == f"error: {source}: is for qa alone; leave it out\n"


def test_the_command_line_names_the_task_over_the_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("finetune: {task: classification}\n")
    code, _, _, job = run(
        ["finetune", "qa", "--config", "run.yaml", "--doc-stride", "3", *FINETUNE],
        outcome={},
        module="finetuning",
    )
    assert code == 0
    config, _ = job.calls[0]
    assert (config.task, config.doc_stride, config.sequence_length) == ("qa", 3, 384)
    assert "label_column" not in config.as_dict()


FINETUNE = ["--train", "t", "--init", "m", "--output", "o"]


JOB_COMMANDS = [name for name in COMMANDS if name not in ("inspect", "demo", "doctor")]


@pytest.mark.parametrize("name", JOB_COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_help_lists_input_output_and_model_first_within_100_columns(name, flag):
    shown = help_of(name, flag)
    titles = [line for line in shown.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
    assert titles[0] == "Input, output and model:"
    assert titles[-1] == "General:" or flag == "--help-all"
    first = shown.partition("Input, output and model:")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\S+)", first, re.M)[-1] == "--output"
    assert not [line for line in shown.splitlines() if len(line) > 100]


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (["vocab"], ["--input", "--extend", "--output"]),
        (["train"], ["--data", "--size", "--model-config", "--init", "--output"]),
        (["finetune", "qa"], ["qa", "--train", "--eval", "--init", "--output"]),
        (["score"], ["--model", "--input", "--output"]),
        (["import-weights"], ["SOURCE", "--vocab", "--output"]),
    ],
)
def test_what_is_read_is_listed_before_what_is_written(arguments, flags):
    first = help_of(*arguments, "--help").partition("Input, output and model:")[2]
    assert re.findall(r"^  (\S+)", first.partition("\n\n")[0], re.M) == flags


def test_the_options_of_a_command_come_before_those_it_shares():
    shown = help_of("train", "--help")
    flags = ("--data", "--size", "--output", "--steps", "--strategy", "--config", "--help-all")
    places = [shown.index(f"\n  {flag} ") for flag in flags]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "sections"), [("train", ["train"]), ("score", ["score", "runner"])]
)
def test_help_all_adds_the_keys_without_a_flag(name, sections):
    short, long = help_of(name, "--help"), help_of(name, "--help-all")
    keys = [
        f"{section}.{field.name}"
        for section in sections
        for field in dataclasses.fields(SECTIONS[section])
        if field.metadata["advanced"]
    ]
    assert keys
    assert f"--help-all also lists {len(keys)} further keys, for --config and --set." in short
    assert not [key for key in keys if key in short]
    assert not [key for key in keys if f"\n  {key}" not in long]
    assert "also lists" not in long


def test_help_all_of_a_command_without_further_keys_is_its_help():
    assert help_of("export", "--help-all") == help_of("export", "--help")


TRAIN = ["train", "--data", "d", "--output", "r", "--size", "tiny"]
TRACEBACK = (
    "Traceback (most recent call last):\n  File 'x.py', line 1\n{} [while running 'Write']\n"
)


def test_keys_of_other_commands_are_refused(run):
    code, _, err, job = run([*TRAIN, "--set", "finetune.xla=on", "--set", "train.seed=1"])
    assert (code, job.calls) == (2, [])
    assert "--set finetune.xla=on: train reads train alone" in err


def test_a_negative_number_of_samples_is_refused(run):
    code, _, err, _ = run(["inspect", "nothing", "--samples", "-1"])
    assert code == 2
    assert "error: --samples: -1 is not in the range x>=0 (see" in err


def test_flags_reach_the_job(run):
    code, _, _, job = run([*TRAIN, "--steps", "7", "--set", "train.precision=bfloat16"])
    config, options = job.calls[0]
    assert code == 0
    assert (config.steps, config.precision, options.overwrite) == (7, "bfloat16", False)


def test_json_prints_the_manifest_and_nothing_else_on_stdout(run):
    code, out, _, _ = run([*TRAIN, "--json"], {"counts": {"train": 3}})
    assert code == 0
    assert json.loads(out) == {"counts": {"train": 3}}


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


@pytest.mark.parametrize(
    ("arguments", "module", "code", "message"),
    [
        (TRAIN, "pretraining", 143, "stopped by SIGTERM; run the same command again to resume"),
        (
            ["vocab", "--input", "i", "--output", "v", "--lowercase"],
            "vocabulary",
            143,
            "stopped by SIGTERM; run the same command again to resume",
        ),
    ],
)
def test_a_termination_is_one_line(run, arguments, module, code, message):
    before = signal.getsignal(signal.SIGTERM)
    got, out, err, _ = run(arguments, lambda: os.kill(os.getpid(), signal.SIGTERM), module)
    assert (got, out) == (code, "")
    assert re.fullmatch(message + "\n", err)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow  # starts a process that loads Beam
def test_a_second_termination_ends_the_process_at_once():
    program = """
import os, signal
from pipeline.cli.startup.termination import Terminated, raising_on_signals
with raising_on_signals():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except Terminated:
        os.kill(os.getpid(), signal.SIGTERM)
        print("still there")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, b"", b"")


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_during_a_step_of_beam_is_still_one(number, kind):
    def build(pipeline):
        _ = pipeline | beam.Create([1]) | beam.Map(lambda _: os.kill(os.getpid(), number))

    with pytest.raises(kind), raising_on_signals():
        run_pipeline(RunnerConfig(), build, console=Console(io.StringIO()), input_bytes=0)


@pytest.mark.slow  # starts a process that loads TensorFlow
def test_a_second_termination_ends_training_at_once():
    program = """
import os, signal
from bert_tf.training.stop_signals import on_stop_signal
from pipeline.cli.startup.termination import raising_on_signals
with raising_on_signals(), on_stop_signal(print):
    os.kill(os.getpid(), signal.SIGTERM)
    print("saving", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    print("still there")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"15\nsaving\n")


def test_a_failure_inside_a_runner_keeps_its_message(run):
    wrapped = RuntimeError("worker died [while running Read]")
    wrapped.__cause__ = InputError("a.txt:3: broken")
    assert run(TRAIN, wrapped)[::2] == (1, "error: a.txt:3: broken\n")


VOCAB = ["vocab", "--input", "a.txt", "--output", "v.txt"]
COUNTS = {"documents": 7, "dropped": {}, "rejected": {"broken": 2, "empty": 1}}


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        (None, 0),
        ("3", 0),
        ("2", 3),
        ("0", 3),
        ("30%", 0),
        ("0.3", 0),
        ("29%", 3),
        ("1", 3),
        ("1.0", 0),
    ],
)
def test_rejects_beyond_the_limit_exit_3(run, limit, code):
    arguments = VOCAB if limit is None else [*VOCAB, "--max-rejects", limit]
    done, _, err, _ = run(arguments, {"counts": COUNTS}, "vocabulary")
    assert done == code
    assert (f"error: a.txt: 3 of 10 rows rejected, more than --max-rejects {limit}" in err) == (
        code == 3
    )


def test_a_limit_that_is_none_is_refused(run):
    code, _, err, job = run([*VOCAB, "--max-rejects", "1.5"], {"counts": COUNTS}, "vocabulary")
    assert (code, job.calls) == (2, [])
    assert "expected a number of rows (10) or a fraction of them (0.1 or 10%), got '1.5'" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_limit_is_for_commands_that_read_rows(name):
    shown = CliRunner().invoke(bert_pipeline, [name, "--help"]).output
    has_limit = name in ("vocab", "preprocess", "finetune", "evaluate", "score")
    assert ("--max-rejects" in shown) == has_limit
    assert ("(default: 10%)" in " ".join(shown.split())) == (name in ("finetune", "evaluate"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pretrain"], "no command 'pretrain'; did you mean 'train'? (see bert-pipeline --help)\n"),
        (["train", "--steps", "many"], "error: --steps: expected a whole number, got 'many'\n"),
        (["train"], "error: --data is missing: directory of TFRecords made by preprocess (or set "),
        (["finetune"], "error: name a task: bert-pipeline finetune classification|qa\n"),
        (["import-weights"], "error: name a source: bert-pipeline import-weights SOURCE (folder "),
        (["inspect"], "error: PATH is missing (see bert-pipeline inspect --help)\n"),
        (["train", "--step", "3"], "error: no option --step; did you mean --steps? (see "),
        (["score", "--model"], "error: option '--model' requires an argument"),
        ([*TRAIN, "--size", "huge"], "error: --size: expected one of tiny, mini, small, "),
        ([*TRAIN, "--config", "none.yaml"], "none.yaml: cannot be read"),
        (["finetune", "parsing"], "finetune TASK: expected one of classification, qa, got "),
    ],
)
def test_wrong_usage_exits_2(run, arguments, message):
    code, _, err, job = run(arguments)
    assert code == 2
    assert message in err
    assert not job.calls


@pytest.mark.parametrize("folder", ["texts", "my texts"])
def test_a_glob_that_the_shell_expanded_is_to_be_quoted(run, tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    paths = [f"{folder}/{number:03}.txt" for number in range(400)]
    (tmp_path / folder).mkdir()
    for path in paths:
        (tmp_path / path).touch()
    code, _, err, job = run(["vocab", "--input", *paths, "--output", "v"], module="vocabulary")
    assert (code, job.calls) == (2, [])
    assert err == (
        "error: --input takes one path or quoted glob, but 399 more paths came after it "
        f"({folder}/001.txt, {folder}/002.txt, {folder}/003.txt, …); quote the glob so that the "
        f"shell does not expand it: --input '{folder}/*.txt' (see bert-pipeline vocab --help)\n"
    )


@pytest.mark.parametrize("arguments", [["vocab", "--input", "a", "b"], ["inspect", "a", "b"]])
def test_other_arguments_too_many_are_named(run, arguments):
    code, _, err, _ = run(arguments)
    assert code == 2
    assert err.startswith("error: 1 argument too many: b (see bert-pipeline ")


def test_no_command_shows_the_help_and_exits_2(run):
    code, out, err, _ = run([])
    assert (code, out) == (2, "")
    assert err.startswith("Usage: bert-pipeline ")
    assert "import-weights" in err
