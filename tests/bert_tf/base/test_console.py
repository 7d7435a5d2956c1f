"""What a log and a terminal show of a job's progress."""

import io

from bert_tf.base.console import Console


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_a_log_ends_with_how_far_the_work_came():
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    for rows in (16, 32, 300):
        console.progress(f"{rows}/300 rows")
    console.end_progress("300/300 rows")
    assert log.getvalue().splitlines() == ["16/300 rows", "300/300 rows"]


def test_an_end_that_was_shown_is_not_shown_again():
    log = io.StringIO()
    console = Console(log, log_seconds=0)
    console.end_progress("2/2 rows")  # nothing was shown: the job took no time
    for rows in (1, 2):
        console.progress(f"{rows}/2 rows")
    console.end_progress("2/2 rows")
    console.end_progress("2/2 rows")
    assert log.getvalue().splitlines() == ["1/2 rows", "2/2 rows"]


def test_on_a_terminal_the_end_stays_in_the_place_of_the_live_line():
    terminal = Terminal()
    console = Console(terminal)
    console.progress("1/2 rows, slowly")
    console.end_progress("2/2 rows")
    assert terminal.getvalue().endswith("\r2/2 rows\n")


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
        console.progress("file 1 of 3")
        console.warn("one is empty")
        console.end_progress("file 3 of 3")
        assert stream.getvalue() == "warning: one is empty\n"
