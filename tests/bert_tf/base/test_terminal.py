"""The screen of a terminal while a job works and at its end."""

import io
import re

import pytest

from bert_tf.base import terminal
from bert_tf.base.console import Advance, Closing, Console


class Screen(io.StringIO):
    """A terminal of 100 columns, which knows the control sequences that are used."""

    def isatty(self):
        return True

    @property
    def text(self):
        """The lines that are left of all that was written; a bar is the last one."""
        lines, row = [""], 0
        for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if part == "\n":
                row += 1
                lines += [""] * (row == len(lines))
            elif part == "\x1b[2K":
                lines[row] = ""
            elif part.startswith("\x1b[") and part.endswith("A"):
                row -= int(part[2:-1] or 1)
            elif not part.startswith(("\x1b", "\r")):
                lines[row] += part
        return [line.strip() for line in lines if line.strip()]


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Screen()


def show(console, advance):
    """Show it and has it drawn at once."""
    console.progress(advance)
    console._terminal._bars.refresh()


def test_a_bar_shows_the_fraction_and_the_time_that_is_left(screen):
    console = Console(screen)
    now = 7.0
    console._terminal = terminal.Terminal(screen, clock=lambda: now)
    show(console, Advance("scoring [MASK]: 0 of 100 rows", 0.0))
    assert "0% scoring [MASK]: 0 of 100 rows" in screen.text[-1]
    assert "left" not in screen.text[-1]
    for rows in (10, 20, 30):
        now += 5
        show(console, Advance(f"scoring [MASK]: {rows} of 100 rows", rows / 100))
    assert screen.text[-1].endswith(" 30% scoring [MASK]: 30 of 100 rows 0:00:35 left")
    show(console, Advance("step 40/100  0:00:09 left", 0.4, says_time_left=True))
    assert screen.text[-1].endswith(" 40% step 40/100  0:00:09 left")
    console.info("a line above")
    assert screen.text[0] == "a line above"
    console.end_progress(Advance("step 100/100", 1.0))
    assert screen.text == ["a line above", "step 100/100"]


def test_work_without_a_known_end_has_no_percentage_and_leaves_nothing(screen):
    console = Console(screen)
    console._terminal = terminal.Terminal(screen, clock=lambda: 7.0)
    with console.waiting("vocab: loading libraries"):
        pass
    with console.working("vocab: learn"):
        console._terminal._bars.refresh()
        assert screen.text[-1].endswith("vocab: learn 0:00:00")
        with console.working("vocab: measure"):
            show(console, Advance("read 3 MB of text", 0.5))
            show(console, Advance("read 9 MB of text"))
            assert "%" not in screen.text[-1]
        console._terminal._bars.refresh()
        assert "vocab: learn" in screen.text[-1]
    assert screen.text == []


def test_an_error_takes_the_bar_away_and_gives_the_cursor_back(screen):
    console = Console(screen)
    with pytest.raises(ValueError, match="odd"), console.working("vocab: learn"):
        raise ValueError("odd")
    assert screen.text == []
    assert screen.getvalue().rindex("\x1b[?25h") > screen.getvalue().rindex("\x1b[?25l")


def test_the_end_is_a_table_and_the_next_command_one_line_to_copy(screen):
    console = Console(screen)
    following = "bert-pipeline preprocess " + "--input 'corpus/*.txt.gz' " * 8
    closing = Closing(
        command="vocab",
        made=[("vocab.txt", "30,000 entries, one per line"), ("v.json", "what was [made]")],
        counts=[("documents", "12,345")],
        seconds=83,
        next_command=following.strip(),
    )
    console.close(closing)
    lines = screen.text
    assert lines[0] == "vocab: done in 0:01:23"
    assert [line.split("  ")[0] for line in lines[3:5]] == ["vocab.txt", "v.json"]
    assert lines[4].endswith("what was [made]")
    assert re.fullmatch(r"documents\s+12,345", lines[5])
    assert lines[6:] == [f"next: {following.strip()}"]


def test_control_characters_of_names_do_not_reach_the_terminal(screen):
    console = Console(screen)
    made = [("a\x1b[2Jb.txt", "of \x1b]0;title\x07c")]
    following = "cat 'a\x1b[2Jb.txt'"
    console.close(Closing(command="vocab", made=made, counts=[], seconds=1, next_command=following))
    assert "\x1b[2J" not in screen.getvalue() and "\x1b]" not in screen.getvalue()
    assert "b.txt" in "".join(screen.text)


def test_a_dumb_terminal_shows_the_lines_of_a_log(screen, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    console = Console(screen, log_seconds=1e9)
    console.progress(Advance("file 1 of 3", 1 / 3))
    console.end_progress(Advance("file 3 of 3", 1.0))
    assert screen.getvalue() == "file 1 of 3\nfile 3 of 3\n"
