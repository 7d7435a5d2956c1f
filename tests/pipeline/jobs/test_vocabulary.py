"""The vocab job from files to vocabulary and manifest."""

import gzip
import io
import json

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, VocabConfig
from pipeline.jobs import vocabulary
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest

pytestmark = pytest.mark.slow  # runs whole jobs, some with worker processes

SENTENCES = ["The quick brown fox jumps over the lazy dog.", "Foxes and dogs are friends!"]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    documents = [f"{SENTENCES[n % 2]}\nDocument number {n} ends." for n in range(300)]
    (folder / "a.txt").write_text("\n\n".join(documents[:200]))
    with gzip.open(folder / "b.jsonl.gz", "wt") as stream:
        for document in documents[200:]:
            stream.write(json.dumps({"text": document}) + "\n")
        stream.write("{broken\n")
    return folder


def run(corpus, output, *, runner=None, overwrite=False, stream=None, **values):
    stream = stream or io.StringIO()
    values = {"input": (f"{corpus}/*",), "output": str(output), "vocab_size": 130, **values}
    manifest = vocabulary.run(
        build_section(VocabConfig, values),
        build_section(RunnerConfig, runner or {}),
        RunOptions(console=Console(stream), overwrite=overwrite),
    )
    return manifest, stream.getvalue()


def test_it_makes_a_vocabulary_and_reports_what_comes_next(corpus, tmp_path):
    output = tmp_path / "out" / "vocab.txt"
    manifest, said = run(corpus, output, held_out_fraction=0.1)
    pieces = output.read_text().splitlines()
    assert pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(pieces) == len(set(pieces)) == 130
    assert {"fox", "dog", "."} <= set(pieces)
    counts = manifest["counts"]
    assert counts["documents"] == 300
    assert counts["rejected"] == {"not JSON": 1}
    place = f"{corpus / 'b.jsonl.gz'}:101"
    assert f"{corpus}/*: 1 of 301 rows rejected\n  1  not JSON, first at {place}" in said
    assert counts["words"] == counts["words_learned_from"] + counts["words_held_out"]
    assert counts["words"] == 150 * 10 + 150 * 6 + 300 * 5
    assert 0 < counts["words_held_out"] < 0.2 * counts["words"]
    assert manifest["metrics"]["held_out_unknown_fraction"] == 0
    assert 1 <= manifest["metrics"]["held_out_pieces_per_word"] < 2
    assert manifest["next"].startswith(f"bert-pipeline preprocess --input '{corpus}/*' --vocab")
    assert "words of held-out documents" in said
    assert read_manifest(output) == {
        key: value for key, value in manifest.items() if key != "already_done"
    }
    (reject,) = (tmp_path / "out" / "vocab.txt.rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["line"] == 101
    assert sorted(path.name for path in output.parent.iterdir()) == [
        "vocab.txt",
        "vocab.txt.manifest.json",
        "vocab.txt.rejects.jsonl",
    ]
    again, said = run(corpus, output, held_out_fraction=0.1)
    assert again["already_done"]
    with pytest.raises(UsageError, match="vocab_size: 130 then, 80 now"):
        run(corpus, output, held_out_fraction=0.1, vocab_size=80)


def test_order_blocks_and_workers_do_not_matter(corpus, tmp_path):
    expected, _ = run(corpus, tmp_path / "one.txt")
    reordered = tmp_path / "reordered"
    reordered.mkdir()
    (reordered / "z.txt").write_bytes((corpus / "a.txt").read_bytes())
    with gzip.open(corpus / "b.jsonl.gz", "rt") as stream:
        lines = stream.readlines()
    (reordered / "y.jsonl").write_text("".join(reversed(lines)))
    found, _ = run(reordered, tmp_path / "two.txt", block_megabytes=0.01, runner={"workers": 2})
    assert (tmp_path / "two.txt").read_bytes() == (tmp_path / "one.txt").read_bytes()
    assert found["counts"] == expected["counts"]
    assert found["metrics"] == expected["metrics"]


@pytest.mark.usefixtures("forked_workers")
def test_pages_of_the_web_are_counted_and_workers_do_not_matter(tmp_path):
    pytest.importorskip("fastwarc")
    record = "WARC/1.0\r\nWARC-Type: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}\r\n\r\n"
    bodies = [f"<p>{SENTENCES[n % 2]}</p>" for n in range(400)] + ["<meta charset=utf-8>\xe9 x"]
    records = [record.format("resource", "text/html", len(body), body) for body in bodies]
    records += [record.format("resource", "image/png", 3, "png")] * 2
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "a.warc").write_bytes("".join(records).encode("latin-1"))
    (folder / "b.html").write_text(bodies[0])
    one, said = run(folder, tmp_path / "one.txt", block_megabytes=0.01)
    two, _ = run(folder, tmp_path / "two.txt", block_megabytes=0.01, runner={"workers": 2})
    assert (tmp_path / "two.txt").read_bytes() == (tmp_path / "one.txt").read_bytes()
    assert one["counts"] == two["counts"]
    counts = {key: one["counts"][key] for key in ("documents", "dropped", "rejected")}
    rejected = {"page is not in its encoding": 1}
    assert counts == {"documents": 401, "dropped": {"not HTML": 2}, "rejected": rejected}
    assert f"page is not in its encoding, first at {folder / 'a.warc'}:401" in said


def test_a_small_corpus_gives_fewer_entries_and_reports_why(corpus, tmp_path):
    manifest, said = run(corpus, tmp_path / "vocab.txt", vocab_size=5000, held_out_fraction=0)
    assert manifest["counts"]["entries"] < 5000
    assert "entries, not 5,000: no other pair of pieces occurs 2 times" in said
    assert "no document was held out" in said


def test_cased_vocabularies_keep_capitals(corpus, tmp_path):
    manifest, _ = run(corpus, tmp_path / "vocab.txt", lowercase="false")
    assert "D" in (tmp_path / "vocab.txt").read_text().splitlines()
    assert " --cased " in manifest["next"]


def test_nothing_to_read_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n")
    with pytest.raises(InputError, match=r"no text found \(rejected: none; dropped: empty doc"):
        run(tmp_path, tmp_path / "vocab.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_where_all_is_rejected_the_remedy_is_shown(tmp_path):
    said = io.StringIO()
    (tmp_path / "a.txt").write_text("Zoë drömde.\n" * 9, encoding="cp1252")
    with pytest.raises(InputError, match="no text found"):
        run(tmp_path, tmp_path / "vocab.txt", stream=said)
    assert "give --encoding cp1252" in said.getvalue()


def test_a_vocabulary_is_extended_behind_its_own_pieces(corpus, tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    run(corpus, old, vocab_size=90)
    manifest, _ = run(corpus, new, vocab_size=110, extend=str(old))
    assert new.read_text().splitlines()[:90] == old.read_text().splitlines()
    assert manifest["counts"]["entries"] == 110
    assert manifest["counts"]["entries_kept"] == 90
    assert str(old) in [one["path"] for one in manifest["inputs"]]
    with pytest.raises(UsageError, match=r"old.txt has 90 entries already; give a --vocab-size"):
        run(corpus, tmp_path / "same.txt", vocab_size=90, extend=str(old))


def test_new_entries_are_told_by_what_they_save_and_left_out_below_a_limit(corpus, tmp_path):
    old, new, few = (tmp_path / name for name in ("old.txt", "new.txt", "few.txt"))
    run(corpus, old, vocab_size=90)
    said = io.StringIO()
    manifest, _ = run(corpus, new, vocab_size=110, extend=str(old), stream=said)
    saved = manifest["metrics"]["tokens_saved"]
    assert 0 < saved < manifest["metrics"]["tokens_before"]
    assert f"20 new entries save {saved:,} of " in said.getvalue()
    assert "tokens before" in said.getvalue()
    manifest, _ = run(corpus, few, vocab_size=110, extend=str(old), min_saving=10**6, stream=said)
    left_out = manifest["counts"]["entries_left_out"]
    assert manifest["counts"]["entries"] == 110 - left_out < 110
    assert "left out, which save fewer than 1,000,000 tokens each (--min-saving)" in said.getvalue()
    assert few.read_text().splitlines()[:90] == old.read_text().splitlines()
    with pytest.raises(ConfigError, match="min_saving: only applies to new tokens of --extend"):
        run(corpus, tmp_path / "no.txt", vocab_size=90, min_saving=5)


def test_a_table_without_header_in_another_encoding_is_read_and_handed_on(tmp_path):
    rows = "".join(f"{number};caf\xe9 crème\n" for number in range(20))
    (tmp_path / "a.csv").write_bytes(rows.encode("cp1252"))
    manifest, _ = run(
        tmp_path,
        tmp_path / "vocab.txt",
        input=(f"{tmp_path}/a.csv",),
        encoding="cp1252",
        header=False,
        text_column="2",
        lowercase=False,
        held_out_fraction=0,
    )
    assert manifest["counts"]["documents"] == 20
    assert "é" in (tmp_path / "vocab.txt").read_text()
    assert "--encoding cp1252 --no-header --text-column 2 --vocab" in manifest["next"]


def test_cleaning_and_duplicates_are_counted_and_handed_on(tmp_path):
    texts = [*SENTENCES, SENTENCES[0].upper(), "<p>Sign in</p><p>&amp; more text</p>", "x", "42"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    output = tmp_path / "vocab.txt"
    manifest, said = run(
        tmp_path,
        output,
        input=(f"{tmp_path}/a.jsonl",),
        cleaning=["html", "whitespace", "boilerplate"],
        min_letter_fraction=0.3,
        duplicates="exact",
        held_out_fraction=0,
    )
    counts = manifest["counts"]
    assert counts["documents"] == 4
    assert counts["dropped"] == {"exact copy": 1, "too few letters": 1}
    assert counts["dropped_lines"] == {"boilerplate line": 1}
    assert counts["copies"] == 0
    (row,) = (tmp_path / "vocab.txt.duplicates.jsonl").read_text().splitlines()
    assert {json.loads(row)["line"], json.loads(row)["kept_line"]} == {1, 3}
    assert "1 duplicate document left out" in said
    assert (
        "--set 'preprocess.cleaning=[html, whitespace, boilerplate]' "
        "--set preprocess.min_letter_fraction=0.3 --duplicates exact --vocab"
    ) in manifest["next"]
    found, said = run(
        tmp_path, output, overwrite=True, input=(f"{tmp_path}/a.jsonl",), held_out_fraction=0
    )
    assert found["counts"]["documents"] == 6
    assert not (tmp_path / "vocab.txt.duplicates.jsonl").exists()


def test_copies_are_reported(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join([SENTENCES[0], SENTENCES[1], SENTENCES[0]] * 2))
    inputs = (f"{tmp_path}/a.txt",)
    manifest, said = run(tmp_path, tmp_path / "vocab.txt", input=inputs, text_layout="sentences")
    assert manifest["counts"]["copies"] == 4
    assert "4 of 6 documents are exact copies of others (--duplicates exact keeps one" in said


def test_nothing_of_an_older_vocabulary_changes_before_the_new_one_is_learned(
    corpus, tmp_path, monkeypatch
):
    output = tmp_path / "out" / "vocab.txt"
    run(corpus, output)
    (corpus / "b.jsonl.gz").unlink()
    (corpus / "c.jsonl").write_text('{"text": "Dogs."}\n{"text": "Dogs."}\n{broken\n')
    before = {path.name: path.read_bytes() for path in output.parent.iterdir()}
    assert len(before) == 3

    def fail(*_, **__):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(vocabulary, "learn_vocabulary", fail)
        with pytest.raises(RuntimeError):
            run(corpus, output, overwrite=True, duplicates="exact")
    assert {path.name: path.read_bytes() for path in output.parent.iterdir()} == before
    run(corpus, output, overwrite=True, duplicates="exact")
    assert (tmp_path / "out" / "vocab.txt.duplicates.jsonl").exists()
    assert (tmp_path / "out" / "vocab.txt.rejects.jsonl").read_bytes() not in before.values()


def test_the_same_corpus_by_another_name_is_the_same(corpus, tmp_path, monkeypatch):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    run(corpus, old, vocab_size=90)
    run(corpus, new, vocab_size=110, extend=str(old))
    monkeypatch.chdir(corpus)
    names = ("a.txt", "b.jsonl.gz")
    again, _ = run(corpus, new, vocab_size=110, extend="../old.txt", input=names)
    assert again["already_done"]
    with pytest.raises(UsageError, match="the content of the inputs has changed"):
        run(corpus, new, vocab_size=110, extend="../old.txt", input=("a.txt",))


def test_a_vocabulary_never_takes_the_place_of_its_own_input(tmp_path):
    source = tmp_path / "v2.txt.rejects.jsonl"
    source.write_text("The quick brown fox.\n")
    with pytest.raises(UsageError, match=r"v2.txt: would also replace .*v2.txt.rejects.jsonl"):
        run(tmp_path, tmp_path / "v2.txt", input=(str(source),), format="text")
    assert source.read_text() == "The quick brown fox.\n"


def test_text_of_excluded_files_is_not_learned_from(corpus, tmp_path):
    (tmp_path / "eval.tsv").write_text(
        "text\nTHE QUICK brown fox, jumps over the lazy dog: Document number 4 ends\n"
    )
    output = tmp_path / "vocab.txt"
    manifest, said = run(corpus, output, exclude=(str(tmp_path / "eval.tsv"),))
    assert manifest["counts"]["documents"] == 299
    assert manifest["counts"]["dropped"] == {"excluded text": 1}
    assert f"documents that share text with --exclude: {tmp_path}/eval.tsv 1" in said
    (listed,) = (tmp_path / "vocab.txt.excluded.jsonl").read_text().splitlines()
    found = json.loads(listed)
    assert (found["source"], found["line"]) == (str(corpus / "a.txt"), 13)
    assert (found["words"], found["exclude_line"]) == (13, 2)
    (dropped,) = (tmp_path / "vocab.txt.dropped.jsonl").read_text().splitlines()
    assert json.loads(dropped)["rule"] == "excluded text"
