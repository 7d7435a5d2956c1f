"""Rules are chosen by name, and say where they come from."""

import re

import pytest

from bert_tf.base.errors import UsageError
from pipeline.corpus.curation.registry import RULES, choose_rules


def test_rules_have_names_papers_and_one_threshold_in_their_bounds():
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9_]+", rule.name)
        assert "arXiv" in rule.paper
        assert (rule.minimum is None) != (rule.maximum is None)
        assert 0 <= rule.threshold <= rule.highest


def test_groups_are_those_of_the_papers():
    sizes = {name: len(choose_rules([name])) for name in ("gopher", "gopher_quality", "c4")}
    assert sizes == {"gopher": 23, "gopher_quality": 10, "c4": 7}
    assert choose_rules(["gopher_quality", "gopher_repetition"]) == choose_rules(["gopher"])
    assert choose_rules([]) == ()


def test_the_order_of_a_config_does_not_matter():
    assert choose_rules(["fineweb,c4", "gopher"]) == choose_rules(["gopher, c4 ,fineweb"])


def test_thresholds_are_set_and_rules_of_groups_turned_off():
    rules = {rule.name: rule.threshold for rule in choose_rules(
        ["gopher_min_words=20,gopher_quality,gopher_min_stop_words=off", "c4_terminal_punctuation"]
    )}  # fmt: skip
    assert rules["gopher_min_words"] == 20
    assert rules["gopher_max_words"] == 100_000
    assert "gopher_min_stop_words" not in rules
    assert rules["c4_terminal_punctuation"] == 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("gophr", "no rule 'gophr'; did you mean 'gopher'?"),
        ("gopher_min_wrods=3", "did you mean 'gopher_min_words'?"),
        ("xyz", "groups and rules: c4, fineweb, gopher,"),
        ("", "no rule ''"),
        ("gopher=3", "gopher is a group of rules; drop it, or set a rule's threshold"),
        ("gopher_max_hashes=1.5", "expected a number from 0 to 1, or off; the default is 0.1"),
        ("gopher_max_words=-1", "from 0 to 1e+09, or off; the default is 100,000"),
        ("gopher_max_words=nan", "expected a number"),
        ("gopher_max_words=", "expected a number"),
    ],
)
def test_faults_name_the_cure(entry, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        choose_rules([entry])
