"""A few megabytes of English that every installation has: the documentation inside its packages.

The demo runs without a network, and a corpus in the repository would be large. Docstrings are
prose, once examples, tables and markup are removed.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from bert_tf.base.errors import InputError
from bert_tf.base.files import replacing_directory
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.raw_block import RawBlock, Texts

# Roles of reStructuredText, such as :func:`~os.walk`; the name stays.
_ROLE = re.compile(r":[a-z:+]+:`~?([^`<]+?)(?:\s*<[^>]*>)?`")
_QUOTED_CODE = re.compile(r"``?([^`]+)``?_{0,2}")
_EMPHASIS = re.compile(r"(?<!\w)\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?!\w)")
_NOTE_MARK = re.compile(r"\s*\[\w{1,12}\]_?")
_LIST_MARK = re.compile(r"^(?:[-*+•]|\d{1,2}[.)]|\(\d{1,2}\)|\[\d+\])\s+")
_RULE = re.compile(r"^\s*([=\-~*^#+|_\"'`])[\s\1|+]*$")
# Rare in prose and frequent in code: brackets, operators, names with dots or underscores.
_CODE = re.compile(r"[{}<>=\\|@$]|\w\(|_\w|\w_|://|--|::|\.\.\.|\w\.\w+\.\w")
_WORD = re.compile(r"[A-Za-z]+(?:['\u2019-][A-Za-z]+)*")
# Shorter sentences are mostly headings and captions of parameters.
_SHORTEST_SENTENCE_WORDS = 5
_LEAST_WORD_FRACTION = 0.75  # of the characters of a sentence: words, each with a blank
_PACKAGES = ("numpy", "apache_beam", "keras")
# Tests, tables and generated code have few sentences, and many repeated ones.
_LEFT_OUT_FOLDERS = frozenset(
    {
        "site-packages", "dist-packages", "__pycache__", "test", "tests", "testing", "idlelib",
        "lib2to3", "turtledemo", "encodings", "_pyrepl", "f2py", "portability", "runners",
        "applications", "datasets",
    }
)  # fmt: skip
_FEWEST_SENTENCES = 1000


def write_corpus(directory: Path, *, data: Path) -> dict[str, int]:
    """Write `directory/*.txt`: one sentence per line, a blank line between documents.

    Sources are Python's language reference, docstrings of the standard library and of required
    packages (never imported), and the texts the demo later fine-tunes on, without labels. Each
    sentence is kept once. An installation always gives the same files; the folder appears
    atomically.

    Args:
        directory: to write.
        data: the demo's data files.

    Returns:
        The number of sentences by file name.

    Raises:
        InputError: the installation has no documentation.
    """
    sources: dict[str, Iterable[str]] = {
        "python-reference.txt": _language_reference(),
        "python-library.txt": _docstrings_below(Path(sysconfig.get_paths()["stdlib"])),
        **{
            f"{name}.txt": _docstrings_below(Path(sysconfig.get_paths()["purelib"]) / name)
            for name in _PACKAGES
        },
        "fine-tuning-texts.txt": _fine_tuning_texts(data),
    }
    seen: set[str] = set()
    counts = dict.fromkeys(sources, 0)
    with replacing_directory(directory) as aside:
        for name, texts in sources.items():
            documents = []
            # Classes inherit docstrings, and modules copy them, so sentences repeat.
            for text in texts:
                distinct = dict.fromkeys(split_into_sentences(text))
                new = [sentence for sentence in distinct if sentence not in seen]
                seen.update(new)
                counts[name] += len(new)
                if new:
                    documents.append("\n".join(new))
            (aside / name).write_text("\n\n".join(documents) + "\n", encoding="utf-8")
        if sum(counts.values()) < _FEWEST_SENTENCES:
            raise InputError(
                f"only {sum(counts.values())} sentences of documentation found in "
                f"{sysconfig.get_paths()['stdlib']}; the demo needs a Python installed with its "
                "sources and docstrings"
            )
    return counts


def read_docstrings(source: bytes) -> list[str]:
    """Return all docstrings of a Python source in order; none if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's sources
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    by_line: list[tuple[int, str]] = []
    to_visit: list[ast.AST] = [tree]
    while to_visit:
        node = to_visit.pop()
        if isinstance(node, documented):
            text = ast.get_docstring(node)
            if text:
                by_line.append((getattr(node, "lineno", 0), text))
        # Only statements: expressions are far more, and have no docstrings.
        to_visit += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return [text for _, text in sorted(by_line)]


def _language_reference() -> Iterator[str]:
    """Yield the topics of `help()`, which are chapters of the language reference."""
    path = Path(sysconfig.get_paths()["stdlib"]) / "pydoc_data" / "topics.py"
    if not path.is_file():
        return
    for statement in ast.parse(path.read_bytes()).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            # Read, not imported: the corpus depends only on the file.
            topics: dict[str, str] = ast.literal_eval(statement.value)
            yield from (topics[name] for name in sorted(topics))


def _docstrings_below(folder: Path) -> Iterator[str]:
    """Yield the docstrings of each module, one document per file."""
    for path in sorted(folder.rglob("*.py")):
        if path.name.endswith("_test.py"):
            continue
        if not _LEFT_OUT_FOLDERS.intersection(path.relative_to(folder).parts):
            yield "\n\n".join(read_docstrings(path.read_bytes()))


def _fine_tuning_texts(data: Path) -> Iterator[str]:
    """Yield the texts that the demo fine-tunes on, so that the vocabulary has their words."""
    with (data / "complaints-train.csv").open(encoding="utf-8", newline="") as stream:
        yield from (row["text"] for row in csv.DictReader(stream))
    document = json.loads((data / "cities-train.json").read_text(encoding="utf-8"))
    for article in document["data"]:
        yield "\n\n".join(paragraph["context"] for paragraph in article["paragraphs"])


def split_into_sentences(text: str) -> list[str]:
    """Return prose sentences without markup, examples, tables, headings and code.

    >>> split_into_sentences("Sorts the *items* in place. Try this::\\n\\n    sort([3, 1])\\n")
    ['Sorts the items in place.']
    """
    bare = "\n\n".join(map(remove_markup, prose_paragraphs(text)))
    document = Texts.of_rows([bare.encode(errors="replace")], [1])
    block = make_block(RawBlock(source="", index=0, texts=document), DocumentRules())
    return list(filter(reads_as_prose, block.sentences.to_pylist()))


def prose_paragraphs(text: str) -> list[str]:
    """Join runs of lines of equal indentation; drop literal blocks, headings, tables.

    Args:
        text: a docstring in reStructuredText, Markdown or plain text.

    Returns:
        Each paragraph in a line, with its markup.
    """
    paragraphs: list[str] = []
    lines: list[str] = []
    indentation = 0
    literal_below: int | None = None
    in_example = False

    def close() -> None:
        if lines:
            paragraphs.append(" ".join(lines))
            lines.clear()

    for raw in text.expandtabs().splitlines():
        line = raw.strip()
        if not line:
            close()
            in_example = False
            continue
        depth = len(raw) - len(raw.lstrip())
        if literal_below is not None and depth > literal_below:
            continue
        literal_below = None
        if _RULE.match(line):
            # A line that is underlined is a heading.
            if len(lines) == 1:
                lines.clear()
            close()
            continue
        # The output of an example continues to a blank line.
        if line.startswith((">>>", "```", "$ ")) or in_example:
            close()
            in_example = True
            continue
        if line.startswith(".. "):
            close()
            literal_below = depth
            continue
        mark = _LIST_MARK.match(line)
        if mark or (lines and depth != indentation):
            close()
        width = mark.end() if mark else 0
        indentation = depth + width
        lines.append(line[width:])
        if line.endswith("::"):
            close()
            literal_below = depth
    close()
    return paragraphs


def remove_markup(paragraph: str) -> str:
    """Reduce roles, code quotes, emphasis and footnotes to the bare words."""
    bare = _ROLE.sub(r"\1", paragraph)
    bare = _QUOTED_CODE.sub(r"\1", bare)
    bare = _EMPHASIS.sub(r"\1", bare)
    return " ".join(_NOTE_MARK.sub("", bare).split())


def reads_as_prose(sentence: str) -> bool:
    """Return whether a line is a whole sentence of words, not code or a heading."""
    if not sentence[0].isupper() or sentence[-1] not in ".!?" or _CODE.search(sentence):
        return False
    words = _WORD.findall(sentence)
    if len(words) < _SHORTEST_SENTENCE_WORDS:
        return False
    characters = sum(map(len, words)) + len(words)
    return characters >= _LEAST_WORD_FRACTION * len(sentence)
