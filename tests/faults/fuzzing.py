"""Invented files of every format that users give, read by the functions that jobs read them with.

Anything but a result or an error that the command line turns into a line is a failure: another
exception, a crash, more than ten seconds or two gigabytes.
"""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import gzip
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from faults.campaigns import Case, campaign
from faults.children import EXPECTED, in_child, run_inputs
from faults.mutation import mutated
from faults.reading import (
    Read,
    answer_request,
    import_libraries,
    load_graph,
    read_bert_config,
    read_config,
    read_documents,
    read_folder,
    read_google,
    read_squad,
    read_table,
    read_tags,
    read_task,
    read_vectors_file,
    read_vocabulary,
    read_weights,
)
from faults.valid_files import (
    CONFIG,
    CONLL,
    CSV,
    FORM,
    FORM_WORDS,
    HTML,
    HTML_WORDS,
    JSONL,
    MEDIAWIKI,
    SQUAD,
    TEXT,
    TOKENIZER,
    TSV,
    VOCAB,
    WARC,
    WARC_WORDS,
    WIKI_WORDS,
    YAML,
    YAML_WORDS,
    as_bzip2,
    as_pytorch_archive,
    valid_numpy,
    valid_parquet,
    valid_pickle,
    valid_safetensors,
    valid_vectors,
    with_header_length,
    write_models,
)

from bert_tf.base.processor import is_bfloat16_excluded

Wrap = Callable[[Random, bytes], bytes]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A format: its file's name, valid contents, its reader, and the inputs of a case."""

    file: str
    seeds: Sequence[bytes]
    read: Read
    inputs: int
    words: Sequence[bytes] = ()
    beside: str = ""  # a folder of `write_models` whose files it needs
    wrap: Wrap | None = None  # changes inside a checksum or a compression, for half of the inputs

    def input(self, random: Random) -> bytes:
        data = mutated(random, self.seeds, self.words)
        return data if self.wrap is None or random.random() < 0.5 else self.wrap(random, data)


def targets(folder: Path) -> dict[str, Target]:
    """Return every format, with a folder of its own that holds the files it needs beside it."""
    import_libraries()
    made = folder / "made"
    made.mkdir()
    in_child(lambda: write_models(made))
    content = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in made.glob("*/*")}
    vocab = "\n".join([*VOCAB, ""]).encode()
    by_name = {
        **_data_targets(),
        **_model_targets(content, vocab),
        **_google_targets(content),
        **_graph_targets(content),
    }
    for name, target in by_name.items():
        own = folder / name.replace(" ", "_")
        own.mkdir()
        for other, data in content.items():
            if other.startswith(target.beside or "/"):
                (own / Path(other).name).write_bytes(data)
        if name == "tokenizer_json":
            (own / "vocab.txt").write_bytes(vocab)
    return by_name


def _data_targets() -> dict[str, Target]:
    """Return corpora, tables, configs, vectors and requests."""
    return {
        "text": Target(file="a.txt", seeds=[TEXT.encode()], read=read_documents, inputs=400),
        "csv": Target(file="a.csv", seeds=CSV, read=read_table, inputs=300),
        "tsv": Target(file="a.tsv", seeds=TSV, read=read_table, inputs=300),
        "jsonl": Target(file="a.jsonl", seeds=JSONL, read=read_table, inputs=300),
        "parquet": Target(file="a.parquet", seeds=valid_parquet(), read=read_table, inputs=200),
        "squad": Target(file="a.json", seeds=SQUAD, read=read_squad, inputs=2000),
        "conll": Target(file="a.conll", seeds=CONLL, read=read_tags, inputs=1000),
        "mediawiki": Target(
            file="a.xml", seeds=MEDIAWIKI, read=read_documents, inputs=200, words=WIKI_WORDS
        ),
        "bzip2": Target(
            file="a.txt.bz2",
            seeds=[bz2.compress(TEXT.encode() * 9, 1) + bz2.compress(b"more\n")],
            read=read_documents,
            inputs=200,
            wrap=as_bzip2,
        ),
        "gzip": Target(
            file="a.csv.gz", seeds=[gzip.compress(CSV[0])], read=read_table, inputs=200,
            wrap=lambda random, data: gzip.compress(data),
        ),
        "html": Target(
            file="a.html", seeds=HTML, read=read_documents, inputs=100, words=HTML_WORDS
        ),
        "warc": Target(
            file="a.warc", seeds=WARC, read=read_documents, inputs=100,
            words=WARC_WORDS + HTML_WORDS,
        ),
        "yaml": Target(
            file="a.yaml", seeds=YAML, read=read_config, inputs=200, words=YAML_WORDS
        ),
        "vectors": Target(
            file="a.parquet", seeds=valid_vectors(), read=read_vectors_file, inputs=1000
        ),
        "numpy": Target(file="a.npy", seeds=valid_numpy(), read=read_vectors_file, inputs=4000),
        "try": Target(
            file="request", seeds=FORM, read=answer_request, inputs=4000, words=FORM_WORDS
        ),
    }  # fmt: skip


def _model_targets(content: dict[str, bytes], vocab: bytes) -> dict[str, Target]:
    """Return the files of a model's folder; `content` maps their names to real ones."""
    return {
        "bert_config": Target(
            file="bert_config.json", seeds=CONFIG, read=read_bert_config, inputs=20_000
        ),
        "tokenizer_json": Target(
            file="tokenizer.json", seeds=TOKENIZER, read=read_folder, inputs=4000
        ),
        "vocabulary": Target(
            file="vocab.txt", seeds=[vocab], read=read_vocabulary, inputs=20_000
        ),
        "safetensors": Target(
            file="model.safetensors", seeds=[valid_safetensors()], read=read_weights, inputs=4000,
            wrap=with_header_length,
        ),
        "pytorch": Target(
            file="pytorch_model.bin", seeds=[as_pytorch_archive(Random(0), valid_pickle())],
            read=read_weights, inputs=1000,
        ),
        "pickle": Target(
            file="pytorch_model.bin", seeds=[valid_pickle()], read=read_weights, inputs=4000,
            wrap=as_pytorch_archive,
        ),
        "task_json": Target(
            file="task.json", seeds=[content["model/task.json"]], read=read_task, inputs=4000
        ),
    }  # fmt: skip


def _google_targets(content: dict[str, bytes]) -> dict[str, Target]:
    """Return the files of a checkpoint of google-research/bert."""
    by_name = {}
    for name in ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"):
        by_name[f"checkpoint {name.split('.')[2][:5]}"] = Target(
            file=name,
            seeds=[content[f"google/{name}"]],
            read=read_google,
            inputs=100,
            beside="google/",
        )
    return by_name


def _graph_targets(content: dict[str, bytes]) -> dict[str, Target]:
    """Return the graphs of the engines that run on this processor."""
    graphs = {
        "model.onnx": "onnxruntime",
        "openvino_model.xml": "openvino",
        "openvino_model.bin": "openvino",
    }
    if is_bfloat16_excluded():  # OpenVINO crashes on any graph
        del graphs["openvino_model.xml"], graphs["openvino_model.bin"]
    by_name = {}
    for name, engine in graphs.items():
        by_name[name] = Target(
            file=name,
            seeds=[content[f"model/{name}"]],
            read=load_graph(engine),
            inputs=30,
            beside="model/",
        )
    return by_name


@campaign("invented files and requests: no exception but ours, no crash, 10 seconds, 2 GB")
def fuzz(folder: Path) -> Iterator[Case]:
    found = targets(folder)

    def batch(random: Random) -> Counter[str]:
        return fuzz_target(folder, random.choice(sorted(found)), found, random)

    yield batch


def fuzz_target(
    folder: Path, name: str, found: dict[str, Target], random: Random, most: int | None = None
) -> Counter[str]:
    """Return a batch of a format; a failure leaves its input in the working directory's `build`."""
    target = found[name]
    path = folder / name.replace(" ", "_") / target.file
    seed = random.random()

    def take(number: int) -> str:
        path.write_bytes(target.input(Random(f"{seed} {number}")))
        target.read(path)
        return "read"

    def read_seeds() -> None:
        for content in target.seeds:
            path.write_bytes(content)
            with contextlib.suppress(*EXPECTED):  # a seed may be what `wrap` takes
                target.read(path)

    try:
        outcomes = run_inputs(min(target.inputs, most or target.inputs), take, read_seeds)
    except AssertionError as error:
        kept = Path("build/faults") / f"{name.replace(' ', '_')}-{random.getrandbits(32):08x}"
        kept.mkdir(parents=True, exist_ok=True)
        kept.joinpath(target.file).write_bytes(path.read_bytes())
        raise AssertionError(f"{name}: {kept / target.file}: {error}") from None
    return Counter({f"{name} {outcome}": count for outcome, count in outcomes.items()})
