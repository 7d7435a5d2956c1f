"""Parts of cards."""

import pytest

from bert_tf.base.cards import markdown_table, size_category


@pytest.mark.parametrize(
    ("number", "category"),
    [(999, "n<1K"), (1000, "1K<n<10K"), (10**6, "1M<n<10M"), (10**12, "n>1T")],
)
def test_size_categories(number, category):
    assert size_category(number) == category


def test_cells_do_not_end_their_row_and_are_no_html():
    assert markdown_table(("a", "b"), [("x\n|y<script>", 1234)]) == [
        "| a | b |",
        "|---|---|",
        "| x \\|y&lt;script> | 1,234 |",
    ]
