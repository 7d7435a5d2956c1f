"""`inspect --html` and `report`: pages of artifacts, which replace only pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.tables.dialect import name_without_compression
from bert_tf.data.text.casing import Lowercase
from pipeline.beam.globs import FORMAT_OF_ENDING
from pipeline.beam.own_files import is_vocabulary
from pipeline.outputs.manifest import manifest_path, side_paths
from pipeline.outputs.place import OutputPlace, check_place
from pipeline.report.document import GENERATOR
from pipeline.report.page import artifact_page

_HEAD_CHARACTERS = 1000


def write_page(path: str, html: str, *, samples: int, overwrite: bool) -> None:
    """Write the page `html` of an artifact; without `overwrite`, it only replaces a page."""
    _check_page_place(html, [path], flag="--html", overwrite=overwrite)
    write_text_atomically(html, artifact_page(path, samples=samples))


def is_corpus(path: str, *, has_format: bool = False) -> bool:
    """Whether a path or glob names text that no command made; `has_format` permits any ending."""
    if not Path(path).exists():
        return any(character in path for character in "*?[")
    name = name_without_compression(path)
    is_text = Path(path).is_file() and (has_format or name.endswith(tuple(FORMAT_OF_ENDING)))
    return is_text and not manifest_path(path).exists() and not is_vocabulary(Path(path))


def write_corpus_page(
    reading: PreprocessConfig,
    html: str,
    *,
    vocab: str | None,
    lowercase: Lowercase | None,
    samples: int,
    overwrite: bool,
) -> None:
    """Write the page of the corpus in `reading`, which is not preprocessed yet.

    Reports words unknown to `vocab`, whose casing is `lowercase` (None infers it), and `samples`
    examples of what each rule drops. Raises UsageError for no corpus, InputError for damaged files.
    """
    from pipeline.report.corpus.page import corpus_at  # readers, with Beam
    from pipeline.report.page import corpus_page

    reading.check_installed()
    (path,) = reading.input
    corpus = corpus_at(reading, vocab=vocab, lowercase=lowercase)
    files = [file.path for file in corpus.files]
    _check_page_place(html, files, flag="--html", overwrite=overwrite)
    write_text_atomically(html, corpus_page(corpus, path, samples=samples))


def write_runs_page(
    runs: Sequence[str],
    output: str,
    *,
    texts: Sequence[str] = (),
    pairs: Sequence[tuple[str, str]] = (),
    overwrite: bool,
) -> None:
    """Write the page of the runs in these folders; raise as `read_runs` and `runs_page`.

    The model of every run reads each of the texts and pairs, and the page shows how.
    """
    # TensorFlow, which pages of others need not load
    from pipeline.report.runs import read_runs
    from pipeline.report.runs_page import runs_page

    found = read_runs(runs)
    _check_page_place(output, runs, flag="--output", overwrite=overwrite)
    write_text_atomically(output, runs_page(found, texts, pairs))


def _check_page_place(page: str, artifacts: Sequence[str], *, flag: str, overwrite: bool) -> None:
    beside = [str(side) for path in artifacts for side in side_paths(path) if side.exists()]
    place = OutputPlace(output=page, is_directory=False)
    check_place(place, [*artifacts, *beside], flag=flag)
    if place.path.exists() and not overwrite and not _is_page(place.path):
        raise UsageError(
            f"{flag} {page}: exists and is not a page of this command; choose another path or "
            "replace it with --overwrite"
        )


def _is_page(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return GENERATOR in stream.read(_HEAD_CHARACTERS)
