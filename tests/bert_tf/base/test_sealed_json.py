"""Sealed JSON: any change of the content is noticed, no change of the layout is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.sealed_json import read_if_sound, read_sealed, sealed, unsealed

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
