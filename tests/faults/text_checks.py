"""Checks of texts of every kind: offsets, quoted spans, rows in and out, long lines.

Each check takes the folder of models, an empty folder, random numbers and the number of texts, and
counts the texts that it held for.
"""

from __future__ import annotations

import functools
import json
import re
import resource
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from faults.children import MOST_BYTES, MOST_SECONDS
from faults.job_forks import Ended
from faults.row_files import (
    Row,
    file_reason,
    invented_rows,
    is_broken,
    read_rows,
    rejected_rows,
    run_command,
    scored_rows,
    write_rows,
)
from faults.texts import broken_text, invented_text, is_settled, long_line

_MASK = "[MASK]"


@functools.cache
def _vocabulary() -> list[str]:
    from behavior.exported_models import VOCAB

    more = "éßøαβγאבتث中文字한の0123456789!\"'-…。、"
    return list(dict.fromkeys([*VOCAB, *more, *(f"##{letter}" for letter in more[:20])]))


def tokenizers(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    """Return the graph's tokenizer and NumPy's: offsets, and ids against HuggingFace's."""
    from tokenizers import BertWordPieceTokenizer

    from bert_tf.data.text.casing import KEEP_ACCENTS
    from bert_tf.data.text.host_wordpiece import HostTokenizer
    from bert_tf.data.text.wordpiece import WordPieceTokenizer

    vocab, lowercase = _vocabulary(), random.choice((True, False, KEEP_ACCENTS))
    texts = [_settled(random) if number % 2 else invented_text(random) for number in range(count)]
    host = HostTokenizer(vocab, lowercase=lowercase)
    found = host.tokenize_with_characters(texts)
    graph = WordPieceTokenizer(vocab, lowercase=lowercase).tokenize_with_characters(texts)
    for name in ("ids", "offsets", "first_characters", "last_characters"):
        assert getattr(found, name).tolist() == getattr(graph, name).tolist(), name
    assert host.tokenize_texts(texts).ids.tolist() == found.ids.tolist()
    theirs = BertWordPieceTokenizer(
        {token: number for number, token in enumerate(vocab)},
        lowercase=bool(lowercase),
        strip_accents=lowercase is True,
    )
    compared = 0
    for number, each in enumerate(texts):
        part = slice(*found.offsets[number : number + 2].tolist())
        starts, ends = (
            part_of[part] for part_of in (found.first_characters, found.last_characters)
        )
        is_valid = (starts < ends).all() and (ends[:-1] <= starts[1:]).all()
        assert is_valid and (ends[-1:] <= len(each)).all(), f"{each!a}: {starts} {ends}"
        is_promised = is_settled(each) and max(map(len, each.split()), default=0) <= 100
        if is_promised and not any(special in each for special in vocab[:5]):
            compared += 1
            expected = theirs.encode(each, add_special_tokens=False).ids
            assert found.ids[part].tolist() == expected, f"{each!a}"
    return Counter({"valid offsets": count, "ids of HuggingFace": compared})


def _settled(random: Random) -> str:
    """Return a text that HuggingFace's tables of Unicode know, most often."""
    return "".join(filter(is_settled, invented_text(random)))


def questions(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    """Rows to train question answering on: the tokens of an answer cover it and no word more."""
    from bert_tf.data.rows.windows import answer_tokens
    from bert_tf.data.text.host_wordpiece import HostTokenizer
    from bert_tf.tasks.question_answering.question_files import QuestionColumns
    from bert_tf.tasks.question_answering.rows import read_questions

    rows = invented_rows(random, count, question=_not_blank, context=_not_blank)
    for row in rows:
        context = row["context"]
        start = random.randrange(len(context))
        row["answer"] = context[start : start + random.randint(1, 30)]
        row["answer_start"] = start
    path = work / f"rows{random.choice(('.csv', '.jsonl', '.json'))}"
    if path.suffix == ".json":
        path.write_text(json.dumps(_squad(rows)))
    else:
        write_rows(path, rows, random)
    names = ("question", "context", "answer", "answer_start")
    read = read_questions(path, QuestionColumns(**dict(zip(names, names, strict=True))),
                          check_offsets=True)  # fmt: skip
    assert len(read) + len(read.rejects) == count
    places = {(row["question"], row["context"]): row for row in rows}
    for number, asked in enumerate(read.questions):
        context, answers = read.contexts[read.context_index[number]], read.answers[number]
        row = places[asked, context]
        assert not is_broken(row), f"{row!a}"
        if row["answer"].strip():
            ((answer, start),) = answers
            assert context[start : start + len(answer)] == answer == row["answer"], f"{row!a}"
    kept = sum(not is_broken(row) for row in rows)
    assert len(read) == kept, f"{len(read)} of {kept}: {[str(each) for each in read.rejects]}"
    tokens = HostTokenizer(_vocabulary(), lowercase=True).tokenize_with_characters(read.contexts)
    given = [answers[0] if answers else ("", 0) for answers in read.answers]
    starts = [start for _, start in given]
    ends = [start + len(answer) for answer, start in given]
    import numpy as np

    firsts, lasts = answer_tokens(tokens, read.context_index, np.array(starts), np.array(ends))
    for index, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
        base = int(tokens.offsets[read.context_index[index]])
        if first >= 0:
            begin, end = tokens.first_characters[base + first], tokens.last_characters[base + last]
            assert begin < ends[index] and starts[index] < end, f"{given[index]!a}: {begin} {end}"
    return Counter({"held": len(read), "rejected": len(read.rejects)})


def _squad(rows: Sequence[Row]) -> Row:
    paragraphs = [
        {
            "context": row["context"],
            "qas": [
                {
                    "id": row["number"],
                    "question": row["question"],
                    "answers": [{"text": row["answer"], "answer_start": row["answer_start"]}]
                    if row["answer"].strip()
                    else [],
                }
            ],
        }
        for row in rows
    ]
    return {"version": "2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}


def _not_blank(random: Random) -> str:
    made = invented_text(random)
    return made if made.strip() else f"{made}x"


def _score(models: Path, kind: str, *more: str) -> list[str]:
    return ["score", "--model", str(models / kind), *more]


def _engine(random: Random) -> tuple[str, ...]:
    return "--engine", random.choice(("tensorflow", "onnxruntime"))


def answers(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    rows = invented_rows(random, count, question=_not_blank, context=_not_blank)
    command = _score(models, "answerer", *_engine(random), "--extra-column", "predicted_nbest")
    found, counts = scored_rows(command, work, rows, random, ["predicted_nbest"])
    for row in found:
        start, end = row["predicted_start"], row["predicted_end"]
        spans = [{"start": start, "end": end, "text": row["predicted_answer"]}]
        for span in [*(spans if row["predicted_answer"] else []), *row["predicted_nbest"]]:
            if span["text"]:
                _check_span(row["context"], span)
    return counts


def _check_span(quoted: str, span: Row) -> None:
    start, end = int(span["start"]), int(span["end"])
    assert 0 <= start < end <= len(quoted), f"{quoted!a}: {span!a}"
    assert quoted[start:end] == span["text"], f"{quoted!a}: {span!a}"


def tags(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    rows = invented_rows(random, count, text=_not_blank)
    command = _score(models, "tagger", *_engine(random), "--extra-column", "predicted_tags")
    found, counts = scored_rows(
        command, work, rows, random, ["predicted_entities", "predicted_tags"]
    )
    for row in found:
        for span in row["predicted_entities"]:
            _check_span(row["text"], span)
        ends = [place for tag in row["predicted_tags"] for place in (tag["start"], tag["end"])]
        assert ends == sorted(ends) and max(ends, default=0) <= len(row["text"]), f"{row!a}"
    return counts


def masks(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    def masked(random: Random) -> str:
        parts = [invented_text(random, 3).replace(_MASK, "") for _ in range(2)]
        return _MASK.join(parts)

    rows = invented_rows(random, count, text=masked)
    rows = [row for row in rows if row["text"].count(_MASK) == 1]
    found, counts = scored_rows(_score(models, "filler"), work, rows, random, ["predicted_tokens"])
    for row in found:
        # A continuation (`##k`) joins the word before it, without the blanks between.
        first, second = row["text"].split(_MASK)
        pattern = rf"{re.escape(first.rstrip())}\s*\S+{re.escape(second)}"
        assert re.fullmatch(pattern, row["predicted_text"], re.DOTALL), f"{row!a}"
    return counts


def labels(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    rows = invented_rows(random, count, text=_not_blank, reply=_not_blank)
    found, counts = scored_rows(_score(models, "classifier"), work, rows, random, [])
    assert {row["predicted_label"] for row in found} <= {"no", "yes, or so", "Łódź"}
    return counts


def summaries(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    rows = invented_rows(random, count, text=_not_blank)
    command = [
        "summarize",
        "--model",
        str(models / "comparer"),
        "--text-column",
        "text",
        "--sentences",
        "2",
    ]
    found, counts = scored_rows(command, work, rows, random, ["summary_sentences"])
    for row in found:
        for span in row["summary_sentences"]:
            _check_span(row["text"], span)
    return counts


def vectors(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    """Check `embed`, and `search` in its output: passages are those of the files."""
    import pyarrow.parquet as pq

    model = ["--model", str(models / "comparer"), "--text-column", "text", "--workers", "1"]
    files = {}
    for name in ("corpus", "queries"):
        rows = invented_rows(random, count, text=_not_blank)
        path = work / f"{name}{random.choice(('.csv', '.jsonl'))}"
        write_rows(path, rows, random)
        files[name] = path, [row["text"] for row in rows if not is_broken(row)]
    (corpus, texts), (queries, asked) = files["corpus"], files["queries"]
    embedded = work / "vectors.parquet"
    ended = run_command("embed", *model, "--input", str(corpus), "--output", str(embedded))
    if ended.code:
        return Counter({f"refused: {file_reason(ended)}": count})
    assert pq.read_table(embedded)["text"].to_pylist() == texts
    assert len(rejected_rows(embedded)) == count - len(texts)
    output, source = work / "found.jsonl", random.choice((corpus, embedded))
    ended = run_command("search", *model, "--queries", str(queries), "--corpus", str(source),
                        "--top-k", "2", "--output", str(output))  # fmt: skip
    if ended.code:
        return Counter({f"refused: {file_reason(ended)}": count})
    for row in read_rows(output):
        assert row["text"] == texts[row["corpus_row"]], f"{row!a}"
        assert row["query"] == asked[row["query_row"]], f"{row!a}"
    return Counter({"held": len(texts) + len(asked)})


def runs(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    """`finetune` on texts with labels of all kinds, `export`, and `score`: the labels come back."""
    names = [f"{number}{_not_blank(random)}".strip() for number in range(2)]
    bad = {*names, *(broken_text(random) for _ in range(2))}
    task = random.choice(("classification", "multilabel", "tagging", "multiple-choice"))
    rows = invented_rows(random, count, text=_not_blank)
    for row in rows:
        label = random.choice(names) if random.random() < 0.95 else random.choice(sorted(bad))
        if task == "tagging":
            start = random.randrange(len(row["text"]))
            end = random.randint(start + 1, len(row["text"]))
            row["entities"] = [{"start": start, "end": end, "label": label}]
        else:
            row["label"] = [label] if task == "multilabel" else label
        if task == "multiple-choice":
            row["choices"], row["label"] = [row["text"], label], random.randrange(2)
            row["question"], row["context"] = row.pop("text"), "it"
    source = work / f"rows{random.choice(('.csv', '.jsonl'))}"
    run = work / "run"
    model = work / "m"
    is_table = source.suffix == ".csv"
    cells = [
        {name: json.dumps(cell) if is_table and isinstance(cell, list) else cell
         for name, cell in row.items()}
        for row in rows
    ]  # fmt: skip
    write_rows(source, cells, random)
    write_rows(work / "eval.jsonl", rows, random)
    ended = run_command("finetune", task, "--train", str(source), "--eval",
                        str(work / "eval.jsonl"), "--init", str(models / "comparer"), "--output",
                        str(run), "--epochs", "1", "--max-seq-length", "16",
                        "--max-rejects", "1.0")  # fmt: skip
    if ended.code:
        return Counter({f"refused: {ended.says_one_line()}": count})
    run_command("export", "--run", str(run), "--output", str(model)).succeeded()
    output = work / "scored.jsonl"
    run_command("score", "--model", str(model), "--input", str(source), "--output", str(output),
                "--workers", "1").succeeded()  # fmt: skip
    found = read_rows(output)
    for row in found:
        match task:
            case "classification":
                assert row["predicted_label"] in names, f"{row!a}: {names!a}"
            case "multilabel":
                assert {*row["predicted_labels"]} <= {*names}, f"{row!a}: {names!a}"
            case "tagging":
                assert {each["label"] for each in row["predicted_entities"]} <= {*names}, f"{row!a}"
    return Counter({f"{task} held": len(found), "rejected": count - len(found)})


def corpora(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    """`vocab` and `preprocess`: every line is read or rejected."""
    rows = invented_rows(random, count, text=invented_text)
    path = work / f"corpus{random.choice(('.csv', '.jsonl', '.txt'))}"
    if path.suffix == ".txt":
        content = "\n\n".join(row["text"] for row in rows) + "\n\nthe river runs north .\n"
        path.write_text(content, encoding="utf-8", errors="surrogatepass", newline="")
    else:
        write_rows(path, rows, random)
    vocab, data = work / "vocab.txt", work / "data"
    lowercase = () if random.random() < 0.5 else ("--cased",)
    ended = run_command("vocab", "--input", str(path), "--output", str(vocab), "--vocab-size",
                        "400", "--min-frequency", "1", "--workers", "1", *lowercase)  # fmt: skip
    if ended.code:
        return Counter({f"refused: {_corpus_reason(ended)}": count})
    entries = vocab.read_bytes().decode().split("\n")[:-1]
    assert len(set(entries)) == len(entries) and all(entries)
    ended = run_command("preprocess", "--input", str(path), "--vocab", str(vocab), "--output",
                        str(data), "--max-seq-length", "64", "--workers", "1")  # fmt: skip
    if ended.code:
        return Counter({f"refused: {_corpus_reason(ended)}": count})
    broken = sum(map(is_broken, rows))
    rejects = rejected_rows(data)
    if path.suffix != ".txt":
        reasons = [row["reason"] for row in rejects if "empty" not in row["reason"]]
        assert len(reasons) == broken, f"{broken} broken rows: {rejects}"
    return Counter({"held": count - broken, "rejected": broken})


def _corpus_reason(ended: Ended) -> str:
    line = ended.says_one_line()
    if "vocab" in line and "too small" in line:
        return "too many characters"
    return file_reason(ended)


def long_lines(models: Path, work: Path, random: Random, count: int) -> Counter[str]:
    """Return a line of 10 MB beside a short one, in 10 seconds of processor time and 2 GB."""
    path = work / f"rows{random.choice(('.csv', '.jsonl', '.txt'))}"
    line = long_line(random)
    if path.suffix == ".txt":
        path.write_text(f"{line}\n\nthe river runs north .\n", newline="")
        output = work / "vocab.txt"
        command = ["vocab", "--output", str(output), "--vocab-size", "100"]
    else:
        write_rows(path, [{"number": "n0", "text": line}, {"number": "n1", "text": "it"}], random)
        command, output = random.choice(
            (
                (_score(models, "classifier", "--text-pair-column", "text"), "scored.jsonl"),
                (
                    ["embed", "--model", str(models / "comparer"), "--text-column", "text"],
                    "vectors.parquet",
                ),
            )
        )
        command, output = [*command, "--output", str(work / output)], work / output
    small = work / f"small{path.suffix}"
    if path.suffix == ".txt":
        small.write_text("the river runs north .\n")
    else:
        write_rows(small, [{"number": "n1", "text": "it"}], random)
    warm = [part.replace(output.name, f"warm-{output.name}") for part in command]
    run_command(*warm, "--input", str(small), "--workers", "1").succeeded()
    before = resource.getrusage(resource.RUSAGE_SELF)
    ended = run_command(*command, "--input", str(path), "--workers", "1")
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    kilobytes = after.ru_maxrss - before.ru_maxrss
    said = f"{command[0]} of {line[:20]!a}: {seconds:.1f} s, {kilobytes:,} kB more"
    assert seconds < MOST_SECONDS and kilobytes << 10 < MOST_BYTES, said
    if ended.code:
        return Counter({f"refused: {file_reason(ended)}": 1})
    return Counter({"held": 1})
