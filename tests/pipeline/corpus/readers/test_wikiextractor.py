"""WikiExtractor's files: elements and JSON, without tags, titles and a file ending."""

import json

import pytest
from behavior.readers import check_reader, read_corpus

from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.readers.formats import format_of

PAGES = (
    '<doc id="1" url="https://xx.example.org/wiki?curid=1" title="Bridges &amp; more">\n'
    "Bridges & more\n\n"
    "A bridge carries a road. The oldest ones are of stone.\nSome open, if x &lt; y.\n\n</doc>\n"
    '<doc id="2" revid="9" url="https://xx.example.org/wiki?curid=2" title="Empty">\n'
    "Empty\n\n\n</doc>\n"
    '<doc id="3" url="https://xx.example.org/wiki?curid=3" title="Clocks">\n'
    "Clocks\n\nA clock shows the time. A <doc> here is text.\n\nIts second paragraph.\n</doc>\n"
)
DOCUMENTS = [
    ["A bridge carries a road.", "The oldest ones are of stone.", "Some open, if x < y."],
    ["A clock shows the time.", "A <doc> here is text.", "Its second paragraph."],
]


@pytest.mark.parametrize("name", ["wiki_00", "pages.txt"])
def test_an_element_is_a_document_without_its_tags_and_title(name, tmp_path):
    found = check_reader(tmp_path, name, PAGES.encode())
    assert found.documents == DOCUMENTS
    assert found.dropped == {"empty document": 1}
    assert found.rejects == []


def test_elements_are_named_by_their_lines_and_text_between_them_is_counted(tmp_path):
    text = PAGES.replace("</doc>\n", "</doc>\nstray\n", 1).replace("A clock", "\udcff clock")
    path = tmp_path / "wiki_00"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    found = read_corpus(path)
    assert found.documents == DOCUMENTS[:1]
    assert found.dropped == {"empty document": 1, "text outside of <doc>": 1}
    assert [(line, reason) for line, reason, _ in found.rejects] == [(14, "invalid UTF-8")]


@pytest.mark.parametrize("tag", ["<doc url='u' id='1' title='Clocks'>", "<doc id=1>"])
def test_tags_of_other_versions(tag, tmp_path):
    text = f"{tag}\nClocks\n\nA clock shows the time.\n</doc>\n"
    title = [] if "title" in tag else ["Clocks"]
    found = check_reader(tmp_path, "a.txt", text.encode())
    assert found.documents == [[*title, "A clock shows the time."]]


def test_a_file_may_begin_in_an_element(tmp_path):
    found = check_reader(tmp_path, "part.txt", PAGES[PAGES.index("The oldest") :].encode())
    assert found.documents == [DOCUMENTS[0][1:], DOCUMENTS[1]]
    assert found.dropped == {"empty document": 1}


def test_an_element_that_is_cut_short_ends_where_the_next_begins(tmp_path):
    (tmp_path / "wiki_00").write_text(PAGES.replace("\n</doc>", "", 1) + '<doc id="4" ')
    assert read_corpus(tmp_path / "wiki_00").documents == DOCUMENTS


def test_rows_of_json_have_no_title(tmp_path):
    rows = [
        {"id": "1", "title": "A & b", "text": "A & b\n\nOne. Two, if a &lt; b.\nThree."},
        {"id": "2", "title": "Empty", "text": ""},
        {"id": "3", "title": "Clocks", "text": "Clocks are late. Some are."},
    ]
    lines = [json.dumps({**row, "url": f"https://xx.org/wiki?curid={row['id']}"}) for row in rows]
    found = check_reader(tmp_path, "wiki_01", "\n".join(lines).encode())
    assert found.documents == [
        ["One.", "Two, if a < b.", "Three."],
        ["Clocks are late.", "Some are."],
    ]
    assert found.dropped == {"empty document": 1}


def test_rows_of_python_2_need_no_ending(tmp_path):
    row = {"url": "https://xx.org/wiki?curid=1", "text": "A\n\nOne. Two.", "id": "1", "title": "A"}
    assert check_reader(tmp_path, "wiki_02", json.dumps(row).encode()).documents == [
        ["One.", "Two."]
    ]


def test_rows_of_other_json_stay_as_they_are(tmp_path):
    row = {"id": "1", "url": "https://x.org/a", "title": "A", "text": "A\n\nOne &lt; two."}
    found = check_reader(tmp_path, "a.jsonl", json.dumps(row).encode())
    assert found.documents == [["A", "One &lt; two."]]


@pytest.mark.parametrize("content", [b"", b"plain text", b'{"id": 1}', b"\xff\xfe\x00"])
def test_other_files_without_an_ending_are_refused(content, tmp_path):
    (tmp_path / "wiki_00").write_bytes(content)
    config = build_section(VocabConfig, {"input": ("x",), "output": "y"})
    with pytest.raises(UsageError, match="the file name does not say the format"):
        format_of(str(tmp_path / "wiki_00"), config)
