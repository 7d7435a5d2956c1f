"""`profile.json`: read as written, small, checked, and refused in a line."""

import json

import numpy as np
import pytest

from bert_tf.base.checksums import read_sums, write_sums
from bert_tf.base.errors import InputError, UsageError
from bert_tf.tasks.profile.profile import (
    MOST_ROWS,
    PROFILE,
    EvaluatedRows,
    Profile,
    evaluated_rows,
    read_profile,
)


def evaluated(rows: int) -> EvaluatedRows:
    rng = np.random.default_rng(rows)
    probabilities = rng.dirichlet([1.0, 1.0, 1.0], rows).astype(np.float32)
    gold = rng.integers(0, 3, rows)
    return EvaluatedRows.of(("a", "b", "c"), gold, probabilities.argmax(axis=1), probabilities)


def test_a_profile_is_read_as_it_was_written(tmp_path):
    made = evaluated(200)
    Profile(evaluation=made).write(tmp_path)
    found = read_profile(tmp_path).evaluation
    assert (found.labels, found.rows) == (made.labels, 200)
    for name in ("gold", "predicted", "score", "gold_score"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name))
    np.testing.assert_array_equal(found.is_right, made.gold == made.predicted)


def test_it_stays_small_and_has_rows_of_the_whole_file(tmp_path):
    made = evaluated(50_000)
    assert (made.rows, len(made.gold)) == (50_000, MOST_ROWS)
    Profile(evaluation=made).write(tmp_path)
    assert (tmp_path / PROFILE).stat().st_size < 200_000


def test_its_checksum_is_checked_where_others_are(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    write_sums(tmp_path, ["config.json"])
    Profile(evaluation=evaluated(20)).write(tmp_path)
    assert set(read_sums(tmp_path)) == {"config.json", PROFILE}
    text = (tmp_path / PROFILE).read_text()
    (tmp_path / PROFILE).write_text(text.replace('"rows": 20', '"rows": 21'))
    with pytest.raises(InputError, match="has changed since it was written"):
        read_profile(tmp_path)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"version": 2}, "has version 2 and this release reads 1"),
        ({"version": 1, "evaluation": {"rows": 1}}, "damaged"),
        ({"version": 1, "evaluation": {**evaluated(3).as_json(), "gold": [0]}}, "damaged"),
    ],
)
def test_what_it_cannot_be_is_one_line(tmp_path, content, fault):
    (tmp_path / PROFILE).write_text(json.dumps(content))
    with pytest.raises(InputError, match=fault):
        read_profile(tmp_path)


def test_a_model_without_one_is_refused_with_the_remedy(tmp_path):
    assert read_profile(tmp_path) is None
    with pytest.raises(UsageError, match=f"--coverage: .* has no {PROFILE}.*export again"):
        evaluated_rows(tmp_path, "--coverage")
    Profile().write(tmp_path)
    with pytest.raises(UsageError, match="keeps nothing of evaluation rows"):
        evaluated_rows(tmp_path, "--coverage")
