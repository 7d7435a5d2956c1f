"""Cells with any number of labels."""

import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.multilabel.label_cells import LabelForm, likely_separator, listed_labels


def listed(cells, *, separator="|", names=(), **columns):
    """Return the labels of each row of a column, or of several, and the rejects."""
    columns = columns or {"tags": cells}
    count = len(next(iter(columns.values())))
    form = LabelForm(
        column=next(iter(columns)),
        columns=tuple(columns) if len(columns) > 1 else (),
        separator=separator,
        names=tuple(names),
    )
    table = Table(source="t.csv", columns=columns, lines=[*range(2, 2 + count)], rejects=[])
    found = form.listed(table)
    assert list(found.columns) == [form.column]
    return listed_labels(found.columns[form.column]), list(map(str, found.rejects))


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("", ()),
        (" ", ()),
        ("a", ("a",)),
        ("a|b c|a", ("a", "b c")),
        (" a | b ||", ("a", "b")),
        ("[]", ()),
        ('["a", "b|c", "a"]', ("a", "b|c")),
        ('[" a", "a ", "b c "]', ("a", "b c")),
        ("[1, 2.50, true]", ("1", "2.5", "true")),
        ("[urgent]|x", ("[urgent]", "x")),
        ("['a', 'b, c']", ("a", "b, c")),
        ("[\"it's\", 'b']", ("it's", "b")),
        ("['a' 'b'\n 'c']", ("a", "b", "c")),
        ("array(['a', 'b'], dtype=object)", ("a", "b")),
        ("{'b', 'a'}", ("b", "a")),
        ("('a',)", ("a",)),
        ("set()", ()),
        ('{"choices": ["a", "b"]}', ("a", "b")),
        ('{"choices": "a"}', ("a",)),
        ('{"a": 1, "b": 0, "c": 1.0}', ("a", "c")),
        ("{'a': True, 'b': False, 'c': None}", ("a",)),
        ("tensor([3, 1], device='cuda:0')", ("3", "1")),
        ("Index(['a', 'b'], dtype='object')", ("a", "b")),
    ],
)
def test_labels(cell, labels):
    assert listed([cell, "z"]) == ([labels, ("z",)], [])


def test_another_separator():
    assert listed(["a, b|c", "d"], separator=",")[0] == [("a", "b|c"), ("d",)]
    assert listed(["a  b "], separator=" ")[0] == [("a", "b")]


@pytest.mark.parametrize(
    "cell",
    [
        *('[["a"]]', '["a", null]', '[{"a": 1}]', '["a", ""]', '[" "]', '{"a": 2}', "[['a']]"),
        *('{"choices": ["a", ""]}', '{"": 1, "a": 0}'),
    ],
)
def test_lists_of_something_else_are_rejected_with_their_line(cell):
    assert listed(["a", cell]) == (
        [("a",)],
        [f"t.csv:3: label is neither a list nor a text of labels ({cell!r})"],
    )
    with pytest.raises(InputError, match=r"neither a list nor a text.*t\.csv:2 .*column 'tags'"):
        listed([cell])


def test_brackets_are_of_lists_where_some_cells_list_several():
    assert listed(["[x]", "[y]"]) == ([("[x]",), ("[y]",)], [])
    found, rejects = listed(["a", "[x]", "[x, y]"])
    assert (found, len(rejects)) == ([("a",)], 2)


def test_a_list_that_was_cut_is_no_label():
    cut = ["['a' 'b' ... 'y'\n 'z']", "[0 1 0 ... 0 0 1]", "array(['a', ..., 'z'], dtype=object)"]
    found, rejects = listed(["a", *cut, "a ... b"])
    assert found == [("a",), ("a ... b",)]
    assert [each.partition(": ")[2].partition(" (")[0] for each in rejects] == [
        "label is a list that was cut to '...' when it was written"
    ] * 3


@pytest.mark.parametrize(
    "cells",
    [
        ["{b,a}", "", '{"b c"}', "{}", '{a,"it\'s, so"}'],  # PostgreSQL
        ["<b><a>", " ", "<b c>", "", "<a><it's, so>"],  # StackOverflow
    ],
)
def test_lists_that_databases_write(cells):
    assert listed(cells) == ([("b", "a"), (), ("b c",), (), ("a", "it's, so")], [])
    assert listed(cells, separator=",")[0][0] == ("b", "a")
    found, rejects = listed(['{"",a}', "{b}"])
    assert found == [("b",)]
    assert len(rejects) == 1


def test_lists_that_spark_and_java_write():
    assert listed(["[b, a]", "", "[b c]", "[]"]) == ([("b", "a"), (), ("b c",), ()], [])
    assert listed(["WrappedArray(b, a)", "List(c)"])[0] == [("b", "a"), ("c",)]
    assert listed(["[1, 2]", "[2]"])[0] == [("1", "2"), ("2",)]
    assert len(listed(["x", "[b, [a]]"])[1]) == 1


def test_quotes_around_all_labels_are_not_theirs():
    assert listed(['"b";"a"', "", '"c"'], separator=";")[0] == [("b", "a"), (), ("c",)]
    assert listed(["'b'|a"])[0] == [("'b'", "a")]
    assert listed(['"b","a"'])[0] == [('"b","a"',)]  # with another separator


def test_brackets_of_some_cells_are_no_lists():
    assert listed(["<b>", "a"])[0] == [("<b>",), ("a",)]
    assert listed(["{b,a}", "a"])[0] == [("{b,a}",), ("a",)]


def test_gaps_beside_lists_are_no_labels():
    assert listed(["['a']", "nan", "None", ""])[0] == [("a",), (), (), ()]
    assert listed(["a", "None"])[0] == [("a",), ("None",)]


def test_deep_nesting_is_a_text_like_others():
    deep = "[" * 100_000
    assert listed([deep])[0] == [(deep,)]


@pytest.mark.parametrize(
    "cells",
    [
        ["[1, 0, 0]", "[0, 1, 1]", "[0, 0, 0]"],
        ["[1 0 0]", "[0 1 1]", "[0 0 0]"],
        ["[1.0, 0.0, 0.0]", "[0.0, 1.0, 1.0]", "[0.0, 0.0, 0.0]"],
        ["[true, false, false]", "[false, true, true]", "[false, false, false]"],
        ['["1", "0", "0"]', '["0", "1", "1"]', '["0", "0", "0"]'],
        ["1 0 0", "0 1 1", "0 0 0"],
        ["1,0,0", "0,1,1", "0,0,0"],
        ["1|0|0", "0|1|1", "0|0|0"],
        ["100", "011", "000"],
        ["tensor([1., 0., 0.])", "tensor([0., 1., 1.])", "tensor([0., 0., 0.])"],
    ],
)
def test_zeros_and_ones_are_places_of_names(cells):
    found, rejects = listed([*cells, ""], names=("a", "b", "c"))
    assert found == [("a",), ("b", "c"), (), ()] and not rejects
    with pytest.raises(UsageError, match=r"t\.csv: .* 3 zeros and ones .*line 2.*--label-names A"):
        listed(cells)
    with pytest.raises(UsageError, match="--label-names has 2 names"):
        listed(cells, names=("a", "b"))


def test_probabilities_are_no_labels():
    with pytest.raises(UsageError, match="'tags' holds lists of numbers from 0 to 1 "):
        listed(["[0.2, 0.8]", "[1.0, 0.0]", "[1e-05, 0.5]"])

    with pytest.raises(UsageError, match="'tags' holds lists of numbers from -1 to 1 "):
        listed(["[-1, 1]", "[1, 1]"])


def test_zeros_and_ones_of_another_number_are_rejected():
    found, rejects = listed(["[0, 1]", "[1, 1]", "[0, 1, 1]", "[]"], names=("a", "b"))
    assert found == [("b",), ("a", "b"), ()]
    assert rejects == [
        "t.csv:4: label has another number of zeros and ones than most ('[0, 1, 1]')"
    ]
    assert listed(["[0, 1]", "[1]"])[0] == [("0", "1"), ("1",)]  # numbers of labels


def test_numbers_are_places_of_names():
    assert listed(["[2.0, 0.0]", "[1.0]"], names=("a", "b", "c"))[0] == [("c", "a"), ("b",)]
    found, rejects = listed(["[2, 0]", "[]", "[1]", "a", "[7]", "x"], names=("a", "b", "c"))
    assert found == [("c", "a"), (), ("b",), ("a",)]
    assert rejects == [
        "t.csv:6: label is not a number of --label-names ('7')",
        "t.csv:7: label is not one of --label-names ('x')",
    ]
    assert listed(["[2, 0]", "[1]"])[0] == [("2", "0"), ("1",)]


def test_a_column_of_each_label():
    found, rejects = listed(None, a=["1", "0", "true", "1.0", "-1"], b=["0", "0", "Yes", "", "1"])
    assert found == [("a",), (), ("a", "b")]
    assert rejects == [
        "t.csv:5: label is neither 0 nor 1 (b: '')",
        "t.csv:6: label is neither 0 nor 1 (a: '-1')",
    ]
    assert listed(None, a=["Y", "n"], b=["F", "t"])[0] == [("a",), ("b",)]
    assert listed(None, a=["x", "", ""], b=["x", " ", "x"])[0] == [("a", "b"), (), ("b",)]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([["a"], ["a, b"], ["b"], []], (",", 1, "a, b")),
        ([["a; b"], ["b; c"], ["c"]], (";", 2, "a; b")),
        ([["film, or play"], ["city"]], None),
        ([["a b"], ["b"], ["a"]], (" ", 1, "a b")),
        ([["credit card"], ["debit card"], ["card"]], None),
        ([["a\nb"], ["b"]], ("\n", 1, "a\nb")),
        ([["a::b"], ["b"]], ("::", 1, "a::b")),
        ([["甲、乙"], ["乙"]], ("、", 1, "甲、乙")),
        ([["a"], ["b"]], None),
    ],
)
def test_the_separator_that_rows_probably_have(sets, expected):
    assert likely_separator(sets) == expected


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["a=1, b=0", "a=0, b=1", ""], [("a",), ("b",), ()]),
        (["home:1 sports page:0", "home:1 sports page:1"], [("home",), ("home", "sports page")]),
        (["a: yes; b: no", "a: no"], [("a",), ()]),
        (["a=1.0|b=0.0"], [("a",)]),
        (["topic:1|topic:2", "topic:1"], [("topic:1", "topic:2"), ("topic:1",)]),
        (["chapter:1", "chapter:2"], [("chapter:1",), ("chapter:2",)]),
        (["genre:rock|era:80s"], [("genre:rock", "era:80s")]),
        (["python:3.8", "numpy:1.2"], [("python:3.8",), ("numpy:1.2",)]),
        (["a:0.5", "numpy:1.2"], [("a:0.5",), ("numpy:1.2",)]),
    ],
)
def test_labels_with_yes_or_no_behind_them(cells, labels):
    assert listed(cells) == (labels, [])


@pytest.mark.parametrize("cell", ["a:0.9, b:0.1", "a:0.9", '{"a": 0.7}', "a=1, b=0.5"])
def test_labels_with_scores_are_no_labels(cell):
    with pytest.raises(
        UsageError, match=r"labels with scores \(line 2: .*without scores, or write"
    ):
        listed([cell])


def test_words_between_known_labels_may_separate_them():
    sets = [["kitchen and garden"], ["kitchen"], ["garden"]]
    assert likely_separator(sets) == (" and ", 1, "kitchen and garden")
    assert likely_separator([["kitchen and garden"], ["home"], ["home"]]) is None
