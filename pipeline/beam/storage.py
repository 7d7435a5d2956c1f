"""Files on any storage that Beam opens: this machine, gs://, s3://, hdfs://, azfs://."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Sequence
from io import BufferedReader
from types import SimpleNamespace
from typing import NoReturn

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import POINTER_START, check_lfs_pointer
from bert_tf.base.wording import nearest
from pipeline.beam.globs import GLOB_MARK, glob_pattern, list_local

# Their job servers have options of their own, which Beam's Python does not know.
_RUNNERS_WITH_JOB_SERVERS = ("prism", "flink", "spark")


@functools.cache
def keep_s3_clients() -> None:
    """Let Beam reuse S3 clients, which each take 0.2 s to make; a no-op without S3.

    Beam makes a client for each file and has no option for this, so the name `boto3` in its module
    is replaced.
    """
    try:
        import boto3
        from apache_beam.io.aws.clients.s3 import boto3_client
    except ImportError:
        return
    # A client serves many threads and renews its credentials. Of two made at the same time, one
    # stays.
    client = functools.cache(lambda **options: boto3.session.Session().client(**options))
    session = SimpleNamespace(client=client)
    boto3_client.boto3 = SimpleNamespace(session=SimpleNamespace(Session=lambda: session))


# The extra of apache-beam that brings a scheme, and a module that shows it is installed.
_EXTRAS = {
    "azfs": ("azure", "azure.storage.blob"),
    "gs": ("gcp", "google.cloud.storage"),
    "hdfs": ("hadoop", "hdfs"),
    "s3": ("aws", "boto3"),
}


class _OptionParser(_BeamArgumentParser):
    """Beam's parser, which would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"runner.options: {message}")


def use_storage_options(options: Sequence[str], runner: str = "local") -> None:
    """Configure Beam's file systems, before there is a pipeline.

    Args:
        options: of `runner.options`.
        runner: some runners have options that Beam does not know.

    Raises:
        UsageError: Beam does not know an option, and would ignore it, or its value is bad.
    """
    has_job_server = runner in _RUNNERS_WITH_JOB_SERVERS
    # An option that resembles one of Beam's is a mistake. Options of a job server resemble Beam's
    # by chance, `object_reuse` for example `project`, so only nearly equal names count.
    cutoff = 0.8 if has_job_server else 0.6
    parser = _OptionParser(allow_abbrev=False, add_help=False)
    for declaring in dict.fromkeys(PipelineOptions.__subclasses__()):
        declaring._add_argparse_args(parser)
    for option in parser.parse_known_args(list(options))[1]:
        name = option.partition("=")[0]
        near = nearest(f"--{name.lstrip('-')}", parser._option_string_actions, cutoff=cutoff)
        if near:
            raise UsageError(f"runner.options: Beam has no option {name}; did you mean {near}?")
        if not has_job_server:
            raise UsageError(
                f"runner.options: Beam has no option {name}; see "
                "https://beam.apache.org/documentation/runners/direct/ and the pages of the others"
            )
    FileSystems.set_options(PipelineOptions(list(options)))


def list_stored(pattern: str) -> dict[str, int]:
    """Map the files that a path or glob (see `glob_pattern`) names to their sizes in bytes.

    An existing path is taken literally, on other storage only if it matches nothing as a glob.

    Raises:
        UsageError: the storage is not known, not installed, or cannot be reached.
    """
    check_scheme(pattern)
    try:
        if FileSystems.get_scheme(pattern) is None:
            return list_local(pattern)
        (match,) = FileSystems.match([pattern])
        glob = pattern + "*" if pattern.endswith("/") else pattern
        # Beam's globs also match hidden names and folders; those are left out here. A path that not
        # even Beam's pattern matches is spelled in another way than the glob, and stays.
        matches_beam = re.compile(FileSystem.translate_pattern(glob)).match
        matches_ours = glob_pattern(glob).fullmatch
        metadata = [
            item
            for item in match.metadata_list
            if matches_ours(item.path) or not matches_beam(item.path)
        ]
        if not metadata and GLOB_MARK.search(pattern) and FileSystems.exists(pattern):
            metadata = [FileSystems.get_filesystem(pattern).metadata(pattern)]
    except Exception as error:  # Beam's file systems raise their own and their clients' types
        raise UsageError(f"{pattern}: cannot be listed ({innermost_message(error)})") from None
    return {item.path: item.size_in_bytes for item in metadata}


def open_stored(path: str) -> BufferedReader:
    """Open a file, seekable, to read its bytes as stored.

    Raises:
        UsageError: it cannot be opened.
        InputError: it is a Git LFS pointer.
    """
    check_scheme(path)
    try:
        stream = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
        head = stream.read(len(POINTER_START))
        stream.seek(0)
    except Exception as error:  # as in list_stored
        raise UsageError(f"{path}: cannot be opened ({innermost_message(error)})") from None
    try:
        check_lfs_pointer(path, head)
    except InputError:
        stream.close()
        raise
    return stream


def innermost_message(error: BaseException) -> str:
    """Return the first line of the cause of an error, without Beam's wrapping."""
    while isinstance(error, BeamIOError) and error.exception_details:
        error = next(iter(error.exception_details.values()))
    message, *rest = error.args or ("",)
    text = str(error)
    if rest and isinstance(message, str):  # S3's errors also have a code
        text = message
    return next(iter(text.splitlines()), type(error).__name__)


def check_scheme(path: str) -> None:
    """Raise UsageError if a path's scheme is not known, or its package is not installed.

    Prepares S3, see `keep_s3_clients`.
    """
    scheme = FileSystems.get_scheme(path)
    if scheme == "s3":
        keep_s3_clients()
    if scheme in _EXTRAS:
        extra, module = _EXTRAS[scheme]
        if not _is_installed(module):
            raise UsageError(
                f"{path}: {scheme}:// needs an extra of Apache Beam; install it: "
                f"pip install 'apache-beam[{extra}]'"
            )
    known = {system.scheme() for system in FileSystem.get_all_subclasses()}
    if scheme is not None and scheme not in known:
        schemes = ", ".join(f"{name}://" for name in sorted(_EXTRAS))
        raise UsageError(
            f"{path}: no file system for {scheme}://; give a local path or one of {schemes}"
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package of the module is missing
        return False
