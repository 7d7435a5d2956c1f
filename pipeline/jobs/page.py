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
    """Write the page of an artifact.

    Args:
        path: of the artifact.
        html: file of the page.
        samples: how many examples of it to show.
        overwrite: whether the page may replace anything but a page.

    Raises:
        UsageError: the page cannot be written there.
    """
    _check_page_place(html, [path], flag="--html", overwrite=overwrite)
    write_text_atomically(html, artifact_page(path, samples=samples))


def is_corpus(path: str, *, has_format: bool = False) -> bool:
    """Return whether a path or glob names text that no command made.

    Args:
        path: or glob.
        has_format: whether a format is given, so that any ending is permitted.
    """
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
    """Write the page of a corpus that is not preprocessed yet.

    Args:
        reading: how to read it, with one input.
        html: file of the page.
        vocab: to report words unknown to it; None for none.
        lowercase: casing of the vocabulary; None infers it.
        samples: number of dropped texts to show for each rule.
        overwrite: whether the page may replace anything but a page.

    Raises:
        UsageError: there is no such corpus, or the page cannot be written there.
        InputError: files are damaged.
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
    """Write the page of runs.

    Args:
        runs: their folders.
        output: file of the page.
        texts: single texts that the model of every run reads, as the page shows.
        pairs: pairs of texts, likewise.
        overwrite: whether the page may replace anything but a page.

    Raises:
        UsageError, InputError: see `read_runs` and `runs_page`.
    """
    # TensorFlow, which pages of others need not load
    from pipeline.report.runs import read_runs
    from pipeline.report.runs_page import runs_page

    read = read_runs(runs)
    _check_page_place(output, runs, flag="--output", overwrite=overwrite)
    write_text_atomically(output, runs_page(read, texts, pairs))


def _check_page_place(page: str, artifacts: Sequence[str], *, flag: str, overwrite: bool) -> None:
    """Raise UsageError if the page would replace an artifact, or a file that is no page."""
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
