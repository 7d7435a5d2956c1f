"""`search`: finds the nearest texts of a corpus for every query.

Exactly by comparing all vectors, in blocks of both, or approximately by an index of small worlds
(HNSW, Malkov and Yashunin 2016, built by faiss). With an index, exact search for a sample of the
queries tells how many of the nearest it finds.
"""

from __future__ import annotations

import csv
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.files import remove, replacing_file
from bert_tf.base.wording import quantity
from bert_tf.config.embedding_recipe import DOCUMENT, QUERY
from bert_tf.config.sections import EmbedConfig, RunnerConfig, SearchConfig
from bert_tf.config.sections.scoring import SIMILARITIES, TextVectorsSection, check_index_installed
from bert_tf.tasks.similarity.metrics import normalized
from pipeline.beam.storage import use_storage_options
from pipeline.beam.stored_path import path_of
from pipeline.embedding.source import VectorSource, open_vector_source
from pipeline.embedding.vectors import TextVectors, check_comparable, holds_vectors, read_vectors
from pipeline.jobs import embedding
from pipeline.jobs.task_reports import warn_of_unfinished_run
from pipeline.outputs.job import JobRecord, run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import rejects_path

_QUERIES_PER_BLOCK = 256
_VECTORS_PER_BLOCK = 1 << 16
NONE = -1
# Parameters of the index (M, efConstruction, efSearch): larger ones cost more and find more.
_LINKS = 32  # of a vector
_BUILD_CANDIDATES = 80
_LEAST_SEARCH_CANDIDATES = 128
_VECTORS_PER_CALL = 4096  # between two looks at signals
# Of the results.
COLUMNS = ("query_row", "query", "rank", "corpus_row", "score", "text")
_ENDINGS = (".jsonl", ".csv")
_SCORE_DIGITS = 6


@dataclasses.dataclass(frozen=True)
class Neighbors:
    """The nearest vectors of each query, the nearest first.

    Attributes:
        rows: int64 [queries, k], rows of the corpus; `NONE` where an index found fewer than k.
        scores: float32 [queries, k], dot products.
    """

    rows: np.ndarray
    scores: np.ndarray


def exact_neighbors(
    queries: np.ndarray,
    corpus: np.ndarray,
    k: int,
    *,
    on_queries: Callable[[int], None] | None = None,
) -> Neighbors:
    """Return the vectors with the greatest dot products; ties are broken by the row.

    Args:
        queries: float32 [queries, dimensions].
        corpus: float32 [rows, dimensions], at least k rows.
        k: how many.
        on_queries: called with the number of queries after each block of them.
    """
    parts = []
    for begin in range(0, len(queries), _QUERIES_PER_BLOCK):
        chosen = queries[begin : begin + _QUERIES_PER_BLOCK]
        parts.append(_search_block(chosen, corpus, k))
        if on_queries is not None:
            on_queries(len(chosen))
    return Neighbors(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.scores for part in parts]),
    )


def recall(approximate: Neighbors, exact: Neighbors) -> float:
    """Return the mean fraction of the exact neighbors that were found (recall@k)."""
    shared = (exact.rows[:, :, None] == approximate.rows[:, None, :]).any(axis=2)
    return float(shared.mean())


def _search_block(queries: np.ndarray, corpus: np.ndarray, k: int) -> Neighbors:
    """Search a block of queries, a block of the corpus at a time, and keep the k best so far."""
    rows: np.ndarray = np.zeros((len(queries), 0), np.int64)
    scores: np.ndarray = np.zeros((len(queries), 0), np.float32)
    for begin in range(0, len(corpus), _VECTORS_PER_BLOCK):
        block_scores, columns = _greatest(queries @ corpus[begin : begin + _VECTORS_PER_BLOCK].T, k)
        rows = np.concatenate([rows, columns + begin], axis=1)
        scores, kept = _greatest(np.concatenate([scores, block_scores], axis=1), k)
        rows = np.take_along_axis(rows, kept, axis=1)
    return Neighbors(rows, scores)


def _greatest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k greatest of each row and their columns, descending; equal ones from left."""
    with tf.device("CPU"):
        greatest = tf.math.top_k(scores, min(k, scores.shape[1]), index_type=tf.int64)
    return greatest.values.numpy(), greatest.indices.numpy()


def build_index(corpus: np.ndarray, *, on_vectors: Callable[[int], None] | None = None) -> Any:
    """Build an index, by one thread, so that it is deterministic.

    Args:
        corpus: float32 [rows, dimensions].
        on_vectors: called with the number of vectors after each part of them.
    """
    import faiss

    index = faiss.IndexHNSWFlat(corpus.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _BUILD_CANDIDATES
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        for begin in range(0, len(corpus), _VECTORS_PER_CALL):
            part = np.ascontiguousarray(corpus[begin : begin + _VECTORS_PER_CALL])
            index.add(part)
            if on_vectors is not None:
                on_vectors(len(part))
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def search_index(index: Any, queries: np.ndarray, k: int) -> Neighbors:
    """Approximate the k nearest neighbors.

    Args:
        index: of `build_index`.
        queries: float32 [queries, dimensions].
        k: how many.
    """
    index.hnsw.efSearch = max(_LEAST_SEARCH_CANDIDATES, 2 * k)
    scores, rows = index.search(np.ascontiguousarray(queries), k)
    return Neighbors(rows, scores)


def write_results(
    path: str, neighbors: Neighbors, queries: TextVectors, corpus: TextVectors
) -> int:
    """Write a row for each neighbor, the nearest first; return the number of rows.

    Args:
        path: a .csv or .jsonl file.
        neighbors: neighbors of all queries.
        queries, corpus: the texts, where they are known.
    """
    rows = _rows(neighbors, queries, corpus)
    with (
        replacing_file(path_of(path)) as aside,
        aside.open("w", encoding="utf-8", newline="") as stream,
    ):
        if path.lower().endswith(".csv"):
            table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
        else:
            stream.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return int((neighbors.rows != NONE).sum())


def _rows(
    neighbors: Neighbors, queries: TextVectors, corpus: TextVectors
) -> Iterator[dict[str, Any]]:
    for query, (rows, scores) in enumerate(zip(neighbors.rows, neighbors.scores, strict=True)):
        text = _text(queries.texts, query)
        for rank, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True), 1):
            if row != NONE:
                cells = (query, text, rank, row, round(score, _SCORE_DIGITS))
                yield dict(zip(COLUMNS, (*cells, _text(corpus.texts, row)), strict=True))


def _text(texts: pa.ChunkedArray | None, row: int) -> str | None:
    return None if texts is None else texts[row].as_py()


def run(config: SearchConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Write the nearest texts of the corpus for every query; return the manifest.

    Vectors of tables stay in a folder beside the output if the run is interrupted.

    Args:
        config: of `search`.
        runner: where the pipeline runs.
        options: how the command runs.

    Raises:
        UsageError: files, model and options do not fit each other.
        InputError: a file is damaged.
    """
    use_storage_options(runner.options, runner.runner)
    if Path(config.output).suffix.lower() not in _ENDINGS:
        endings = " or ".join(_ENDINGS)
        raise UsageError(f"--output {config.output}: the name must end in {endings}")
    tables = [path for path in (config.queries, config.corpus) if not holds_vectors(path)]
    source: VectorSource | None = None
    if tables:
        if config.model is None:
            raise UsageError(
                f"{tables[0]}: has no vectors; give --model MODEL to compute them, or an output of "
                "embed"
            )
        source = open_vector_source(config.model, config)
        warn_of_unfinished_run(config.model, options.console)
        _check_similarity(config, source, options.console)
    elif config.model is not None:
        raise UsageError("--model: queries and corpus are already vectors; leave it out")
    output = path_of(config.output).absolute()
    work = output.with_name(f".{output.name}.parts")
    spec = JobSpec(
        config=config,
        inputs={
            "queries": [config.queries],
            "corpus": [config.corpus],
            "model": [] if source is None else [source.folder],
        },
        can_resume=True,
        temporary=work,
        may_be_remote=True,
    )
    return run_job(
        spec, options, lambda record: _search(config, source, runner, options, work, record)
    )


def _search(
    config: SearchConfig,
    source: VectorSource | None,
    runner: RunnerConfig,
    options: RunOptions,
    work: Path,
    record: JobRecord,
) -> None:
    if options.overwrite:
        remove(work)
    work.mkdir(parents=True, exist_ok=True)
    made: list[str] = []
    rejected: Counter[str] = Counter()

    def vectors_of(name: str, path: str, kind: str) -> TextVectors:
        prompt_name = None if source is None else source.recipe.prompt_name(kind)
        if holds_vectors(path):
            vectors = read_vectors(path, text_column=config.text_column)
            if source is not None:
                _check_prompt(vectors, source.recipe.prompt(prompt_name), record.console)
            return vectors
        made.append(str(work / f"{name}.parquet"))
        record.console.info(f"{name}: making vectors of {path}")
        manifest = embedding.run(
            _embed_config(config, path, made[-1], prompt_name),
            runner,
            RunOptions(console=record.console, is_part=True),
        )
        rejected.update(manifest["counts"]["rejected"])
        return read_vectors(made[-1], text_column=None)

    with record.stage("vectors"):
        queries = vectors_of("queries", config.queries, QUERY)
        corpus = vectors_of("corpus", config.corpus, DOCUMENT)
    rejects_file = rejects_path(config.output)
    with replacing_file(rejects_file) as aside:
        aside.write_bytes(b"".join(rejects_path(path).read_bytes() for path in made))
    check_comparable(queries, corpus)
    if rejected:
        record.console.warn(
            f"rejected rows ({rejects_file}) are not counted in query_row and corpus_row"
        )
    _write_neighbors(config, queries, corpus, record)
    record.counts["rejected"] = dict(rejected)
    record.list_rejects(rejects_file, rejected.total())


def _write_neighbors(
    config: SearchConfig, queries: TextVectors, corpus: TextVectors, record: JobRecord
) -> None:
    k = min(config.top_k, len(corpus.vectors))
    with record.stage("search"):
        neighbors, index, facts = _neighbors(
            config, queries.vectors, corpus.vectors, k, record.console
        )
    with record.stage("write"):
        rows = write_results(config.output, neighbors, queries, corpus)
    record.counts = {
        "queries": len(queries.vectors),
        "corpus": len(corpus.vectors),
        "rows_out": rows,
    }
    speed = len(queries.vectors) / max(record.timings["search"], 1e-3)
    record.metrics = {**facts, "queries_per_second": round(speed, 1)}
    record.extra = {"index": index}
    record.made = [
        (
            config.output,
            f"the nearest {k} of {quantity(len(corpus.vectors), 'text')} for "
            f"{quantity(len(queries.vectors), 'query', 'queries')}",
        )
    ]


def _neighbors(
    config: SearchConfig, queries: np.ndarray, corpus: np.ndarray, k: int, console: Console
) -> tuple[Neighbors, str, dict[str, float]]:
    """Return the neighbors, their index's name, and the fraction of exact neighbors among them."""
    if config.similarity == "cosine":
        queries = normalized(queries)
        corpus = normalized(corpus)
    sizes = f"{len(queries):,} x {len(corpus):,} vectors"
    name = config.index
    if name == "auto":
        name = "exact" if len(queries) * len(corpus) <= config.exact_pairs else "hnsw"
    if name == "exact":
        console.info(f"index: exact, every query is compared with every vector ({sizes})")
        with console.counting("searching", len(queries), "query", "queries") as progress:
            return exact_neighbors(queries, corpus, k, on_queries=progress), name, {}
    check_index_installed()
    console.info(f"index: hnsw, approximate ({sizes})")
    with console.counting("indexing", len(corpus), "vector") as progress:
        index = build_index(corpus, on_vectors=progress)
    neighbors = search_index(index, queries, k)
    sample = np.unique(np.linspace(0, len(queries) - 1, config.recall_queries).astype(np.int64))
    exact = exact_neighbors(queries[sample], corpus, k)
    fraction = recall(Neighbors(neighbors.rows[sample], neighbors.scores[sample]), exact)
    console.info(
        f"recall@{k} against exact search, on {quantity(len(sample), 'query', 'queries')}: "
        f"{fraction:.4f}"
    )
    return neighbors, name, {"recall": round(fraction, 4), "recall_queries": len(sample)}


def _check_similarity(config: SearchConfig, source: VectorSource, console: Console) -> None:
    """Warn if the model was trained for another similarity, unless vectors have length 1."""
    own = source.recipe.similarity
    if own != config.similarity and not source.recipe.normalize:
        cure = f"; give --similarity {own}" if own in SIMILARITIES else ""
        console.warn(
            f"{config.model}: its vectors were trained for the similarity {own}, and "
            f"{config.similarity} compares them here{cure}"
        )


def _check_prompt(vectors: TextVectors, expected: str, console: Console) -> None:
    """Warn if vectors were made with another prompt than the model's."""
    if vectors.prompt is not None and vectors.prompt != expected:
        console.warn(
            f"{vectors.source}: made with the prompt {vectors.prompt!r}, but the model's prompt "
            f"for such texts is {expected!r}; make them again with embed --prompt-name"
        )


def _embed_config(
    config: SearchConfig, path: str, output: str, prompt_name: str | None
) -> EmbedConfig:
    shared = {
        field.name: getattr(config, field.name) for field in dataclasses.fields(TextVectorsSection)
    }
    assert config.model is not None  # `run` has rejected that
    return EmbedConfig(
        model=config.model, input=(path,), output=output, prompt_name=prompt_name, **shared
    )
