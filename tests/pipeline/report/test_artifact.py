"""What `inspect` shows of artifacts other than pretraining records."""

import gzip

import pytest

from pipeline.report.artifact import content_lines


@pytest.mark.parametrize(("name", "compress"), [("a.csv", bytes), ("a.csv.gz", gzip.compress)])
def test_scored_tables_are_shown_as_text(tmp_path, name, compress):
    path = tmp_path / name
    path.write_bytes(compress("text,predicted_label\nschön,gut\nschlimm,schlecht\n".encode()))
    lines = content_lines({"command": "score"}, path, samples=2)
    assert lines == ["sample: text,predicted_label", "sample: schön,gut"]
