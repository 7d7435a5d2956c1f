"""The models whose reference values make_reference.py writes, by the names of their folders."""

from bert_tf.models.classification import BertClassifier
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.masked_lm import BertMaskedLM
from bert_tf.models.multiple_choice import BertMultipleChoice
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.models.problem_type import ProblemType
from bert_tf.models.question_answering import BertQuestionAnswerer
from bert_tf.models.regression import BertRegressor
from bert_tf.models.token_classification import BertTokenClassifier

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
