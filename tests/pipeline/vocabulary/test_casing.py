"""Lower-casing for a vocabulary: recorded, seen in its entries, or asked for."""

import json

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from pipeline.outputs.manifest import write_manifest
from pipeline.vocabulary.casing import decide_lowercase

SMALL = [*SPECIAL_TOKENS, *"abcdefgh", "##a", "##b", "house", "man", "COVID", "[EMAIL]"]
LARGE = [*SPECIAL_TOKENS, "a", "b", "A", "B", "##a", "##A", "house", "House", "Man"]
CHINESE = [*SPECIAL_TOKENS, "天", "地", "1"]
ACCENTS = [*SPECIAL_TOKENS, "a", "é", "##é", "été"]


@pytest.mark.parametrize(
    ("vocab", "asked", "lowercase"),
    [
        (SMALL, None, True),
        (SMALL, True, True),
        (LARGE, None, False),
        (LARGE, False, False),
        (CHINESE, None, True),
        (CHINESE, False, False),
        (ACCENTS, False, False),
        (ACCENTS, KEEP_ACCENTS, KEEP_ACCENTS),
    ],
)
def test_without_a_record_the_entries_decide(tmp_path, vocab, asked, lowercase):
    found, note = decide_lowercase(asked, str(tmp_path / "v.txt"), vocab)
    assert found == lowercase
    assert bool(note) == (vocab is LARGE and asked is None)
    assert not note or "v.txt: has no manifest, and 5 of 9 entries with letters hold" in note


@pytest.mark.parametrize(
    ("vocab", "asked", "message"),
    [
        (SMALL, False, r"v.txt: the vocabulary is lower-cased \(1 of 13 entries .*--cased out"),
        (LARGE, True, r"v.txt: the vocabulary is cased \(5 of 9 entries .*--lowercase out"),
    ],
)
def test_a_contradiction_with_the_entries_is_refused(tmp_path, vocab, asked, message):
    with pytest.raises(UsageError, match=message):
        decide_lowercase(asked, str(tmp_path / "v.txt"), vocab)


def test_what_a_manifest_says_counts_more_than_entries(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("\n".join(LARGE))
    write_manifest(path, {"command": "vocab", "config": {"lowercase": True}})
    assert decide_lowercase(None, str(path), LARGE) == (True, "")
    with pytest.raises(UsageError, match=r"lower-cased \(v.txt.manifest.json\), so --cased"):
        decide_lowercase(False, str(path), LARGE)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"do_lower_case": False}),
        ("best/tokenizer_config.json", {"do_lower_case": False}),
        ("manifest.json", None),
    ],
)
def test_files_beside_a_vocabulary_say_how_it_is_used(tmp_path, name, content):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(SMALL))
    if content is None:
        write_manifest(tmp_path, {"command": "preprocess", "records": {"lowercase": False}})
    else:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
        (tmp_path / name).with_name("vocab.txt").write_text("\n".join(SMALL))
    assert decide_lowercase(None, str(path), SMALL) == (False, "")
    with pytest.raises(UsageError, match=f"cased .{name.split('/')[-1]}., so --lowercase"):
        decide_lowercase(True, str(path), SMALL)


def test_accents_that_a_vocabulary_keeps_are_recorded(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("\n".join(ACCENTS))
    write_manifest(path, {"command": "vocab", "config": {"lowercase": True, "keep_accents": True}})
    assert decide_lowercase(None, str(path), ACCENTS) == (KEEP_ACCENTS, "")
    with pytest.raises(UsageError, match="lower-cased, with accents .*so --lowercase would"):
        decide_lowercase(True, str(path), ACCENTS)


def test_a_manifest_of_another_tool_is_none(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(SMALL))
    (tmp_path / "manifest.json").write_text("{}")
    assert decide_lowercase(None, str(path), SMALL) == (True, "")
