"""Files of vectors: recognized, read, and refused as a pair."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import InputError, UsageError
from pipeline.embedding.outputs import vector_array
from pipeline.embedding.vectors import check_comparable, holds_vectors, read_vectors

VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


def write_parquet(path, **columns):
    pq.write_table(pa.table({"text": ["a", "b", "c"], **columns}), path)
    return str(path)


def test_parquet_has_the_texts_beside_the_vectors(tmp_path):
    path = write_parquet(tmp_path / "v.parquet", embedding=vector_array(VECTORS), n=[1, 2, 3])
    assert holds_vectors(path)
    read = read_vectors(path, text_column=None)
    np.testing.assert_array_equal(read.vectors, VECTORS)
    assert read.texts.to_pylist() == ["a", "b", "c"]
    assert read.made_with is None
    assert read_vectors(path, text_column="n").texts.to_pylist() == ["1", "2", "3"]
    with pytest.raises(UsageError, match="no column 'body'; it has text, embedding, n"):
        read_vectors(path, text_column="body")


def test_arrays_have_no_texts(tmp_path):
    path = str(tmp_path / "v.npy")
    np.save(path, VECTORS.astype(np.float64))
    assert holds_vectors(path)
    read = read_vectors(path, text_column=None)
    assert (read.vectors.dtype, read.texts) == (np.float32, None)


def test_tables_of_texts_hold_none(tmp_path):
    assert not holds_vectors(write_parquet(tmp_path / "t.parquet"))
    assert not holds_vectors(str(tmp_path / "t.csv"))
    with pytest.raises(UsageError, match="no such file"):
        holds_vectors(str(tmp_path / "absent.parquet"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3, np.float32), "expected an array of floating point"),
        (np.zeros((3, 2), np.int32), "expected an array of floating point"),
        (np.zeros((0, 2), np.float32), "holds no vectors"),
        (np.full((1, 2), np.nan, np.float32), "holds vectors that are not numbers"),
    ],
)
def test_arrays_of_something_else_are_one_line(tmp_path, array, message):
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(InputError, match=message):
        read_vectors(str(tmp_path / "v.npy"), text_column=None)


def test_damaged_files_are_one_line(tmp_path):
    for name in ("v.npy", "v.parquet"):
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(InputError, match="cannot be read"):
            read_vectors(str(tmp_path / name), text_column=None)
    path = write_parquet(tmp_path / "w.parquet", embedding=[[1.0], None, [2.0, 3.0]])
    with pytest.raises(InputError, match="expected embedding to be a list of fixed size"):
        read_vectors(path, text_column=None)


def test_a_column_that_is_no_text_is_one_line(tmp_path):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5, 1.0], pa.float32()), 2)
    path = tmp_path / "v.parquet"
    for texts in ([["a"]], [b"\xff"]):
        pq.write_table(pa.table({"text": texts, "embedding": vectors}), path)
        with pytest.raises(InputError, match="cannot be read"):
            read_vectors(str(path), text_column=None)


def test_other_dimensions_are_no_pair(tmp_path):
    for size in (2, 3):
        np.save(tmp_path / f"{size}.npy", np.ones((1, size), np.float32))
    two, three = (read_vectors(str(tmp_path / f"{n}.npy"), text_column=None) for n in (2, 3))
    check_comparable(two, two)
    with pytest.raises(UsageError, match="has vectors of 2 dimensions, .* of 3; make both with"):
        check_comparable(two, three)
