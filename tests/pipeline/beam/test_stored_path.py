"""Paths on Beam's file systems, compared with `pathlib` on this machine's."""

import errno
import os
import pickle
from pathlib import Path

import pytest
from memory_storage import FAULTS, FILES

from bert_tf.base.errors import UsageError
from bert_tf.base.files import RemotePath, remove, remove_leftovers, replacing_file
from pipeline.beam.stored_path import StoredPath, path_of

pytestmark = pytest.mark.usefixtures("files")


@pytest.fixture(params=["memory://bucket/out", "folders://name/out"])
def remote(request):
    return path_of(request.param)


@pytest.fixture(params=["local", "memory://bucket/out", "folders://name/out"])
def folder(request, tmp_path):
    return tmp_path / "out" if request.param == "local" else path_of(request.param)


def test_names_are_those_of_pathlib(remote):
    assert isinstance(remote, StoredPath) and isinstance(remote, Path)
    assert path_of(remote) is remote and type(path_of("a/b")) is type(Path())
    path = remote / "a" / "b.csv"
    assert str(path) == f"{remote}/a/b.csv"
    assert (path.name, path.suffix, path.stem) == ("b.csv", ".csv", "b")
    assert str(path.parent) == f"{remote}/a" and str(path.with_name("c")) == f"{remote}/a/c"
    assert str(path.relative_to(remote)) == "a/b.csv"
    assert path.is_relative_to(remote) and remote in path.parents
    assert path == path_of(str(path)) and hash(path) == hash(path_of(str(path)))
    assert path.absolute() is path and path.resolve() is path
    assert str(pickle.loads(pickle.dumps(path))) == str(path)
    assert str(path_of("hdfs:///a/b")) == "hdfs://a/b"  # the same to Beam


def test_the_operating_system_refuses_them(remote):
    for use in (open, os.stat, os.listdir, os.unlink):
        with pytest.raises(TypeError, match="is not on a file system of this machine"):
            use(remote / "a")


def test_files_are_written_and_read(folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "a.txt"
    assert not path.exists() and not path.is_file() and folder.is_dir()
    path.write_text("première\r\nseconde\n", encoding="utf-8", newline="")
    assert path.exists() and path.is_file() and not path.is_dir()
    assert path.read_bytes() == "première\r\nseconde\n".encode()
    assert path.stat().st_size == len(path.read_bytes())
    with path.open(encoding="utf-8", newline="\n") as lines:
        assert list(lines) == ["première\r\n", "seconde\n"]
    path.write_bytes(b"new")
    with path.open("rb") as stream:
        stream.seek(1)
        assert stream.read() == b"ew"
    path.with_name("empty").write_bytes(b"")
    assert path.with_name("empty").read_bytes() == b""
    path.unlink()
    path.unlink(missing_ok=True)
    for use in (path.unlink, path.read_bytes, path.stat, lambda: path.replace(folder / "b")):
        with pytest.raises(FileNotFoundError) as caught:
            use()
        assert caught.value.filename == str(path)


def test_folders_are_listed(folder):
    for name in ("a.json", "[b].json", ".hidden", "in/c.json", "in/deep/d.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"1")
    folder.with_name("outside.json").write_bytes(b"1")

    def names(paths):
        return sorted(str(path.relative_to(folder)) for path in paths)

    assert names(folder.iterdir()) == [".hidden", "[b].json", "a.json", "in"]
    assert names(folder.glob("*.json")) == ["[b].json", "a.json"]
    assert names(folder.glob(".*")) == [".hidden"]
    assert names(folder.glob("[[]b*")) == ["[b].json"]
    assert names(path for path in folder.rglob("*.json") if path.is_file()) == [
        "[b].json", "a.json", "in/c.json", "in/deep/d.json",
    ]  # fmt: skip
    assert (folder / "in").is_dir() and not (folder / "in").is_file() and (folder / "in").exists()
    remove(folder / "in")
    remove(folder / "a.json")
    remove(folder / "a.json")
    assert names(folder.iterdir()) == [".hidden", "[b].json"]
    assert not (folder / "in").exists()
    remove(folder)
    assert not folder.exists() and folder.with_name("outside.json").exists()


def test_a_file_is_replaced_whole_or_not_at_all(folder):
    path = folder / "in" / "a.txt"
    for text in ("old", "new"):
        with replacing_file(path) as aside:
            assert aside.parent == path.parent
            aside.write_text(text)
        assert path.read_text() == text
    with pytest.raises(ValueError), replacing_file(path) as aside, aside.open("w") as stream:
        stream.write("half")
        raise ValueError
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]
    assert path.read_text() == "new"
    leftovers = [path.with_name(f".{name}.7-12345678.partial") for name in ("a.txt", "b.txt")]
    for leftover in leftovers:
        leftover.write_bytes(b"")
    remove_leftovers(path.parent, ["a.txt"])
    assert [leftover.exists() for leftover in leftovers] == [False, True]


def test_ranges_are_read(remote):
    (remote / "a").write_bytes(bytes(range(100)))
    assert (remote / "a").read_range(10, 5) == bytes(range(10, 15))
    assert (remote / "a").read_range(98, 5) == bytes([98, 99])
    with pytest.raises(FileNotFoundError):
        (remote / "b").read_range(0, 1)


@pytest.mark.parametrize("kind", ["write", "close", "copy", "delete"])
def test_what_fails_is_an_error_about_the_file(remote, kind):
    path = remote / "a"
    path.write_text("old")
    FAULTS.counts.clear()
    FAULTS.fails = (kind, 1)
    with pytest.raises(OSError, match=rf"{kind} fails on purpose: '{remote}/") as caught:
        path.with_name("b").write_text("new")
        path.with_name("b").replace(path)
    assert caught.value.errno == errno.EIO
    FAULTS.fails = None
    with replacing_file(path) as aside:
        aside.write_text("new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("kind", ["write", "close", "copy", "delete"])
def test_a_failed_replacement_leaves_the_old_file_or_the_new_one(remote, kind):
    path = remote / "a"
    path.write_text("old")
    FAULTS.counts.clear()
    FAULTS.fails = (kind, 1)
    with pytest.raises(OSError), replacing_file(path) as aside:
        aside.write_text("new")
    FAULTS.fails = None
    assert path.exists() is not (kind == "copy" and str(remote).startswith("folders"))
    assert not path.exists() or path.read_text() in ("old", "new")


def test_a_folder_is_there_before_listings_show_it(remote):
    FAULTS.late = True
    (remote / "a").write_bytes(b"1")
    assert remote.is_dir() and (remote / "a").is_file()


def test_listing_a_file_by_its_beginning_reads_no_more():
    class Counted(dict):
        pass

    for name in range(50):
        FILES[f"memory://bucket/other-{name}"] = b""
    FILES["memory://bucket/.a.txt.7.partial"] = b""
    FILES["memory://bucket/a.txt"] = b""
    remove_leftovers(path_of("memory://bucket"), ["a.txt"])
    assert "memory://bucket/.a.txt.7.partial" not in FILES and len(FILES) == 51


def test_unknown_storage_is_a_clear_error():
    with pytest.raises(UsageError, match="no file system for ftp://"):
        path_of("ftp://host/a").exists()
    with pytest.raises(UsageError, match=r"pip install 'apache-beam\[hadoop\]'"):
        path_of("hdfs://host/a").write_text("")


def test_a_remote_path_alone_can_do_nothing():
    path = RemotePath("x://a/b")
    for use in (path.remove_tree, lambda: path.read_range(0, 1)):
        with pytest.raises(NotImplementedError):
            use()
