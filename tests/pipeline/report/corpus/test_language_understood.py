"""The line about a corpus: its content and its size."""

import gzip

import pytest
from behavior.corpora import corpora

from bert_tf.base.wording import quantity
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.beam.files import match_files
from pipeline.report.corpus.language import understand_corpus

CORPORA = dict(corpora())


def understood(paths, **values):
    config = build_section(VocabConfig, {"input": tuple(paths), "output": "y", **values})
    return understand_corpus(config, match_files(paths))


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_every_corpus_is_told_in_a_line(name, mark, tmp_path):
    corpus = CORPORA[name]
    paths = corpus.write(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(mark + path.read_bytes())
    found = understood(paths)
    documents = corpus.documents - (name == "WikiExtractor")
    assert found.line.startswith(quantity(len(paths), "file"))
    assert corpus.says in found.line
    assert found.facts["line"] == found.line
    assert sum(found.facts["layouts"].values()) == len(found.layouts)
    assert found.facts["documents_about"] in (documents, corpus.documents)
    assert found.line.endswith(quantity(found.facts["documents_about"], "document"))


def test_a_corpus_that_is_looked_at_in_part_is_about_so_large(tmp_path):
    document = "One sentence of it.\nAnother sentence.\n\n"
    path = tmp_path / "all.txt.gz"
    path.write_bytes(gzip.compress((document * 100_000).encode(), 1))
    assert ", about " in understood([str(path)]).line
