from bert_tf.training.progress import evaluation_text

LINE = {"step": 7, "split": "eval", "time": 1.5, "loss": 0.25, "f1": 0.5, "recall": 0.75}


def test_an_evaluation_shows_all_metrics_unless_some_are_chosen():
    assert evaluation_text(LINE) == "step 7, eval: loss 0.2500  f1 0.5000  recall 0.7500"


def test_the_chosen_metrics_come_in_their_order_if_they_were_measured():
    text = evaluation_text(LINE, ("recall", "accuracy", "loss"))
    assert text == "step 7, eval: recall 0.7500  loss 0.2500"
