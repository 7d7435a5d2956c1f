"""Requests of one long text, through every signature and engine: memory in proportion to it.

What a text costs was the square of its length wherever each word, mask or choice held a copy of a
text: valid requests of some hundred kilobytes took gigabytes, and ended the server for all others.
"""

from __future__ import annotations

import functools
import importlib
import json
import resource
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from faults.campaigns import Case, campaign
from faults.children import in_child, limit_memory

# For each byte of a text. Tagging takes most, up to 0.8 kB where each character is an entity.
MOST_BYTES_PER_BYTE = 2_000
LENGTH = 120_000  # bytes of the short form: a square is ten times as much as what is allowed
LONGEST = 1_000_000
_IDS_ENGINES = ("onnxruntime", "openvino")
_BYTES_PER_CHOICE = 100
_WARM_UP = 500  # bytes, after which threads and kernels exist
# What texts consist of: words, masks, one token for each byte, one word, all of several bytes.
UNITS = (
    *("the river runs north of it . ", "[MASK] ", "the [MASK]", "?", "a", "aé", "中", "a\u0301"),
    *("\u0301", " ", "\n", '"\\', "\0", "😀 ", "สวัสดี", "THE City, "),
)
Columns = dict[str, list[Any]]


@campaign("one long text through every signature and engine: memory in proportion to it")
def long_texts(folder: Path) -> Iterator[Case]:
    from behavior.exported_models import KINDS
    from faults.text import make_models

    make_models(folder, tuple(KINDS))

    def case(random: Random) -> Counter[str]:
        kind = random.choice(list(KINDS))
        length = random.randint(LENGTH, LONGEST)
        ids_engines = _IDS_ENGINES if KINDS[kind] is not None else ()
        engines = ("tensorflow", *ids_engines) if random.random() < 0.5 else ()
        growth = check_memory(folder / kind, random.choices(UNITS, k=2), length, engines)
        return Counter({f"{kind}: held": len(growth)})

    yield case


def check_memory(
    model: Path, units: Sequence[str], length: int, engines: Sequence[str] = ()
) -> list[int]:
    """Predict texts of each unit repeated to `length` bytes, in a child.

    Args:
        model: folder of an exported model.
        engines: also predict with these, and by the signatures that take a budget or ids.

    Returns:
        How many bytes more memory each prediction took, per byte of the text.

    Raises:
        AssertionError: a prediction takes more than MOST_BYTES_PER_BYTE.
    """
    importlib.import_module("tensorflow_text")  # before the child is forked
    return in_child(lambda: [*_growth(model, units, length, engines)])


def _growth(
    model: Path, units: Sequence[str], length: int, engines: Sequence[str]
) -> Iterator[int]:
    for what, requests in requests_by_way(model, units, engines):
        for _, request in requests(_WARM_UP):
            request()
        limit_memory()
        for unit, request in requests(length):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            request()
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            said = f"{model.name}, {what}: {more:,} kB more for {length:,} bytes of {unit!a}"
            assert more << 10 < MOST_BYTES_PER_BYTE * length, said
            yield (more << 10) // length


Requests = Callable[[int], Iterator[tuple[str, Callable[[], object]]]]


def requests_by_way(
    model: Path, units: Sequence[str], engines: Sequence[str]
) -> Iterator[tuple[str, Requests]]:
    """Yield engines and signatures by name, with a maker of requests of so many bytes."""
    from bert_tf.engines.registry import ENGINES
    from bert_tf.serving.signatures import BATCH_TOKENS, BATCHED, DEFAULT_BATCH_TOKENS, IDS

    for engine in engines:
        loaded = ENGINES[engine].load(model)
        names = {name: name in loaded.list_inputs for name in loaded.input_names}
        yield engine, functools.partial(_text_requests, loaded.predict, names, units)
    import tensorflow as tf

    saved = tf.saved_model.load(str(model))
    for name, signature in saved.signatures.items():
        inputs = signature.structured_input_signature[1]
        if name in (BATCHED, IDS) and not engines:
            continue  # what `serving_default` calls
        if name == IDS:
            yield name, functools.partial(_id_requests, signature, model)
            continue
        texts = {key: spec.shape.rank > 1 for key, spec in inputs.items() if spec.dtype == "string"}
        budget = {BATCH_TOKENS: tf.constant(DEFAULT_BATCH_TOKENS)} if name == BATCHED else {}

        def predict(columns: Columns, signature: Any = signature, budget: Any = budget) -> None:
            signature(**{key: tf.constant(values) for key, values in columns.items()}, **budget)

        yield name, functools.partial(_text_requests, predict, texts, units)


def _text_requests(
    predict: Any, inputs: dict[str, bool], units: Sequence[str], length: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    """`inputs`: whether each is a list of texts."""
    for unit in units:
        for columns in _requests(inputs, unit, length):
            yield unit, functools.partial(predict, columns)


def _id_requests(
    signature: Any, model: Path, length: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    """One request of `length` ids, in rows as long as the model allows."""
    import tensorflow as tf

    config = json.loads((model / "config.json").read_text())
    inputs = signature.structured_input_signature[1]
    longest = config["max_position_embeddings"]
    rank = next(iter(inputs.values())).shape.rank
    rows = tf.ones([length // longest + 1, *[1] * (rank - 2), longest], tf.int32)
    yield "ids", functools.partial(signature, **dict.fromkeys(inputs, rows))


def _requests(inputs: dict[str, bool], unit: str, length: int) -> Iterator[Columns]:
    """One row of long texts; and one of long texts with many choices."""
    text = unit * (length // len(unit.encode()) + 1)
    yield {name: [[text, "it"]] if is_list else [text] for name, is_list in inputs.items()}
    if any(inputs.values()):
        half = text[: len(text) // 2]
        many = ["a"] * (length // _BYTES_PER_CHOICE)
        yield {name: [many] if is_list else [half] for name, is_list in inputs.items()}
