"""What `inspect` refuses."""


def test_a_negative_number_of_samples_is_refused(run):
    code, _, err, _ = run(["inspect", "nothing", "--samples", "-1"])
    assert code == 2
    assert "error: --samples: -1 is not in the range x>=0 (see" in err
