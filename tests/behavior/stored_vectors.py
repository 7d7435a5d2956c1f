"""`embed`, `search` and `summarize` on a tiny random encoder, for outputs on other storage."""

import io
import json
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import EmbedConfig, RunnerConfig, SearchConfig, SummarizeConfig
from pipeline.jobs import embedding, searching, summarizing
from pipeline.outputs.job_spec import RunOptions

MODEL = Path(__file__).parents[1] / "golden" / "models" / "encoder"
ROWS = [{"n": n, "text": f"w{n} w1. w{n + 1} w2! w3 w4."} for n in range(7)]


def run(section, job, options=(), **values):
    config = build_section(section, {"model": str(MODEL), "block_rows": 32, **values})
    runner = build_section(RunnerConfig, {"options": list(options)})
    return job.run(config, runner, RunOptions(console=Console(io.StringIO())))


def write_rows(folder):
    """Rows of which one is rejected; the file's path, as a command takes it."""
    lines = [*map(json.dumps, ROWS), json.dumps({"n": 7, "text": " "})]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return str(folder / "rows.jsonl")


def jobs_by_output(folder):
    """Section, job and values by the name of the output, in an order in which they can run."""
    rows, vectors = str(folder / "rows.jsonl"), str(folder / "embedded.parquet")
    from_vectors = {"queries": vectors, "corpus": vectors, "model": None}
    return {
        "embedded.parquet": (EmbedConfig, embedding, {"input": [rows]}),
        "embedded.npy": (EmbedConfig, embedding, {"input": [rows]}),
        "embedded.jsonl": (EmbedConfig, embedding, {"input": [rows]}),
        "tokens.parquet": (EmbedConfig, embedding, {"input": [rows], "tokens": True}),
        "found.jsonl": (SearchConfig, searching, {"queries": rows, "corpus": rows}),
        "found.csv": (SearchConfig, searching, from_vectors),
        "summarized.csv.gz": (SummarizeConfig, summarizing, {"input": [rows]}),
    }


def make_outputs(folder, names, *, before_each=lambda: None, options=()):
    """Run jobs, and each of them again, for which there is nothing to do.

    Args:
        folder: that gets the input and all outputs.
        names: of outputs.
        before_each: called before each job.
        options: of the runner.
    """
    write_rows(folder)
    for name in names:
        section, job, values = jobs_by_output(folder)[name]
        for is_done in (False, True):
            before_each()
            manifest = run(section, job, options, output=str(folder / name), **values)
            assert manifest["already_done"] == is_done


def check_same_outputs(folder, local):
    """Compare all files but manifests, whose folder is named in rejected rows."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    expected = {path.name: path.read_bytes() for path in local.iterdir()}
    assert found.keys() == expected.keys()
    for name, content in expected.items():
        if name.endswith(".rejects.jsonl"):
            content = content.replace(str(local).encode(), str(folder).encode())
        assert name.endswith(".manifest.json") or found[name] == content, name
