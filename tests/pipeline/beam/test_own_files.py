"""Files that this tool has made are no input of a glob that matches them."""

import io
import json

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from pipeline.beam.files import match_files


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("corp/a.txt", "A text.\n")
    write("corp/b.jsonl", '{"text": "x"}\n')
    return tmp_path


def write(path, content):
    from pathlib import Path

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content)


def write_manifest(path, command, *inputs):
    entries = [{"key": "input", "path": name} for name in inputs]
    write(path, json.dumps({"manifest_version": 1, "command": command, "inputs": entries}))


def matched(pattern, output=None):
    said = io.StringIO()
    files = match_files([pattern], output=output, console=Console(said))
    return [file.path for file in files], said.getvalue()


def test_a_vocabulary_is_left_out_and_reported(corpus):
    write("corp/v.txt", "[PAD]\n[UNK]\n")
    write_manifest("corp/v.txt.manifest.json", "vocab", "corp/a.txt")
    files, said = matched("corp/*.txt")
    assert files == ["corp/a.txt"]
    assert said == "corp/*.txt: ignoring corp/v.txt, which bert-pipeline made\n"
    assert matched("corp/v.txt") == (["corp/v.txt"], "")  # whoever names it means it


def test_a_copied_vocabulary_is_known_by_its_entries(corpus):
    for name in ("vocab", "english"):
        write(f"corp/{name}.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n")
    write("corp/marked.txt", "\ufeff[PAD]\n[UNK]\n")
    write("corp/bert.txt", "The special tokens are\n[PAD]\n[UNK]\n")
    write("corp/vocabulary-of-words.txt", "The vocabulary of words.\n")
    texts = ["corp/a.txt", "corp/bert.txt", "corp/vocabulary-of-words.txt"]
    assert matched("corp/*.txt")[0] == texts


def test_folders_of_records_and_lists_of_rows_are_left_out(corpus):
    write("corp/data/vocab.txt", "x\n")
    write("corp/data/deep/rejects.jsonl", "{}\n")
    write_manifest("corp/data/manifest.json", "preprocess", "corp/a.txt")
    write("corp/v.txt", "x\n")
    write_manifest("corp/v.txt.manifest.json", "vocab", "corp/a.txt")
    write("corp/v.txt.rejects.jsonl", "{}\n")
    write("corp/data.duplicates.jsonl", "{}\n")
    assert matched("corp/**.txt")[0] == ["corp/a.txt"]
    files, said = matched("corp/**.json*")
    assert files == ["corp/b.jsonl"]
    assert "ignoring corp/data.duplicates.jsonl and 4 more" in said


def test_scored_tables_are_input_unless_what_they_were_made_from_is_too(corpus):
    write("corp/scored.jsonl", '{"text": "x", "label": 1}\n')
    write_manifest("corp/scored.jsonl.manifest.json", "score", "corp/b.jsonl")
    assert matched("corp/*.jsonl")[0] == ["corp/b.jsonl"]
    assert matched("corp/sc*.jsonl")[0] == ["corp/scored.jsonl"]
    assert matched("corp/**.jsonl", output="corp/scored.jsonl")[0] == ["corp/b.jsonl"]
    with pytest.raises(UsageError, match="only matches corp/scored.jsonl, which bert-pipe"):
        matched("corp/sc*.jsonl", output="corp/scored.jsonl")


def test_manifests_of_others_mean_nothing(corpus):
    write("corp/manifest.json", '{"name": "my corpus"}')
    write("corp/b.jsonl.manifest.json", "[]")
    assert matched("corp/*.jsonl")[0] == ["corp/b.jsonl"]
    others = ["corp/b.jsonl.manifest.json", "corp/manifest.json"]
    assert matched("corp/*.json", output="corp/out.txt")[0] == others
    write("corp/b.jsonl.rejects.jsonl", '{"text": "mine"}\n')
    write("corp/manifest.json", '{"name": "An extension", "manifest_version": 3}')
    assert matched("corp/*.jsonl")[0] == ["corp/b.jsonl", "corp/b.jsonl.rejects.jsonl"]
