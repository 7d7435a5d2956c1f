"""The head of a model card, as the Hugging Face Hub and its client read it."""

from __future__ import annotations

import pytest
import yaml

from bert_tf.base.cards import front_matter, read_front_matter
from bert_tf.base.checksums import CARD
from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.export.model_card import HUB_KEYS, hub_metadata
from bert_tf.export.registry import FORMATS
from bert_tf.tasks.registry import task_from_settings

GIVEN = {"license": None, "language": None, "base_model": None}
SETTINGS = {
    "task": "classification",
    "labels": ["no", "yes"],
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 64,
}
CACHED = "/home/ada/.cache/huggingface/hub/models--google-bert--bert-base-uncased/snapshots/86b5e09"
MANIFEST = {
    "inputs": [
        {"key": "train", "path": "data/train.csv"},
        {"key": "eval", "path": "data/dev.jsonl.gz"},
        {"key": "init", "path": CACHED},
    ],
    "metrics": {
        "best": {
            "step": 40,
            "loss": 0.3,
            "accuracy": 0.91234567891,
            "macro_f1": 0.5,
            "matthews_correlation": float("nan"),
        }
    },
}


def metadata(tmp_path, *, manifest=MANIFEST, kind="savedmodel", **given):
    return hub_metadata(
        task_from_settings(SETTINGS, "m").card(),
        FORMATS[kind],
        name="complaints-model",
        manifest=manifest,
        source=tmp_path,
        user_keys={**GIVEN, **given},
    )


def test_the_head_of_a_run(tmp_path):
    text = front_matter(metadata(tmp_path, license="apache-2.0", language=["en", "de"]), HUB_KEYS)
    first, body, rest = text.split("---\n")
    assert (first, rest) == ("", "\n")
    head = yaml.safe_load(body)
    index = head.pop("model-index")
    assert head == {
        "language": ["en", "de"],
        "license": "apache-2.0",
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "base_model": "google-bert/bert-base-uncased",
        "tags": ["bert", "bert-pipeline", "tensorflow", "saved-model"],
    }
    assert index == [
        {
            "name": "complaints-model",
            "results": [
                {
                    "task": {"type": "text-classification", "name": "Text classifier"},
                    "dataset": {"type": "json", "name": "dev.jsonl.gz", "split": "validation"},
                    "metrics": [
                        {"type": "accuracy", "value": 0.912346, "name": "accuracy"},
                        {"type": "f1", "value": 0.5, "name": "macro_f1"},
                    ],
                }
            ],
        }
    ]


def test_rows_held_out_are_named_so(tmp_path):
    manifest = {**MANIFEST, "inputs": [{"key": "train", "path": "data/train.tsv"}]}
    (index,) = metadata(tmp_path, manifest=manifest)["model-index"]
    dataset = {"type": "csv", "name": "train.tsv (held out)", "split": "validation"}
    assert index["results"][0]["dataset"] == dataset


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_without_the_head_promises_nothing_of_it(tmp_path, kind):
    head = metadata(tmp_path, kind=kind)
    keeps_head = kind != "sentence-transformers"
    assert ("model-index" in head) == keeps_head
    assert (head["pipeline_tag"] == "text-classification") == keeps_head


def test_a_model_without_a_run_has_no_results(tmp_path):
    head = yaml.safe_load(front_matter(metadata(tmp_path, manifest={}), HUB_KEYS).split("---\n")[1])
    assert head.keys() == {"library_name", "pipeline_tag", "tags"}


def test_a_folder_written_in_another_format_keeps_its_license(tmp_path):
    card = (
        "---\r\nlicense: other\r\nlicense_name: mine\r\nlanguage:\r\n- sv\r\nmodel-index: []\r\n"
        "widget: 3\r\n---\r\n# Model"
    )
    (tmp_path / "README.md").write_bytes(card.encode())
    head = metadata(tmp_path, manifest={}, language=["fi"])
    known = ("license", "license_name", "language", "widget")
    assert [head.get(key) for key in known] == ["other", "mine", ["fi"], None]


@pytest.mark.parametrize(
    "card",
    ["", "# Model\n---\nlicense: mit\n---\n", "---\n- a\n---\n", "---\na: [\n---\n", "\udcff"],
)
def test_a_card_that_the_hub_cannot_read_says_nothing(tmp_path, card):
    (tmp_path / "README.md").write_bytes(card.encode(errors="surrogateescape"))
    assert read_front_matter(tmp_path / CARD) == {}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("language", "English", "language: 'English' is not a language code"),
        ("language", "en,,de", "language: '' is not a language code"),
        ("license", "Apache License", "license: 'Apache License' is not a license id"),
        ("base_model", "a/b/c", "base_model: 'a/b/c' is not an id of the Hub"),
    ],
)
def test_what_the_hub_would_refuse_is_refused_first(key, value, message):
    with pytest.raises(ConfigError, match=message):
        build_section(ExportConfig, {"run": "r", "output": "m", key: value})
    good = {"language": "en, zh-Hans", "license": "cc-by-4.0", "base_model": "bert-base-uncased"}
    assert build_section(ExportConfig, {"run": "r", "output": "m", **good}).languages == [
        "en",
        "zh-Hans",
    ]


def test_the_client_of_the_hub_reads_the_head(tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="is not installed")
    path = tmp_path / "README.md"
    head = metadata(tmp_path, license="mit", language=["en"], base_model="ada/bert")
    path.write_text(front_matter(head, HUB_KEYS) + "# Text classifier\n")
    data = hub.ModelCard.load(path).data
    assert (data.license, data.language, data.base_model) == ("mit", ["en"], "ada/bert")
    assert (data.library_name, data.pipeline_tag) == ("transformers", "text-classification")
    assert data.model_name == "complaints-model"
    found = {each.metric_name: (each.metric_type, each.metric_value) for each in data.eval_results}
    assert found == {"accuracy": ("accuracy", 0.912346), "macro_f1": ("f1", 0.5)}
    assert {each.dataset_name for each in data.eval_results} == {"dev.jsonl.gz"}
    assert read_front_matter(tmp_path / CARD) == head
