"""Sound corpora raise no alarm; the same text, as people's exports damage it, is found."""

import base64
import json
import textwrap
from pathlib import Path

import pytest

from bert_tf.config.sections.data import VocabConfig
from pipeline.beam.files import match_files
from pipeline.report.corpus.judged import CORPUS_DETECTORS
from pipeline.report.corpus.language import understand_corpus

SENTENCES = [
    "Anna met Bruno in Oslo on Monday.",
    "The train to Lima left early: nobody had told them why.",
    '"It was warm," said Clara, "and the river was low."',
    "Dr. Farid walked home with Elena, who was tired (see p. 3).",
    "In 1997 the bridge was closed for three weeks; the ferry went twice a day.",
]
DOCUMENTS = [
    [SENTENCES[(number + place) % 5] for place in range(2 + number % 7)] for number in range(300)
]
THAI = "หนังสือทุกวันเดินแม่น้ำโรงเรียนตลาดจะพูดหนังสือท่าเรือฝนตก"
GEORGIAN = ["ის წავიდა სახლში", "არავინ უპასუხა", "წვიმდა სამი დღე", "სად მიდიხარ"]


def rows(texts):
    return {"a.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in texts)}


def prose(document):
    return " ".join(document)


def without_marks(document):
    return prose(document).translate(str.maketrans("", "", '.,:;()"?'))


SOUND = {
    "rows": rows(map(prose, DOCUMENTS)),
    "sentences": {"a.txt": "\n\n".join(map("\n".join, DOCUMENTS)) + "\n"},
    "a book": {"a.txt": "\n\n".join(map(prose, DOCUMENTS)) + "\n"},
    "files": {f"{number:03}.txt": prose(each) for number, each in enumerate(DOCUMENTS)},
    "a long sentence in one of the files": {
        "000.txt": without_marks(DOCUMENTS[6] * 8),
        **{f"{number:03}.txt": prose(each) for number, each in enumerate(DOCUMENTS[:40], 1)},
    },
    "quotes in Thai": rows([*map(prose, DOCUMENTS), THAI * 3, THAI * 4]),
    "short Georgian": rows([f"{text}." for text in GEORGIAN * 9]),
    "a play": rows(["HAMLET: To be, or not.", "OPHELIA: Good my lord, how is your lordship?"] * 50),
    "a form among many": rows([*map(prose, DOCUMENTS), "Name: Ada Born: 1815 Town: London"]),
}


@pytest.fixture
def findings(tmp_path):
    """Write files and return the findings of detectors on them as a corpus."""

    def find(files, **config):
        for name, content in files.items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        paths = tuple(str(tmp_path / name) for name in files)
        corpus = VocabConfig(input=paths, output="v", **config)
        return understand_corpus(corpus, match_files(paths))

    return find


@pytest.mark.parametrize("name", SOUND)
def test_sound_text_raises_no_alarm(findings, name):
    assert findings(SOUND[name]).findings == {}


def lines_of_blocks(size):
    """Paragraphs in blocks below headings: blank lines are taken for paragraphs'."""
    many = [
        [" ".join(document[:2])] * (1 + (number % size > 0))
        for number, document in enumerate(DOCUMENTS)
    ]
    return "\n\n".join(f"Part {lines[0][:9]}\n\n" + "\n".join(lines) for lines in many) + "\n"


def wrapped(document) -> str:
    return textwrap.fill(prose(document), 60)


DAMAGED = {
    "long sentences": [
        rows(without_marks(DOCUMENTS[6] * 8) for _ in range(20)),
        rows([without_marks(DOCUMENTS[6] * 8)]),
        rows([*map(prose, DOCUMENTS[:40]), *(without_marks(DOCUMENTS[6] * 9) for _ in range(9))]),
    ],
    "keys in sentences": [
        rows(f"Name: Ambrose{n} Born: 18{n} Town: Lima Trade: miller" for n in range(10, 40)),
        {
            f"{n}.txt": f"From: a{n}@b.org To: c@d.org Subject: Lima Date: Mon\n\n{prose(document)}"
            for n, document in enumerate(DOCUMENTS[:30])
        },
        rows(f"Title: x{n} Author: y Date: z {prose(each)}" for n, each in enumerate(DOCUMENTS)),
        {
            f"{n}.txt": f"Von: Ulrich {n}\nAn: Ann\nBetreff: Lima {n}\n\n{wrapped(document)}"
            for n, document in enumerate(DOCUMENTS[:30])
        },
    ],
    "blocks in a document": [
        {"a.txt": lines_of_blocks(2)},
        {"a.txt": lines_of_blocks(3), "b.txt": lines_of_blocks(2)},
        {name: "\n\n".join(map(prose, DOCUMENTS)) + "\n" for name in ("a.txt", "b.txt")},
    ],
    "unsplit script": [
        rows(THAI * (2 + n % 4) for n in range(20)),
        rows(without_marks(DOCUMENTS[6]) for _ in range(20)),
        rows([*map(prose, DOCUMENTS[:20]), *[THAI * 3] * 30]),
    ],
    "base64": [
        rows(base64.b64encode(prose(each).encode()).decode() for each in DOCUMENTS[:20]),
        rows(
            base64.b64encode(prose(each).encode()).decode() if n % 20 == 0 else prose(each)
            for n, each in enumerate(DOCUMENTS)
        ),
        rows(prose(each).encode().hex() for each in DOCUMENTS[:20]),
    ],
}


@pytest.mark.parametrize(
    ("name", "variant"), [(name, n) for name, each in DAMAGED.items() for n in range(len(each))]
)
def test_damaged_text_is_found(findings, name, variant):
    found = findings(DAMAGED[name][variant])
    assert name in found.findings
    assert found.findings[name] in found.warnings


def test_every_detector_has_damaged_text():
    assert [each.name for each in CORPUS_DETECTORS] == list(DAMAGED)


def test_every_detector_is_documented():
    page = (Path(__file__).parents[4] / "docs" / "corpus.md").read_text(encoding="utf-8")
    assert all(f"\n| {each.name} |" in page for each in CORPUS_DETECTORS)


def test_messages_name_files_and_keys(findings):
    found = findings(DAMAGED["blocks in a document"][1]).findings["blocks in a document"]
    assert "a.txt (and 1 other file): is read as one document, though blank lines separate" in found
    assert "--set vocab.text_layout=paragraph_lines" in found
    found = findings(DAMAGED["keys in sentences"][1]).findings["keys in sentences"]
    assert found.startswith("30 files: ") and "such as From:, To:, Subject: as in" in found


def test_first_sentences_are_shown(findings):
    (line,) = findings(SOUND["rows"]).first
    assert line == (
        "  first sentences: 'Anna met Bruno in Oslo on Monday.', 'The train to Lima left early: "
        "nobody ha…', 'The train to Lima left early: nobody ha…'"
    )
    assert findings(SOUND["a book"]).first == [line]
    assert len(findings({"b.txt": "x\n"}).first) == 1


def test_sentences_of_lines_are_not_split_on_purpose(findings):
    assert (
        "unsplit script"
        not in findings(DAMAGED["unsplit script"][0], sentence_splitter="none").findings
    )
