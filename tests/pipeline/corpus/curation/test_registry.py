"""Rules are chosen by name, and say where they come from."""

import re

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.sections import VocabConfig
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


def test_a_file_of_rules_is_as_good_as_its_entries(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text(
        "gopher: true\ngopher_quality: no\n# few\ngopher_min_words: 30\nc4_max_braces: on\n"
    )
    entries = ["gopher", "gopher_quality=off", "gopher_min_words=30", "c4_max_braces"]
    rules = choose_rules([str(file)])
    assert rules == choose_rules(entries)
    assert [rule.threshold for rule in rules if rule.name == "gopher_min_words"] == [30]
    assert not any("letter" in rule.name for rule in rules)
    config = VocabConfig(input=("x",), output="v", curation=(f"{file},c4",))
    assert config.as_dict()["curation"] == [*entries, "c4"]  # what a manifest keeps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c4: on\ngophr: on\n", "rules.yaml:2: no rule 'gophr'; did you mean 'gopher'?"),
        (
            "# few\ngopher_max_hashes: 2\n",
            "rules.yaml:2: gopher_max_hashes=2: expected a number from",
        ),
        ("gopher_max_hashes:\n", "rules.yaml:1: gopher_max_hashes=: expected a number from"),
        ("c4: 3\n", "rules.yaml:1: c4 is a group of rules"),
        ("- c4\n", "rules.yaml:1: expected a line such as gopher_min_words: 30"),
        ("c4:\n  gopher: on\n", "rules.yaml:1: expected a line such as"),
        ("c4: on\nc4: off\n", "rules.yaml:2: not valid YAML: c4 is given twice; keep one"),
        ("c4: 'on\n", "rules.yaml:2: not valid YAML: the quote in line 1 is never closed"),
        (None, "rules.yaml: cannot be read (No such file or directory); check --curation"),
    ],
)
def test_faults_of_a_file_name_its_line(tmp_path, text, message):
    file = tmp_path / "rules.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(message)):
        choose_rules([str(file)])
