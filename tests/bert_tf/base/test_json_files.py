"""Sealed JSON: any change of the content is noticed, no change of the layout is."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.json_files import (
    finished_sha256,
    note_finished,
    read_if_sound,
    read_sealed,
    sealed,
    unsealed,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
DOCUMENT = {"step": 12, "loss": 0.1 + 0.2, "classes": {1: "a", 20: "b", 3: "ü"}, "pair": (1, 2)}


@given(st.dictionaries(st.text().filter(lambda key: key != "checksum"), VALUES))
def test_a_document_is_read_back(document):
    assert unsealed(sealed(document).encode()) == document
    assert unsealed(json.dumps(json.loads(sealed(document)), indent=7).encode()) == document


def test_no_flipped_bit_changes_what_is_read():
    content = sealed(DOCUMENT, indent=2).encode()
    whole = unsealed(content)
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read = unsealed(bytes(flipped))
        except ValueError:
            continue
        # The name of the checksum was hit: it is a key like any other then.
        assert {key: value for key, value in read.items() if key in whole} == whole


def test_what_has_no_checksum_is_not_checked(tmp_path):
    path = tmp_path / "file.json"
    path.write_text('{"made": "by another tool"}')
    assert read_sealed(path) == {"made": "by another tool"}
    path.write_text("[]")
    with pytest.raises(ValueError, match="expected a JSON object"):
        read_sealed(path)


def test_only_sound_files_say_that_work_is_finished(tmp_path):
    path = tmp_path / "done.json"
    assert read_if_sound(path) is None
    path.write_text(sealed({"rows": 3}))
    assert read_if_sound(path) == {"rows": 3}
    path.write_text(sealed({"rows": 3}).replace("3", "4", 1))
    assert read_if_sound(path) is None
    path.write_bytes(sealed({"rows": 3}).encode()[:9])
    assert read_if_sound(path) is None


@pytest.fixture
def files(tmp_path):
    path, note = tmp_path / "rows.bin", tmp_path / "rows.json"
    path.write_bytes(b"some rows")
    note_finished(note, path, made_from="texts")
    return note, path


def test_a_finished_file_is_known_by_its_content(files):
    note, path = files
    sha256 = hashlib.sha256(b"some rows").hexdigest()
    assert finished_sha256(note, path, made_from="texts") == sha256
    assert finished_sha256(note, path, made_from="other texts") is None
    note_finished(note, path, sha256=sha256)
    assert finished_sha256(note, path) == sha256


@pytest.mark.parametrize("which", [0, 1])
def test_damaged_and_missing_files_are_not_finished(files, which):
    content = files[which].read_bytes()
    for length in range(len(content) - (which == 0)):  # without its line break a note is whole
        files[which].write_bytes(content[:length])
        assert finished_sha256(*files, made_from="texts") is None
    files[which].unlink()
    assert finished_sha256(*files, made_from="texts") is None
