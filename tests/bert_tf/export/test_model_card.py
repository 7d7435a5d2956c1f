"""The model card names the data, the metrics and how to load the model."""

from bert_tf.config.bert import BertConfig
from bert_tf.export.model_card import model_card

CONFIG = BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
MANIFEST = {
    "inputs": [{"path": "data/train.csv", "bytes": 1234567, "sha256": "ab" * 32}],
    "metrics": {"best": {"step": 40, "accuracy": 0.91234, "loss": 0.3}},
}


def test_classification_card():
    task = {
        "task": "classification",
        "labels": [f"label {number}" for number in range(25)],
        "columns": {"text": "text", "text_pair": "reply", "label": "label"},
        "max_seq_length": 64,
    }
    card = model_card(
        CONFIG, task, lowercase=True, manifest=MANIFEST, written_format="savedmodel", notes=[]
    )
    assert "| train.csv | 1,234,567 | `abababababababab…` |" in card
    assert "| accuracy | 0.9123 |" in card
    assert "| step | 40 |" in card
    assert "`label 19` and 5 more" in card
    assert 'text_pair=tf.constant(["another text"])' in card
    assert "AutoModelForSequenceClassification" in card


def test_card_of_a_pretrained_model_without_a_run():
    card = model_card(
        CONFIG, None, lowercase=False, manifest={}, written_format="huggingface", notes=[]
    )
    assert card.startswith("# Pretrained BERT encoder")
    assert "cased" in card
    assert "## Data" not in card
    assert "saved_model" not in card


def test_cards_for_other_libraries_say_how_those_load_it():
    card = model_card(
        CONFIG, None, lowercase=True, manifest={}, written_format="keras-hub", notes=["no head"]
    )
    assert 'keras_hub.models.BertBackbone.from_preset("THIS_FOLDER")' in card
    assert "## What differs\n- no head\n" in card
    card = model_card(
        CONFIG, None, lowercase=True, manifest={}, written_format="google-tf1", notes=[]
    )
    assert "run_pretraining.py --bert_config_file=THIS_FOLDER/bert_config.json" in card
    assert "do_lower_case" not in card, "that script takes records, not text"
    assert "transformers" not in card
    card = model_card(
        CONFIG, None, lowercase=True, manifest={}, written_format="google-tf2", notes=[]
    )
    assert "    num_layers=1,\n    num_attention_heads=2,\n" in card
    assert 'Checkpoint(encoder=encoder).read("THIS_FOLDER/bert_model.ckpt-1")' in card


def test_a_run_without_evaluation_has_no_metrics_to_tell():
    inputs = [{"path": "runs/base/best", "bytes": 5, "sha256": "ab" * 32}]
    manifest = {"inputs": inputs, "metrics": {"best": {"step": 40}}}
    card = model_card(
        CONFIG, None, lowercase=True, manifest=manifest, written_format="huggingface", notes=[]
    )
    assert "## Metrics" not in card
    assert "| base/best | 5 |" in card
