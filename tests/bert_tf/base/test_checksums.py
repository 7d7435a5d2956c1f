"""SHA256SUMS: read by other tools, and compared with changed files."""

import shutil
import subprocess

import pytest

from bert_tf.base.checksums import (
    SUMS,
    check_sums,
    file_sha256,
    read_sums,
    write_sums,
    write_text_and_sum,
)
from bert_tf.base.errors import InputError


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "inside/b c", "Łódź"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    write_sums(tmp_path, ["a", "inside/b c"])
    write_sums(tmp_path, ["Łódź"])
    return tmp_path


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="coreutils are not installed")
def test_coreutils_read_what_is_written_and_write_what_is_read(folder):
    subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=folder, check=True)
    ours = read_sums(folder)
    command = ["sha256sum", "--binary", *ours]
    (folder / SUMS).write_bytes(subprocess.check_output(command, cwd=folder))
    assert read_sums(folder) == ours


def test_a_change_is_named_with_what_to_do(folder):
    check_sums(folder)
    (folder / "inside" / "b c").write_text("another")
    check_sums(folder, {"a"}.__contains__)
    with pytest.raises(
        InputError, match=r"b c: has changed since it was written .* or delete .*SHA256SUMS"
    ):
        check_sums(folder)
    (folder / "a").unlink()
    with pytest.raises(InputError, match=r"/a: is missing, as SHA256SUMS shows"):
        check_sums(folder, {"a"}.__contains__)
    (folder / SUMS).unlink()
    check_sums(folder)


@pytest.mark.parametrize("content", [b"", b"0" * 63 + b"  a\n", b"0" * 64 + b"  a\n\n", b"\xff\n"])
def test_damaged_sums_are_named(folder, content):
    (folder / SUMS).write_bytes(content)
    with pytest.raises(InputError, match=r"SHA256SUMS:\d: damaged; expected a SHA-256"):
        check_sums(folder)


def test_later_sums_replace_earlier_ones_of_a_file(folder):
    (folder / "a").write_text("new")
    write_sums(folder, ["a"])
    assert read_sums(folder)["a"] == file_sha256(folder / "a")
    assert len(read_sums(folder)) == 3


def test_a_rewritten_text_keeps_the_sums_of_other_files(folder):
    write_text_and_sum(folder, "a", "new")
    check_sums(folder)
    assert len(read_sums(folder)) == 3
    write_text_and_sum(folder, "added", "text")
    assert read_sums(folder)["added"] == file_sha256(folder / "added")


def test_a_rewritten_text_makes_no_sums_where_a_user_has_deleted_them(folder):
    (folder / SUMS).unlink()
    write_text_and_sum(folder, "a", "new")
    assert not (folder / SUMS).exists()
    check_sums(folder)
