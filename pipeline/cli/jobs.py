"""The commands that run a job on config sections."""

from __future__ import annotations

from bert_tf.config import sections
from bert_tf.tasks.registry import TASKS, label_error_tasks, pretrained_tasks
from pipeline.cli.command import JobCall

_WIDTH = max(map(len, TASKS))
_CALLS = (
    JobCall(
        section=sections.VocabConfig,
        job="vocabulary",
        where=sections.RunnerConfig,
        example="bert-pipeline vocab --input 'corpus/*.txt.gz' --output vocab.txt "
        "--vocab-size 30000",
        has_rows=True,
        has_health=True,
    ),
    JobCall(
        section=sections.PreprocessConfig,
        job="pretraining_examples",
        where=sections.RunnerConfig,
        example="bert-pipeline preprocess --input 'corpus/*.txt.gz' --vocab vocab.txt "
        "--output data",
        has_rows=True,
        has_health=True,
    ),
    JobCall(
        section=sections.TrainConfig,
        job="pretraining",
        where=sections.StorageConfig,
        example="bert-pipeline train --data data --output run --size tiny --steps 10000",
        resumes=True,
    ),
    JobCall(
        section=sections.FinetuneConfig,
        job="finetuning",
        tasks=TASKS,
        summary="Fine-tunes a model on labeled rows. bert-pipeline finetune TASK --help also shows "
        "the options of that task.\n\n\b\nTasks:\n"
        + "\n".join(f"  {name:{_WIDTH}}  {task.summary}" for name, task in TASKS.items()),
        summary_of_task="Fine-tunes a model that predicts {}.",
        resumes=True,
        has_rows=True,
        max_rejects="10%",
    ),
    JobCall(
        section=sections.LabelErrorsConfig,
        job="label_errors",
        tasks=label_error_tasks(),
        resumes=True,
        has_rows=True,
        max_rejects="10%",
    ),
    JobCall(
        section=sections.EvaluateConfig,
        job="evaluation",
        example="bert-pipeline evaluate --model complaints --data test.csv "
        "--output complaints-test",
        has_rows=True,
        max_rejects="10%",
    ),
    JobCall(
        section=sections.ExportConfig,
        job="exporting",
        tasks=pretrained_tasks(),
        summary_of_task="Exports a pretrained model that predicts {}.",
        example="bert-pipeline export --run complaints --output complaints-model",
    ),
    JobCall(
        section=sections.ScoreConfig,
        job="scoring",
        where=sections.RunnerConfig,
        example="bert-pipeline score --model complaints-model --input new.csv --output scored.csv",
        has_rows=True,
    ),
    JobCall(
        section=sections.EmbedConfig,
        job="embedding",
        where=sections.RunnerConfig,
        example="bert-pipeline embed --model minilm --input texts.csv --output vectors.parquet",
        has_rows=True,
    ),
    JobCall(
        section=sections.SearchConfig,
        job="searching",
        where=sections.RunnerConfig,
        example="bert-pipeline search --queries queries.csv --corpus texts.csv --model minilm "
        "--output results.jsonl",
    ),
    JobCall(
        section=sections.SummarizeConfig,
        job="summarizing",
        where=sections.RunnerConfig,
        example="bert-pipeline summarize --model minilm --input articles.csv "
        "--output summaries.jsonl",
        has_rows=True,
    ),
    JobCall(
        section=sections.ImportWeightsConfig,
        job="import_weights",
        example="bert-pipeline import-weights all-MiniLM-L6-v2 --output minilm",
    ),
)
JOBS = {call.name: call for call in _CALLS}
