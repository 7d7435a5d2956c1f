"""The model of vectors, with the settings by which it makes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.bert_file import model_folder
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.config.sections import EmbedConfig, SummarizeConfig
from bert_tf.config.sections.scoring import TextVectorsSection
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.engines.engine import EngineLoader
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.weights.model_directory import ModelDirectory, read_model_directory
from pipeline.outputs.job_folder import check_finished
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.plan import ScoringPlan, parts_folder
from pipeline.scoring.tables import ScoredTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorSource:
    """A model of vectors, with the settings by which it makes them.

    Attributes:
        folder: of the model and its recipe's files, on which the vectors depend.
        directory: the model's config, weights and vocabulary.
        recipe: pooling, prompts and lengths of the model, with the user's changes.
        settings: the recipe and further choices of the user, for the engine.
        text_column: column of the texts.
    """

    folder: str
    directory: ModelDirectory
    recipe: EmbeddingRecipe
    settings: EmbedderSettings
    text_column: str

    @property
    def notes(self) -> list[str]:
        return [RAW_CLS] if self.recipe.is_raw_cls and not self.settings.tokens else []

    def plan(
        self,
        config: EmbedConfig | SummarizeConfig,
        tables: Sequence[ScoredTable],
        *,
        engine: EngineLoader,
        fields: tuple[PredictionField, ...],
        vectors_per_row: int,
    ) -> ScoringPlan:
        """Plan a job that adds columns to tables.

        Args:
            config: rows of a block, limit, dialect.
            tables: inputs and outputs.
            engine: makes the columns.
            fields: the columns.
            vectors_per_row: number of vectors of a row; more of them make smaller blocks.
        """
        is_folder = bool(tables[0].name)
        return ScoringPlan(
            model=str(self.directory.path.absolute()),
            engine=engine,
            columns=ScoringColumns(
                sources={"text": self.text_column}, fields=fields, can_rename=False
            ),
            tables=tuple(tables),
            is_folder=is_folder,
            parts=parts_folder(config.output, is_folder=is_folder),
            block_rows=max(1, config.block_rows // vectors_per_row),
            limit=config.limit,
            batch_tokens=config.batch_tokens,
            dialect=TableDialect.of(config),
        )


def open_vector_source(
    model: str, config: TextVectorsSection, *, tokens: bool = False, prompt_name: str | None = None
) -> VectorSource:
    """Open a model and resolve the settings that the config leaves to it.

    Args:
        model: run or model directory.
        config: settings of vectors.
        tokens: whether to make a vector per token.
        prompt_name: None for the model's default, "" for no prompt.

    Raises:
        UsageError: the model is unsuitable.
        InputError: it is damaged.
    """
    check_finished(model)
    folder = model_folder(model)
    directory = read_model_directory(folder)
    _check_shape(model, directory, config)
    most = directory.config.max_position_embeddings
    recipe = (directory.recipe or EmbeddingRecipe(max_seq_length=most)).changed(
        pooling=config.pooling, normalize=config.normalize, max_seq_length=config.max_seq_length
    )
    if prompt_name and prompt_name not in recipe.prompts:
        known = ", ".join(recipe.prompts) or "none"
        raise UsageError(f"--prompt-name {prompt_name}: {model} has no such prompt; it has {known}")
    settings = EmbedderSettings(
        pooling=recipe.pooling,
        normalize=recipe.normalize,
        max_seq_length=recipe.max_seq_length,
        layers=config.layers,
        layer_combination=config.layer_combination,
        tokens=tokens,
        prompt=recipe.prompt(prompt_name),
        lowercase_texts=recipe.lowercase_texts,
    )
    if tokens and (settings.prompt or settings.lowercase_texts):
        raise UsageError(
            f"--tokens: {model} changes texts before it reads them (a prompt or lower-casing of "
            "sentence-transformers), so its tokens have no places in them; leave --tokens out"
        )
    trained_on = (directory.task or {}).get("columns", {}).get("text")
    return VectorSource(
        folder=str(folder),
        directory=directory,
        recipe=recipe,
        settings=settings,
        text_column=config.text_column or trained_on or "text",
    )


def _check_shape(model: str, directory: ModelDirectory, config: TextVectorsSection) -> None:
    """Raise UsageError if the model has fewer positions or layers than the config asks for."""
    shape = directory.config
    most = shape.max_position_embeddings
    if config.max_seq_length is not None and config.max_seq_length > most:
        raise UsageError(
            f"--max-seq-length {config.max_seq_length}: {model} has {most} positions; "
            f"give at most {most}"
        )
    for layer in config.layers:
        if not -shape.num_hidden_layers - 1 <= layer <= shape.num_hidden_layers:
            raise UsageError(
                f"--layers {layer}: {model} has {quantity(shape.num_hidden_layers, 'layer')}; "
                f"give 0 to {shape.num_hidden_layers}, or -1 for the last"
            )


def describe_settings(settings: EmbedderSettings) -> str:
    """Return the settings of vectors in one line."""
    layers = ", ".join(map(str, settings.layers))
    source = f"{settings.layer_combination} of layers {layers}"
    if len(settings.layers) == 1:
        source = f"layer {layers}"
    parts = [
        "one per token" if settings.tokens else f"{settings.pooling} of the tokens",
        source,
        "normalized" if settings.normalize else "not normalized",
        f"at most {settings.max_seq_length} tokens",
    ]
    if settings.lowercase_texts:
        parts.append("texts lower-cased")
    if settings.prompt:
        parts.append(f"after the prompt {settings.prompt!r}")
    return "; ".join(parts)
