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
    card = model_card(CONFIG, task, lowercase=True, manifest=MANIFEST, has_saved_model=True)
    assert "| train.csv | 1,234,567 | `abababababababab…` |" in card
    assert "| accuracy | 0.9123 |" in card
    assert "| step | 40 |" in card
    assert "`label 19` and 5 more" in card
    assert 'text_pair=tf.constant(["another text"])' in card
    assert "AutoModelForSequenceClassification" in card


def test_card_of_a_pretrained_model_without_a_run():
    card = model_card(CONFIG, None, lowercase=False, manifest={}, has_saved_model=False)
    assert card.startswith("# Pretrained BERT encoder")
    assert "cased" in card
    assert "## Data" not in card
    assert "saved_model" not in card
