"""Requests of one long text, through every signature and engine: memory in proportion to it.

What a text costs was the square of its length wherever each word, mask or choice held a copy of a
text: valid requests of some hundred kilobytes took gigabytes, and ended the server for all others.
"""

from __future__ import annotations

import importlib
import resource
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    model: Path, units: Sequence[str], length: int, engines: Iterable[str] = ()
) -> list[int]:
    """Predict texts of each unit repeated to `length` bytes, in a child.

    Args:
        model: folder of an exported model.
        engines: also predict with these.

    Returns:
        How many bytes more memory each prediction took, per byte of the text.

    Raises:
        AssertionError: a prediction takes more than MOST_BYTES_PER_BYTE.
    """
    importlib.import_module("tensorflow_text")  # before the child is forked
    return in_child(lambda: [*_growth(model, units, length, engines)])


def _growth(
    model: Path, units: Sequence[str], length: int, engines: Iterable[str]
) -> Iterator[int]:
    from bert_tf.engines.registry import ENGINES
    from bert_tf.serving.signatures import BATCHED

    for engine in engines:
        loaded = ENGINES[engine].load(model)
        names = {name: name in loaded.list_inputs for name in loaded.input_names}
        yield from _growth_of(loaded.predict, names, units, length, f"{model.name}, {engine}")
    import tensorflow as tf

    saved = tf.saved_model.load(str(model))
    for name, signature in saved.signatures.items():
        inputs = signature.structured_input_signature[1]
        if name == BATCHED:
            continue  # what `serving_default` calls
        texts = {key: spec.shape.rank > 1 for key, spec in inputs.items() if spec.dtype == "string"}

        def predict(columns: Columns, signature: Any = signature) -> None:
            signature(**{key: tf.constant(values) for key, values in columns.items()})

        if texts:
            yield from _growth_of(predict, texts, units, length, f"{model.name}, {name}")


def _growth_of(
    predict: Any, inputs: dict[str, bool], units: Sequence[str], length: int, what: str
) -> Iterator[int]:
    """`inputs`: whether each is a list of texts."""
    for unit in units:
        for columns in _requests(inputs, unit, _WARM_UP):
            predict(columns)
    limit_memory()
    for unit in units:
        for columns in _requests(inputs, unit, length):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            predict(columns)
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            said = f"{what}: {more:,} kB more for {length:,} bytes of {unit!a}"
            assert more << 10 < MOST_BYTES_PER_BYTE * length, said
            yield (more << 10) // length


def _requests(inputs: dict[str, bool], unit: str, length: int) -> Iterator[Columns]:
    """One row of long texts; and one of long texts with many choices."""
    text = unit * (length // len(unit.encode()) + 1)
    yield {name: [[text, "it"]] if is_list else [text] for name, is_list in inputs.items()}
    if any(inputs.values()):
        half = text[: len(text) // 2]
        many = ["a"] * (length // _BYTES_PER_CHOICE)
        yield {name: [many] if is_list else [half] for name, is_list in inputs.items()}
