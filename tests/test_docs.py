"""The documentation agrees with the code, and its links lead somewhere."""

import functools
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

import pipeline

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("deploy/**/*.md"),
        ROOT / "bert_tf/cpu/README.md",
        ROOT / "bert_tf/data/tables/README.md",
        ROOT / "bert_tf/tasks/README.md",
        ROOT / "bert_tf/training/README.md",
        ROOT / "pipeline/outputs/README.md",
    ]
)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(target)
    assert not wrong


def script(name):
    """Return a script that writes a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown_lines(block):
    """Return the lines of the table of labels as one, and those that follow up to a blank one."""
    lines = block.partition("\n\n")[0].splitlines()
    return [tuple(lines[:4]), *lines[4:]]


@pytest.mark.slow
def test_the_notebook_runs_with_three_epochs(monkeypatch):
    """Its cells and what they predict; `make long-test` trains as long as the notebook does."""
    monkeypatch.setattr(pipeline, "finetune", functools.partial(pipeline.finetune, epochs=3))
    quickstart = script("make_quickstart")
    shown = quickstart.written()
    (printed, names) = quickstart.printed()
    table, recipe, *steps, best = shown_lines(printed)
    shown_table, shown_recipe, first, second, *_, shown_best = shown_lines(shown)
    assert table == shown_table
    assert table[0].startswith("  label ")
    number = re.compile(r"\d+(\.\d+)?")
    recipe = recipe.replace("3 epochs of 15 steps (given)", "20 epochs of 15 steps")
    assert recipe.startswith(shown_recipe.partition(": about")[0])
    assert [number.sub("#", line) for line in (*steps, best)] == [
        number.sub("#", line) for line in (first, second, shown_best)
    ]
    rows, expected = (text.partition("$ head")[2].splitlines() for text in (printed, shown))
    assert len(expected) == 4
    assert [row.rpartition(",")[0] for row in rows] == [row.rpartition(",")[0] for row in expected]
    predictions = names["model"].predict(["My card was charged twice.", "The router is dead."])
    assert [row["predicted_label"] for row in predictions] == ["billing", "hardware"]


@pytest.mark.slow
@pytest.mark.long
def test_the_notebook_runs_and_prints_what_the_readme_shows():
    """`python docs/make_quickstart.py` writes it; processors differ in the decimals."""
    quickstart = script("make_quickstart")
    number = re.compile(r"\b[01]\.\d+")
    shown, (printed, names) = quickstart.written(), quickstart.printed()
    assert number.sub("#", printed) == number.sub("#", shown)
    numbers = [[float(text) for text in number.findall(block)] for block in (printed, shown)]
    assert len(numbers[0]) > 10
    assert numbers[0] == pytest.approx(numbers[1], abs=0.05)
    predictions = names["model"].predict(["My card was charged twice.", "The router is dead."])
    assert [row["predicted_label"] for row in predictions] == ["billing", "hardware"]


def test_the_reference_of_the_configuration_is_up_to_date():
    """`python docs/make_configuration.py` writes it."""
    module = script("make_configuration")
    assert module.PAGE.read_text(encoding="utf-8") == module.reference()


def test_the_table_of_licenses_is_up_to_date():
    """`python docs/make_licenses.py` writes it."""
    module = script("make_licenses")
    assert module.PAGE.read_text(encoding="utf-8") == module.page()


def test_the_tests_that_hold_a_promise_exist():
    named = set()
    for page in PAGES:
        named |= set(re.findall(r"`(tests/[\w/.]+\.py)::(\w+)`", page.read_text(encoding="utf-8")))
    assert len(named) > 20
    missing = [
        f"{file}::{name}"
        for file, name in sorted(named)
        if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_page_is_in_the_navigation_once():
    def pages(entries):
        for entry in entries:
            for value in entry.values():
                yield from pages(value) if isinstance(value, list) else [value]

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    added = script("site_pages").PAGES.values()
    names = [*added, *(path.name for path in ROOT.glob("docs/*.md"))]
    assert sorted(pages(config["nav"])) == sorted(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_site_lead_to_its_pages(page):
    site = script("site_pages")
    source = page.relative_to(ROOT).as_posix()
    if page.parent.name != "docs" and source not in site.PAGES:
        return  # no page of the site
    names = {
        *site.PAGES.values(),
        *site.EXAMPLES.values(),
        *(path.name for path in ROOT.glob("docs/*.md")),
    }
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    links = re.findall(r"\]\(([^)\s#:]+)[)#]", site.site_links(text, source))
    assert set(links) <= names


def test_the_site_begins_with_the_quickstart():
    shown = script("site_pages").site_links(
        "[a](../README.md#begin), [b](https://c.d/e.md)", "docs/x.md"
    )
    assert shown == "[a](quickstart.md#begin), [b](https://c.d/e.md)"
    assert "](../README.md#quickstart" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
