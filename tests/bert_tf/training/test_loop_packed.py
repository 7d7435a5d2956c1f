"""Training on packed rows: shapes, interruptions, and the work it is."""

import pytest
from loop_runs import losses, run_until
from packed_task import RECORDS, STEPS, make_inputs, make_packed_loop

from bert_tf.training.arithmetic import WORK_COUNTS, count_work

pytestmark = pytest.mark.slow  # trains BERT on packed rows


def test_all_shapes_are_known_before_a_batch_is_read(tmp_path):
    inputs = make_inputs(tmp_path)
    assert all(spec.shape.is_fully_defined() for spec in inputs.batches(0).element_spec.values())


def test_a_run_stopped_inside_a_block_of_the_second_epoch_resumes_exactly(tmp_path):
    """To the last bit, with dropout on; the second part has calls of other lengths."""
    make_packed_loop(tmp_path, run_directory=tmp_path / "whole", dropout=0.1).run()
    keys = {"run_directory": tmp_path / "parts", "dropout": 0.1}
    stopped = make_packed_loop(tmp_path, steps_per_call=1, **keys)
    step = next(n for n in range(STEPS) if is_inside_a_block(stopped.inputs.position(n)))
    run_until(stopped, step)
    result = make_packed_loop(tmp_path, **keys).run()
    assert (result.resumed_from, result.step) == (step, STEPS)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def is_inside_a_block(position):
    return position["epoch"] == 1 and position["row"] > 0


def test_an_epoch_is_the_same_work_packed_and_padded(tmp_path):
    epochs = []
    for packing in ("on", "off"):
        inputs = make_inputs(tmp_path, packing, batch_size=1, row_multiple=1)
        rows = RECORDS if packing == "off" else int(inputs.packing.block_rows.sum())
        counts = [count_work(batch) for batch in inputs.batches(0).take(rows)]
        epochs.append({name: sum(float(count[name]) for count in counts) for name in counts[0]})
    assert epochs[0] == epochs[1]
    assert epochs[0]["examples"] == RECORDS


def test_a_line_has_the_share_of_the_peak_and_not_what_it_is_reckoned_from(tmp_path):
    line = make_packed_loop(tmp_path, steps=1, peak_flops=1e9).run().train
    assert line["mfu"] > 0
    assert line["tokens_per_second"] > line["examples_per_second"]
    assert not line.keys() & {*WORK_COUNTS, "flops"}
