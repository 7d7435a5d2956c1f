"""What `inspect` refuses."""

import pytest


def test_a_negative_number_of_samples_is_refused(run):
    code, _, err, _ = run(["inspect", "nothing", "--samples", "-1"])
    assert code == 2
    assert "error: --samples: -1 is not in the range x>=0 (see" in err


@pytest.mark.parametrize("others", [[], ["--html", "page.html"], ["--html", "p.html", "--json"]])
def test_flags_of_the_page_of_a_corpus_are_refused_elsewhere(run, others):
    code, _, err, _ = run(["inspect", __file__, "--vocab", __file__, "--cased", *others])
    assert code == 2
    assert err.startswith("error: --vocab, --cased: for the page of a corpus alone, with --html")
