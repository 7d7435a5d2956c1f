"""Lines of files, whatever is in them."""

import bz2

from pipeline.report.corpus.left_out import stored_lines


def test_lines_are_found_by_their_numbers_and_faulty_bytes_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.report.corpus.left_out._STEP_BYTES", 7)
    path = tmp_path / "a.txt.bz2"
    path.write_bytes(bz2.compress("eins\n\nzwölf <b>\n".encode() + b"f\xfcnf\nlast"))
    assert stored_lines(str(path), [3, 1, 4, 5, 9], encoding="utf-8") == {
        1: "eins",
        3: "zwölf <b>",
        4: "f\\xfcnf",
        5: "last",
    }


def test_long_lines_are_cut_between_characters_around_the_fault(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" + "é".encode() * 2000 + b"\n" + b"a" * 3000 + b"\xff" + b"b" * 3000)
    whole, faulty = stored_lines(str(path), [1, 2], encoding="utf-8").values()
    assert whole == "x" + "é" * 499 + "…"
    assert faulty.startswith("…aaa") and faulty.endswith("bbb…") and "a\\xffb" in faulty
