"""Two runs are the same if they read the same by the same keys."""

from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from pipeline.outputs.inputs import are_same_contents
from pipeline.outputs.job_spec import JobSpec, config_key, kept_keys

TRAIN = {"key": "train", "path": "a.csv", "sha256": "1"}
EVAL = {"key": "eval", "path": "b.csv", "sha256": "2"}


def training(**values):
    config = build_section(TrainConfig, {"output": "run", "size": "tiny", **values})
    return JobSpec(config=config, inputs={}, extendable_key="steps"), config.as_dict()


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
    job, now = training(data="d", steps=4)
    assert job.is_extended({**now, "steps": 3})
    assert job.different_keys({**now, "steps": 3}) == []
    assert not job.is_extended({**now, "steps": "many"})
    assert job.different_keys({**now, "steps": "many"}) == ["steps"]


def test_keys_of_a_later_release_count_as_their_defaults_in_items_of_lists_too():
    phases = [{"data": "a", "steps": 3, "batch_size": 8}, {"data": "b", "steps": 4}]
    job, now = training(phases=phases)
    older = {key: value for key, value in now.items() if key != "ema_decay"}
    assert job.different_keys({**older, "phases": phases}) == []
    changed = [{**phases[0], "learning_rate": 1e-3}, phases[1]]
    assert job.different_keys({**older, "phases": changed}) == ["phases"]


def test_a_key_without_a_default_is_never_taken_for_one():
    job, now = training(data="d")
    older = {key: value for key, value in now.items() if key not in ("data", "size")}
    assert job.different_keys(older) == ["data", "size"]
