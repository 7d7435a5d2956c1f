"""Layouts found by the first look at a corpus, in any order of files and with any line ends."""

import textwrap
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from behavior.corpora import corpora

from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.beam.files import FileInfo, match_files
from pipeline.corpus.documents import make_block
from pipeline.corpus.read import DocumentRules
from pipeline.corpus.readers.formats import look_at_text, make_reader
from pipeline.corpus.readers.splits import WHOLE_FILE

CORPORA = dict(corpora())


def config_of(paths, **values):
    return build_section(VocabConfig, {"input": tuple(paths), "output": "y", **values})


def layouts_of(paths, **values):
    return look_at_text(config_of(paths, **values), match_files(paths)).layouts


def documents_of(paths) -> list[list[str]]:
    config = config_of(paths)
    layouts = look_at_text(config, match_files(paths)).layouts
    found = []
    for path in paths:
        reader = make_reader(path, config, layouts).resolved(path)
        for raw in reader.read_split(path, WHOLE_FILE, 1 << 24):
            block = make_block(raw, DocumentRules())
            sentences, bounds = block.sentences.to_pylist(), block.document_offsets.tolist()
            found += [sentences[bounds[n] : bounds[n + 1]] for n in range(block.num_documents)]
    return found


@pytest.mark.parametrize("name", CORPORA)
def test_every_layout_is_recognized(name, tmp_path):
    corpus = CORPORA[name]
    paths = corpus.write(tmp_path)
    look = look_at_text(config_of(paths), match_files(paths))
    if corpus.layout is not None:
        assert look.layouts == dict.fromkeys(paths, corpus.layout)
        assert look.documents() == corpus.documents
        assert look.is_whole
    documents = [document for document in documents_of(paths) if document]
    assert len(documents) == corpus.documents - (name == "WikiExtractor")  # one is empty
    if "without marks" not in name and name != "transcripts":
        assert min(map(len, documents)) > 3  # sentences


@pytest.mark.parametrize("name", ["articles", "sentences", "book", "several articles"])
@pytest.mark.parametrize("end", ["\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_line_ends_make_no_difference(name, end, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    corpus = CORPORA[name]
    expected = documents_of(corpus.write(tmp_path / "plain"))
    paths = corpus.write(tmp_path / "other")
    for path in (tmp_path / "other").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", end.encode()))
    assert documents_of(paths) == expected


@pytest.mark.parametrize(
    "blank",
    ["\u3000", "\xa0", "\x0c", "\x0b", "\t ", "\u2028", "\u2029", "\x85", "\r", "\u200a\x1f"],
)
@pytest.mark.parametrize("name", ["articles", "sentences", "several articles"])
def test_a_line_of_any_blanks_is_blank(name, blank, tmp_path):
    for folder in ("plain", "blanks"):
        (tmp_path / folder).mkdir()
    corpus = CORPORA[name]
    expected = documents_of(corpus.write(tmp_path / "plain"))
    paths = corpus.write(tmp_path / "blanks")
    for path in (tmp_path / "blanks").iterdir():
        text = path.read_text().replace("\n\n", f"\n{blank}\n").replace("\n\n", f"\n{blank}\n")
        path.write_bytes(text.encode())
    assert documents_of(paths) == expected


def test_a_reader_finds_the_borders_that_reading_does(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("A b.\nC d.\n\u3000\nE f.\nG h.\n\xa0\x0c\nI.\nJ.\n")
    config = config_of([str(path)], text_layout="sentences")
    reader = make_reader(str(path), config)
    assert [split.first_line for split in reader.splits(str(path), 1)] == [1, 4, 7]


def test_large_files_are_judged_by_themselves_and_small_ones_together(tmp_path):
    reference = CORPORA["sentences"].files["all.txt"]
    (tmp_path / "a-reference.txt").write_text(reference)
    for name, text in CORPORA["articles"].files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "one-line.txt").write_text("One line. And no more.\n")
    paths = sorted(map(str, tmp_path.iterdir()))
    layouts = layouts_of(paths)
    assert layouts.pop(str(tmp_path / "a-reference.txt")) == "sentences"
    assert set(layouts.values()) == {"file"}
    assert layouts_of(paths[::-1]) == layouts_of(paths)
    assert set(layouts_of(paths, text_layout="lines").values()) == {"lines"}


def test_a_file_that_is_no_article_by_its_size_is_not_one_document(tmp_path):
    path = tmp_path / "all.txt"
    paragraph = "One sentence of it. Another sentence.\n\n"
    path.write_text(paragraph * 60_000)
    config = config_of([str(path)])
    assert look_at_text(config, [FileInfo(str(path), 2_400_000)]).layouts == {str(path): "file"}
    look = look_at_text(config, [FileInfo(str(path), 100_000_000)])
    assert look.layouts == {str(path): "paragraph_lines"}
    assert not look.is_whole
    assert look.documents() == pytest.approx(100_000_000 / len(paragraph), rel=0.01)


def test_documentation_with_lists_and_code_is_hard_wrapped_text(tmp_path):
    """Python's own: few lines reach the margin, and hardly any ends a sentence."""
    for name, text in topics.items():
        (tmp_path / f"{name}.txt").write_text(text)
    layouts = list(layouts_of(sorted(map(str, tmp_path.iterdir()))).values())
    assert layouts.count("paragraphs") > 0.9 * len(layouts)
    assert set(layouts) <= {"paragraphs", "articles", "file"}


def test_wrapped_text_has_several_margins(tmp_path):
    """Signatures are wider than the prose below them, and sentences end within its lines."""
    prose = "This is said in a few words. What follows takes more of them, and it goes on. " * 4
    entry = ["name(argument, *, option=None, another_option=None)".ljust(85, ".")]
    entry += textwrap.wrap(prose, 60)
    (tmp_path / "manual.txt").write_text("\n\n".join(["\n".join(entry)] * 20))
    headlines = ["Mr. Brown meets the mayor", "U.S. senate votes", "Rain in the north"] * 3
    (tmp_path / "headlines.txt").write_text("\n\n".join(["\n".join(headlines)] * 20))
    layouts = {"headlines.txt": "sentences", "manual.txt": "paragraphs"}
    for name, layout in layouts.items():
        assert set(layouts_of([str(tmp_path / name)]).values()) == {layout}


def test_sentences_go_on_in_lower_case_or_after_commas_in_hard_wrapped_text_only(tmp_path):
    """In notes and READMEs most sentences end with lines; in chats any line is lower case."""
    notes = """\
 * The command learned an option to limit its output, which
   is of use for large files.

 * It fails no more when the folder
   is empty, and tells what is missing
   (merged later).

Please see the file COPYING for
a description of the license.

This was written long ago.
"""
    chats = "who was there?\nThe one with the long red scarf and the old hat\noh, him\n"
    chats += "he told us nothing about it for the whole evening\nok\n\n"
    verses = "ROMEO:\nThe night was dark, and none was on the road,\n"
    verses += "The lamp was out that led us there before;\n"
    verses += (
        "And still we went with all our heavy load\nThat we had wished to carry never more.\n\n"
    )
    for name, text, layout in (
        ("notes", notes, "paragraphs"),
        ("verses", verses, "paragraphs"),
        ("chats", chats, "sentences"),
    ):
        path = tmp_path / f"{name}.txt"
        path.write_text(text * 20)
        assert set(layouts_of([str(path)]).values()) == {layout}


def test_pages_with_headings_and_lists_are_a_document_each(tmp_path):
    """Lists are no documents of a sentence per line, but a dialog's are."""
    items = "\n".join(f"- item {number} of the list" for number in range(6))
    page = f"# Title\n\nIt begins here. It goes on.\n\n{items}\n\n## Next\n\n{items}\n"
    dialog = "- Who is there?\n- It is me.\n- Come in.\n\n- Where were you?\n- At home.\n"
    for folder, text, layout in (("pages", page, "file"), ("dialogs", dialog, "sentences")):
        (tmp_path / folder).mkdir()
        paths = [str(tmp_path / folder / f"{number}.txt") for number in range(5)]
        for path in paths:
            Path(path).write_text(text)
        assert set(layouts_of(paths).values()) == {layout}
