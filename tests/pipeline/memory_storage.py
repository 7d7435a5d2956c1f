"""File systems in memory that stand for gs://, s3:// and hdfs://, and that can be made to fail."""

import io

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem

FILES: dict[str, bytes] = {}
FOLDERS: set[str] = set()


class Faults:
    """The faults of `memory://…` and `folders://…`.

    Attributes:
        fails: a kind of operation (open, write, close, copy, delete, list) and which of them, from
            1, fails, and with it all of this kind that follow; None for none.
        counts: how many there were of each kind.
        late: whether what is written appears in no listing.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.fails: tuple[str, int] | None = None
        self.counts: dict[str, int] = {}
        self.late = False
        self.unlisted: set[str] = set()

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.fails is not None and self.fails[0] == kind and self.counts[kind] >= self.fails[1]:
            raise RuntimeError(f"{kind} fails on purpose")


FAULTS = Faults()


class _Upload(io.RawIOBase):
    """The object appears when it is closed, whatever was written until then."""

    def __init__(self, path: str):
        self._path = path
        self._parts: list[bytes] = []

    def writable(self):
        return True

    def write(self, data):
        FAULTS.count("write")
        self._parts.append(bytes(data))
        return len(data)

    def close(self):
        if not self.closed:
            super().close()
            FAULTS.count("close")
            FILES[self._path] = b"".join(self._parts)
            if FAULTS.late:
                FAULTS.unlisted.add(self._path)


class MemoryFileSystem(FileSystem):
    """`memory://…`, an object store: names without folders; copies replace existing files."""

    @classmethod
    def scheme(cls):
        return "memory"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        head, _, tail = path.rpartition("/")
        return head, tail

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        FAULTS.count("list")
        for path, data in list(FILES.items()):
            if path.startswith(dir_or_prefix) and path not in FAULTS.unlisted:
                yield FileMetadata(path, len(data), 0.0)

    def open(
        self,
        path,
        mime_type="application/octet-stream",
        compression_type=CompressionTypes.AUTO,
    ):
        FAULTS.count("open")
        if path not in FILES:
            raise BeamIOError("Open operation failed", {path: FileNotFoundError("no such object")})
        assert compression_type == CompressionTypes.UNCOMPRESSED, "the readers decompress"
        return io.BytesIO(FILES[path])

    def create(self, path, mime_type="", compression_type=CompressionTypes.AUTO):
        assert compression_type == CompressionTypes.UNCOMPRESSED, "the writers compress"
        return io.BufferedWriter(_Upload(path))

    def exists(self, path):
        return path in FILES

    def size(self, path):
        return self.metadata(path).size_in_bytes

    def metadata(self, path):
        if path not in FILES:
            raise BeamIOError("Metadata operation failed", {path: ValueError("no such object")})
        return FileMetadata(path, len(FILES[path]), 0.0)

    def last_updated(self, path):
        return self.metadata(path).last_updated_in_seconds

    def checksum(self, path):
        raise NotImplementedError

    def mkdirs(self, path):
        pass

    def copy(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            FAULTS.count("copy")
            FILES[target] = FILES[source]
            if FAULTS.late:
                FAULTS.unlisted.add(target)

    def rename(self, source_file_names, destination_file_names):
        try:
            self.copy(source_file_names, destination_file_names)
            self.delete(source_file_names)
        except Exception as error:
            pair = (source_file_names[0], destination_file_names[0])
            raise BeamIOError("Rename operation failed", {pair: error}) from error

    def delete(self, paths):
        for path in paths:
            FAULTS.count("delete")
            FILES.pop(path, None)


class FolderFileSystem(MemoryFileSystem):
    """`folders://…`, as HDFS: folders, listings of one level, and nothing is replaced."""

    @classmethod
    def scheme(cls):
        return "folders"

    def has_dirs(self):
        return True

    def _list(self, dir_or_prefix):
        FAULTS.count("list")
        folder = dir_or_prefix.rstrip("/")
        if not self._is_folder(folder):
            raise BeamIOError("List operation failed", {folder: ValueError("not a directory")})
        for path in sorted({*FILES, *FOLDERS}):
            if path.rpartition("/")[0] == folder:
                yield FileMetadata(path, len(FILES.get(path, b"")), 0.0)

    def exists(self, path):
        return path in FILES or self._is_folder(path)

    def create(self, path, mime_type="", compression_type=CompressionTypes.AUTO):
        if self.exists(path):
            raise BeamIOError(f"Path already exists: {path}")
        self._make_parents(path)
        return super().create(path, mime_type, compression_type)

    def mkdirs(self, path):
        if self.exists(path):
            raise BeamIOError(f"Path already exists: {path}")
        FOLDERS.add(path)
        self._make_parents(path)

    def copy(self, source_file_names, destination_file_names):
        for target in destination_file_names:
            if self.exists(target):
                raise BeamIOError(f"Path already exists: {target}")
        super().copy(source_file_names, destination_file_names)

    def delete(self, paths):
        for path in paths:
            inside = [name for name in FILES if name.startswith(f"{path}/")]
            super().delete([path, *inside])
            FOLDERS.difference_update([f for f in FOLDERS if f"{f}/".startswith(f"{path}/")])

    def _is_folder(self, path):
        return path in FOLDERS or any(name.startswith(f"{path}/") for name in (*FILES, *FOLDERS))

    def _make_parents(self, path):
        while "://" in (path := path.rpartition("/")[0]) and not path.endswith(":/"):
            FOLDERS.add(path)
