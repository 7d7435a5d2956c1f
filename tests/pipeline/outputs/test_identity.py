"""Two runs are the same if they read the same by the same keys."""

from pipeline.outputs.identity import (
    are_same_contents,
    config_key,
    different_keys,
    is_extended,
    kept_keys,
)

TRAIN = {"key": "train", "path": "a.csv", "sha256": "1"}
EVAL = {"key": "eval", "path": "b.csv", "sha256": "2"}


def test_neither_names_nor_the_order_of_inputs_count():
    renamed = [{**EVAL, "path": "c.csv"}, TRAIN]
    assert are_same_contents([TRAIN, EVAL], renamed)
    assert not are_same_contents([TRAIN, EVAL], [TRAIN])
    assert not are_same_contents([TRAIN, EVAL], [TRAIN, EVAL, EVAL])


def test_what_was_trained_on_is_not_what_was_evaluated_on():
    swapped = [{**TRAIN, "sha256": "2"}, {**EVAL, "sha256": "1"}]
    assert not are_same_contents([TRAIN, EVAL], swapped)
    without = [{"path": "a.csv", "sha256": "1"}, {"path": "b.csv", "sha256": "2"}]
    assert are_same_contents(without, swapped), "what a manifest of 0.1 cannot say"


def test_keys_that_name_inputs_do_not_count_by_their_values():
    config = {"data": "a", "steps": 3, "phases": [{"data": "b", "steps": 1}, {"data": "c"}]}
    ignored = tuple(map(config_key, ("data", "phases[0].data", "phases[1].data", "input[a].b]")))
    assert ignored == ("data", "phases.data", "phases.data", "input")
    assert kept_keys(config, ignored) == {"steps": 3, "phases": [{"steps": 1}, {}]}


def test_a_config_file_edited_by_hand_is_another_config():
    assert kept_keys({"phases": ["x", {"data": "b"}]}, ("phases.data",)) == {"phases": [{}]}
    assert is_extended({"steps": 3}, {"steps": 4}, "steps")
    assert not is_extended({"steps": "many"}, {"steps": 4}, "steps")
    assert different_keys({"steps": "many"}, {"steps": 4}, "steps") == ["steps"]
