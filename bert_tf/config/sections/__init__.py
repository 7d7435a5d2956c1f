"""Every configuration section by its name in a YAML file."""

from bert_tf.config.section import Section
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig
from bert_tf.config.sections.finetuning import FinetuneConfig, LabelErrorsConfig
from bert_tf.config.sections.models import ExportConfig, ImportWeightsConfig
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.config.sections.scoring import (
    EmbedConfig,
    EvaluateConfig,
    ScoreConfig,
    SearchConfig,
    SummarizeConfig,
)
from bert_tf.config.sections.tables import RunnerConfig, StorageConfig

SECTIONS: dict[str, type[Section]] = {
    section.section_name: section
    for section in (
        VocabConfig,
        PreprocessConfig,
        TrainConfig,
        FinetuneConfig,
        LabelErrorsConfig,
        EvaluateConfig,
        ExportConfig,
        ScoreConfig,
        EmbedConfig,
        SearchConfig,
        SummarizeConfig,
        ImportWeightsConfig,
        RunnerConfig,
        StorageConfig,
    )
}
