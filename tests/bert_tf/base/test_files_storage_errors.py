"""Writers that the system gives no room, in each library."""

import errno
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.errors import InputError
from bert_tf.base.files import (
    check_free_space,
    naming_file,
    plain_path,
    replacing_directory,
    replacing_file,
    write_text_atomically,
)
from bert_tf.training.metrics_log import MetricsLog
from bert_tf.weights.tensor_files import write_tensors

BIG = np.zeros(100_000, np.float32)


@contextmanager
def files_of_at_most(size):
    """No file grows beyond so many bytes, which writers are told as they are of a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


def write_checkpoint(path):
    with naming_file(path):
        tf.raw_ops.SaveV2(
            prefix=str(path), tensor_names=["a"], shape_and_slices=[""], tensors=[BIG]
        )


def write_bytes(path):
    with replacing_file(path) as aside:
        aside.write_bytes(BIG.tobytes())


@pytest.mark.parametrize(
    "write",
    [
        write_bytes,
        write_checkpoint,
        lambda path: write_text_atomically(path, "a" * BIG.nbytes),
        lambda path: write_tensors(path, {"a": BIG}),
    ],
)
def test_every_writer_names_the_file(tmp_path, write):
    with files_of_at_most(10_000), pytest.raises(OSError) as caught:
        write(tmp_path / "out")
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_file_of_a_folder_that_is_replaced_has_its_last_name(tmp_path):
    with (
        files_of_at_most(10_000),
        pytest.raises(OSError) as caught,
        replacing_directory(tmp_path / "best") as aside,
    ):
        write_tensors(aside / "model.safetensors", {"a": BIG})
    assert caught.value.filename == str(tmp_path / "best" / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_metrics_are_named(tmp_path):
    log = MetricsLog(tmp_path, keep_until={}, warn=print)
    line = {"step": 1, "split": "train", "time": 0.0, **{f"metric_{n}": 0.5 for n in range(400)}}
    with files_of_at_most(2_000), pytest.raises(OSError) as caught:
        log.write(line)
    assert caught.value.filename == str(tmp_path / "metrics.jsonl")
    log.close()


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("Can't write data (errno = 28, error message = 'No space left on device')"),
        tf.errors.ResourceExhaustedError(None, None, "shard; No space left on device"),
    ],
)
def test_a_full_disk_is_known_by_code_or_words(error):
    with pytest.raises(OSError) as caught, naming_file("out"):
        raise error
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "out")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("broken"),
        InputError("a: cannot be read (No space left on device)"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "input.txt"),
        OSError(errno.EIO, "Input/output error"),
    ],
)
def test_what_is_not_about_storage_passes(error):
    with pytest.raises(type(error)) as caught, naming_file("out"):
        raise error
    assert caught.value is error


def test_room_is_tried_before_a_library_that_would_crash(tmp_path):
    check_free_space(tmp_path, 1000)
    with files_of_at_most(1000), pytest.raises(OSError) as caught:
        check_free_space(tmp_path, 2000)
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_file_system_is_reported_of_the_file(tmp_path, monkeypatch):
    """It refuses to remove a file even where there is none."""

    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    for name in ("write_text", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(OSError) as caught:
        write_text_atomically(tmp_path / "out", "text")
    assert (caught.value.errno, caught.value.filename) == (errno.EROFS, str(tmp_path / "out"))


# Folders whose names are patterns: TensorFlow reads what lies in them all the same.


@pytest.mark.parametrize("name", ["model[1]", "a*b", "what?", "back\\slash", "plain"])
def test_a_checkpoint_is_found_by_its_plain_path(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    tf.raw_ops.SaveV2(
        prefix=str(folder / "ckpt"), tensor_names=["a"], shape_and_slices=[""], tensors=[[1.0, 2.0]]
    )
    with plain_path(folder) as plain:
        assert tf.train.load_checkpoint(str(plain / "ckpt")).get_tensor("a").tolist() == [1.0, 2.0]
    assert (plain == folder) == (name == "plain")
    assert plain.exists() == (name == "plain")
    assert len(list(folder.iterdir())) == 2


def test_a_relative_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "a[1]" / "file").touch()
    with plain_path("a[1]") as plain:
        assert [path.name for path in Path(plain).iterdir()] == ["file"]
