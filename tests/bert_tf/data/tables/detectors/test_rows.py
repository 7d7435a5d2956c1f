"""Sound rows raise no alarm; the same rows, damaged as people's exports are, are found."""

import base64
import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.detectors.rows import ROW_DETECTORS
from bert_tf.data.tables.judged import (
    Detector,
    ReadValues,
    Severity,
    Spans,
    first_values,
    judge,
    report,
    spread,
)

SENTENCES = [
    "anna met bruno farid in oslo",
    "the train to lima left 5 minutes early ( again )",
    'clara \'s " old " friends , walked home with elena',
    "in 1997 the River was low : see [ 3 ] , [ 4 ] .",
    "e.g. 1 2",
] * 8
TEXTS = [f"{text} (no. {number})" for number, text in enumerate(SENTENCES)] + ["Unsurprisingly"]
WORDS = [text.split() for text in SENTENCES]
ALL_WORDS = [word for words in WORDS for word in words]
LABELS = ["garden", "don't know", "R&B [live]", ":(", ":)", "(", ")", "''", "-LRB-", "a, b"] * 4
EMOJI = "🙂🙂🙂 "


def rows(**values):
    lines = range(1, 1 + len(values.get("words") or LABELS))
    return ReadValues(source="train.csv", lines=lines, **values)


def found(values, detectors=ROW_DETECTORS):
    return [finding.detector for finding in judge(values, detectors)]


def entities(texts, shift=lambda text, place: place):
    """Every first capital-less word of four letters or more, at offsets that `shift` counts."""
    spans = []
    for row, text in enumerate(texts):
        for word in ("anna", "oslo", "train", "friends", "River", "Ölfeld"):
            start = text.find(word)
            if start >= 0:
                spans.append((row, shift(text, start), shift(text, start + len(word))))
    arrays = np.array(spans, np.int64).reshape(-1, 3).T
    return Spans(rows=arrays[0], starts=arrays[1], ends=arrays[2])


def utf16(text, place):
    return len(text[:place].encode("utf-16-le")) // 2


def utf8(text, place):
    return len(text[:place].encode())


SOUND = {
    "texts": rows(texts={"text": TEXTS}, labels=LABELS),
    "several labels": rows(texts={"text": TEXTS}, labels=LABELS, has_label_lists=True),
    "words": rows(words=WORDS, labels=["O", "B-PER", "$", "(", "''", "_"], words_have_lines=True),
    "entities": rows(texts={"text": TEXTS}, entities=entities(TEXTS)),
    "entities after emoji": rows(
        texts={"text": [EMOJI + text for text in TEXTS]},
        entities=entities([EMOJI + text for text in TEXTS]),
    ),
    "cut entities": rows(  # as annotated, whatever counts them
        texts={"text": [EMOJI + text for text in TEXTS]},
        entities=entities([EMOJI + text for text in TEXTS], lambda text, place: place - 3),
    ),
    "other columns": rows(
        texts={"text": TEXTS},
        may_be_pair=True,
        others={"id": range(40), "seen": [True, False] * 20, "set": ["a", "b"] * 20, "fold": [1]},
    ),
    "pairs": rows(
        texts={"anchor": TEXTS, "positive": TEXTS},
        pairs_match=True,
        used=("anchor", "positive"),
        others={
            "id": range(40),
            "source": ["a", "b"] * 20,
            "checked": [True] * 40,
            "length": [3, 4, 5] * 10,
            "year": [1999, 2001] * 20,
            "note": ["no", "nonsense"] * 20,
        },
    ),
    "other letters": rows(
        texts={
            "text": [
                *("É… À” Ü‘ SÃO PAULO – NÃO! Ñandú", "20 °C, 5 µm ± 1 £", "Привет, мир… «да»", "©"),
                *(r"C:\new\table", r"\nu = \theta", "a & b; c < d", "none of them", "b'", "1984?"),
            ]
            * 4
        },
        labels=LABELS,
    ),
    "quoted names": rows(texts={"text": TEXTS}, labels=["'Hamlet'", "a", "''"] * 10),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_rows_raise_no_alarm(name):
    assert found(SOUND[name]) == []


def with_labels(labels, **values):
    return rows(texts={"text": TEXTS}, labels=labels, **values)


def of_words(damaged):
    return rows(words=[damaged(words) for words in WORDS], labels=["O"])


def with_others(**columns):
    return rows(texts={"text": TEXTS}, may_be_pair=True, others=columns)


def judged(column, cells):
    texts = {"anchor": TEXTS, "positive": TEXTS}
    others = {column: cells}
    return rows(texts=texts, pairs_match=True, used=("anchor", "positive"), others=others)


@pytest.mark.parametrize(
    "cells",
    [
        ["formal", "informal"],
        ["fiction", "nonfiction"],
        ["direct", "indirect"],
        ["human", "nonhuman"],
        ["native", "non-native"],
        ["Binary", "non-binary", ""],
        ["door", "indoor"],
        ["side", "inside"],
    ],
)
def test_opposites_that_speak_of_no_match_raise_no_alarm(cells):
    assert found(judged("register", cells * 20)) == []


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("annotator", [1, 2, 3]),
        ("speaker", ["0", "1", "2"]),
        ("batch", [1, 2, 3, 4]),
        ("part", [1, 2]),
        ("level", [0, 5]),
        ("price", [0.99, 4.5]),
        ("unit price", [12.5, 80.25]),
        ("seconds", ["3.2", "17.25"]),
        ("seconds", ["0.2", "0.75"]),
        ("temperature", [3.5, 21.5]),
    ],
)
def test_other_numbers_beside_pairs_raise_no_alarm(name, cells):
    assert found(judged(name, cells * 20)) == []


def encoded(form):
    texts = list(TEXTS)
    texts[3::9] = [form(text) for text in texts[3::9]]
    return rows(texts={"text": texts})


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


def garbled(word, encoding):
    """Adds a word whose UTF-8 was read in another encoding."""
    return lambda text: f"{text} {word.encode().decode(encoding)}"


def shifted(start, end):
    """Entities whose first and last places are off by so much; none begins a text."""
    right = entities(TEXTS)
    chosen = right.starts > 2
    return Spans(
        rows=right.rows[chosen], starts=right.starts[chosen] + start, ends=right.ends[chosen] + end
    )


UMLAUTS = [f"Über {text} am Ölfeld" for text in TEXTS]
DAMAGED = {
    "several labels": [
        with_labels([*LABELS, '{"choices": ["garden", "kitchen"]}']),
        with_labels([*LABELS, '["garden"]']),
        with_labels([*LABELS, "('garden', 'kitchen')"]),
        with_labels([*LABELS, "{garden,kitchen}"]),
        with_labels([*LABELS, "<garden><kitchen>"]),
    ],
    "unread lists": [
        with_labels([*LABELS, "(garden, kitchen)"], has_label_lists=True),
        with_labels([*LABELS, "<garden><kitchen>"], has_label_lists=True),
        with_labels([*LABELS, "[garden; kitchen]"], has_label_lists=True),
        rows(words=WORDS, labels=["O", "['B-PER', 'O']"]),
    ],
    "halves of lists": [
        with_labels(["{garden", "kitchen}", "{train}"], has_label_lists=True),
        with_labels(['["garden"', '"kitchen"', '"train"]'], has_label_lists=True),
        with_labels(["'garden", "kitchen'", "kitchen"], has_label_lists=True),
        with_labels(["(garden", "kitchen)", "train"]),
        with_labels(['c("garden"', '"kitchen")', "train"], has_label_lists=True),
        rows(words=WORDS, labels=["['B-PER',", "'O',", "'O']"]),
    ],
    "numbered tags": [
        rows(words=WORDS, labels=["_", "PER[1]", "LOC[2]"]),
        rows(words=WORDS, labels=["_", "*[1]", "PER[2]|LOC[3]"]),
    ],
    "listed words": [
        of_words(lambda words: str(tuple(words)).split()),
        of_words(lambda words: str(words).split()),
        of_words(lambda words: json.dumps(words).split()),
        of_words(lambda words: [f"'{word}'," for word in words]),
        of_words(lambda words: ("{" + ", ".join(words) + "}").split(" ")),
    ],
    "numbered words": [
        of_words(lambda words: [str(number + 1) for number in range(len(words))]),
        of_words(lambda words: [str(number) for number in range(len(words))]),
        of_words(lambda words: [f"7-{number + 1}" for number in range(len(words))]),
        of_words(lambda words: [str(number + 100) for number in range(len(words))]),
    ],
    "tags as words": [
        of_words(lambda words: ["B-PER" if word == "anna" else "O" for word in words]),
        of_words(lambda words: ["S_LOC" if word == "oslo" else "O" for word in words]),
    ],
    "several tags": [
        rows(words=WORDS, labels=["O", "B-PER|I-ORG", "B-PER"]),
        rows(words=WORDS, labels=["O", "B-PER;B-ORG;I-LOC"]),
    ],
    "quoted labels": [
        with_labels(["'garden'", "'kitchen'"] * 9),
        with_labels(['"garden"', '"kitchen"'] * 9, has_label_lists=True),
    ],
    "pieces": [
        of_words(lambda words: [each for word in words for each in (word, "##s")]),
        of_words(lambda words: [*words, "##ing"]),
    ],
    "long sentences": [
        rows(words=[ALL_WORDS], words_have_lines=True),
        rows(words=[*WORDS, ALL_WORDS[:160]], words_have_lines=True),
    ],
    "UTF-16 offsets": [
        dataclasses.replace(
            SOUND["entities after emoji"],
            entities=entities([EMOJI + text for text in TEXTS], utf16),
        ),
        rows(  # few texts have one
            texts={"text": [*TEXTS, *(f"𝒲 {EMOJI}{text}" for text in TEXTS[:5])]},
            entities=entities([*TEXTS, *(f"𝒲 {EMOJI}{text}" for text in TEXTS[:5])], utf16),
        ),
    ],
    "UTF-8 offsets": [
        rows(texts={"text": UMLAUTS}, entities=entities(UMLAUTS, utf8)),
        rows(
            texts={"text": [EMOJI + text for text in TEXTS]},
            entities=entities([EMOJI + text for text in TEXTS], utf8),
        ),
    ],
    "shifted offsets": [
        rows(texts={"text": TEXTS}, entities=shifted(start, end))
        for start, end in ((0, -1), (1, 0), (1, 1), (-1, -1), (-2, -2))
    ],
    "base64": [
        encoded(base64_of),
        encoded(lambda text: text.encode().hex()),
        encoded(lambda text: base64_of(text).rstrip("=")),
        rows(texts={"text": [base64_of(text) for text in TEXTS]}),
    ],
    "no words": [
        rows(texts={"text": [form(n) for n in range(20)]})
        for form in (
            *(str, "1.{}".format, "https://a.org/{}".format, "audio/clip_{}.wav".format),
            *('["a", "b {}"]'.format, "{{'a': {}}}".format),
        )
    ],
    "missing texts": [
        rows(texts={"text": [*TEXTS, word]}) for word in ("nan", "None", "\\N", "#N/A", "#NAME?")
    ],
    "garbled texts": [
        encoded(garbled(word, encoding))
        for word, encoding in (
            *(("Küche", "cp1252"), ("Küche", "latin-1"), ("it’s", "cp1252"), ("“so”", "latin-1")),
            *(("20 °C", "cp1252"), ("лампа", "latin-1"), ("🙂", "cp1252"), ("台所", "latin-1")),
        )
    ]
    + [encoded(lambda text: f"{text} K\ufffdche")],
    "escaped texts": [
        encoded(("{}" + escape).format)
        for escape in (r"d\u00e9", r".\nThe end", " &amp; so", "<br />it", "</p>", r"caf\xe9")
    ]
    + [encoded(lambda text: str(text.encode()))],
    "unused splits": [
        with_others(is_valid=["False", "True"] * 20),
        with_others(is_test=[0, 1] * 20),
        with_others(fold=[0, 1, 2, 3] * 10),
        with_others(kfold=["1", "2"] * 20),
        with_others(Usage=["Training", "PublicTest", "PrivateTest"] * 10),
        with_others(part=["Train", "dev"] * 20),
        with_others(split=["train", "validation", None] * 20),
    ],
    "unused second text": [
        dataclasses.replace(with_others(hypothesis=TEXTS), texts={"premise": TEXTS}),
        dataclasses.replace(with_others(Sentence2=TEXTS), texts={"Sentence1": TEXTS}),
        dataclasses.replace(with_others(**{"#2 String": TEXTS}), texts={"#1 String": TEXTS}),
        dataclasses.replace(with_others(tweet_b=TEXTS), texts={"tweet_a": TEXTS}),
        with_others(text_pair=TEXTS),
    ],
    "judged pairs": [
        judged("relevant", [1, 0] * 20),
        judged("is_same", [True, False] * 20),
        judged("gold", ["yes", "No", ""] * 20),
        judged("dup", ["1.0", "0.0"] * 20),
        judged("polarity", [-1, 1] * 20),
        judged("verdict", ["match", "no_match"] * 20),
        judged("verdict", ["dup", "not dup", None] * 20),
        judged("kind", ["relevant", "irrelevant"] * 20),
        judged("kind", ["entailment", "not_entailment"] * 20),
        judged("label", ["useful", "not useful"] * 20),
        judged("gleich", ["ja", "nein"] * 20),
        judged("same", ["是", "否"] * 20),
    ],
    "classified pairs": [
        judged("label", ["entailment", "neutral"] * 20),
        judged("gold", ["Entailment", "neutral", "contradiction", "-"] * 10),
    ],
    "scored pairs": [
        judged("human_score", [0.5, 3] * 20),
        judged("relatedness", ["0.0", "4.8", "5.0"] * 13),
        judged("cos", [-0.25, 0.5, 1.0] * 13),
        judged("grade", [0, 1, 2, 3] * 10),
        judged("rating", ["0", "5"] * 20),
        judged("quality", [55.5, 80.25] * 20),
        judged("pair_type", ["positive", "negative"] * 20),
    ],
}


@pytest.mark.parametrize(
    ("name", "variant"), [(name, n) for name, each in DAMAGED.items() for n in range(len(each))]
)
def test_damaged_rows_are_found(name, variant):
    assert name in found(DAMAGED[name][variant])


def test_every_detector_has_damaged_rows():
    assert [detector.name for detector in ROW_DETECTORS] == list(DAMAGED)


def test_every_detector_is_documented():
    page = (Path(__file__).parents[5] / "docs" / "tables.md").read_text(encoding="utf-8")
    rows = {
        name.strip(): line
        for line in page.splitlines()
        for name in line[2:].split("|")[0].split(",")
    }
    for detector in ROW_DETECTORS:
        assert f"| {detector.severity.value} |" in rows[detector.name]


def test_numbers_are_words_where_their_column_is_named():
    values = DAMAGED["numbered words"][0]
    assert found(dataclasses.replace(values, is_words_column_given=True)) == []


def test_messages_say_what_was_seen_and_what_to_do():
    (listed,) = judge(with_labels([*LABELS, '["a", "b"]']), ROW_DETECTORS)
    assert listed.text == (
        '1 of 41 labels are lists such as \'["a", "b"]\', and a row has one label here; fine-tune '
        "for any number of labels of a text, or keep rows with one label, without the marks of a "
        "list"
    )
    (numbers,) = judge(DAMAGED["numbered words"][0], ROW_DETECTORS)
    assert "the words of 40 of 40 sentences are numbers that count (1, 2, 3, …)" in numbers.text
    assert "--tokens-column 2" in numbers.text
    (long,) = judge(DAMAGED["long sentences"][0], ROW_DETECTORS)
    assert long.text.startswith("1 of 1 sentence have more than 150 words, the longest ")
    (units,) = judge(DAMAGED["UTF-16 offsets"][0], ROW_DETECTORS)
    assert "(' ann')" not in units.text and "UTF-16" in units.text and "utf-16-le" in units.text
    (pairs,) = judge(DAMAGED["judged pairs"][0], ROW_DETECTORS)
    assert (
        "--loss cosent --text-column anchor --text-pair-column positive --label-column relevant"
        in pairs.text
    )


def test_errors_end_the_job_and_others_are_shown():
    def of(severity, **values):
        return Detector(
            name="odd",
            severity=severity,
            message="{n} odd",
            remedy="mend {n}",
            find=lambda _: {"n": 3},
            **values,
        )

    shown = io.StringIO()
    values = SOUND["texts"]
    several = [of(Severity.WARNING), of(Severity.NOTE)]
    report("a.csv", judge(values, several), Console(shown))
    assert shown.getvalue() == "warning: a.csv: 3 odd; mend 3\nnote: a.csv: 3 odd; mend 3\n"
    with pytest.raises(InputError, match=r"a\.csv: 3 odd; mend 3"):
        report("a.csv", judge(values, [of(Severity.ERROR)]), Console(shown))
    with pytest.raises(UsageError):
        report("a.csv", judge(values, [of(Severity.ERROR, error=UsageError)]), Console(shown))


def test_first_values_fit_a_line():
    values = rows(
        texts={"text": ["a" * 100, "b\nc"]}, gold={"label": np.array([0.5, 1])}, labels=()
    )
    values = dataclasses.replace(values, lines=[2, 3])
    first, second = first_values(values)
    assert first == f"  text: '{'a' * 59}…'  label: 0.5"
    assert second == r"  text: 'b\nc'  label: 1.0"
    assert list(first_values(rows(shown=[{"words": "anna/B-PER"}]))) == ["  words: 'anna/B-PER'"]


def test_rows_are_spread_over_the_file():
    assert spread(0) == [] and spread(3) == [0, 1, 2] and spread(1) == [0]
    assert spread(101, 11) == list(range(0, 101, 10))
