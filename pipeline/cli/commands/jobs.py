"""The commands that run a job on one or two config sections."""

from bert_tf.config.sections import (
    EmbedConfig,
    EvaluateConfig,
    ImportWeightsConfig,
    PreprocessConfig,
    RunnerConfig,
    ScoreConfig,
    SearchConfig,
    StorageConfig,
    SummarizeConfig,
    TrainConfig,
    VocabConfig,
)
from pipeline.cli.command import JobCall

_JOBS = (
    JobCall(
        name="vocab",
        sections=(VocabConfig, RunnerConfig),
        job="pipeline.jobs.vocabulary",
        summary="Counts the words of a corpus and learns a WordPiece vocabulary from them.",
        example=(
            "bert-pipeline vocab --input 'corpus/*.txt.gz' --output vocab.txt --vocab-size 30000"
        ),
        has_rows=True,
        has_health=True,
    ),
    JobCall(
        name="preprocess",
        sections=(PreprocessConfig, RunnerConfig),
        job="pipeline.jobs.pretraining_examples",
        summary=(
            "Writes TFRecords for masked-LM and next-sentence prediction, also readable by the "
            "trainers of google-research/bert, TF Model Garden and NVIDIA."
        ),
        example=(
            "bert-pipeline preprocess --input 'corpus/*.txt.gz' --vocab vocab.txt --output data"
        ),
        has_rows=True,
        has_health=True,
    ),
    JobCall(
        name="train",
        sections=(TrainConfig, StorageConfig),
        job="pipeline.jobs.pretraining",
        summary="Pretrains BERT on TFRecords with masked-LM and next-sentence losses.",
        example="bert-pipeline train --data data --output run --size tiny --steps 10000",
        resumes=True,
    ),
    JobCall(
        name="evaluate",
        sections=(EvaluateConfig,),
        job="pipeline.jobs.evaluation",
        summary="Evaluates a fine-tuned run or an exported model on labeled rows.",
        example=(
            "bert-pipeline evaluate --model complaints --data test.csv --output complaints-test"
        ),
        has_rows=True,
        max_rejects="10%",
    ),
    JobCall(
        name="score",
        sections=(ScoreConfig, RunnerConfig),
        job="pipeline.jobs.scoring",
        summary=(
            "Adds predictions as columns to every input row, in input order and with all other "
            "columns unchanged."
        ),
        example="bert-pipeline score --model complaints-model --input new.csv --output scored.csv",
        has_rows=True,
    ),
    JobCall(
        name="embed",
        sections=(EmbedConfig, RunnerConfig),
        job="pipeline.jobs.embedding",
        summary=(
            "Writes a vector for the text of every input row, in input order, or with --tokens one "
            "for each token."
        ),
        example="bert-pipeline embed --model minilm --input texts.csv --output vectors.parquet",
        has_rows=True,
    ),
    JobCall(
        name="search",
        sections=(SearchConfig, RunnerConfig),
        job="pipeline.jobs.searching",
        summary="Finds the nearest texts of a corpus for every query, by the vectors of a model.",
        example=(
            "bert-pipeline search --queries queries.csv --corpus texts.csv --model minilm "
            "--output results.jsonl"
        ),
    ),
    JobCall(
        name="summarize",
        sections=(SummarizeConfig, RunnerConfig),
        job="pipeline.jobs.summarizing",
        summary=(
            "Adds an extractive summary to every input row, in input order: the sentences most "
            "similar to the document and different from each other, with their positions."
        ),
        example=(
            "bert-pipeline summarize --model minilm --input articles.csv --output summaries.jsonl"
        ),
        has_rows=True,
    ),
    JobCall(
        name="import-weights",
        sections=(ImportWeightsConfig,),
        job="pipeline.jobs.import_weights",
        summary=(
            "Converts BERT weights from HuggingFace, KerasHub, Google or TF Model Garden to a "
            "model directory."
        ),
        example="bert-pipeline import-weights all-MiniLM-L6-v2 --output minilm",
    ),
)
JOBS = {job.name: job for job in _JOBS}
