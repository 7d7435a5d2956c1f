"""Content is on disk before its file has the final name, and then the name is."""

import errno
import os
from pathlib import Path

import pytest

from bert_tf.base.files import (
    remove,
    replacing_directory,
    replacing_file,
    sync_tree,
    write_text_atomically,
)


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """Return the names that are synced and renamed, in order, without their random parts."""
    done = []
    sync, rename = os.fsync, Path.replace

    def shown(path):
        name = os.path.relpath(path, tmp_path)
        return ".".join(part for part in name.split(".") if "-" not in part)

    def record_sync(descriptor):
        sync(descriptor)
        done.append(("sync", shown(Path(f"/proc/self/fd/{descriptor}").readlink())))

    def record_rename(path, target):
        done.append(("rename", shown(path)))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "replace", record_rename)
    return done


def test_a_file_is_synced_before_it_has_its_name_and_its_folder_after(tmp_path, steps):
    write_text_atomically(tmp_path / "a" / "out", "text")
    new_folder, *rest = steps
    assert new_folder == ("sync", ".")
    assert rest == [("sync", "a/.out.partial"), ("rename", "a/.out.partial"), ("sync", "a")]


def test_what_is_of_no_use_after_a_crash_is_not_synced(tmp_path, steps):
    write_text_atomically(tmp_path / "out", "text", lasting=False)
    assert steps == [("rename", ".out.partial")]


def test_a_folder_is_synced_once_with_all_in_it(tmp_path, steps):
    with replacing_directory(tmp_path / "out") as aside:
        (aside / "inner").mkdir()
        (aside / "link").symlink_to(tmp_path / "nowhere")
        with replacing_file(aside / "inner" / "file") as part:
            part.write_text("text")
        assert steps == [("rename", ".out.partial/inner/.file.partial")]
    *synced, renamed, last = steps[1:]
    assert sorted(synced) == [
        ("sync", ".out.partial"),
        ("sync", ".out.partial/inner"),
        ("sync", ".out.partial/inner/file"),
    ]
    assert (renamed, last) == (("rename", ".out.partial"), ("sync", "."))


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync_folders_is_used_all_the_same(tmp_path, monkeypatch, code):
    sync = os.fsync

    def fails_for_folders(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(code, os.strerror(code))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fails_for_folders)
    write_text_atomically(tmp_path / "out", "text")
    assert (tmp_path / "out").read_text() == "text"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EINVAL])
def test_a_file_that_did_not_reach_the_disk_never_gets_its_name(tmp_path, monkeypatch, code):
    write_text_atomically(tmp_path / "out", "old")

    def fails(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=os.strerror(code)):
        write_text_atomically(tmp_path / "out", "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_the_old_folder_is_put_back_where_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    rename = Path.replace

    def stops_at_the_second(path, target):
        if path.name.endswith(".partial"):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", stops_at_the_second)
    with pytest.raises(KeyboardInterrupt), replacing_directory(tmp_path / "out"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["old", "out"]


def test_two_processes_of_one_number_write_aside_under_two_names(tmp_path):
    with replacing_file(tmp_path / "out") as one, replacing_file(tmp_path / "out") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["one"]


def test_a_tree_is_synced_without_what_links_lead_to(tmp_path, steps):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "other")
    sync_tree(tmp_path / "tree")
    assert steps == [("sync", "tree/file"), ("sync", "tree")]


def test_what_a_link_leads_to_is_not_removed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling", "missing"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "file").exists()
    remove(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []
