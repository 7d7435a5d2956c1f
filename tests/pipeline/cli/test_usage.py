"""A wrong command line ends in one line with the right one."""

import pytest

from bert_tf.tasks.registry import TASKS

TRAIN = ["train", "--data", "d", "--output", "r", "--size", "tiny"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pretrain"], "no command 'pretrain'; did you mean 'train'? (see bert-pipeline --help)\n"),
        (["train", "--steps", "many"], "error: --steps: expected an integer, got 'many'\n"),
        (["train"], "error: --data is missing: directory of TFRecords made by preprocess (or set "),
        (["finetune"], "error: name a task: bert-pipeline finetune " + "|".join(TASKS) + "\n"),
        (["import-weights"], "error: name a source: bert-pipeline import-weights SOURCE (folder "),
        (["inspect"], "error: PATH is missing (see bert-pipeline inspect --help)\n"),
        (["train", "--step", "3"], "error: no option --step; did you mean --steps? (see "),
        (["score", "--model"], "error: option '--model' requires an argument"),
        ([*TRAIN[:-1], "huge"], "error: --size: expected one of tiny, mini, small, "),
        ([*TRAIN, "--config", "none.yaml"], "none.yaml: cannot be read"),
        (
            [*TRAIN, "--data", "e"],
            "error: --data: given 2 times, but it takes one value; give it once (see bert-pipeline",
        ),
        (["init", "tagging", "--from", "a", "--init", "b", "--from=c"], "error: --from: given 2 "),
        (["vocab", "--lowercase", "--cased"], "error: --lowercase: given 2 times, but it takes "),
        (
            ["finetune", "regression", *(["--label-column", "a"] * 3)],
            "error: --label-column: given 3 times, but it takes one value; give it once",
        ),
        (["finetune", "parsing"], f"finetune TASK: expected one of {', '.join(TASKS)}, got "),
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


def test_switches_and_flags_of_several_values_may_be_repeated(run):
    several = ["--input", "a", "--input", "b", "--set", "score.limit=2", "--set", "score.limit=1"]
    code, _, err, job = run(
        ["score", "--model", "m", "--output", "o.csv", *several, "--quiet", "--quiet"],
        module="scoring",
    )
    assert (code, err) == (0, "")
    config, *_ = job.calls[0]
    assert config.input == ("a", "b")
