"""`--max-rejects`, and which commands have it."""

import pytest
from click.testing import CliRunner

from pipeline.cli.main import COMMANDS, bert_pipeline

VOCAB = ["vocab", "--input", "a.txt", "--output", "v.txt"]


def test_a_limit_that_is_none_is_refused(run):
    code, _, err, job = run([*VOCAB, "--max-rejects", "1.5"], module="vocabulary")
    assert (code, job.calls) == (2, [])
    assert "expected a number of rows (10) or a fraction of them (0.1 or 10%), got '1.5'" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_limit_is_for_commands_that_read_rows(name):
    shown = CliRunner().invoke(bert_pipeline, [name, "--help"]).output
    labeled = ("finetune", "label-errors", "evaluate")
    assert ("--max-rejects" in shown) == (
        name in (*labeled, "vocab", "preprocess", "score", "embed", "summarize")
    )
    assert ("[default: 10%]" in " ".join(shown.split())) == (name in labeled)
