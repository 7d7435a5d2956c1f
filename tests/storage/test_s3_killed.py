"""Commands that are killed while they write to S3, and started again."""

import signal
import subprocess
import sys

import pytest
from behavior.pretraining_runs import losses, train, write_data, write_model_config
from behavior.remote_outputs import local_files
from behavior.timing import wait_until
from behavior.training_workers import check_lost_worker, training_workers

from pipeline.outputs.manifest import read_manifest

pytestmark = pytest.mark.slow  # starts a server, and processes that run whole jobs

STEPS, SAVED = 200, 20
SECONDS = 900  # guards against hanging only
WRITTEN_WHEN = {"manifest.json", "config.yaml", "job.log"}


def start(*arguments):
    command = [sys.executable, "-m", "pipeline", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def run(*arguments):
    """Run a command to its end, and return its output."""
    process = start(*arguments)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return said


def kill_when(is_time, *arguments):
    """Start the command, and kills it at once when the time has come."""
    process = start(*arguments)

    def is_time_while_it_runs():
        assert process.poll() is None, process.communicate()[1]
        return is_time()

    try:
        wait_until(is_time_while_it_runs, "the moment to kill")
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()


def content(folder):
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")}
    return {name: data for name, data in files.items() if name not in WRITTEN_WHEN}


def stored_records(folder, tmp_path):
    """Record on this machine, which are stored in the folder `data` as well."""
    data = write_data(tmp_path / "data")
    for name, stored in local_files(data).items():
        (folder / "data" / name).write_bytes(stored)
    return data


def test_preprocess_ends_with_the_bytes_of_a_run_that_was_not_killed(
    corpus, folder, options, tmp_path
):
    command = ["preprocess", "--input", corpus / "corpus.jsonl", "--vocab", corpus / "vocab.txt"]
    command += ["--max-seq-length", "32", "--max-predictions-per-seq", "5", "--num-shards", "24"]
    command += ["--dupe-factor", "4", "--set", f"runner.options=[{','.join(options)}]"]
    kill_when(lambda: next(folder.glob("train-0*"), None), *command, "--output", folder)
    assert read_manifest(folder) is None
    said = run(*command, "--output", folder)
    assert "found an unfinished run with the same config; resuming it" in said
    found = read_manifest(folder)["found_finished"]
    assert found["blocks"] and found["pools"] and found["shards"] < 24
    run(*command, "--output", tmp_path / "data")
    local = local_files(tmp_path / "data")
    assert content(folder) == {name: local[name] for name in local.keys() - WRITTEN_WHEN}


def test_train_ends_with_the_losses_of_a_run_that_was_not_killed(folder, options, tmp_path):
    data, config = stored_records(folder, tmp_path), write_model_config(tmp_path)
    keys = {"precision": "float32", "xla": "off", "log_every": 1, "eval_every": SAVED}
    keys |= {"checkpoint_every": SAVED, "checkpoint_minutes": 0}
    command = ["train", "--data", folder / "data", "--output", folder / "run"]
    command += ["--model-config", config, "--batch-size", "4", "--steps", STEPS]
    for key, value in keys.items():
        command += ["--set", f"train.{key}={value}"]
    command += ["--set", f"storage.options=[{','.join(options)}]"]
    state = folder / "run" / "checkpoints" / f"step-{2 * SAVED:08d}" / "state.json"
    kill_when(state.is_file, *command)
    assert read_manifest(folder / "run") is None
    assert "resumed from" in run(*command)
    train(data, tmp_path / "run", model_config=config, steps=STEPS, **keys)
    assert losses(folder / "run") == losses(tmp_path / "run")
    model = "best/model.safetensors"
    assert (folder / "run" / model).read_bytes() == (tmp_path / "run" / model).read_bytes()
    longer = [word if word != STEPS else STEPS + SAVED for word in command]
    assert "extending it" in run(*longer)
    assert read_manifest(folder / "run")["extended_from"] == [STEPS]


def test_workers_without_a_common_disk_resume(folder, options, tmp_path):
    data, run = stored_records(folder, tmp_path), folder / "run"
    sets = [f"storage.options=[{','.join(options)}]"]
    with training_workers(tmp_path, count=2, data=folder / "data", output=run, sets=sets) as start:
        check_lost_worker(start, count=2, data=data, run=run, folder=tmp_path)
