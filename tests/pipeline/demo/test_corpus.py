"""Documentation becomes prose, the same prose every time."""

import doctest

import pytest

from bert_tf.base.errors import InputError
from pipeline.demo import corpus
from pipeline.demo.corpus import read_docstrings, split_into_sentences, write_corpus
from pipeline.demo.plan import write_data

DOCUMENTATION = """Sorting
*******

Sorts *items* in ascending order of their `keys`, e.g. by :func:`len <builtins.len>`.  The sort is
stable: items with equal keys keep their order [1]. For instance::

   result = sort([3, 1, 2], key=None)
   This line belongs to the example as well.

It never copies the items.

>>> sort([3, 1])
Here comes a list that is sorted now.

Parameters
----------
items : list of object
    The list whose items are put in order.
key : callable, optional
    Tells what an item is compared by.

+-------+--------+
| Name  | Result |
+-------+--------+

* The first rule is that the list must fit into memory.
* foo_bar
.. note::
   This note belongs to a directive.

Call sort(items) if unsure about that.
"""


def test_only_sentences_are_left():
    assert split_into_sentences(DOCUMENTATION) == [
        "Sorts items in ascending order of their keys, e.g. by len.",
        "The sort is stable: items with equal keys keep their order.",
        "It never copies the items.",
        "The list whose items are put in order.",
        "Tells what an item is compared by.",
        "The first rule is that the list must fit into memory.",
    ]


def test_docstrings_come_in_the_order_of_the_source():
    source = (
        b'"""Module."""\n'
        b"def outer():\n"
        b'    """Outer."""\n'
        b"    def inner():\n"
        b'        """Inner."""\n'
        b"class Late:\n"
        b'    """Late."""\n'
        b"    x = 'no docstring'\n"
    )
    assert read_docstrings(source) == ["Module.", "Outer.", "Inner.", "Late."]


def test_a_source_that_does_not_parse_has_no_docstrings():
    assert read_docstrings(b"def broken(:") == []


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """Return a small Python installation: some modules, one package, no language reference."""
    library, packages = tmp_path / "lib", tmp_path / "packages"
    for folder in (library / "test", packages / "numpy"):
        folder.mkdir(parents=True)
    text = "This is sentence {} of the {} module. It has {} friends and no enemies. "
    for number in range(400):
        body = text.format(_word(number), "library", _word(number + 1))
        (library / f"module{number}.py").write_text(f'"""{body}"""\n')
    (library / "test" / "ignored.py").write_text('"""This text must not come into the corpus."""')
    for number in range(120):
        body = text.format(_word(number), "package", _word(number + 7))
        (packages / "numpy" / f"module{number}.py").write_text(f'"""{body}"""\n')
    paths = {"stdlib": str(library), "purelib": str(packages)}
    monkeypatch.setattr("sysconfig.get_paths", lambda: paths)
    write_data(tmp_path / "data")
    return tmp_path


def _word(number):
    return "".join("abcdefghij"[int(digit)] for digit in str(number)) + "ty"


def test_the_corpus_is_deterministic_and_free_of_repetition(installation):
    first, second = installation / "first", installation / "second"
    counts = write_corpus(first, data=installation / "data")
    assert write_corpus(second, data=installation / "data") == counts
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(counts)
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()
    lines = [
        line for name in names for line in (first / name).read_text("utf-8").splitlines() if line
    ]
    assert len(lines) == sum(counts.values()) == len(set(lines))
    assert counts["python-library.txt"] == 800
    assert not any("must not come" in line for line in lines)
    documents = (first / "python-library.txt").read_text("utf-8").split("\n\n")
    assert len(documents) == 400 and all(document.count("\n") == 1 for document in documents[:-1])


def test_held_out_messages_stay_out_of_the_corpus(installation):
    write_corpus(installation / "corpus", data=installation / "data")
    text = (installation / "corpus" / "fine-tuning-texts.txt").read_text("utf-8")
    assert "Shanghai lies on the east coast" in text
    assert "Chongqing is a mountain city" not in text


def test_an_installation_without_documentation_is_refused(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    paths = {"stdlib": str(tmp_path / "empty"), "purelib": str(tmp_path / "empty")}
    monkeypatch.setattr("sysconfig.get_paths", lambda: paths)
    write_data(tmp_path / "data")
    with pytest.raises(InputError, match="sentences of documentation found"):
        write_corpus(tmp_path / "corpus", data=tmp_path / "data")
    assert not (tmp_path / "corpus").exists()


def test_the_worked_example_is_right():
    outcome = doctest.testmod(corpus)
    assert outcome.attempted and not outcome.failed
