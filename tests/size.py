"""Prints the source lines and files of each room beside its budget, and the words of the docs.

Exits with 1 when a room is over its budget. A feature pays for itself: it fits its room, or the
same change takes out as much. A room that has shrunk gets a lower budget.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Room -> lines and files. The whole has 64,000 lines, and 2,000 for curation, accelerators and
# faults; that is less than its rooms together.
BUDGETS = {
    "bert_tf/base": (1510, 13),
    "bert_tf/config": (2901, 17),
    "bert_tf/data": (7140, 44),
    "bert_tf/layers, bert_tf/models": (2600, 20),
    "bert_tf/cpu": (2700, 17),
    "bert_tf/weights": (2478, 14),
    "bert_tf/training": (3433, 21),
    "bert_tf/pretraining": (1223, 8),
    "bert_tf/tasks": (10970, 60),
    "bert_tf/serving": (1620, 11),
    "bert_tf/engines, bert_tf/embeddings, bert_tf/export": (2779, 21),
    "pipeline/beam": (2024, 14),
    "pipeline/outputs": (1767, 9),
    "pipeline/corpus": (5866, 35),
    "pipeline/corpus/curation": (1857, 19),
    "pipeline/vocabulary": (1211, 8),
    "pipeline/examples": (1091, 8),
    "pipeline/scoring, pipeline/embedding": (2556, 22),
    "pipeline/jobs": (2966, 21),
    "pipeline/report, pipeline/trying": (4251, 26),
    "pipeline/proposal": (989, 6),
    "pipeline/demo": (520, 5),
    "pipeline/cli": (2047, 26),
    "bert_tf, pipeline": (66000, 430),
}


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def measure(rooms: str) -> tuple[int, int]:
    """Lines and files of rooms, which commas separate, without rooms inside that have a row."""
    own = {ROOT / room for room in rooms.split(", ")}
    others = {ROOT / room for row in BUDGETS for room in row.split(", ")} - own
    within = {room for room in others if own & set(room.parents)} if len(own) == 1 else set()
    files = [file for room in own for file in room.rglob("*.py") if not within & set(file.parents)]
    return sum(map(line_count, files)), len(files)


def main() -> int:
    """Returns the exit status."""
    is_over = False
    print(f"{'room':<44} {'lines':>7} {'budget':>7} {'files':>6} {'budget':>6}")
    for rooms, budget in BUDGETS.items():
        size = measure(rooms)
        excess = [
            f"{size[i] - budget[i]} {unit} over the budget"
            for i, unit in enumerate(("lines", "files"))
            if size[i] > budget[i]
        ]
        is_over |= bool(excess)
        name = rooms if len(rooms) < 44 else re.sub(r"(, )\w+/", r"\1", rooms)
        line = f"{name:<44} {size[0]:>7,} {budget[0]:>7,} {size[1]:>6} {budget[1]:>6}"
        print(f"{line}  {', '.join(excess)}".rstrip())

    print(f"\n{'page':<44} {'words':>7}")
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    for page, count in words.items():
        print(f"{page.relative_to(ROOT)!s:<44} {count:>7,}")
    print(f"{'all':<44} {sum(words.values()):>7,}")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
