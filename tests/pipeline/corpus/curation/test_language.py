"""Languages are those that py3langid names, with its probabilities."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from bert_tf.config.sections import PreprocessConfig
from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.registry import rules_of
from pipeline.corpus.documents import DocumentRules, clean_raw, make_block
from pipeline.corpus.raw_block import RawBlock, Texts

langid = pytest.importorskip("py3langid.langid")

ENGLISH = "All human beings are born free and equal in dignity and rights, and they have reason."
GERMAN = "Alle Menschen sind frei und gleich an Würde und Rechten geboren und mit Vernunft begabt."
MORE_ENGLISH = (
    "Everyone has the right to life, liberty and security of person.",
    "No one shall be subjected to torture or to cruel, inhuman or degrading treatment.",
    "Everyone has the right to recognition everywhere as a person before the law.",
    "The will of the people shall be the basis of the authority of government.",
    "Education shall be directed to the full development of the human personality.",
    "They are entitled to equal pay for equal work, and to form and to join trade unions.",
)
TEXTS = [
    ENGLISH,
    GERMAN,
    f"{GERMAN}\n\n{ENGLISH}\n{ENGLISH}",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "人人生而自由,在尊严和权利上一律平等。",
    "すべての人間は、生まれながらにして自由である。",
    "Все люди рождаются свободными и равными в своем достоинстве.",
    "ALL HUMAN BEINGS ARE BORN FREE\nAND EQUAL",  # the package lowers these
    "ÜBER ALLEN GIPFELN IST RUH",
    "ǅ ABC",  # a title-case letter is no capital
    "12 34",
    "x",
    " ".join(MORE_ENGLISH * 60),  # n-grams that occur hundreds of times
    "\n".join([GERMAN, *MORE_ENGLISH]),
    "cafe\u0301 de\u0301ja\u0300 vu",  # not composed
]


def raw_of(texts):
    rows = Texts.of_rows([text.encode() for text in texts], [*range(1, len(texts) + 1)])
    return RawBlock(source="x", index=0, texts=rows)


def measured(texts) -> MeasuredText:
    return clean_raw(raw_of(texts), DocumentRules()).measured[0]


OTHER_CODES = [("nb", "no"), ("EN", "en"), ("fil", "tl"), ("iw", "he"), ("english", "en")]


@pytest.fixture(scope="module")
def package():
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


@pytest.mark.slow  # loads the model twice
def test_languages_are_those_of_the_package(package):
    found = measured(TEXTS).document_languages
    theirs = [package.classify(text) for text in TEXTS]
    assert found.codes.tolist() == [code for code, _ in theirs]
    np.testing.assert_allclose(found.probabilities, [each for _, each in theirs], atol=2e-3)


@pytest.mark.slow  # many texts
@given(st.lists(st.text(alphabet="aeinrst hdлоеи的是ñ\n.", min_size=1, max_size=300), max_size=5))
def test_so_are_those_of_any_text(package, texts):
    texts = [re.sub(r"[ \n]+", lambda gap: gap[0][0], text).strip() or "a" for text in texts]
    found = measured(texts).document_languages
    for text, code, probability in zip(texts, found.codes, found.probabilities, strict=True):
        ranked = dict(package.rank(text))
        assert ranked[code] == pytest.approx(probability, abs=2e-3)
        assert max(ranked.values()) == pytest.approx(probability, abs=2e-3)


def block_of(texts, *languages, **values):
    config = PreprocessConfig(input=("x",), languages=languages, sentence_splitter="none", **values)
    return make_block(raw_of(texts), DocumentRules.from_config(config))


@pytest.mark.slow  # loads the model
def test_documents_and_long_lines_of_other_languages_go():
    long = " ".join([GERMAN] * 5)
    texts = [ENGLISH, GERMAN, "\n".join([*MORE_ENGLISH, long, GERMAN]), "12 34"]
    block = block_of(texts, "en")
    assert block.evidence.dropped == {"other_language": 1, "unknown_language": 1}
    assert block.evidence.dropped_lines == {"other_language_line": 1}
    assert block.sentences.to_pylist() == [ENGLISH, *MORE_ENGLISH, GERMAN]
    assert block_of(texts, "en,de").evidence.dropped == {"unknown_language": 1}
    assert block_of(texts, "en", "unknown").evidence.dropped == {"other_language": 1}
    assert block_of(texts, "en,de", language_threshold=1.0).num_documents == 0


@pytest.mark.slow  # loads the model
def test_stop_words_are_asked_for_in_english_only():
    rules = {"curation": ("gopher_min_stop_words=8",)}
    assert block_of([ENGLISH, GERMAN], "en,de", **rules).evidence.dropped == {
        "gopher_min_stop_words": 1
    }
    assert block_of([GERMAN], "de", **rules).num_documents == 1


@pytest.mark.slow  # loads the model
def test_rules_see_the_paragraphs_that_they_see_without_languages():
    rules = {"curation": ("gopher_max_repeated_paragraphs",)}
    texts = ["\n\n".join([ENGLISH] * 3), "\n\n".join(MORE_ENGLISH)]
    for languages in ((), ("en",)):
        block = block_of(texts, *languages, **rules)
        assert block.evidence.dropped == {"gopher_max_repeated_paragraphs": 1}


@pytest.mark.slow  # loads the model
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("unknow", "no language 'unknow'; did you mean 'unknown'?"),
        ("", "no language ''; known: "),
        *((code, f"no language {code!r}; did you mean {usual!r}?") for code, usual in OTHER_CODES),
    ],
)
def test_unknown_codes_are_refused(code, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        rules_of(PreprocessConfig(input=("x",), languages=(code,)))
