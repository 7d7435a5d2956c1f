import pytest
from loop_runs import run_until
from regression_task import make_loop

pytestmark = pytest.mark.slow

EVALUATED = {2: 3.0, 4: 1.0, 6: 2.0, 8: 1.5, 10: 0.5, 12: 0.4}


def evaluate(step, notes):
    loss = EVALUATED[step]
    if "best" not in notes or loss < notes["best"]["loss"]:
        notes["best"] = {"step": step, "loss": loss}
    return {"loss": loss}


def loop(limit, **keys):
    return make_loop(evaluate=evaluate, eval_every=2, early_stop_evals=limit, **keys)


@pytest.mark.parametrize(("limit", "end"), [(0, 12), (1, 6), (2, 8), (3, 12)])
def test_a_run_ends_after_so_many_evaluations_without_a_better_one(limit, end):
    result = loop(limit).run()
    assert result.step == end
    assert (result.stopped_early is None) == (end == 12)


def test_the_reason_names_the_best_step():
    assert loop(2).run().stopped_early == "no better evaluation in 2 since step 4"


def test_the_count_continues_in_a_resumed_run(tmp_path):
    run_until(loop(2, run_directory=tmp_path, steps_per_call=1), 7)
    assert loop(2, run_directory=tmp_path).run().step == 8
    again = loop(2, run_directory=tmp_path).run()
    assert (again.step, again.resumed_from) == (8, 8), "it is over"
