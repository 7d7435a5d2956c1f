"""The rules by name, and how a config chooses among them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import did_you_mean
from bert_tf.config.sections.data import CorpusSection, curation_entries, listed
from pipeline.corpus.curation.language import known_languages
from pipeline.corpus.curation.rule import Rule
from pipeline.corpus.curation.rules import (
    c4,
    common_grams,
    fineweb_lines,
    gopher_marks,
    gopher_repeats,
    gopher_words,
    repeated_grams,
)
from pipeline.corpus.curation.rules.languages import UNKNOWN, for_english, language_rules

# In FineWeb's order, regardless of the order in a config: a document is counted under the first
# rule that drops it, and C4 looks for some of its words in lines that its other rules leave.
RULES: list[Rule] = [
    *gopher_repeats.RULES,
    *common_grams.RULES,
    *repeated_grams.RULES,
    *gopher_words.LENGTHS,
    *gopher_marks.RULES,
    gopher_words.LETTERS,
    gopher_words.STOP_WORDS,
    *c4.RULES,
    *fineweb_lines.RULES,
]
_OFF = "off"
# The code of a language, then its other codes and names, for "did you mean".
_CODES = """
no nb nor norwegian bokmål, tl fil tagalog filipino, he iw heb hebrew, id in ind indonesian,
en eng english, de ger deu german deutsch, fr fre fra french, es spa spanish, it ita italian,
pt por portuguese, nl dut nld dutch, ru rus russian, uk ua ukr ukrainian, pl pol polish,
cs cz cze ces czech, sk slo slk slovak, sv se swe swedish, da dk dan danish, fi fin finnish,
el gr gre ell greek, tr tur turkish, ar ara arabic, fa per fas persian farsi, hi hin hindi,
zh cn chi zho chinese, ja jp jpn japanese, ko kr kor korean, vi vn vie vietnamese, th thai,
hu hun hungarian, ro rum ron mo romanian, bg bul bulgarian, hr hrv sh croatian, sr srp serbian
"""
_CODE_OF = {other: code for code, *others in map(str.split, _CODES.split(",")) for other in others}


def choose_rules(entries: Sequence[str]) -> tuple[Rule, ...]:
    """Read entries of the key `curation`: groups and rules, with `=threshold` or `=off`, or files.

    An entry for a rule holds over those for its groups, `off` over other groups.

    Args:
        entries: of the config.

    Returns:
        The rules, in the order of `RULES`.

    Raises:
        UsageError: a name is unknown, or a threshold out of bounds.
    """
    groups = {group for rule in RULES for group in rule.groups}
    names = {rule.name: rule for rule in RULES}
    # (rank, name, rule): an entry with a higher rank holds; of equal ranks, the last one.
    ranked: list[tuple[int, str, Rule | None]] = []
    for place, entry in curation_entries(entries):
        name, equals, value = (part.strip() for part in entry.partition("="))
        if name in names:
            ranked.append((2, name, _read(names[name], value, place) if equals else names[name]))
        elif name in groups and (not equals or value == _OFF):
            rank = 1 if equals else 0
            members = [rule for rule in RULES if name in rule.groups]
            ranked += [(rank, rule.name, None if equals else rule) for rule in members]
        elif name in groups:
            raise UsageError(
                f"{place}: {name} is a group of rules; drop it, or set a rule's threshold"
            )
        else:
            known = [*sorted(groups), *names]
            raise _unknown(f"{place}: no rule", name, known, "groups and rules")
    chosen = {name: rule for _, name, rule in sorted(ranked, key=operator.itemgetter(0))}
    in_order = (chosen.get(name) for name in names)
    return tuple(rule for rule in in_order if rule is not None)


def rules_of(config: CorpusSection) -> tuple[Rule, ...]:
    """Return the rules of `languages`, then those of `curation`.

    Args:
        config: with both keys.

    Raises:
        UsageError: a name is unknown.
    """
    rules = choose_rules(config.curation)
    if not config.languages:
        return rules
    languages = tuple(listed(config.languages))
    known = [UNKNOWN, *known_languages()]
    for code in languages:
        if code not in known:
            usual = _CODE_OF.get(code.lower(), code.lower())
            if usual in known:
                raise UsageError(f"languages: no language {code!r}; did you mean {usual!r}?")
            raise _unknown("languages: no language", code, known, "known")
    rules = tuple(
        for_english(rule) if rule.name == gopher_words.STOP_WORDS.name else rule for rule in rules
    )
    return (*language_rules(languages, config.language_threshold), *rules)


def _read(rule: Rule, value: str, place: str) -> Rule | None:
    """Return a rule with the threshold of an entry; None for `off`."""
    if value == _OFF:
        return None
    try:
        threshold = float(value)
    except ValueError:
        threshold = -1.0
    if not 0 <= threshold <= rule.highest:
        raise UsageError(
            f"{place}: {rule.name}={value}: expected a number from 0 to {rule.highest:,g}, or "
            f"{_OFF}; the default is {rule.threshold:,g}"
        )
    return rule.with_threshold(threshold)


def _unknown(beginning: str, name: str, known: list[str], group: str) -> UsageError:
    """Return the error for a name that is unknown, with the nearest one that is known."""
    hint = did_you_mean(name, known, otherwise=f"{group}: {', '.join(known)}")
    return UsageError(f"{beginning} {name!r}; {hint}")
