"""The layouts of a corpus' text files, from sketches of their beginnings.

Large files are judged by themselves, and small ones together, since ten lines prove nothing. But
small files of sentences beside articles keep their own layout.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from pipeline.corpus.layout.sketch import Sketch

# A file with so many lines shows its layout by itself; smaller ones are judged together.
_TELLING_LINES = 200
# Small files of sentences are a kind of their own beside articles if they have so many lines …
_FEWEST_SHORT_LINES = _TELLING_LINES // 4
# … and at most this share of their blocks is a single line.
_SINGLE_GROUPS = 1 / 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextLook:
    """Layouts of a corpus' plain text files, which follow from its files and the config.

    Attributes:
        layouts: values of `CorpusSection.text_layout`, by path.
        sketches: of the files that were looked at, by path.
        heads: the beginnings of these files, by path.
        is_whole: whether the beginnings are all of the text.
    """

    layouts: Mapping[str, str]
    sketches: Mapping[str, Sketch]
    heads: Mapping[str, bytes]
    is_whole: bool

    def descriptions(self) -> Counter[str]:
        """Return the layouts in words, with their numbers of files, the most frequent first."""
        numbers: Counter[str] = Counter()
        files = Counter(self.layouts.values())
        for layout, number in files.most_common():
            together, _ = self._of_layout(layout)
            numbers[together.description(layout)] += number
        return numbers

    def documents(self) -> float:
        """Estimate the number of documents from those that the sketches count."""
        estimate = 0.0
        for layout, num_files in Counter(self.layouts.values()).items():
            together, num_sketches = self._of_layout(layout)
            documents: float = together.documents(layout)
            if documents != together.files:  # else a document per file
                documents *= together.file_bytes / max(together.text_bytes, 1)
            estimate += documents * num_files / max(num_sketches, 1)
        return estimate

    def _of_layout(self, layout: str) -> tuple[Sketch, int]:
        """Return the sum of the sketches of a layout, and their number."""
        sketches = [
            sketch for path, sketch in self.sketches.items() if self.layouts[path] == layout
        ]
        return sum(sketches, Sketch()), len(sketches)


def decide_layouts(sketches: Mapping[str, Sketch], num_files: int) -> dict[str, str]:
    """Choose the layout of each sketched file, in a corpus of `num_files` text files."""
    small = [sketch for sketch in sketches.values() if sketch.lines < _TELLING_LINES]
    together = sum(small, Sketch())
    if together.lines < _TELLING_LINES:
        together = sum(sketches.values(), Sketch())
    short = sum((sketch for sketch in small if not sketch.is_full), Sketch())
    full = sum((sketch for sketch in small if sketch.is_full), Sketch())
    # Enough lines in blocks of several: these are files of sentences, not articles with short
    # paragraphs.
    is_mixed = full.files > 0 and short.lines >= _FEWEST_SHORT_LINES
    has_blocks = short.single_groups <= _SINGLE_GROUPS * short.groups
    is_mixed &= has_blocks and short.layout(short.files) == "sentences"
    usual = (full if is_mixed else together).layout(num_files)

    def layout_of(sketch: Sketch) -> str:
        if sketch.lines >= _TELLING_LINES or sketch.wiki_files or sketch.marked_files:
            return sketch.layout(num_files)
        return "sentences" if is_mixed and not sketch.is_full else usual

    return {path: layout_of(sketch) for path, sketch in sketches.items()}
