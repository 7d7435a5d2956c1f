"""The progress of a job in a log and on a terminal."""

import io
import subprocess
import sys
from pathlib import Path

from bert_tf.base.console import Advance, Console

ROOT = Path(__file__).parents[3]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_a_log_ends_with_how_far_the_work_came():
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    for rows in (16, 32, 300):
        console.progress(Advance(f"{rows}/300 rows"))
    console.end_progress(Advance("300/300 rows"))
    assert log.getvalue().splitlines() == ["16/300 rows", "300/300 rows"]


def test_an_end_that_was_shown_is_not_shown_again():
    log = io.StringIO()
    console = Console(log, log_seconds=0)
    console.end_progress(Advance("2/2 rows"))  # nothing was shown: the job took no time
    for rows in (1, 2):
        console.progress(Advance(f"{rows}/2 rows"))
    console.end_progress(Advance("2/2 rows"))
    console.end_progress(Advance("2/2 rows"))
    assert log.getvalue().splitlines() == ["1/2 rows", "2/2 rows"]


def test_the_last_line_of_training_is_shown_once_whatever_came_after_it():
    log, journal = io.StringIO(), []
    for stream, shown in ((log, True), (Terminal(), False)):
        console = Console(stream, log_seconds=0, journal=journal.append)
        assert console.progress(Advance("step 24/24")) is shown
        console.progress(Advance("evaluation: 60/60 rows"))
        console.end_progress(None if shown else Advance("step 24/24"))
    assert log.getvalue().splitlines() == ["step 24/24", "evaluation: 60/60 rows"]
    assert journal.count("step 24/24") == 3  # once by the log; twice around the evaluation


def test_a_journal_has_a_line_of_a_terminal_once():
    journal = []
    console = Console(Terminal(), log_seconds=0, journal=journal.append)
    console.progress(Advance("2/2 rows"))
    console.end_progress(Advance("2/2 rows"))
    assert journal == ["2/2 rows"]


def test_a_journal_has_what_a_log_shows_whatever_is_shown():
    for options in ({}, {"quiet": True}):
        for stream in (Terminal(), io.StringIO()):
            lines = []
            console = Console(stream, log_seconds=1e9, journal=lines.append, **options)
            console.info("reading 3 files")
            for number in (1, 2, 3):
                console.progress(Advance(f"file {number} of 3", number / 3))
            console.warn("one is empty")
            console.end_progress(Advance("file 3 of 3"))
            noted = ["reading 3 files", "file 1 of 3", "warning: one is empty", "file 3 of 3"]
            assert lines == noted


def test_no_library_for_terminals_is_loaded_where_there_is_none():
    code = (
        "import sys\n"
        "from bert_tf.base.console import Console\n"
        "from bert_tf.base.console import Advance, Closing\n"
        "console = Console()\n"
        "with console.waiting('loading'), console.working('vocab: learn'):\n"
        "    console.progress(Advance('half', 0.5))\n"
        "console.close(Closing(\n"
        "    command='vocab', made=[('v.txt', '9 entries')], counts=[], seconds=1.0,\n"
        "    next_command='bert-pipeline preprocess'))\n"
        "sys.exit('rich' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0
    assert done.stderr == "half\n  v.txt  9 entries\nnext: bert-pipeline preprocess\n"


def test_what_is_waited_for_is_shown_on_a_terminal_alone_and_taken_away():
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, log):
        with Console(stream).waiting("loading"):
            shown = stream.getvalue()
    assert shown == log.getvalue() == ""
    assert terminal.getvalue() == "\rloading\r       \r"


def test_a_quiet_console_shows_warnings_alone():
    for stream in (Terminal(), io.StringIO()):
        console = Console(stream, quiet=True)
        with console.waiting("loading"):
            console.info("reading 3 files")
        with console.working("vocab: count"):
            console.progress(Advance("file 1 of 3"))
        console.warn("one is empty")
        console.end_progress(Advance("file 3 of 3"))
        assert stream.getvalue() == "warning: one is empty\n"


def test_progress_ends_with_all_that_is_done():
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    with console.counting("searching", 3, "query", "queries") as add:
        add(1)
        add(2)
    assert log.getvalue().splitlines() == [
        "searching: 1 of 3 queries",
        "searching: 3 of 3 queries",
    ]


def test_control_characters_of_a_name_reach_neither_terminal_nor_log():
    stream, journal = io.StringIO(), []
    console = Console(stream, journal=journal.append)
    console.info("a\x1b]0;title\x07.csv: read")
    console.warn("b\x9b2J")
    assert stream.getvalue() == "a\\x1b]0;title\\x07.csv: read\nwarning: b\\x9b2J\n"
    assert journal == stream.getvalue().splitlines()
