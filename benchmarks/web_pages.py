"""Pages and megabytes per CPU second from a WARC file to texts, ours beside only the libraries.

    python benchmarks/web_pages.py crawl.warc.gz

The libraries run in this process, without limits on a page.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType

from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from bert_tf.config.sections.data import HTML_EXTRACTORS
from pipeline.corpus.readers import html_pages
from pipeline.corpus.readers.formats import make_reader
from pipeline.corpus.readers.html_process import decode, load_extractor

_BLOCK_BYTES = 16_000_000


def ours(path: str, extractor: str) -> Iterator[int]:
    values = {"input": (path,), "output": "x", "html_extractor": extractor}
    reader = make_reader(path, build_section(VocabConfig, values))
    for split in reader.splits(path, _BLOCK_BYTES):
        for block in reader.read_split(path, split, _BLOCK_BYTES):
            yield from (block.texts.stops - block.texts.starts).tolist()


def libraries(path: str, extractor: str) -> Iterator[int]:
    extract = load_extractor(extractor)
    for record in ArchiveIterator(path, record_types=WarcRecordType.response, auto_decode="all"):
        if record.http_headers.status_code == 200 and record.http_content_type == "text/html":
            yield len(extract(decode(record.reader.read(), record.http_charset or "")).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("warc")
    path = parser.parse_args().warc
    megabytes = Path(path).stat().st_size / 1e6
    for extractor in HTML_EXTRACTORS:
        for name, read in (("ours", ours), ("libraries", libraries)):
            seconds, sizes = _measured(read, path, extractor)
            print(
                f"{extractor:<12} {name:<10} {len(sizes):,} pages, "
                f"{sum(sizes) / 1e6:.1f} MB of text: {len(sizes) / seconds:,.0f} pages/s, "
                f"{megabytes / seconds:.1f} MB/s as stored"
            )


def _measured(
    read: Callable[[str, str], Iterator[int]], path: str, extractor: str
) -> tuple[float, list[int]]:
    list(read(path, extractor))  # imports and compiles
    html_pages._end_processes()
    before = _cpu_seconds()
    sizes = list(read(path, extractor))
    html_pages._end_processes()
    return _cpu_seconds() - before, sizes


def _cpu_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
