"""Small files are read together, and give the documents and rejects that they have alone."""

import dataclasses
import gzip
from collections import Counter

import numpy as np

from bert_tf.config.section import build_section
from bert_tf.config.sections.data import VocabConfig
from pipeline.beam.files import FileInfo, match_files
from pipeline.corpus.read import ReadTask, _read_group, group_files, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader
from pipeline.corpus.report import facts_of_block

FILES = {
    "a.txt": b"One bridge.\nA river.\n\nA farmer waits.\n",
    "b.txt": b"bad \xff line\nIt rains.\n",
    "c.csv": b"id,text\n1,A row. It has two sentences.\n2\n3,Another row.\n",
    "d.jsonl.gz": None,
    "e.txt": b"",
    "f.txt": b"The end.\n\n\nbad \xff\nReally the end.\n",
}


def config_of(folder, **values):
    return build_section(VocabConfig, {"input": [f"{folder}/*"], "output": "v.txt", **values})


def written(folder):
    for name, content in FILES.items():
        packed = gzip.compress(b'{"text": "A page."}\n{"text": 7}\n')
        (folder / name).write_bytes(packed if content is None else content)
    config = config_of(folder)
    tasks = [
        ReadTask(file.path, make_reader(file.path, config)) for file in match_files(config.input)
    ]
    return tuple(tasks)


def read_alone(group):
    return [
        block
        for task in group
        for part in plan_reading(task, 9999)
        for block in read_blocks(part, 9999)
    ]


def facts_of(blocks):
    facts = [facts_of_block(block) for block in blocks]
    return {
        "sentences": [text for block in blocks for text in block.sentences.to_pylist()],
        "lines": [line for block in blocks for line in block.document_lines.tolist()],
        "documents": sum(each.report.documents for each in facts),
        "hashes": np.concatenate([each.hashes for each in facts]).tolist(),
        "rejects": dict(found for each in facts for found in each.lists),
        "counts": sum((each.report.rejected + each.report.dropped for each in facts), Counter()),
    }


def test_many_files_are_one_block_of_the_same_documents(tmp_path):
    group = written(tmp_path)
    (joined,) = _read_group(group, 1_000_000)
    assert facts_of([joined]) == facts_of(read_alone(group))
    assert len(facts_of_block(joined).lists) == 4
    lines_of_documents = np.diff(joined.lines_of_documents)
    assert lines_of_documents.sum() == joined.num_lines


def test_blocks_are_cut_at_their_size(tmp_path):
    group = written(tmp_path)
    blocks = list(_read_group(group, 40))
    assert len(blocks) > 2
    assert facts_of(blocks)["hashes"] == facts_of(read_alone(group))["hashes"]


def test_small_files_are_grouped(tmp_path):
    sizes = {
        "a.txt": 10,
        "b.txt": 10,
        "c.txt": 95,
        "d.txt": 3,
        "e.txt.gz": 1,
        "f.txt": 500,
        "g.txt": 1,
    }
    files = [FileInfo(name, size) for name, size in sizes.items()]

    def names(config):
        return [[file.path for file in group] for group in group_files(config, files, 100)]

    config = config_of(tmp_path)
    assert names(config) == [
        ["a.txt", "b.txt"], ["c.txt", "d.txt"], ["e.txt.gz"], ["f.txt"], ["g.txt"],
    ]  # fmt: skip
    for apart in ({"duplicates": "exact"}, {"duplicate_lines": "drop"}):
        assert names(dataclasses.replace(config, **apart)) == [[name] for name in sizes]
