"""Documents in = kept + dropped by rule + rejected, with every rule on, in all formats."""

import csv
import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.sections import PreprocessConfig
from pipeline.corpus.curation.registry import RULES
from pipeline.corpus.document_block import join_blocks
from pipeline.corpus.documents import DocumentRules
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader
from pipeline.corpus.readers.warc import NO_CONTENT, NOT_HTML
from pipeline.corpus.report import DROPPED, facts_of_block

SENTENCES = (
    "The river has a bridge, and the people of the town are on it with all that they have.",
    "uses javascript", "{", "# # # ...", "• point", "Fin.", "a\u0301 b", "bad \udcff",
)  # fmt: skip
LINES = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=12)
DOCUMENTS = st.lists(LINES.map("\n".join), min_size=1, max_size=12)


def raw(text):
    return text.encode("utf-8", "surrogateescape")


def sound(text):
    return text.replace("\udcff", "?")


def write_jsonl(path, texts):
    rows = [
        json.dumps({"text": "@"}).encode().replace(b"@", raw(text.replace("\n", "\\n")))
        for text in texts
    ]
    path.write_bytes(b"\n".join([*rows, b"", b"{", b'{"text": 1}']) + b"\n")
    return len(rows) + 3


def write_csv(path, texts):
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream:
        csv.writer(stream).writerows(
            [["text", "url"], *([text, "https://a.de/b"] for text in texts)]
        )
        stream.write('"too",few,"cells"\n\n')
    return len(texts) + 2


def write_parquet(path, texts):
    pq.write_table(pa.table({"text": [*map(sound, texts), None]}), path)
    return len(texts) + 1


def write_articles(path, texts):
    path.write_text("\n\n\n".join(map(sound, texts)) + "\n", encoding="utf-8")
    return len(texts)


def write_lines(path, texts):
    lines = [sound(text).replace("\n", " ") for text in texts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(texts)


def write_sentences(path, texts):
    path.write_text("\n\n".join(map(sound, texts)) + "\n", encoding="utf-8")
    return len(texts)


def write_warc(path, texts):
    pytest.importorskip("fastwarc")
    record = (
        b"WARC/1.0\r\nWARC-Type: %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
    )
    pages = [(b"resource", b"text/html", b"<meta charset=utf-8>" + raw(text)) for text in texts]
    pages += [(b"conversion", b"text/plain", raw(text)) for text in texts]
    pages += [(b"resource", b"image/png", b"png"), (b"revisit", b"text/html", b"")]
    rows = [record % (kind, media, len(text), text) for kind, media, text in pages]
    path.write_bytes(b"".join([*rows, b"WARC/1.0\r\nWARC-Type: response\r\n\r\n"]))
    return len(rows) + 1


FORMATS = {
    "x.jsonl": (write_jsonl, "auto"),
    "x.csv": (write_csv, "auto"),
    "x.parquet": (write_parquet, "auto"),
    "x.warc": (write_warc, "auto"),
    "x.articles.txt": (write_articles, "articles"),
    "x.lines.txt": (write_lines, "lines"),
    "x.txt": (write_sentences, "sentences"),
    "y.txt": (write_sentences, "paragraph_lines"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@pytest.mark.slow  # every rule on many documents
@pytest.mark.parametrize("name", FORMATS)
@fewer_examples(0.5)
@given(texts=DOCUMENTS, block_bytes=st.sampled_from([100, 1_000_000]))
def test_documents_are_kept_dropped_or_rejected(folder, name, texts, block_bytes):
    write, layout = FORMATS[name]
    number = write(folder / name, texts)
    every = [rule.name for rule in RULES]
    config = PreprocessConfig(
        input=(str(folder / name),), text_layout=layout, languages=("en", "unknown"),
        curation=(*every, "gopher_min_words=3", "c4_min_sentences=1", "gopher_min_stop_words=off"),
        cleaning=("html", *PreprocessConfig.cleaning, "boilerplate"),
        min_document_characters=20, min_document_words=3, min_letter_fraction=0.5,
    )  # fmt: skip
    path = config.input[0]
    task = ReadTask(path, make_reader(path, config), rules=DocumentRules.from_config(config))
    splits = plan_reading(task, block_bytes)
    block = join_blocks([each for split in splits for each in read_blocks(split, block_bytes)])
    facts = facts_of_block(block)
    assert (
        block.num_documents + sum(block.evidence.dropped.values()) + len(block.evidence.rejects)
        == number
    )
    lists = [lines for (name, *_), (_, lines) in facts.lists if name == DROPPED]
    listed = [json.loads(line) for lines in lists for line in lines.splitlines()]
    counts = Counter(block.evidence.dropped)
    for of_reader in ("blank line", NOT_HTML, NO_CONTENT):
        del counts[of_reader]
    assert Counter(each["rule"] for each in listed) == counts
    assert [each["line"] for each in listed] == sorted(each["line"] for each in listed)
    assert sum(n for key, n in facts.tallies.items() if key.startswith("language/")) <= number
    assert facts.tallies["documents"] <= number
