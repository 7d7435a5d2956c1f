"""Sentences of documents and their places in the untouched text."""

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.corpus.sentences import split_sentences
from pipeline.embedding.summarizer import find_sentences

RULES = split_sentences


def sentences_of(texts, splitter=RULES):
    found = find_sentences(texts, splitter)
    assert len(found.counts) == len(texts)
    places = iter(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    return [
        [text[slice(*next(places))] for _ in range(count)]
        for text, count in zip(texts, found.counts.tolist(), strict=True)
    ]


def test_places_are_those_of_the_untouched_text():
    texts = [
        "  Łódź is  a city.\tIt has\u00a0trams!  ",
        "\ufeffHe said “No.” Then he left. 😀 laughs.\r\n\r\nA heading\nThe end.",
        "今天下雨。我在家。",
        " \x00 ",
        "One.",
    ]
    assert sentences_of(texts) == [
        ["Łódź is  a city.", "It has\u00a0trams!"],
        ["He said “No.”", "Then he left.", "😀 laughs.", "A heading", "The end."],
        ["今天下雨。", "我在家。"],
        [],
        ["One."],
    ]


def test_hard_wrapped_lines_are_joined_and_others_are_not():
    wrapped = (
        "This text was wrapped at forty or so\ncharacters, as mail is. Its sentences go on\n"
        "over the ends of lines, and nobody who\nreads it takes them for sentences of their\nown."
    )
    assert sentences_of([wrapped]) == [
        [wrapped[:60].rstrip(" I").rstrip(), wrapped[wrapped.index("Its") :]]
    ]
    assert sentences_of(["Milk\nEggs\n\n\nBread and butter. Tea."]) == [
        ["Milk", "Eggs", "Bread and butter.", "Tea."]
    ]


def test_lines_are_sentences_without_a_splitter():
    assert sentences_of(["One. Two.\n\n Three \r\nFour"], None) == [["One. Two.", "Three", "Four"]]


PIECES = st.sampled_from(
    [*"ab.!? \n\t\r,”。é😀", "Mr. ", "A", "\u2028", "\x00", "\ufeff", "word ", ". ", "\n\n", "1.5 "]
)


def visible(text):
    return "".join(text.replace("\x00", " ").replace("\ufeff", "").split())


@given(st.lists(st.lists(PIECES, max_size=30).map("".join), min_size=1, max_size=5))
@example(["\r\n", "a"])
@example(["", "", "a. B"])
def test_all_that_is_written_is_in_one_sentence_in_order(texts):
    for splitter in (RULES, None):
        for text, sentences in zip(texts, sentences_of(texts, splitter), strict=True):
            assert all(sentence == sentence.strip() for sentence in sentences)
            assert visible("".join(sentences)) == visible(text)


@given(st.lists(st.lists(PIECES, max_size=30).map("".join), min_size=2, max_size=5))
def test_documents_do_not_depend_on_each_other(texts):
    assert sentences_of(texts) == [sentences_of([text])[0] for text in texts]
