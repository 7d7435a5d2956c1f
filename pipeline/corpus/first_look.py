"""A look at the plain text of a corpus before it is read: which layout each of its files has."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bert_tf.config.sections.data import CorpusSection
from bert_tf.data.tables.file_names import compression_of
from pipeline.beam.files import FileInfo
from pipeline.corpus.readers.formats import format_of, make_reader
from pipeline.corpus.readers.layouts import Sketch, add_up
from pipeline.corpus.readers.text import HEAD_BYTES, TextReader

# Bytes of English text in a stored byte.
TEXT_PER_STORED_BYTE = {None: 1.0, "gzip": 3.0, "bz2": 4.0, "zstd": 3.5}
_MOST_FILES = 64
_MOST_BYTES = 16_000_000
_LEAST_HEAD_BYTES = 1 << 16
# A file with as many lines shows its layout; of smaller ones it takes several.
_TELLING_LINES = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextLook:
    """The layouts of a corpus' files of plain text, which follow from its files and the config.

    Attributes:
        layouts: of every such file, by path: values of `CorpusSection.text_layout`.
        sketches: of the files that were looked at, by path.
        heads: their beginnings.
        is_whole: whether that is all of the text.
    """

    layouts: Mapping[str, str]
    sketches: Mapping[str, Sketch]
    heads: Sequence[bytes]
    is_whole: bool

    def descriptions(self) -> Counter[str]:
        """What was understood, and of how many files, the most frequent first."""
        found: Counter[str] = Counter()
        files = Counter(self.layouts.values())
        for layout, number in files.most_common():
            alike = add_up(
                sketch for path, sketch in self.sketches.items() if self.layouts[path] == layout
            )
            found[alike.description(layout)] += number
        return found

    def documents(self) -> float:
        """How many documents the text has, about."""
        found = 0.0
        for layout in set(self.layouts.values()):
            of_layout = [path for path, name in self.layouts.items() if name == layout]
            looked_at = [self.sketches[path] for path in of_layout if path in self.sketches]
            alike = add_up(looked_at)
            whole = alike.file_bytes / max(alike.text_bytes, 1)
            if alike.documents(layout) == alike.files:  # a document per file
                whole = 1.0
            found += alike.documents(layout) * whole * len(of_layout) / max(len(looked_at), 1)
        return found


def look_at_text(config: CorpusSection, files: Sequence[FileInfo]) -> TextLook:
    """Looks at the beginnings of files spread over the corpus, of all if their layouts differ.

    Files with many lines are judged by themselves, the others together.

    Raises:
        UsageError, InputError: as the readers.
    """
    texts = [file for file in files if format_of(file.path, config) == "text"]
    places = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _MOST_FILES)).round())
    chosen = [texts[int(place)] for place in places]
    sketches, heads = _look_at_files(config, chosen)
    if config.text_layout != "auto":
        layouts = dict.fromkeys((file.path for file in texts), config.text_layout)
    else:
        layouts = _decide(sketches, len(texts))
        if len(texts) > len(chosen):
            if len(set(layouts.values())) > 1:
                sketches, _ = _look_at_files(config, texts)
                layouts = _decide(sketches, len(texts))
            else:
                (layout,) = set(layouts.values())
                layouts = dict.fromkeys((file.path for file in texts), layout)
    is_whole = len(sketches) == len(texts) and all(
        sketch.text_bytes == sketch.file_bytes for sketch in sketches.values()
    )
    return TextLook(layouts=layouts, sketches=sketches, heads=heads, is_whole=is_whole)


def _look_at_files(
    config: CorpusSection, files: Sequence[FileInfo]
) -> tuple[dict[str, Sketch], list[bytes]]:
    share = _MOST_BYTES // max(len(files), 1)
    head_bytes = min(max(share, _LEAST_HEAD_BYTES), HEAD_BYTES)
    sketches, heads = {}, []
    for file in files:
        reader = make_reader(file.path, config)
        assert isinstance(reader, TextReader)
        head, sketch = reader.look(file.path, head_bytes)
        if len(head) == head_bytes:
            whole = int(file.bytes * TEXT_PER_STORED_BYTE[compression_of(file.path)])
            sketch = dataclasses.replace(sketch, file_bytes=max(sketch.text_bytes + 1, whole))
        sketches[file.path] = sketch
        heads.append(head)
    return sketches, heads


def _decide(sketches: Mapping[str, Sketch], num_files: int) -> dict[str, str]:
    """The layout of each file."""
    small = [sketch for sketch in sketches.values() if sketch.lines < _TELLING_LINES]
    together = add_up(small)
    if together.lines < _TELLING_LINES:
        together = add_up(sketches.values())
    short = add_up(sketch for sketch in small if not sketch.is_full)
    full = add_up(sketch for sketch in small if sketch.is_full)
    # Files of sentences beside articles are more than short paragraphs of theirs.
    is_mixed = full.files > 0 and short.lines >= _TELLING_LINES // 4 and short.is_surely_sentences
    usual = (full if is_mixed else together).layout(num_files)

    def layout_of(sketch: Sketch) -> str:
        if sketch.lines >= _TELLING_LINES or sketch.wiki_files or sketch.marked_files:
            return sketch.layout(num_files)
        return "sentences" if is_mixed and not sketch.is_full else usual

    return {path: layout_of(sketch) for path, sketch in sketches.items()}
