"""The models whose reference values make_reference.py writes, by the names of their folders."""

from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import (
    BertClassifier,
    BertMaskedLM,
    BertMultipleChoice,
    BertPretrainingModel,
    BertQuestionAnswerer,
    BertRegressor,
    BertTokenClassifier,
    ProblemType,
)

MODELS = {
    "encoder": BertEncoder,
    "encoder_tanh_gelu": BertEncoder,
    "pretraining": BertPretrainingModel,
    "masked_lm": BertMaskedLM,
    "classification": lambda config: BertClassifier(config, 3),
    "regression": BertRegressor,
    "multi_label": lambda config: BertClassifier(
        config, 4, problem_type=ProblemType.MULTI_LABEL_CLASSIFICATION
    ),
    "multiple_choice": BertMultipleChoice,
    "token_classification": lambda config: BertTokenClassifier(config, 5),
    "question_answering": BertQuestionAnswerer,
}
