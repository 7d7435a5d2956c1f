"""`DATA_CARD.md`: the card of pretraining records, with the Hugging Face Hub's front matter."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from bert_tf.base.cards import card_section, front_matter, markdown_table, size_category
from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.sections.data import listed
from bert_tf.config.sections.models import HUB_LICENSE
from pipeline.corpus.curation.language import UNKNOWN
from pipeline.report.artifact import changed_settings
from pipeline.report.corpus.evidence import evidence_tables, table_lines

DATA_CARD = "DATA_CARD.md"
_TITLE = "Pretraining records for BERT"
_KEYS = ("language", "license", "pretty_name", "size_categories", "task_categories", "tags")
_MOST_FILES = 100
# Sentences for keys that are empty or `keep`.
_NOT_DONE = {
    "languages": "Languages were not identified.",
    "curation": "No published rule of quality was applied.",
    "duplicates": "Copies of documents were kept.",
    "duplicate_lines": "Lines that documents share were kept.",
    "personal_data": "Personal data was not replaced.",
}


def data_card(manifest: Mapping[str, Any]) -> str:
    """Write the card of pretraining records; the same records give the same bytes.

    Args:
        manifest: of `preprocess`.

    Returns:
        Front matter and Markdown: sources, evidence, settings, and the steps that were off.
    """
    sections = [
        f"# {_TITLE}",
        _summary(manifest),
        card_section("Sources", _sources(manifest["inputs"])),
        *(card_section(table.title, table_lines(table)) for table in evidence_tables(manifest)),
        card_section("Made with", _settings(manifest)),
        card_section("Not done", _not_done(manifest)),
    ]
    return front_matter(_metadata(manifest), _KEYS) + "\n\n".join(filter(None, sections)) + "\n"


def _metadata(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the front matter's values; a license only if all documents have the same one."""
    corpus = manifest["corpus"]
    wanted = listed(manifest["config"]["languages"])
    known = corpus.get("languages", {}).keys() - {UNKNOWN}
    licenses = corpus.get("licenses", {})
    license_id = next(iter(licenses), "")
    is_of_all = licenses == {license_id: corpus["documents_read"]}  # without another license
    return {
        "language": [language for language in wanted if language in known],
        "license": license_id if is_of_all and HUB_LICENSE.fullmatch(license_id) else None,
        "pretty_name": _TITLE,
        "size_categories": [size_category(sum(manifest["counts"]["examples"].values()))],
        "task_categories": ["fill-mask"],
        "tags": ["bert", "bert-pipeline"],
    }


def _summary(manifest: Mapping[str, Any]) -> str:
    counts = manifest["counts"]
    records = manifest["records"]
    examples = counts["examples"]
    return (
        f"{quantity(examples['train'], 'training example')} and "
        f"{quantity(examples['eval'], 'evaluation example')} of up to {records['max_seq_length']} "
        f"tokens, from {quantity(counts['documents'], 'document')} with "
        f"{quantity(counts['tokens'], 'token')}, as TFRecords for masked language modeling. "
        f"Vocabulary: {quantity(records['vocab_size'], 'entry')}, in `vocab.txt`."
    )


def _sources(inputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the input files, with paths relative to the folder that all are in.

    A card is published, so it does not name that folder.
    """
    folders = [item["path"].rpartition("/")[0] for item in inputs if item["key"] == "input"]
    # `commonpath` would join the two slashes of a URL, so the common characters are cut at a slash.
    common = os.path.commonprefix([f"{folder}/" for folder in folders]).rpartition("/")[0]  # noqa: RUF071
    rows = []
    for item in sorted(inputs, key=operator.itemgetter("key", "path")):
        path = item["path"]
        is_text = item["key"] == "input"
        name = path.removeprefix(f"{common}/") if is_text else path.rpartition("/")[2]
        rows.append((name, item["key"], item["bytes"], f"`{item['sha256']}`"))
    lines = markdown_table(("file", "read as", "bytes", "SHA-256"), rows[:_MOST_FILES])
    left = rows[_MOST_FILES:]
    if left:
        size = shown_size(sum(file_bytes for _, _, file_bytes, _ in left))
        lines += ["", f"And {quantity(len(left), 'more file')} of {size}."]
    return lines


def _settings(manifest: Mapping[str, Any]) -> list[str]:
    """Return the changed settings, with which the command makes the same records again."""
    changed, _ = changed_settings(dict(manifest))
    settings = {"preprocess": {"seed": manifest["config"]["seed"], **changed}}
    return [
        f"bert-pipeline {manifest['versions']['bert-pipeline']}: `bert-pipeline preprocess "
        "--config settings.yaml --input FILES --vocab vocab.txt --output DATA`; `settings.yaml`:",
        "",
        "```yaml",
        yaml.safe_dump(settings, sort_keys=False, allow_unicode=True).rstrip(),
        "```",
    ]


def _not_done(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each step that was off, so that no reader takes it for granted."""
    config = manifest["config"]
    for key, sentence in _NOT_DONE.items():
        if not config[key] or config[key] == "keep":
            yield f"- {sentence}"
    if all(item["key"] != "exclude" for item in manifest["inputs"]):
        yield "- Texts of evaluation sets were not looked for."
