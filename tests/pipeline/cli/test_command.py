"""A command line becomes a config and a job, the result of the job an exit code."""

import json

import pytest

TRAIN = ["train", "--data", "d", "--output", "r", "--size", "tiny"]
VOCAB = ["vocab", "--input", "a.txt", "--output", "v.txt"]
COUNTS = {"documents": 7, "dropped": {}, "rejected": {"broken": 2, "empty": 1}}


def test_keys_of_other_commands_are_refused(run):
    code, _, err, job = run([*TRAIN, "--set", "finetune.xla=on", "--set", "train.seed=1"])
    assert (code, job.calls) == (2, [])
    assert "--set finetune.xla=on: train only reads train and storage" in err


def test_flags_reach_the_job(run):
    code, _, _, job = run([*TRAIN, "--steps", "7", "--set", "train.precision=bfloat16"])
    config, _, options = job.calls[0]
    assert code == 0
    assert (config.steps, config.precision, options.overwrite) == (7, "bfloat16", False)


def test_json_prints_the_manifest_and_nothing_else_on_stdout(run):
    code, out, _, _ = run([*TRAIN, "--json"], {"counts": {"train": 3}})
    assert code == 0
    assert json.loads(out) == {"counts": {"train": 3}}


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


def test_quiet_leaves_what_is_wrong(run, capsys):
    arguments = [*VOCAB, "--quiet", "--max-rejects", "0"]
    code, out, err, job = run(arguments, {"counts": COUNTS}, "vocabulary")
    assert (code, out) == (3, "")
    assert err.startswith("error: a.txt: 3 of 10 rows rejected")
    console = job.calls[0][-1].console
    console.info("reading")
    console.warn("odd")
    assert capsys.readouterr().err == "warning: odd\n"
