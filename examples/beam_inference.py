"""Score the lines of text files in your own Beam pipeline.

    bert-pipeline export --run complaints --output complaints-model
    python examples/beam_inference.py --model complaints-model --input 'mails/*.txt' --output scored

Add Beam options (`--runner=FlinkRunner`, ...) after these flags. The model must be on a disk that
all workers can read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.ml.inference.base import PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from pipeline.scoring.model_handler import TextModelHandler


def to_json(result: PredictionResult) -> str:
    return json.dumps({"text": result.example, **result.inference}, ensure_ascii=False)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder written by `bert-pipeline export`")
    parser.add_argument("--input", required=True, help="glob of text files, one text per line")
    parser.add_argument("--output", required=True, help="prefix of the output files (JSON lines)")
    options, beam_options = parser.parse_known_args(arguments)
    with beam.Pipeline(options=PipelineOptions(beam_options)) as pipeline:
        (
            pipeline
            | "Read" >> beam.io.ReadFromText(options.input)
            | "Drop blank lines" >> beam.Filter(str.strip)
            | "Predict" >> RunInference(TextModelHandler(options.model))
            | "Format" >> beam.Map(to_json)
            | "Write" >> beam.io.WriteToText(options.output, file_name_suffix=".jsonl")
        )


if __name__ == "__main__":
    main()
