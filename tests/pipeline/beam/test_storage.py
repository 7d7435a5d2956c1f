"""Storage that Beam opens: a file system in memory in place of gs://, s3:// and their like."""

import bz2
import gzip
import hashlib
import re

import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from memory_storage import MemoryFileSystem

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.beam import storage
from pipeline.beam.files import match_files
from pipeline.beam.storage import list_stored, open_stored, use_storage_options
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader
from pipeline.outputs.inputs import fingerprint

pytestmark = pytest.mark.usefixtures("files")


def documents(path, block_bytes, **values):
    config = build_section(VocabConfig, {"input": (path,), "output": "y", **values})
    tasks = list(plan_reading(ReadTask(path, make_reader(path, config)), block_bytes))
    blocks = [block for task in tasks for block in read_blocks(task, block_bytes)]
    return [text for block in blocks for text in block.sentences.to_pylist()], len(tasks)


def test_globs_find_files(files):
    files.update({"memory://b/x/1.txt": b"a", "memory://b/x/2.csv": b"bb", "memory://b/y": b""})
    found = match_files(["memory://b/x/*", "memory://b/x/1.txt"])
    assert [(file.path, file.bytes) for file in found] == [
        ("memory://b/x/1.txt", 1),
        ("memory://b/x/2.csv", 2),
    ]
    with pytest.raises(UsageError, match=r"memory://b/z\*: no file matches"):
        match_files(["memory://b/z*"])
    files.update({"memory://b/x/.hidden.txt": b"", "memory://b/x/.git/4.txt": b""})
    assert len(list_stored("memory://b/x/*")) == len(list_stored("memory://b/**x/")) == 2
    assert list(list_stored("memory://b/x/.*")) == ["memory://b/x/.hidden.txt"]
    assert list(list_stored("memory://b/x/.hidden.txt")) == ["memory://b/x/.hidden.txt"]
    files["memory://b/z[1].txt"] = b"zzz"
    assert match_files(["memory://b/z[1].txt"])[0].bytes == 3


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz", "lines.txt.bz2", "rows.csv"])
def test_files_are_read_in_blocks(files, name):
    texts = [f"document {number}" for number in range(40)]
    data = ("text\n" * name.startswith("rows") + "".join(f"{text}\n" for text in texts)).encode()
    compress = {"gz": gzip.compress, "bz2": bz2.compress}.get(name.rpartition(".")[2], bytes)
    files[f"memory://b/{name}"] = compress(data)
    found, tasks = documents(f"memory://b/{name}", 64, text_layout="lines")
    assert found == texts
    if not name.endswith(".gz"):
        assert tasks > (5 if compress is bytes else 0)


def test_the_fingerprint_is_that_of_a_local_copy(files, tmp_path):
    data = bytes(range(256)) * 9000  # more than is read at once
    (tmp_path / "copy").write_bytes(data)
    files["memory://b/file"] = data
    stored, local = fingerprint("memory://b/file"), fingerprint(tmp_path / "copy")
    assert stored == {**local, "path": "memory://b/file"}
    assert stored["sha256"] == hashlib.sha256(data).hexdigest()
    with pytest.raises(UsageError, match=r"memory://b/none: cannot be opened \(no such object\)"):
        fingerprint("memory://b/none")


def test_damaged_files_are_reported(files):
    files["memory://b/x.txt.gz"] = gzip.compress(b"words and words" * 500)[:40]
    with pytest.raises(InputError, match=r"memory://b/x.txt.gz: cannot be read to its end"):
        documents("memory://b/x.txt.gz", 64, text_layout="lines")


@pytest.mark.parametrize("action", [list_stored, open_stored, fingerprint])
def test_an_unknown_scheme_is_one_line(action):
    with pytest.raises(UsageError) as raised:
        action("nowhere://x/y")
    assert str(raised.value) == (
        "nowhere://x/y: no file system for nowhere://; "
        "give a local path or one of azfs://, gs://, hdfs://, s3://"
    )


@pytest.mark.parametrize(
    ("scheme", "extra"), [("gs", "gcp"), ("s3", "aws"), ("hdfs", "hadoop"), ("azfs", "azure")]
)
@pytest.mark.parametrize("action", [list_stored, open_stored])
def test_a_missing_extra_is_named(action, scheme, extra, monkeypatch):
    monkeypatch.setattr(storage, "_is_installed", lambda module: False)
    with pytest.raises(UsageError) as raised:
        action(f"{scheme}://bucket/a.txt")
    assert str(raised.value) == (
        f"{scheme}://bucket/a.txt: {scheme}:// needs an extra of Apache Beam; "
        f"install it: pip install 'apache-beam[{extra}]'"
    )


def test_beams_own_file_systems_have_the_schemes_and_extras_named_here():
    from importlib import metadata

    extras = metadata.metadata("apache-beam").get_all("Provides-Extra")
    assert {extra for extra, _ in storage._EXTRAS.values()} <= set(extras)
    requirements = " ".join(metadata.requires("apache-beam"))
    for package, extra in (("boto3", "aws"), ("hdfs", "hadoop"), ("azure-storage-blob", "azure")):
        assert re.search(rf'{package}\W.*?extra == "{extra}"', requirements)


def test_a_failure_inside_beams_errors_is_what_is_reported():
    inner = BeamIOError("List failed", {"x": ValueError("no such bucket\ntraceback")})
    assert storage.innermost_message(BeamIOError("Match failed", {"y": inner})) == "no such bucket"
    assert storage.innermost_message(KeyError()) == "KeyError"


def test_options_reach_the_file_system(files, monkeypatch):
    seen = []
    monkeypatch.setattr(FileSystems, "_pipeline_options", None)
    monkeypatch.setattr(
        MemoryFileSystem, "__init__", lambda self, pipeline_options: seen.append(pipeline_options)
    )
    files["memory://b/file"] = b"x"
    use_storage_options(["--hdfs_host=namenode"])
    open_stored("memory://b/file").close()
    assert seen[-1].get_all_options()["hdfs_host"] == "namenode"


@pytest.mark.parametrize(
    ("option", "runner", "message"),
    [
        ("--s3_regionname=eu", "local", "no option --s3_regionname; did you mean --s3_region_name"),
        ("direct_num_workers=2", "local", "direct_num_workers; did you mean --direct_num_workers"),
        ("--flink_mastr=h:1", "flink", "no option --flink_mastr; did you mean --flink_master"),
        ("--xyzzy=1", "dataflow", "no option --xyzzy; see"),
        ("--direct_num_workers=two", "local", "invalid int value: 'two'"),
    ],
)
def test_options_that_beam_would_ignore_are_refused(option, runner, message):
    with pytest.raises(UsageError, match=message):
        use_storage_options([option], runner)


@pytest.mark.parametrize(
    ("runner", "option"),
    [
        ("flink", "--xyzzy=1"),
        ("flink", "--object_reuse=true"),
        ("flink", "--savepoint_path=/savepoints/1"),
        ("flink", "--flink_conf_dir=/etc/flink"),
        ("spark", "--storage_level=MEMORY_AND_DISK"),
        ("spark", "--checkpoint_dir=/checkpoints"),
    ],
)
def test_options_of_a_job_server_are_passed_on(monkeypatch, runner, option):
    monkeypatch.setattr(FileSystems, "_pipeline_options", None)
    use_storage_options(["--s3_region_name=eu", option], runner)
    assert FileSystems._pipeline_options.get_all_options()["s3_region_name"] == "eu"
