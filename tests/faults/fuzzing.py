"""Invented files of every format that users give, read by the functions that jobs read them with.

Anything but a result or an error that the command line turns into a line is a failure: another
exception, a crash, more than ten seconds or two gigabytes.
"""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import functools
import gzip
import importlib
import io
import json
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from faults.campaigns import Case, campaign
from faults.children import EXPECTED, check_message, in_child, run_inputs
from faults.mutation import mutated

from bert_tf.base.processor import is_bfloat16_excluded

Read = Callable[[Path], Any]
Wrap = Callable[[Random, bytes], bytes]
_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*_SPECIALS, "the", "a", "river", "runs", "##s", "é", ".", *"bcdefgh"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A format: its file's name, valid contents, and what reads it; how many inputs a case has."""

    file: str
    seeds: Sequence[bytes]
    read: Read
    inputs: int
    words: Sequence[bytes] = ()
    beside: str = ""  # a folder of `_made_models` whose files it needs
    wrap: Wrap | None = None  # changes inside a checksum or a compression, for half of the inputs

    def input(self, random: Random) -> bytes:
        data = mutated(random, self.seeds, self.words)
        return data if self.wrap is None or random.random() < 0.5 else self.wrap(random, data)


def _split(text: str) -> tuple[bytes, ...]:
    return tuple(text.encode().split())


TEXT = "A first sentence. Łódź has a river.\n\nAnother document, e\u0301 \U0001f600!\n"
CSV = [
    b'text,label\n"a, ""b""\nc",x\r\nplain,y\n\n\xc3\xa9,z\n',
    b"\xef\xbb\xbftext,label\n1,2\n",
    "text,label\na,b\n".encode("utf-16"),
]
TSV = [b"text\tlabel\na b\tx\n\xc3\xa9\ty\n"]
JSONL = [
    b'{"text": "a \\"b\\" \\u00e9", "label": 1, "more": [1, {"x": null}]}\n{"text": "c"}\n',
    '{"label": true, "text": "Łódź"}\n\n{"text": ["a", "b"]}\n'.encode(),
]
SQUAD = [
    json.dumps(
        {
            "version": "2.0",
            "data": [
                {
                    "title": "t",
                    "paragraphs": [
                        {
                            "context": "The river runs é north.",
                            "qas": [
                                {
                                    "id": "1",
                                    "question": "Where?",
                                    "answers": [{"text": "north", "answer_start": 17}],
                                },
                                {
                                    "id": "2",
                                    "question": "Who?",
                                    "is_impossible": True,
                                    "answers": [],
                                },
                            ],
                        }
                    ],
                }
            ],
        }
    ).encode()
]
CONLL = [
    b"-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VB O\n\nPeter NNP B-PER\n. . O\n",
    b"# id = 1\n1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n",
]
MEDIAWIKI = [
    b"""<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en"><siteinfo>
<namespaces><namespace key="0" /><namespace key="10">Template</namespace></namespaces></siteinfo>
<page><title>River</title><ns>0</ns><id>1</id><revision><id>2</id>
<text bytes="9" xml:space="preserve">'''A river''' runs {{cite|x=1}}
to [[North|the north]].&lt;ref&gt;x&lt;/ref&gt;

== Part ==
* one
{| class="x"
| a || b
|}
Second &amp;amp; paragraph here.</text></revision></page>
<page><title>B</title><ns>0</ns><redirect title="A" /><revision><text>#REDIRECT [[A]]</text>
</revision></page></mediawiki>"""
]
_WIKI_WORDS = _split(
    "<page> </page> <text> </text> <ns> </ns> {{ }} [[ ]] {| |} || |- ''' == &lt; &#x110000; &#0; "
    "<!-- --> <![CDATA[ ]]> <nowiki> <ref> </ref> <!DOCTYPE <!ENTITY <math> {{{ }}} #REDIRECT"
)
HTML = [
    b"<!doctype html><html><head><meta charset=utf-8><title>t</title></head><body><article><h1>A"
    b"</h1><p>A first sentence with words. A second one &amp; more &#233;.</p><table><tr><td>x"
    b"</table><script>var x = '<p>';</script></article></body></html>"
]
_HTML_WORDS = _split(
    "<p> </p> <div> <table> <tr> <td> <script> </script> <!-- --> <![CDATA[ &#x110000; &nbsp; &#0; "
    "<meta/charset=utf-16> <svg> <math> <template> <noscript> <pre> <br> <a/href= <style> <body>"
)


def _record(kind: str, media: str, content: bytes) -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.org/\r\n"
        "WARC-Record-ID: <urn:uuid:a0a0a0a0-0000-4000-8000-000000000000>\r\n"
        f"Content-Type: {media}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content + b"\r\n\r\n"


_HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
WARC = [
    _record("warcinfo", "application/warc-fields", b"software: x\r\n")
    + _record("response", "application/http", _HTTP + HTML[0]),
    _record("conversion", "text/plain", "A page of text. Łódź.\nMore.\n".encode()),
]
_WARC_WORDS = _split(
    "WARC/1.0 WARC-Type: Content-Length: response conversion chunked Transfer-Encoding: gzip "
    "Content-Encoding: HTTP/1.1 charset= -1 4294967296 br deflate"
)
YAML = [
    b"finetune:\n  init: m\n  train: [a.csv]\n  output: o\n  epochs: 3\n  learning_rate: 3e-5\n",
    b"vocab: {input: [a.txt], output: v, vocab_size: 30_000}\npreprocess:\n  seed: '1'\n",
    b"train:\n  phases:\n  - {data: d, steps: 5}\n  - &a {data: e}\n  batch_size: 8 # c\n",
]
_YAML_WORDS = _split("&a *a <<: !!int !!python/object: --- ... | > ? ~ @ ` %YAML {a: [a, - "
                     "finetune: vocab: seed: null \\U00110000 '\"")  # fmt: skip
CONFIG = [
    json.dumps(
        {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "vocab_size": len(VOCAB),
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "max_position_embeddings": 32,
            "type_vocab_size": 2,
            "initializer_range": 0.02,
            "layer_norm_eps": 1e-12,
            "pad_token_id": 0,
            "id2label": {"0": "a"},
        }
    ).encode()
]
TOKENIZER = [
    json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": index, "content": token, "special": True, "normalized": False}
                for index, token in enumerate(_SPECIALS)
            ],
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "BertProcessing",
                "sep": ["[SEP]", 3],
                "cls": ["[CLS]", 2],
            },
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {token: index for index, token in enumerate(VOCAB)},
            },
        }
    ).encode()
]
FORM = [
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 24\r\n\r\ntext=A+river%C3%A9+runs.",
    b"GET / HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\n\r\n",
]
_FORM_WORDS = _split("Host: Origin: Content-Length: %00 %ED%A0%80 %FF text= & HEAD PUT HTTP/0.9 "
                     "HTTP/2.0 chunked Expect: 100-continue /.. http://x/ ?q")  # fmt: skip


def _parquet() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"text": ["a b", "é", None] * 3, "label": list(range(9))})
    lists = pa.table(
        {"text": [["a"], [], None], "label": pa.array(["x", "y", "x"]).dictionary_encode()}
    )
    files = []
    for each, options in (
        (table, {"compression": "none"}),
        (table, {"compression": "snappy", "row_group_size": 4}),
        (lists, {"compression": "zstd", "data_page_version": "2.0"}),
    ):
        pq.write_table(each, stream := io.BytesIO(), **options)
        files.append(stream.getvalue())
    return files


def _vectors() -> list[bytes]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 3)
    table = pa.table({"text": list("abcd"), "embedding": vectors})
    pq.write_table(table, stream := io.BytesIO())
    return [stream.getvalue()]


def _numpy() -> list[bytes]:
    import numpy as np

    np.save(stream := io.BytesIO(), np.ones((3, 4), np.float16))
    return [stream.getvalue()]


def read_rows(path: Path) -> None:
    """As `finetune`, `score` and `search` read a table."""
    from bert_tf.data.tables.tables import read_table_blocks

    for _ in read_table_blocks(path, text_columns=["text"], list_columns=["label"]):
        pass


def read_documents(path: Path) -> None:
    """As `vocab` and `preprocess` read a corpus."""
    from behavior.readers import read_corpus

    read_corpus(path)


def read_table(path: Path) -> None:
    try:
        read_rows(path)
    finally:
        read_documents(path)


def read_squad(path: Path) -> None:
    from bert_tf.data.tables.tables import read_table_blocks

    for _ in read_table_blocks(path, text_columns=["question", "context"]):
        pass


def read_tags(path: Path) -> None:
    from bert_tf.data.tables.dialect import PLAIN
    from bert_tf.data.tables.places import Places
    from bert_tf.data.tables.word_blocks import read_word_blocks
    from bert_tf.tasks.tagging.row_forms import TagColumns
    from bert_tf.tasks.tagging.rows import read_tagged_rows

    columns = TagColumns(text="text", tokens=None, tags=None, entities="entities")
    list(read_tagged_rows(path, columns, PLAIN, None, Places()))
    list(read_word_blocks(str(path), column="2", dialect=PLAIN, block_rows=3, as_lines=True))


def read_config(path: Path) -> None:
    from bert_tf.base.errors import BertPipelineError
    from bert_tf.config.plain_yaml import read_yaml_lines
    from bert_tf.config.resolve import resolve
    from bert_tf.config.sections import FinetuneConfig, TrainConfig, VocabConfig

    for section in (FinetuneConfig, VocabConfig):
        try:
            resolve(section, config_file=str(path), flags={})
        except BertPipelineError as error:
            check_message(error)
    with contextlib.suppress(BertPipelineError):
        list(read_yaml_lines(str(path)))
    resolve(TrainConfig, config_file=str(path), flags={})


def read_bert_config(path: Path) -> None:
    from bert_tf.config.bert_file import read_bert_document

    read_bert_document(path)


def read_vocabulary(path: Path) -> None:
    from bert_tf.data.text.vocab_file import read_vocab

    read_vocab(path)


def read_folder(path: Path) -> None:
    from bert_tf.data.text.vocabulary_files import read_folder_vocabulary

    read_folder_vocabulary(path.parent, vocab_size=len(VOCAB) + 2)


def read_weights(path: Path) -> None:
    from bert_tf.weights.tensor_files import FolderTensors

    tensors = FolderTensors(path.parent)
    tensors.count_numbers()
    for name in tensors:
        tensors[name]


def read_google(path: Path) -> None:
    from bert_tf.weights.google_checkpoint import read_google_checkpoint

    directory = read_google_checkpoint(path.parent)
    for name in directory.tensors:
        directory.tensors[name]


def read_task(path: Path) -> None:
    from bert_tf.config.bert_file import read_task
    from bert_tf.tasks.registry import host_task_from_settings, served_task_from_settings

    settings = read_task(path.parent)
    served_task_from_settings(settings, str(path))
    host_task_from_settings(settings, str(path))


def read_artifact(path: Path) -> None:
    from pipeline.report.artifact import describe_artifact

    list(describe_artifact(str(path.parent), samples=2, all_settings=True))


def read_vectors_file(path: Path) -> None:
    from pipeline.embedding.vectors import holds_vectors, read_vectors

    holds_vectors(str(path))
    read_vectors(str(path), text_column=None)


def load_graph(engine: str) -> Read:
    def read(path: Path) -> None:
        from bert_tf.engines.registry import ENGINES

        ENGINES[engine].load(path.parent, threads=1).predict({"text": ["the river", "é"]})

    return read


class _Connection:
    """A socket of a request that has arrived."""

    def __init__(self, request: bytes):
        self._request = request

    def makefile(self, mode: str, size: int) -> io.BytesIO:
        return io.BytesIO(self._request)

    def sendall(self, data: bytes) -> None: ...

    def settimeout(self, seconds: float) -> None: ...

    def setsockopt(self, *option: Any) -> None: ...


@functools.cache
def _tried_server() -> Any:
    from types import SimpleNamespace

    import numpy as np

    from bert_tf.engines.predictor import Predictor
    from bert_tf.tasks.registry import declared_task
    from pipeline.trying.model import TriedModel
    from pipeline.trying.page import TryPage

    task = {"task": "classification", "labels": ["<b>", "x"], "columns": {"text": "t"}}
    outputs = {
        "predicted_label": np.array(["<b>"], object),
        "predicted_score": np.array([0.5]),
        "probabilities": np.array([[0.5, 0.5]]),
    }
    engine: Any = SimpleNamespace(predict=lambda inputs: outputs)
    model = Predictor(
        folder="m", engine_name="e", engine=engine, declared=declared_task(task, "m"), task=task
    )

    def warn(line: str) -> None:
        raise AssertionError(line)

    return SimpleNamespace(
        page=TryPage(TriedModel(name="m", predictor=model)),
        hosts=["127.0.0.1:1", "localhost:1"],
        url="http://127.0.0.1:1/",
        console=SimpleNamespace(warn=warn),
    )


def answer_request(path: Path) -> None:
    from pipeline.trying.server import _Handler

    _Handler(_Connection(path.read_bytes()), ("127.0.0.1", 2), _tried_server())


def _bzip2(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return bz2.compress(data[:at], 1) + bz2.compress(data[at:])


def _with_header_length(random: Random, data: bytes) -> bytes:
    """Has the length of a safetensors header fit, as most changes do not."""
    end = data.rfind(b"}") + 1
    return struct.pack("<Q", max(end - 8, 0)) + data[8:]


def _zip(random: Random, data: bytes) -> bytes:
    """Return a pickle of PyTorch inside of a sound archive."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        archive.writestr("archive/data.pkl", data)
        for key in "012":
            archive.writestr(f"archive/data/{key}", bytes(64))
    return stream.getvalue()


def _pickle() -> bytes:
    """Return a state dict of three tensors, in the opcodes of `torch.save`."""
    parts = [b"\x80\x02}q\x00("]
    for key, kind in enumerate(("FloatStorage", "HalfStorage", "BFloat16Storage")):
        name = f"bert.embeddings.LayerNorm.{key}".encode()
        parts += [
            b"X", struct.pack("<I", len(name)), name,
            b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n",
            kind.encode(), b"\nX\x01\x00\x00\x00", str(key).encode(),
            b"X\x03\x00\x00\x00cpuK\x08tQK\x00K\x02K\x04\x86K\x04K\x01\x86\x89ccollections\n"
            b"OrderedDict\n)RtR",
        ]  # fmt: skip
    return b"".join([*parts, b"u."])


def _safetensors() -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "embeddings.weight": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]},
        "pooler.dense.bias": {"dtype": "BF16", "shape": [4], "data_offsets": [32, 40]},
    }  # fmt: skip
    content = json.dumps(header).encode()
    return struct.pack("<Q", len(content)) + content + bytes(range(40))


def _made_models(folder: Path) -> None:
    """A model with its graphs, and a checkpoint of google-research/bert; runs TensorFlow."""
    from behavior.exported_models import CLASSIFICATION
    from behavior.small_models import write_model

    from bert_tf.weights.google_checkpoint import write_google_checkpoint
    from bert_tf.weights.model_directory import read_model_directory
    from bert_tf.weights.onnx_graph import onnx_model

    task = {**CLASSIFICATION, "columns": {"text": "text", "text_pair": None, "label": "label"}}
    write_model(folder / "model", task, vocab=VOCAB, seed=1, hidden_size=8, intermediate_size=16)
    directory = read_model_directory(folder / "model")
    graph = onnx_model("BertForSequenceClassification", directory.config, directory.tensors)
    (folder / "model" / "model.onnx").write_bytes(graph.SerializeToString())
    (folder / "model" / "SHA256SUMS").unlink()
    import openvino

    openvino.save_model(
        openvino.Core().read_model(str(folder / "model" / "model.onnx")),
        folder / "model" / "openvino_model.xml",
        compress_to_fp16=False,
    )
    (folder / "google").mkdir()
    encoder = {name: directory.tensors[name] for name in directory.tensors if "classif" not in name}
    write_google_checkpoint(
        folder / "google",
        config=directory.config,
        vocab=VOCAB,
        lowercase=True,
        tensors=encoder,
    )


def import_libraries() -> None:
    """So that each child has them, which must not run before it is forked."""
    for name in (
        *("behavior.readers", "bert_tf.engines.onnx_runtime", "openvino", "tensorflow"),
        *("bert_tf.weights.google_checkpoint", "pipeline.embedding.vectors"),
        *("bert_tf.tasks.registry", "pipeline.trying.page", "pipeline.trying.server"),
        *(f"bert_tf.tasks.{task}.task" for task in ("classification", "tagging", "regression")),
    ):
        importlib.import_module(name)


def targets(folder: Path) -> dict[str, Target]:
    """Return every format, with a folder of its own that holds what its file needs beside it."""
    import_libraries()
    made = folder / "made"
    made.mkdir()
    in_child(lambda: _made_models(made))
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
        "parquet": Target(file="a.parquet", seeds=_parquet(), read=read_table, inputs=200),
        "squad": Target(file="a.json", seeds=SQUAD, read=read_squad, inputs=2000),
        "conll": Target(file="a.conll", seeds=CONLL, read=read_tags, inputs=1000),
        "mediawiki": Target(
            file="a.xml", seeds=MEDIAWIKI, read=read_documents, inputs=200, words=_WIKI_WORDS
        ),
        "bzip2": Target(
            file="a.txt.bz2",
            seeds=[bz2.compress(TEXT.encode() * 9, 1) + bz2.compress(b"more\n")],
            read=read_documents,
            inputs=200,
            wrap=_bzip2,
        ),
        "gzip": Target(
            file="a.csv.gz", seeds=[gzip.compress(CSV[0])], read=read_table, inputs=200,
            wrap=lambda random, data: gzip.compress(data),
        ),
        "html": Target(
            file="a.html", seeds=HTML, read=read_documents, inputs=100, words=_HTML_WORDS
        ),
        "warc": Target(
            file="a.warc", seeds=WARC, read=read_documents, inputs=100,
            words=_WARC_WORDS + _HTML_WORDS,
        ),
        "yaml": Target(
            file="a.yaml", seeds=YAML, read=read_config, inputs=200, words=_YAML_WORDS
        ),
        "vectors": Target(
            file="a.parquet", seeds=_vectors(), read=read_vectors_file, inputs=1000
        ),
        "numpy": Target(file="a.npy", seeds=_numpy(), read=read_vectors_file, inputs=4000),
        "try": Target(
            file="request", seeds=FORM, read=answer_request, inputs=4000, words=_FORM_WORDS
        ),
    }  # fmt: skip


def _model_targets(content: dict[str, bytes], vocab: bytes) -> dict[str, Target]:
    """Return the files of a model's folder; `content` is what each of a real one holds."""
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
            file="model.safetensors", seeds=[_safetensors()], read=read_weights, inputs=4000,
            wrap=_with_header_length,
        ),
        "pytorch": Target(
            file="pytorch_model.bin", seeds=[_zip(Random(0), _pickle())], read=read_weights,
            inputs=1000,
        ),
        "pickle": Target(
            file="pytorch_model.bin", seeds=[_pickle()], read=read_weights, inputs=4000, wrap=_zip,
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
