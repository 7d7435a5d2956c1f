"""The job of `preprocess` as it would be sent to Dataflow, which takes graphs up to a size."""

import io
from pathlib import Path

import apache_beam as beam
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions, WorkerOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import DockerEnvironment, EmbeddedPythonEnvironment

from bert_tf.base.console import Console
from bert_tf.base.errors import GraphWritten
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.beam.runner import pipeline_options
from pipeline.examples import plan
from pipeline.jobs import pretraining_examples
from pipeline.outputs.job_spec import RunOptions

CONFIG = Path(__file__).parents[3] / "configs/runner/dataflow.yaml"
OPTIONS = yaml.safe_load(CONFIG.read_text())["runner"]["options"]
LARGEST_GRAPH = 10_000_000  # bytes; Dataflow's quota of a job's graph
# What every portable runner executes, without another language's expansion.
PRIMITIVES = {
    f"beam:transform:{name}:v1" for name in ("impulse", "pardo", "group_by_key", "flatten")
}
VARIANTS = {
    "static": {},
    "unigram": {"random_tokens": "unigram"},
    "near": {"duplicates": "near", "duplicate_lines": "drop"},
}


class Built(Exception):
    """Ends a job once its graph is there."""


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """The graph for Dataflow, of a corpus with the pools of a terabyte and BERT's vocabulary."""
    (tmp_path / "corpus.txt").write_text("piece1 piece2\npiece3 piece4\n")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"piece{n}" for n in range(30_000))]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    monkeypatch.setattr(
        pretraining_examples,
        "plan_examples",
        lambda *_: plan.ExamplesPlan(pools=32_768, train_shards=524_288, eval_shards=8192),
    )
    graphs = []

    def keep_graph(runner, build, **_):
        name, options = pipeline_options(runner, input_bytes=1)
        options = PipelineOptions([*options, "--job_name=job"])
        known = options.get_all_options()
        given = [option.removeprefix("--").partition("=")[0] for option in OPTIONS]
        assert {option.removeprefix("no_") for option in given} <= known.keys()
        pipeline = beam.Pipeline(runner=name, options=options)
        build(pipeline)
        image = options.view_as(WorkerOptions).sdk_container_image
        environment = DockerEnvironment.from_container_image(image)
        graphs.append(pipeline.to_runner_api(default_environment=environment))
        raise Built

    monkeypatch.setattr(pretraining_examples, "run_pipeline", keep_graph)

    def build(**values) -> beam_runner_api_pb2.Pipeline:
        files = {"input": [str(tmp_path / "corpus.txt")], "vocab": str(tmp_path / "vocab.txt")}
        config = build_section(
            PreprocessConfig, {**files, "output": str(tmp_path / "data"), **values}
        )
        runner = build_section(RunnerConfig, {"runner": "dataflow", "options": OPTIONS})
        with pytest.raises(Built):
            pretraining_examples.run(config, runner, RunOptions(console=Console(io.StringIO())))
        return graphs.pop()

    return build


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_graph_of_a_terabyte_fits_and_runs_in_the_image_alone(variant, graph):
    proto = graph(**VARIANTS[variant])
    assert proto.ByteSize() < LARGEST_GRAPH
    (environment,) = (
        each for each in proto.components.environments.values() if each.urn.endswith(":docker:v1")
    )
    docker = beam_runner_api_pb2.DockerPayload.FromString(environment.payload)
    assert f"--sdk_container_image={docker.container_image}" in OPTIONS
    leaves = [
        transform
        for transform in proto.components.transforms.values()
        if not transform.subtransforms
        and set(transform.outputs.values()) - set(transform.inputs.values())
    ]
    assert {transform.spec.urn for transform in leaves} <= PRIMITIVES


@pytest.mark.slow
def test_a_graph_that_was_run_by_somebody_else_is_finished_by_the_same_command(
    tmp_path, monkeypatch
):
    """Dataflow runs the graph that the launcher of a flex template submits."""
    documents = "\n\n".join(f"ba be bi {n} .\nbo bu .\nba bo ." for n in range(40))
    (tmp_path / "corpus.txt").write_text(documents + "\n")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ba", "be", "bi", "bo", "bu", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")

    def run(output, **runner):
        values = {"input": [str(tmp_path / "corpus.txt")], "vocab": str(tmp_path / "vocab.txt")}
        values |= {"max_seq_length": 16, "max_predictions_per_seq": 2}
        return pretraining_examples.run(
            build_section(PreprocessConfig, {**values, "output": str(output)}),
            build_section(RunnerConfig, runner),
            RunOptions(console=Console(io.StringIO())),
        )

    def run_here(pipeline):
        graph = pipeline.to_runner_api(default_environment=EmbeddedPythonEnvironment.default())
        FnApiRunner().run_via_runner_api(graph, PipelineOptions()).wait_until_finish()

    run(tmp_path / "local")
    options = [*OPTIONS, "--template_location=gs://bucket/job_object"]
    with monkeypatch.context() as patch:
        patch.setattr(beam.Pipeline, "run", run_here)
        with pytest.raises(GraphWritten, match="gs://bucket/job_object; once that job is done"):
            run(tmp_path / "data", runner="dataflow", options=options)
    assert not (tmp_path / "data" / "manifest.json").exists()
    found = run(tmp_path / "data")["found_finished"]
    assert found == {"blocks": 1, "pools": 1, "shards": 2}
    for path in (tmp_path / "local").glob("*.tfrecord"):
        assert (tmp_path / "data" / path.name).read_bytes() == path.read_bytes()
