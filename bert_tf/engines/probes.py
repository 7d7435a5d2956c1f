"""Probe rows: a check that a model gives the same scores on another machine.

`export` computes the scores of 32 rows of made-up texts and stores both in the model's folder. An
engine computes them again whenever it loads the model, in every worker, and scores nothing if they
differ by more than its tolerance. Otherwise another processor, another release of a library, or
8-bit products that overflow where VNNI is missing would change scores silently.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.base.json_files import read_json_object
from bert_tf.base.processor import describe_processor
from bert_tf.config.registries import BFLOAT16, FLOAT16, FLOAT32, INT8
from bert_tf.data.text.vocab_file import CONTINUATION

if TYPE_CHECKING:
    from bert_tf.engines.engine import Engine

PROBES = "probes.json"
NUMBER = 32
VERSION = 1
# Largest difference of a score from that of the export, by precision: the differences of engines in
# docs/engines.md, with room for a value as large as 10. int8 is compared with the int8 graph on the
# machine that made it; products that saturate without VNNI differ by tenths.
TOLERANCES = {FLOAT32: 1e-3, BFLOAT16: 0.05, FLOAT16: 0.05, INT8: 0.05}
_LONGEST = 48  # words of a probe text
_WORDS = 2000  # about as many entries of the vocabulary, evenly spread, are used
_SEED = 32
_DECIMALS = 7  # of stored scores; float32 has as many digits


def probe_texts(vocab: Sequence[str]) -> list[str]:
    """Make texts of 1 to 48 random words of the vocabulary, the same ones every time.

    They contain no text of a user. Short ones are more frequent, as their lengths are spread
    geometrically.
    """
    whole = [
        entry for entry in vocab if entry.isalpha() and not entry.startswith((CONTINUATION, "["))
    ] or ["a"]
    words = whole[:: max(1, len(whole) // _WORDS)]
    random = np.random.Generator(np.random.PCG64(_SEED))
    lengths = np.geomspace(1, _LONGEST, NUMBER).astype(np.int64)
    texts = []
    for length in lengths.tolist():
        places = random.integers(0, len(words), length).tolist()
        texts.append(" ".join(words[place] for place in places))
    return texts


def scores_of(predicted: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the fractional numbers of predictions, by output."""
    return {
        name: np.asarray(values, np.float64).round(_DECIMALS).tolist()
        for name, values in predicted.items()
        if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.floating)
    }


def write_probes(
    folder: Path, rows: Mapping[str, Sequence[Any]], predicted: Mapping[str, Any], precision: str
) -> bool:
    """Add scores of the probe rows to the folder.

    Args:
        folder: the exported model.
        rows: the rows, texts or lists of texts by input.
        predicted: their predictions, by output.
        precision: precision of the computation.

    Returns:
        Whether there are any: models that predict no numbers have none.
    """
    scores = scores_of(predicted)
    if not scores:
        return False
    path = folder / PROBES
    known = read_json_object(path)["scores"] if path.is_file() else {}
    document = {"version": VERSION, "rows": dict(rows), "scores": {**known, precision: scores}}
    write_text_atomically(path, json.dumps(document, ensure_ascii=False) + "\n")
    return True


class ProbesDifferError(UsageError):
    """An engine has other scores on the probe rows than the export."""


def check_probes(
    folder: Path, engine: Engine, name: str, precision: str, *, allows_drift: bool = False
) -> None:
    """Compute the probe rows again; models of earlier releases, which have none, pass.

    Args:
        folder: the exported model.
        engine: the loaded engine.
        name: its name.
        precision: its precision.
        allows_drift: whether a difference is only a warning.

    Raises:
        ProbesDifferError: scores differ by more than the precision may.
        InputError: the file is damaged.
    """
    path = folder / PROBES
    if not path.is_file():
        return
    try:
        document = read_json_object(path)
        rows = document["rows"]
        known = document["scores"]
        # Scores of int8 are those of its own graph, once there are any; others are near float32.
        expected = known.get(INT8, {}) if precision == INT8 else known[FLOAT32]
    except KeyError as error:
        raise InputError(f"{path}: damaged (no {error}); export the model again") from None
    predictions = engine.predict(rows)
    difference = largest_difference(expected, predictions)
    if difference <= TOLERANCES[precision]:
        return
    message = (
        f"{folder}: {name} in {precision} differs by {difference:.2g} from the scores of the "
        f"export on its probe rows (at most {TOLERANCES[precision]:g} is usual), on "
        f"{describe_processor()}; take another --engine or --precision, or --allow-drift to score "
        "nevertheless"
    )
    if not allows_drift:
        raise ProbesDifferError(message)
    logging.getLogger("bert_pipeline").warning("%s", message)


def largest_difference(
    expected: Mapping[str, Sequence[Any]], predicted: Mapping[str, np.ndarray]
) -> float:
    """Return the largest difference of scores; infinite if outputs or shapes are others.

    It is relative to numbers above 1, of which all precisions round more: a regression may predict
    prices.
    """
    largest = 0.0
    for name, values in expected.items():
        known = np.asarray(values, np.float64)
        scores = np.asarray(predicted.get(name, np.nan), np.float64)
        if scores.shape != known.shape:
            return float("inf")
        if known.size:
            differences = np.abs(scores - known) / np.maximum(np.abs(known), 1)
            largest = float(np.maximum(largest, differences.max()))  # keeps a NaN
    return largest
