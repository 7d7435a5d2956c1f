"""The frame of jobs around outputs on other storage, with every failure there."""

import itertools

import pytest
from behavior.remote_outputs import SCHEMES, forget_process, stored_files
from memory_storage import FAULTS, FILES

from bert_tf.base.errors import BertPipelineError, UsageError
from pipeline.outputs.manifest import read_manifest

pytestmark = pytest.mark.usefixtures("files")


@pytest.fixture(params=["directory", "file"])
def job(request, make_job):
    job = make_job(directory=request.param == "directory")
    job.may_be_remote = True
    return job


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_output_is_made_once(job, scheme):
    job.move(f"{scheme}://bucket/in/out")
    job.run()
    made = stored_files(f"{scheme}://bucket/in")
    names = ["out/config.yaml", "out/copy.txt", "out/manifest.json"]
    assert sorted(made) == (names if job.directory else ["out", "out.manifest.json"])
    forget_process()
    assert job.run()["already_done"] and job.runs == 1
    with pytest.raises(UsageError, match="made with another config"):
        job.run(times=2)
    job.run(times=2, overwrite=True)
    assert job.runs == 2 and stored_files(f"{scheme}://bucket/in").keys() == made.keys()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_interrupted_job_starts_again(job, scheme):
    job.move(f"{scheme}://bucket/in/out")
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    assert read_manifest(job.output) is None
    forget_process()
    job.dies = False
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run(times=2)
    job.run()
    assert read_manifest(job.output) is not None
    assert not [name for name in FILES if "/." in name]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["open", "write", "close", "copy", "delete", "list"])
def test_whatever_fails_there_is_nothing_or_all(job, scheme, kind):
    if (scheme, kind) == ("folders", "list"):
        pytest.skip("a file is told from a folder by whether it can be listed")
    job.move(f"{scheme}://bucket/in/out")
    job.run()
    expected = {name: data for name, data in FILES.items() if "manifest" not in name}
    for number in itertools.count(1):
        FILES.clear()
        forget_process()
        FAULTS.fails = (kind, number)
        has_failed = False
        try:
            job.run()
        except (OSError, BertPipelineError) as error:
            has_failed = True
            assert "fails on purpose" in str(error)
        forget_process()
        finished = read_manifest(job.output)
        if finished is not None:
            assert {item["path"] for item in finished["outputs"]} == {job.copy.name}
            assert FILES[str(job.copy)] == expected[str(job.copy)]
        assert has_failed or finished is not None
        job.run()
        assert read_manifest(job.output) is not None
        assert FILES[str(job.copy)] == expected[str(job.copy)]
        if not has_failed:
            break
    assert number > 1


def test_an_output_that_is_an_input_is_refused(job):
    job.input = "memory://bucket/in/out"
    FILES[job.input] = b"text"
    job.move("memory://bucket/in/out")
    with pytest.raises(UsageError, match="is or contains the input"):
        job.run()


def test_two_runs_at_once_are_refused(job):
    job.move("memory://bucket/in/out")
    body = job.body

    def run_again(config, record):
        with pytest.raises(UsageError, match="is being written by another process"):
            job.run()
        body(config, record)

    job.body = run_again
    job.run()
    assert job.runs == 1
