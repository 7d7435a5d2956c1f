"""Model configs of HuggingFace and Google are read; impossible shapes are refused."""

import json

import pytest

from bert_tf.config.bert import BertConfig, read_bert_config
from bert_tf.config.errors import UsageError

GOOGLE = {"vocab_size": 30522, "hidden_act": "gelu", "type_vocab_size": 2}
HUGGINGFACE = {**GOOGLE, "model_type": "bert", "architectures": ["BertModel"]}


@pytest.mark.parametrize(("document", "activation"), [(GOOGLE, "gelu_new"), (HUGGINGFACE, "gelu")])
def test_each_librarys_gelu_is_kept(tmp_path, document, activation):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document))
    assert read_bert_config(path).hidden_act == activation


def test_a_config_survives_being_written_and_read(tmp_path):
    config = BertConfig(vocab_size=100, hidden_size=8, num_attention_heads=2, hidden_act="relu")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.as_dict()))
    assert read_bert_config(path) == config


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not valid JSON"),
        ("{}", "the key 'vocab_size'"),
        ('{"vocab_size": 9, "model_type": "roberta"}', "only 'bert' can be read"),
        ('{"vocab_size": 9, "position_embedding_type": "relative_key"}', "only absolute"),
        ('{"vocab_size": 9, "hidden_size": 10, "num_attention_heads": 3}', "not a multiple"),
        ('{"vocab_size": 9, "hidden_act": "swish"}', "hidden_act 'swish' is not known"),
        ('{"vocab_size": 0}', "vocab_size must be a positive number, got 0"),
        ('{"vocab_size": 9, "hidden_dropout_prob": 1.0}', "from 0 to below 1"),
    ],
)
def test_an_unusable_config_is_refused_in_one_line(tmp_path, document, message):
    path = tmp_path / "config.json"
    path.write_text(document)
    with pytest.raises(UsageError, match=message) as caught:
        read_bert_config(path)
    assert "\n" not in str(caught.value)
