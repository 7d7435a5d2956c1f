"""Model configs of HuggingFace and Google are read; settings that compute otherwise are refused."""

import json

import pytest

from bert_tf.base.errors import BertPipelineError, InputError, UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.config.bert_file import read_bert_document, read_task

GOOGLE = {"vocab_size": 30522, "hidden_act": "gelu", "type_vocab_size": 2}
OF_2019 = {**GOOGLE, "num_labels": 2, "torchscript": False}
HUGGINGFACE = {**GOOGLE, "model_type": "bert", "architectures": ["BertModel"]}


def written(tmp_path, document, name="config.json"):
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("name", "document", "activation"),
    [
        ("bert_config.json", GOOGLE, "gelu_new"),
        ("config.json", GOOGLE, "gelu_new"),
        ("bert_config.json", OF_2019, "gelu_new"),
        ("config.json", OF_2019, "gelu"),
        ("config.json", HUGGINGFACE, "gelu"),
    ],
)
def test_each_librarys_gelu_is_kept(tmp_path, name, document, activation):
    assert read_bert_document(written(tmp_path, document, name)).config.hidden_act == activation


def test_a_config_survives_being_written_and_read(tmp_path):
    config = BertConfig(vocab_size=100, hidden_size=8, num_attention_heads=2, hidden_act="relu")
    assert read_bert_document(written(tmp_path, config.as_dict())).config == config


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{}", "the key 'vocab_size'"),
        ('{"vocab_size": 9, "hidden_size": 10, "num_attention_heads": 3}', "not a multiple"),
        ('{"vocab_size": 9, "hidden_act": "swish"}', "hidden_act 'swish' is not known"),
        ('{"vocab_size": 0}', "vocab_size must be a positive integer, got 0"),
        ('{"vocab_size": true}', "vocab_size must be a positive integer, got True"),
        ('{"vocab_size": 9, "hidden_dropout_prob": 1.0}', "from 0 to below 1"),
        ('{"vocab_size": 9, "hidden_dropout_prob": "0.1"}', "from 0 to below 1, got '0.1'"),
        ('{"vocab_size": 9, "layer_norm_eps": NaN}', "layer_norm_eps must be from 0 to 1, got nan"),
        ('{"vocab_size": 9, "num_hidden_layers": 1000000000}', "is 1,000,000,000, at most 1,000"),
        ('{"vocab_size": 9, "hidden_size": 1200000}', "GiB of weights, at most 64 are built"),
        ('{"vocab_size": 1000000000}', "1,000,000,000 vocabulary entries would take 2,861 GiB"),
    ],
)
def test_an_impossible_shape_is_refused_in_one_line(tmp_path, document, message):
    with pytest.raises(UsageError, match=message) as caught:
        read_bert_document(written(tmp_path, document))
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "roberta"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("is_encoder_decoder", True),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"load_in_8bit": True}),
        ("auto_map", {"AutoModel": "modeling_jina.JinaBertModel"}),
        ("pooler_type", "mean"),
        ("architectures", ["RobertaForMaskedLM"]),
        ("architectures", ["JinaBertForMaskedLM"]),
        ("architectures", "BertModel"),
        ("embedding_size", 128),
        ("num_hidden_groups", 1),
    ],
)
def test_what_changes_the_numbers_is_refused_by_name(tmp_path, key, value):
    with pytest.raises(
        UsageError, match=f"{key} is .*(; expected |supported|must equal)"
    ) as caught:
        read_bert_document(written(tmp_path, {**HUGGINGFACE, key: value}))
    assert "\n" not in str(caught.value)


def test_what_leaves_the_numbers_alone_is_read_in_silence(tmp_path):
    document = {
        **HUGGINGFACE,
        "architectures": ["TFBertForSequenceClassification"],
        "is_decoder": False,
        "pruned_heads": {},
        "chunk_size_feed_forward": 64,
        "classifier_dropout": None,
        "embedding_size": 768,
        "gradient_checkpointing": True,
        "id2label": {"0": "no", "1": "yes"},
        "torch_dtype": "float16",
        "pooler_type": "first_token_transform",
    }
    read = read_bert_document(written(tmp_path, document))
    assert read.notes == () and not read.has_own_decoder


def test_unknown_keys_are_named(tmp_path):
    document = {**HUGGINGFACE, "rotary": 1, "classifier_dropout": 0.5, "tie_word_embeddings": False}
    read = read_bert_document(written(tmp_path, document))
    (note,) = read.notes
    assert note.endswith("ignored, because BERT does not use it: 'classifier_dropout', 'rotary'")
    assert read.has_own_decoder


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("{", InputError, "damaged .*; expected JSON"),
        ("[1]", InputError, "expected a JSON object"),
        ("[" * 200_000, InputError, "nested too deeply"),
        ('{"a":' * 200_000, InputError, "nested too deeply"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", InputError,
         "is a Git LFS pointer, not the file itself; run 'git lfs pull'"),
        (None, UsageError, "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_one_line(tmp_path, content, error, message):
    path = tmp_path / "config.json" if content is None else written(tmp_path, content)
    with pytest.raises(BertPipelineError, match=message) as caught:
        read_bert_document(path)
    assert type(caught.value) is error and "\n" not in str(caught.value)


# What every engine reads of an exported folder.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged"),
        ("[]", "expected a JSON object"),
        ("[" * 200_000, "nested too deeply"),
        (" " * ((64 << 20) + 1), "larger than 64 MiB"),
    ],
    ids=["cut short", "a list", "nested", "large"],
)
def test_a_damaged_task_is_named(tmp_path, content, message):
    assert read_task(tmp_path) is None
    (tmp_path / "task.json").write_text(content)
    with pytest.raises(InputError, match=rf"task\.json: .*{message}"):
        read_task(tmp_path)
