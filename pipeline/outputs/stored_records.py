"""Pretraining records on other storage, as files that TensorFlow reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.remote_path import RemotePath
from bert_tf.base.wording import quantity
from bert_tf.data.examples.token_counts import TOKEN_COUNTS_FILE
from bert_tf.data.records.dataset_info import PretrainingData
from pipeline.beam.copies import copy_files
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import read_manifest


def fetched_records(data: PretrainingData, folder: Path, console: Console) -> PretrainingData:
    """Copies records to a folder of this machine, unless they are on it.

    Args:
        data: read from their manifest.
        folder: for the copies.
        console: where the copying is reported.

    Raises:
        InputError: a file is not what the manifest says was written.
    """
    source = path_of(data.directory)
    if not isinstance(source, RemotePath):
        return data
    outputs = (read_manifest(source) or {}).get("outputs", [])
    names = [*data.train_shards, *data.eval_shards, "vocab.txt"]
    if (source / TOKEN_COUNTS_FILE).is_file():
        names.append(TOKEN_COUNTS_FILE)
    console.info(f"{source}: copying {quantity(len(names), 'file')} to {folder}")
    copy_files(
        {folder / name: source / name for name in names},
        {folder / each["path"]: each["sha256"] for each in outputs},
    )
    return dataclasses.replace(data, directory=str(folder))
