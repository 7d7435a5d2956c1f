"""Parts of cards."""

import pytest

from bert_tf.base.cards import front_matter, markdown_table, read_front_matter, size_category


@pytest.mark.parametrize(
    ("number", "category"),
    [(999, "n<1K"), (1000, "1K<n<10K"), (10**6, "1M<n<10M"), (10**12, "n>1T")],
)
def test_size_categories(number, category):
    assert size_category(number) == category


@pytest.mark.parametrize(
    "head", ["a: [", "a: " + "[" * 10_000, "a: 2026-99-99", "a: !!python/object/apply:os.getpid []"]
)
def test_a_head_that_cannot_be_read_is_none(tmp_path, head):
    (tmp_path / "README.md").write_text(f"---\n{head}\n---\n")
    assert read_front_matter(tmp_path / "README.md") == {}


def test_aliases_stay_aliases(tmp_path):
    lists = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    (tmp_path / "README.md").write_text(f"---\nl0: &l0 [lol]\n{lists}---\n")
    read = read_front_matter(tmp_path / "README.md")
    assert len(front_matter(read, list(read))) < 10_000


def test_cells_do_not_end_their_row_and_are_no_html():
    assert markdown_table(("a", "b"), [("x\n|y<script>", 1234)]) == [
        "| a | b |",
        "|---|---|",
        "| x \\|y&lt;script> | 1,234 |",
    ]
