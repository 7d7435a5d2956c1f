"""The golden set of layouts, whose documents and sentences are known, is read as they are."""

import pytest
from golden_layouts import LAYOUTS, golden_cases
from layouts import score_case

# What is still read otherwise: F1 of sentences, at least. An entry that is met by more may go.
KNOWN = {
    ("wrapped, indented", "Thai"): 0.3,  # no marks, and cleaning takes the indents
}
LEAST = 0.97


@pytest.mark.parametrize("layout", [*LAYOUTS, "oddities"])
def test_layouts_documents_and_sentences_are_those_that_were_laid_out(layout):
    faults = {}
    for case in golden_cases(layout):
        score = score_case(case)
        least = KNOWN.get((layout, case.language), LEAST)
        if not score.is_right or score.documents < 1 or score.sentences < least:
            faults[case.name] = (score.layout, score.documents, score.sentences)
    assert not faults
