"""Prints per room: code lines and files beside their budgets, and how much of it is documented.

Code lines are lines that hold code other than imports: docstrings, comments and blank lines are
free, so that no budget is ever a reason to explain less. TOML beside the modules counts as code.
Only an interface counts as documentable: public functions at the top of a module, and public
classes. Overrides and methods inherit or need no words.

Exits with 1 when a room is over its budget, or explains a smaller share of its interfaces than
the table says. A room that needs more lines gets more, with the reason in the commit message; a
share may only rise.
"""

import ast
import io
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass
class Budget:
    """Bounds of a room, which is one folder or several, separated by commas."""

    code_lines: int  # at most
    documented: int = 0  # at least, in percent of the interfaces


BUDGETS = {
    "bert_tf/base": Budget(1265, 100),
    "bert_tf/config": Budget(2540, 100),
    "bert_tf/data": Budget(7160, 100),
    "bert_tf/layers, bert_tf/models": Budget(1060, 100),
    "bert_tf/cpu": Budget(1900, 100),
    "bert_tf/xla": Budget(580, 100),
    "bert_tf/weights": Budget(1880, 100),
    "bert_tf/training": Budget(2500, 100),
    "bert_tf/pretraining": Budget(1090, 100),
    "bert_tf/tasks": Budget(10740, 100),
    "bert_tf/tasks/profile": Budget(800, 100),
    "bert_tf/tasks/explaining": Budget(420, 100),
    "bert_tf/serving": Budget(1440, 100),
    "bert_tf/engines, bert_tf/embeddings, bert_tf/export": Budget(2180, 100),
    "pipeline/beam": Budget(1355, 100),
    "pipeline/outputs": Budget(1250, 100),
    "pipeline/corpus": Budget(4820, 100),
    "pipeline/corpus/layout": Budget(796, 100),
    "pipeline/corpus/curation": Budget(1350, 100),
    "pipeline/vocabulary": Budget(965, 100),
    "pipeline/examples": Budget(800, 100),
    "pipeline/scoring, pipeline/embedding": Budget(2560, 100),
    "pipeline/jobs": Budget(2370, 100),
    "pipeline/report, pipeline/trying": Budget(5275, 100),
    "pipeline/proposal, pipeline/demo": Budget(1120, 100),
    "pipeline/cli": Budget(1370, 100),
    "bert_tf, pipeline": Budget(59220, 100),
}

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Tokens that are no code: a line with only these is free.
FREE_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
# Headings of a docstring that say what the signature does not.
SECTION = re.compile(r"^ *(Args|Attributes|Returns|Yields|Raises|Example|Examples):$", re.MULTILINE)


@dataclass
class Size:
    """Counts of some files."""

    code_lines: int = 0
    source_lines: int = 0  # all lines of Python
    files: int = 0
    interfaces: int = 0
    documented: int = 0
    sections: int = 0  # `Args:`, `Returns:`, … of docstrings
    comments: int = 0  # lines that hold nothing but a comment

    def __add__(self, other: "Size") -> "Size":
        names = vars(self)
        return Size(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def share(self) -> float:
        """Documented interfaces, in percent."""
        return 100 * self.documented / max(1, self.interfaces)


def measure_module(text: str) -> Size:
    """Count the source text of a Python module as one file."""
    tree = ast.parse(text)
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            comments.update(lines)
        if token.type not in FREE_TOKENS:
            code.update(lines)

    free: set[int] = set()
    sections = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            free.update(_lines_of(node))
        elif isinstance(node, (ast.Module, *DEFINITIONS)):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                free.update(_lines_of(node.body[0]))
                sections += len(SECTION.findall(docstring))

    interfaces = [node for node in tree.body if _is_interface(node)]
    return Size(
        code_lines=len(code - free),
        source_lines=len(text.splitlines()),
        files=1,
        interfaces=len(interfaces),
        documented=sum(ast.get_docstring(node) is not None for node in interfaces),
        sections=sections,
        comments=len(comments - code),
    )


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _is_interface(node: ast.stmt) -> bool:
    return isinstance(node, DEFINITIONS) and not node.name.startswith("_")


def measure_data(text: str) -> Size:
    """Count a TOML file, which is no file of code but has lines."""
    lines = (line.strip() for line in text.splitlines())
    return Size(code_lines=sum(bool(line) and not line.startswith("#") for line in lines))


def measure_rooms(rooms: str) -> Size:
    """Count rooms, which commas separate, without rooms inside that have a row of their own."""
    own = {ROOT / room for room in rooms.split(", ")}
    others = {ROOT / room for row in BUDGETS for room in row.split(", ")} - own
    is_sum = len(own) > 1 and all(room.parent == ROOT for room in own)
    within = set() if is_sum else {room for room in others if own & set(room.parents)}
    size = Size()
    for room in own:
        for path in sorted(room.rglob("*")):
            if within & set(path.parents):
                continue
            if path.suffix == ".py":
                size += measure_module(path.read_text(encoding="utf-8"))
            elif path.suffix == ".toml":
                size += measure_data(path.read_text(encoding="utf-8"))
    return size


def faults_of(size: Size, budget: Budget) -> list[str]:
    """Say in which ways a room breaks its budget."""
    faults = []
    if size.code_lines > budget.code_lines:
        faults.append(f"{size.code_lines - budget.code_lines} lines over the budget")
    if int(size.share) < budget.documented:
        faults.append(f"less than {budget.documented}% documented")
    return faults


def main() -> int:
    """Print the tables and return the exit status."""
    is_broken = False
    print(f"{'room':<36} {'code':>7} {'budget':>7} {'files':>6} {'documented':>11} {'at least':>9}")
    for rooms, budget in BUDGETS.items():
        size = measure_rooms(rooms)
        faults = faults_of(size, budget)
        is_broken |= bool(faults)
        name = re.sub(r"(, )\w+/", r"\1", rooms)
        line = (
            f"{name:<36} {size.code_lines:>7,} {budget.code_lines:>7,} {size.files:>6} "
            f"{size.documented:>4} of {size.interfaces:>3} {budget.documented:>8}%"
        )
        print(f"{line}  {', '.join(faults)}".rstrip())
    per_thousand = 1000 / size.source_lines  # of the last row, which is the whole
    print(
        f"\nper 1,000 source lines: {size.sections * per_thousand:.1f} sections (Args, Returns, …) "
        f"and {size.comments * per_thousand:.1f} lines of comments"
    )

    print(f"\n{'page':<44} {'words':>7}")
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    for page, count in words.items():
        print(f"{page.relative_to(ROOT)!s:<44} {count:>7,}")
    print(f"{'all':<44} {sum(words.values()):>7,}")
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
