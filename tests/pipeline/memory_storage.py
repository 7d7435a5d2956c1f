"""A file system in memory that stands for gs://, s3:// and their like."""

import io

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem

FILES: dict[str, bytes] = {}


class MemoryFileSystem(FileSystem):
    """Reads `memory://…` from FILES; what only writers need is left out."""

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
        for path, data in FILES.items():
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(data))

    def open(
        self,
        path,
        mime_type="application/octet-stream",
        compression_type=CompressionTypes.AUTO,
    ):
        if path not in FILES:
            raise BeamIOError("Open operation failed", {path: FileNotFoundError("no such object")})
        assert compression_type == CompressionTypes.UNCOMPRESSED, "the readers decompress"
        return io.BytesIO(FILES[path])

    def exists(self, path):
        return path in FILES

    def size(self, path):
        return len(FILES[path])

    def metadata(self, path):
        return FileMetadata(path, len(FILES[path]))

    def last_updated(self, path):
        raise NotImplementedError

    def checksum(self, path):
        raise NotImplementedError

    def mkdirs(self, path):
        raise NotImplementedError

    def create(self, path, mime_type="", compression_type=CompressionTypes.AUTO):
        raise NotImplementedError

    def copy(self, source_file_names, destination_file_names):
        raise NotImplementedError

    def rename(self, source_file_names, destination_file_names):
        raise NotImplementedError

    def delete(self, paths):
        raise NotImplementedError
