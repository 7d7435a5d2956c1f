"""Valid files of every format that users give, and words of each format, to invent files from."""

from __future__ import annotations

import bz2
import io
import json
import struct
import zipfile
from pathlib import Path
from random import Random

_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*_SPECIALS, "the", "a", "river", "runs", "##s", "é", ".", *"bcdefgh"]


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
WIKI_WORDS = _split(
    "<page> </page> <text> </text> <ns> </ns> {{ }} [[ ]] {| |} || |- ''' == &lt; &#x110000; &#0; "
    "<!-- --> <![CDATA[ ]]> <nowiki> <ref> </ref> <!DOCTYPE <!ENTITY <math> {{{ }}} #REDIRECT"
)
HTML = [
    b"<!doctype html><html><head><meta charset=utf-8><title>t</title></head><body><article><h1>A"
    b"</h1><p>A first sentence with words. A second one &amp; more &#233;.</p><table><tr><td>x"
    b"</table><script>var x = '<p>';</script></article></body></html>"
]
HTML_WORDS = _split(
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
WARC_WORDS = _split(
    "WARC/1.0 WARC-Type: Content-Length: response conversion chunked Transfer-Encoding: gzip "
    "Content-Encoding: HTTP/1.1 charset= -1 4294967296 br deflate"
)
YAML = [
    b"finetune:\n  init: m\n  train: [a.csv]\n  output: o\n  epochs: 3\n  learning_rate: 3e-5\n",
    b"vocab: {input: [a.txt], output: v, vocab_size: 30_000}\npreprocess:\n  seed: '1'\n",
    b"train:\n  phases:\n  - {data: d, steps: 5}\n  - &a {data: e}\n  batch_size: 8 # c\n",
]
YAML_WORDS = _split("&a *a <<: !!int !!python/object: --- ... | > ? ~ @ ` %YAML {a: [a, - "
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
FORM_WORDS = _split("Host: Origin: Content-Length: %00 %ED%A0%80 %FF text= & HEAD PUT HTTP/0.9 "
                     "HTTP/2.0 chunked Expect: 100-continue /.. http://x/ ?q")  # fmt: skip


def valid_parquet() -> list[bytes]:
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


def valid_vectors() -> list[bytes]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 3)
    table = pa.table({"text": list("abcd"), "embedding": vectors})
    pq.write_table(table, stream := io.BytesIO())
    return [stream.getvalue()]


def valid_numpy() -> list[bytes]:
    import numpy as np

    np.save(stream := io.BytesIO(), np.ones((3, 4), np.float16))
    return [stream.getvalue()]


def as_bzip2(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return bz2.compress(data[:at], 1) + bz2.compress(data[at:])


def with_header_length(random: Random, data: bytes) -> bytes:
    """Make the length of a safetensors header fit, as most changes do not."""
    end = data.rfind(b"}") + 1
    return struct.pack("<Q", max(end - 8, 0)) + data[8:]


def as_pytorch_archive(random: Random, data: bytes) -> bytes:
    """Return a pickle of PyTorch inside of a sound archive."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        archive.writestr("archive/data.pkl", data)
        for key in "012":
            archive.writestr(f"archive/data/{key}", bytes(64))
    return stream.getvalue()


def valid_pickle() -> bytes:
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


def valid_safetensors() -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "embeddings.weight": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]},
        "pooler.dense.bias": {"dtype": "BF16", "shape": [4], "data_offsets": [32, 40]},
    }  # fmt: skip
    content = json.dumps(header).encode()
    return struct.pack("<Q", len(content)) + content + bytes(range(40))


def write_models(folder: Path) -> None:
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
