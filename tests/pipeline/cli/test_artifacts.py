"""Paths that `inspect` refuses."""

import json

import pytest

from pipeline.outputs.manifest import describe_files, write_manifest


def test_a_negative_number_of_samples_is_refused(run):
    code, _, err, _ = run(["inspect", "nothing", "--samples", "-1"])
    assert code == 2
    assert "error: --samples: -1 is not in the range x>=0 (see" in err


@pytest.mark.parametrize("others", [[], ["--html", "page.html"], ["--html", "p.html", "--json"]])
def test_flags_of_the_page_of_a_corpus_are_refused_elsewhere(run, others):
    code, _, err, _ = run(["inspect", __file__, "--vocab", __file__, "--cased", *others])
    assert code == 2
    assert err.startswith("error: --vocab, --cased: only for the page of a corpus, with --html")


def test_how_a_corpus_is_read_is_refused_elsewhere(run):
    code, _, err, _ = run(["inspect", __file__, "--no-header", "--set", "preprocess.format=text"])
    assert code == 2
    assert err.startswith("error: --header/--no-header, --set: only for the page of a corpus")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "flags"),
    [
        ("a.csv", "hello there\ncafé there\n", ["--no-header", "--text-column", "1"]),
        ("a.csv", "body\ncafé there\n", ["--text-column", "body"]),
        ("rows", "café there\n", ["--set", "preprocess.format=text"]),
    ],
)
def test_a_corpus_is_read_as_preprocess_would(run, tmp_path, name, content, flags):
    (tmp_path / name).write_text(content, encoding="cp1252")
    page = tmp_path / "page.html"
    code, _, err, _ = run(
        ["inspect", str(tmp_path / name), "--html", str(page), "--encoding", "cp1252", *flags]
    )
    assert (code, err) == (0, f"{page}: open it in a browser\n")
    assert "café" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_shows_what_curation_would_drop(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a { b"}\n{"text": "c"}\n')
    page = tmp_path / "page.html"
    flags = ["--html", str(page), "--curation", "c4_max_braces"]
    assert run(["inspect", str(tmp_path / "a.jsonl"), *flags])[0] == 0
    assert "curation: c4_max_braces=0" in page.read_text()


@pytest.mark.slow
def test_the_page_counts_personal_data_and_does_not_show_it(run, tmp_path):
    secret = "ada.lovelace@example.org"
    texts = [f"a {{ {secret} b", f"Read more: {secret}", f"Copyright 2020 by {secret}", "c " * 400]
    rows = [json.dumps({"text": text + secret}) for text in texts]
    (tmp_path / "a.jsonl").write_text("\n".join([*rows, f'{{"text": "{secret}'[:-1], ""]))
    page = tmp_path / "page.html"
    flags = ["--html", str(page), "--curation", "c4_max_braces,gopher_max_words=9"]
    flags += ["--set", "preprocess.cleaning=[whitespace, boilerplate]"]
    assert run(["inspect", str(tmp_path / "a.jsonl"), *flags])[0] == 0
    assert secret[:-1] in page.read_text()
    assert run(["inspect", str(tmp_path / "a.jsonl"), *flags, "--personal-data", "email"])[0] == 0
    text = page.read_text()
    assert "email, replaced" in text and "emailaddress" in text
    assert "lovelace" not in text


@pytest.mark.slow
def test_the_page_shows_text_of_evaluation_data(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "Kept."}\n{"text": "Lovely and poignant."}\n')
    (tmp_path / "eval.tsv").write_text("sentence\tlabel\nlovely and poignant .\t1\n")
    page = tmp_path / "page.html"
    flags = ["--html", str(page), "--exclude", str(tmp_path / "eval.tsv")]
    assert run(["inspect", str(tmp_path / "a.jsonl"), *flags])[0] == 0
    assert "Left out: excluded text" in page.read_text()
    assert f"line 2 of {tmp_path}"[:60] in page.read_text()
    code, _, err, _ = run(["inspect", str(tmp_path / "a.jsonl"), *flags[:-1], "none*.tsv"])
    assert code == 2 and "--exclude none*.tsv: no file matches" in err


# What `verify` says of whole, damaged and unfinished artifacts.


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(bytes(1500))
    write_manifest(folder, {"command": "export", "outputs": describe_files(folder, {})})
    return folder


def test_whole_artifacts_are_ok(run, model):
    code, out, _, _ = run(["verify", str(model), str(model)])
    assert (code, out.splitlines()) == (0, [f"{model}: OK, 1 file unchanged (1.5 kB)"] * 2)


def test_differences_are_named_and_all_artifacts_are_read(run, model):
    (model / "weights").write_bytes(bytes(1499) + b"\1")
    code, out, _, _ = run(["verify", str(model), str(model)])
    assert code == 1
    assert out.splitlines() == 2 * [
        f"{model}: weights (another SHA-256)",
        f"{model}: FAILED, 1 of 1 file changed or missing",
    ]
    code, out, err, _ = run(["verify", str(model), "--json"])
    assert (code, err.count("FAILED")) == (1, 1)
    (found,) = json.loads(out)
    assert (found["is_whole"], found["differences"]) == (False, ["weights (another SHA-256)"])


def test_what_is_no_artifact_is_refused(run, tmp_path):
    code, _, err, _ = run(["verify", str(tmp_path)])
    assert code == 2
    assert "not an output of bert-pipeline" in err
