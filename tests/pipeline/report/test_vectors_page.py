"""The page of vectors."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from behavior.pages import check_page

from pipeline.outputs.manifest import describe_files, write_manifest
from pipeline.report.page import artifact_page


def write_vectors(folder, vectors, texts):
    path = folder / "v.parquet"
    cells = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.astype(np.float32).ravel()), vectors.shape[1]
    )
    pq.write_table(pa.table({"text": texts, "embedding": cells}), path)
    manifest = {
        "command": "embed", "config": {}, "columns": {"text": "text"},
        "embedding": {"pooling": "mean", "normalize": False}, "inputs": [],
        "outputs": describe_files(path, {}),
    }  # fmt: skip
    write_manifest(path, manifest)
    return str(path)


def test_nearest_texts_are_those_of_the_highest_cosine(tmp_path):
    vectors = np.array([[1, 0], [2, 0.2], [0, 1], [0, 3]])
    page = check_page(
        artifact_page(
            write_vectors(tmp_path, vectors, ["<one>", "like one", "other", "other"]), samples=3
        )
    )
    shown = page.text[page.text.index("Nearest texts") :]
    place = shown.index("<one>")
    assert shown[place : place + 2] == ["<one>", "like one"]
    assert page.elements.count("svg") == 3, "cosines, those of the nearest, norms"
    alike = page.text[page.text.index("Most alike") :]
    assert "4 texts of 4 have another" in alike[1] and "; 1 text repeat" in alike[1]
    # The text that stands twice makes no pair with itself.
    cells = alike[alike.index("another") + 1 :]
    assert cells[1:3] == ["<one>", "like one"]
    assert {tuple(sorted(cells[place : place + 2])) for place in (1, 4, 7)} == {
        ("<one>", "like one"), ("<one>", "other"), ("like one", "other")
    }  # fmt: skip


def test_one_vector_has_a_page_without_pairs(tmp_path):
    page = check_page(artifact_page(write_vectors(tmp_path, np.ones((1, 3)), ["a"]), samples=3))
    assert "svg" not in page.elements and "dimensions" in page.text
