"""A page replaces an older page, any other file only when asked, and never its own input."""

import json

import pytest

from bert_tf.base.errors import UsageError
from pipeline.jobs.page import is_corpus, write_page, write_runs_page


@pytest.fixture
def artifact(make_job):
    """Return a finished file with its manifest."""
    job = make_job(directory=False)
    job.run()
    return job.output


def write(artifact, html, *, overwrite=False):
    write_page(str(artifact), str(html), samples=1, overwrite=overwrite)


def test_a_page_replaces_an_older_one(artifact, tmp_path):
    page = tmp_path / "page.html"
    write(artifact, page)
    written = page.read_text()
    page.write_text(written.replace("</html>", "older</html>"))
    write(artifact, page)
    assert page.read_text() == written


@pytest.mark.parametrize("content", [b"ten years of work", b"<!DOCTYPE html><p>", b"", b"\xff\x00"])
def test_another_file_is_replaced_only_when_asked(artifact, tmp_path, content):
    page = tmp_path / "thesis.html"
    page.write_bytes(content)
    with pytest.raises(UsageError, match=r"--html .*thesis.html: exists and is not a page of this"):
        write(artifact, page)
    assert page.read_bytes() == content
    write(artifact, page, overwrite=True)
    assert page.read_bytes() != content


@pytest.mark.parametrize("name", ["out", "out.manifest.json"])
def test_a_page_never_takes_the_place_of_what_it_is_about(artifact, tmp_path, name):
    before = (tmp_path / name).read_bytes()
    with pytest.raises(UsageError, match="--html .*: is or contains the input"):
        write(artifact, tmp_path / name, overwrite=True)
    assert (tmp_path / name).read_bytes() == before


def test_a_page_is_no_content_of_its_folder(make_job, tmp_path):
    job = make_job(directory=True)
    job.run()
    with pytest.raises(UsageError, match="is inside the input .*out, which it would change"):
        write(job.output, job.output / "page.html")
    (tmp_path / "pages").mkdir()
    with pytest.raises(UsageError, match="--html .*pages: is a folder; name a file"):
        write(job.output, tmp_path / "pages")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", True),
        ("b[1].txt", True),
        ("*.txt", True),
        ("run[1]", False),
        ("vocab.txt", False),
        ("none.txt", False),
    ],
)
def test_a_corpus_is_files_of_text_or_a_glob(tmp_path, monkeypatch, path, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b[1].txt"):
        (tmp_path / name).write_text("Some text.\n")
    (tmp_path / "run[1]").mkdir()
    unused = "".join(f"[unused{number}]\n" for number in range(99))
    (tmp_path / "vocab.txt").write_text(f"[PAD]\n{unused}[UNK]\nthe\n")
    assert is_corpus(path) is expected


@pytest.fixture
def unfinished(tmp_path):
    """Return a run that has made a step."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("train: {output: run}\n")
    (run / "metrics.jsonl").write_text(
        json.dumps({"step": 1, "split": "train", "loss": 2.0}) + "\n"
    )
    return run


def test_a_page_of_runs_replaces_pages_alone(unfinished, artifact, tmp_path):
    page = tmp_path / "page.html"
    write(artifact, page)
    write_runs_page([str(unfinished)], str(page), overwrite=False)
    assert "not finished" in page.read_text()
    page.write_text("ten years of work")
    with pytest.raises(UsageError, match="--output .*page.html: exists and is not a page of this"):
        write_runs_page([str(unfinished)], str(page), overwrite=False)
    with pytest.raises(UsageError, match="is inside the input .*run, which it would change"):
        write_runs_page([str(unfinished)], str(unfinished / "page.html"), overwrite=True)
