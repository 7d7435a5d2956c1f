"""The page of runs side by side: settings, curves, data, evaluations, texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.base.checksums import file_sha256
from bert_tf.base.wording import quantity, shown_duration, shown_number, shown_setting
from bert_tf.tasks.base.report_sections import HistogramSection, TableSection
from bert_tf.training.best_model import BestModel
from pipeline.outputs.inputs import recorded_input
from pipeline.outputs.manifest import manifest_path, read_manifest
from pipeline.report.artifact import changed_settings, leaves
from pipeline.report.document import folded, html_document, sentence_case
from pipeline.report.runs import Run, plots_html, plots_style
from pipeline.report.runs_compared import best_name, compared_runs
from pipeline.report.texts_page import MOST_SHOWN, MOST_WORDS, text_html

if TYPE_CHECKING:
    from pipeline.report.texts_reading import Reading

_Facts = Mapping[str, str]
_HEALTH = {
    "tokens in a record": "reached_fraction",
    "truncated pairs": "truncation_fraction",
    "[UNK]": "unknown_fraction",
    "random second segments": "random_next_fraction",
    "tokens that are targets": "masked_fraction",
    "documents of one sentence": "one_sentence_fraction",
}
_MOST_NAMED = 3  # in the heading


def runs_page(
    runs: Sequence[Run], texts: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = ()
) -> str:
    """Render runs side by side, and texts as the model of each reads them.

    Args:
        runs: at least one.
        texts: single texts.
        pairs: texts to read together.

    Returns:
        The page: settings, curves, data, evaluations, texts.

    Raises:
        UsageError: a text is empty, or a run has no model.
        InputError: a page, records or a model are damaged.
    """
    names = ", ".join(run.name for run in runs)
    title = names if len(runs) <= _MOST_NAMED else quantity(len(runs), "run")
    warnings = [
        f'<p class="warning">{escape(run.name)}: {escape(note)}</p>'
        for run in runs
        for note in (run.manifest or {}).get("notes", [])
    ]
    texts_and_pairs = [*((text,) for text in texts), *pairs]
    best = best_name(runs)
    return html_document(
        title,
        [
            *warnings,
            *compared_runs(runs),
            _side_by_side("Runs", runs, lambda run: _ranked(run, best)),
            settings(runs),
            plots_html(runs),
            _side_by_side(
                "Data",
                runs,
                _about_data,
                note="Records as counted by preprocess, rows as read by finetune.",
            ),
            *_histograms(runs),
            _evaluations(runs),
            _texts(runs, texts_and_pairs),
        ],
        command="report",
        sheets=("texts",) if texts_and_pairs else (),
        style=plots_style(len(runs)),
    )


def _histograms(runs: Sequence[Run]) -> list[HistogramSection]:
    """Return histograms of the records that the runs read, each folder once."""
    folders: dict[Path, Path] = {}
    for run in runs:
        if run.is_pretraining:
            folders.update({folder.resolve(): folder for folder in records_of(run)})
    if not folders:
        return []
    from pipeline.report.records import summarize_records  # TensorFlow

    tables = []
    for folder in folders.values():
        summary = summarize_records(folder, samples=0)[0]
        tables += [
            dataclasses.replace(
                histogram,
                title=f"{sentence_case(histogram.title)} of {folder.name}",
                note=f"{sentence_case(summary.facts[-1])}.",
            )
            for histogram in summary.histograms
        ]
    return tables


def _evaluations(runs: Sequence[Run]) -> str:
    """Render the evaluations of all runs, one level of headings lower."""
    items = ""
    for number, run in enumerate(runs):
        html = run.evaluation_html()
        if html is None:
            continue
        lowered = html.replace("<h2>", "<h3>").replace("</h2>", "</h3>")
        items += folded(run.name, lowered, f' open class="evaluation of-{number}"') + "\n"
    return f"<h2>Evaluation</h2>\n{items}" if items else ""


def _texts(runs: Sequence[Run], texts: Sequence[tuple[str, ...]]) -> str:
    """Render the texts as each model reads them."""
    if not texts:
        return ""
    from pipeline.report.texts_reading import TextReader  # Keras, to run models

    readings: list[list[tuple[int, str, Reading]]] = [[] for _ in texts]
    for number, run in enumerate(runs):
        reader = TextReader(run.path)  # one model in memory at a time
        for place, text in enumerate(texts):
            reading = reader.read(*text, most=MOST_WORDS, first=MOST_SHOWN)
            readings[place].append((number, run.name, reading))
    return "".join(map(text_html, texts, readings))


def settings(runs: Sequence[Run]) -> TableSection:
    """Return the settings of one run that are not defaults; of several runs, those that differ."""
    if len(runs) == 1:
        return _side_by_side(
            "Settings", runs, _changed, note="Non-default settings; config.yaml has all."
        )
    first, *others = (run.config for run in runs)
    rows = []
    for key, value in first.items():
        is_common = key != "output" and all(key in config for config in others)
        if is_common and any(config[key] != value for config in others):
            rows.append([key, *(_shown(run.config[key]) for run in runs)])
    note = "None: these runs have the same settings."
    if rows:
        note = "Only settings that all of these runs have."
    return TableSection(
        title="Settings that differ", columns=_columns("setting", runs), rows=rows, note=note
    )


def records_of(run: Run) -> list[Path]:
    """Return the folders of records that a pretraining run read, if unchanged."""
    folders = []
    for item in (run.manifest or {}).get("inputs", []):
        folder = recorded_input(run.path, item["path"])
        if folder is None or not folder.is_dir():
            continue
        manifest = manifest_path(folder)
        if manifest.is_file() and file_sha256(manifest) == item["sha256"]:
            folders.append(folder)
    return folders


def _ranked(run: Run, best: str | None) -> _Facts:
    """Return the facts on a run; the first says whether it is the best one."""
    facts = _about_run(run)
    return {"compared": "★ best", **facts} if run.name == best else facts


def _about_run(run: Run) -> _Facts:
    """Return facts on a run: its command, inputs, state, time and best model."""
    last = run.lines[-1]
    facts = {"made by": f"bert-pipeline {run.command}"}
    task = run.config.get("task")
    if task:
        facts["task"] = str(task)
    for item in (run.manifest or {}).get("inputs", []):
        if "key" in item:
            facts[f"{item['key']} from"] = item["path"]
    if run.manifest is None:
        facts["state"] = "not finished"
    else:
        stopped = run.manifest.get("stopped_early")
        facts["state"] = f"stopped early: {stopped}" if stopped else "finished"
    facts["steps"] = f"{last['step']:,}"
    if "time" in last:
        facts["time of training"] = shown_duration(last["time"])
    best = BestModel.of_manifest(run.manifest or {})
    if best is not None:
        facts["best model"] = str(best).removeprefix("the model of ")
    metrics = (run.manifest or {}).get("metrics", {}).get("best") or {}
    for name, value in metrics.items():
        if name not in ("step", "phase"):
            facts[f"best model's {name}"] = shown_number(value)
    return facts


def _changed(run: Run) -> _Facts:
    """Return the settings of a run that are not defaults, in words."""
    changed, _ = changed_settings({"command": run.command, "config": run.config})
    facts = {".".join(path): shown_setting(value) for path, value in leaves(changed)}
    facts.pop("output", None)
    return facts


def _shown(value: Any) -> str | None:
    return None if value is None else shown_setting(value)


def _about_data(run: Run) -> _Facts:
    """Return facts on the data of a run, if its manifest or that of its records has them."""
    if run.manifest is None:
        return {"data": "known when the run is finished"}
    if not run.is_pretraining:
        return _about_rows(run.manifest.get("counts", {}))
    folders = records_of(run)
    if not folders:
        return {"data": "its records are gone or were made again"}
    if len(folders) == 1:
        return _about_records(read_manifest(folders[0]) or {})
    return {
        f"{folder.name}: {name}": text
        for folder in folders
        for name, text in _about_records(read_manifest(folder) or {}).items()
    }


def _about_records(manifest: Mapping[str, Any]) -> dict[str, str]:
    counts = manifest.get("counts", {})
    metrics = manifest.get("metrics", {})
    records = manifest.get("records", {})
    config = manifest.get("config", {})
    facts = {
        name: f"{counts[name]:,}" for name in ("documents", "sentences", "tokens") if name in counts
    }
    for split, number in counts.get("examples", {}).items():
        facts[f"{split} examples"] = f"{number:,}"
    facts["longest sequence"] = f"{records.get('max_seq_length', 0):,} tokens"
    facts["masking"] = str(records.get("masking", config.get("masking", "token")))
    if "masked_lm_prob" in config:
        facts["masked tokens"] = f"{config['masked_lm_prob']:.0%}"
        facts["most masks per sequence"] = f"{records.get('max_predictions_per_seq', 0):,}"
    if "vocab_size" in records:
        facts["vocabulary"] = f"{records['vocab_size']:,} entries"
    for name, measured in _HEALTH.items():
        if measured in metrics:
            facts[name] = f"{metrics[measured]:.2%}"
    facts["rejected"] = f"{sum(counts.get('rejected', {}).values()):,}"
    if manifest.get("notes"):
        facts["warnings"] = "; ".join(manifest["notes"])
    return facts


def _about_rows(counts: Mapping[str, Any]) -> dict[str, str]:
    facts = {}
    for split in ("train", "eval"):
        of_split = counts.get(split)
        if not of_split:
            continue
        facts[f"{split} rows"] = f"{of_split['rows_out']:,}"
        facts[f"{split} rows rejected"] = f"{of_split['rows_rejected']:,}"
        if of_split.get("sequences"):
            mean = of_split["tokens"] / of_split["sequences"]
            facts[f"{split} tokens per sequence"] = f"{mean:.1f}"
            cut = of_split["rows_cut"] / max(of_split["rows_out"], 1)
            facts[f"{split} rows cut"] = f"{of_split['rows_cut']:,} ({cut:.1%})"
            facts[f"{split} tokens lost"] = f"{of_split['tokens_lost']:,}"
    return facts


def _side_by_side(
    title: str, runs: Sequence[Run], facts_of: Callable[[Run], _Facts], *, note: str = ""
) -> TableSection:
    """Return a table with a column for each run and a row for each fact that any run has."""
    all_of = [facts_of(run) for run in runs]
    names = dict.fromkeys(name for facts in all_of for name in facts)
    return TableSection(
        title=title,
        columns=_columns("run", runs),
        rows=[[name, *(facts.get(name) for facts in all_of)] for name in names],
        note=note,
    )


def _columns(first: str, runs: Sequence[Run]) -> Any:
    return ((first, "text"), *((run.name, "text") for run in runs))
