"""Engines by their names on the command line; an engine is imported when it is loaded."""

from __future__ import annotations

import dataclasses
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bert_tf.base.checksums import check_sums, read_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError, are_installed, missing_folder_error
from bert_tf.base.processor import is_bfloat16_excluded
from bert_tf.config.registries import AUTO, BFLOAT16, FLOAT16, FLOAT32, INT8, Entry, by_name

if TYPE_CHECKING:
    from bert_tf.engines.engine import Engine

FROZEN_WEIGHTS = "BERT_PIPELINE_FROZEN_WEIGHTS"  # environment variable, see below
SERVING_VERSION = "1"  # the folder with the model in an export for TensorFlow Serving


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineEntry(Entry):
    """An engine, which is imported when it is loaded.

    Attributes:
        module: module with the function `load`; see `Engine`.
        model_file: it loads folders with this file, or one of `other_models`, and all
            `needed_files`.
        other_models: see `model_file`.
        needed_files: see `model_file`.
        other_files: further files that it reads if they exist; folders end with a slash.
        precisions: the most exact first.
        int8_file: graph of 8-bit integers from `export --precision int8`; None if it has none.
        takes_token_ids: whether texts are tokenized outside of its graph.
        is_extra: whether its packages are an extra, which other machines may lack.
        needs_bfloat16: whether it crashes if ONEDNN_MAX_CPU_ISA excludes bfloat16.
        is_of_gpus: whether `auto` chooses only this one if it can run.
        model_fault: `module:function`, from an exported folder and this entry to the reason why the
            engine cannot run the model, or None; None if it runs all models.
    """

    request: ClassVar[str] = "--engine {}"
    instead: ClassVar[str] = "let --engine auto choose"

    module: str
    model_file: str
    other_models: tuple[str, ...] = ()
    needed_files: tuple[str, ...] = ()
    other_files: tuple[str, ...] = ()
    precisions: tuple[str, ...] = (FLOAT32,)
    int8_file: str | None = None
    takes_token_ids: bool = False
    is_extra: bool = False
    needs_bfloat16: bool = False
    is_of_gpus: bool = False
    model_fault: str | None = None

    def is_installed(self) -> bool:
        """Return whether its packages are installed."""
        return are_installed(self.packages)

    def can_load(self, folder: Path) -> bool:
        """Return whether an exported folder has the model in this engine's format."""
        models = (self.model_file, *self.other_models)
        return any((folder / name).is_file() for name in models) and all(
            (folder / name).is_file() for name in self.needed_files
        )

    def precisions_of(self, folder: Path) -> tuple[str, ...]:
        """Return the precisions in which it can run a model."""
        has_int8 = self.int8_file is not None and (folder / self.int8_file).is_file()
        if has_int8:
            return self.precisions
        return tuple(precision for precision in self.precisions if precision != INT8)

    def fault(self, folder: Path) -> str | None:
        """Return why it cannot run a model whose files it can load; None if it can."""
        if self.needs_bfloat16 and is_bfloat16_excluded():
            return "would crash with ONEDNN_MAX_CPU_ISA set, which its copy of oneDNN reads too"
        if self.model_fault is None:
            return None
        module, _, function = self.model_fault.partition(":")
        reason: str | None = getattr(importlib.import_module(module), function)(folder, self)
        return reason

    def reads(self, name: str) -> bool:
        """Return whether it reads a file, given by its path in the model's folder."""
        folders = tuple(other for other in self.other_files if other.endswith("/"))
        files = (self.model_file, self.int8_file, *self.needed_files, *self.other_files)
        return name in files or name.startswith(folders)

    def load(
        self,
        folder: str | Path,
        *,
        threads: int | None = None,
        is_checked: bool = False,
        precision: str = FLOAT32,
        allows_drift: bool = False,
    ) -> Engine:
        """Import the engine and load a model, after comparing its files with its `SHA256SUMS`.

        The scores of the model's probe rows have to be those of the export, see `check_probes`.

        Args:
            folder, threads, is_checked: see `EngineLoader.load`.
            precision: one of its precisions.
            allows_drift: whether other scores are only a warning.
        """
        # It loads NumPy, which `--help` does not need.
        from bert_tf.engines.probes import PROBES, check_probes

        check_is_exported(folder)
        if not is_checked:
            check_sums(Path(folder), lambda name: name == PROBES or self.reads(name))
        module = importlib.import_module(self.module)
        engine: Engine = module.load(Path(folder), threads=threads, precision=precision)
        check_probes(Path(folder), engine, self.name, precision, allows_drift=allows_drift)
        return engine


_TOKENIZER_FILES = ("tokenizer_config.json", "tokenizer.json", "added_tokens.json")
# Fields of engines whose graph takes token ids. If the folder has no graph, they make one from the
# weights.
_OF_TOKEN_IDS: dict[str, Any] = {
    "needed_files": ("config.json", "model.safetensors", "task.json", "vocab.txt"),
    "takes_token_ids": True,
    "is_extra": True,
    "model_fault": "bert_tf.engines.token_ids:model_fault",
}
SAVED_MODEL_FILE = "saved_model.pb"
# Sorted as `auto` prefers them.
ENGINES: dict[str, EngineEntry] = by_name(
    EngineEntry(
        name="openvino",
        module="bert_tf.engines.openvino_runtime",
        packages=("openvino", "onnx"),
        model_file="openvino_model.xml",
        other_models=("model.onnx", SAVED_MODEL_FILE),
        other_files=(
            "model.onnx",
            "openvino_model.bin",
            "openvino_model_int8.bin",
            *_TOKENIZER_FILES,
        ),
        precisions=(FLOAT32, BFLOAT16, INT8),
        int8_file="openvino_model_int8.xml",
        needs_bfloat16=True,
        **_OF_TOKEN_IDS,
    ),
    EngineEntry(
        name="onnxruntime",
        module="bert_tf.engines.onnx_runtime",
        packages=("onnxruntime", "onnx"),
        model_file="model.onnx",
        other_models=("openvino_model.xml", SAVED_MODEL_FILE),
        other_files=_TOKENIZER_FILES,
        precisions=(FLOAT32, INT8),
        int8_file="model_int8.onnx",
        **_OF_TOKEN_IDS,
    ),
    EngineEntry(
        name="tensorflow",
        module="bert_tf.engines.saved_model",
        packages=("tensorflow", "tensorflow_text"),
        model_file=SAVED_MODEL_FILE,
        other_files=("fingerprint.pb", "task.json", "assets/", "variables/"),
        precisions=(FLOAT32, BFLOAT16),
    ),
    EngineEntry(
        name="cuda",
        module="bert_tf.engines.cuda",
        packages=("tensorflow", "nvidia"),
        model_file=SAVED_MODEL_FILE,
        other_models=("model.onnx", "openvino_model.xml"),
        other_files=_TOKENIZER_FILES,
        precisions=(FLOAT32, BFLOAT16, FLOAT16),
        is_of_gpus=True,
        **{**_OF_TOKEN_IDS, "model_fault": "bert_tf.engines.cuda:model_fault"},
    ),
)


def is_exported(folder: str | Path) -> bool:
    """Return whether a folder has an exported model, in any engine's format."""
    return any(entry.can_load(Path(folder)) for entry in ENGINES.values())


def exported_folder(path: str | Path) -> Path:
    """Return the folder of the model: for TensorFlow Serving that of the newest version."""
    folder = Path(path)
    if is_exported(folder) or not folder.is_dir():
        return folder
    versions = [
        child for child in folder.iterdir() if child.name.isdecimal() and is_exported(child)
    ]
    return max(versions, key=lambda version: int(version.name), default=folder)


def exported_model(path: str, console: Console) -> str:
    """Return the folder of a model that is about to run; see `exported_folder`.

    Warns of a SavedModel that has no checksums of ours, since running a graph can do any harm.
    """
    folder = exported_folder(path)
    graph = SAVED_MODEL_FILE
    if (folder / graph).is_file() and graph not in read_sums(folder):
        console.warn(
            f"{folder}: {graph} has no checksum of bert-pipeline; it may read and write any "
            "of your files when it runs, so only run it if you trust its origin"
        )
    return path if folder == Path(path) else str(folder)


def check_is_exported(folder: str | Path) -> None:
    """Raise UsageError for a folder that is missing or in no engine's format."""
    path = Path(folder)
    if not path.is_dir():
        raise missing_folder_error(path, "model directory")
    if is_exported(path):
        return
    if (path / "checkpoints").is_dir() or (path / "best").is_dir():
        raise UsageError(
            f"{path}: is a run, not an exported model; "
            f"run bert-pipeline export --run {path} --output DIR first"
        )
    files = " or ".join(dict.fromkeys(entry.model_file for entry in ENGINES.values()))
    raise UsageError(
        f"{path}: is not an exported model (it has no {files}); "
        "make one with bert-pipeline export --run RUN --output DIR"
    )


def resolve_engine(name: str, folder: str | Path) -> EngineEntry:
    """Return the engine asked for, or the preferred one; see `usable_engines`."""
    return usable_engines(name, folder)[0]


def usable_engines(name: str, folder: str | Path) -> list[EngineEntry]:
    """List the engine asked for, or all that are installed and can run the model.

    Args:
        name: name of an engine, or `auto`.
        folder: the exported model.

    Returns:
        At least one engine, the preferred one first.

    Raises:
        UsageError: there is none.
    """
    known = (AUTO, *ENGINES)
    if name not in known:
        raise UsageError(f"engine {name!r} is not known; take one of {', '.join(known)}")
    path = Path(folder)
    check_is_exported(path)
    able = [entry for entry in ENGINES.values() if entry.can_load(path)]
    if name == AUTO:
        installed = [entry for entry in able if entry.is_installed()]
        usable = [entry for entry in installed if entry.fault(path) is None]
        if usable:
            return [entry for entry in usable if entry.is_of_gpus] or usable
        if installed:
            raise UsageError(f"{path}: {installed[0].name} {installed[0].fault(path)}")
        raise UsageError(
            f"{path}: none of the engines that can load it is installed; "
            + " or ".join(f"pip install 'bert-pipeline[{entry.name}]'" for entry in able)
        )
    entry = ENGINES[name]
    if entry not in able:
        raise UsageError(
            f"--engine {name}: {path} has no {entry.model_file}, which this engine loads; "
            f"take --engine {' or '.join(other.name for other in able)}"
        )
    entry.check_installed()
    fault = entry.fault(path)
    if fault is not None:
        raise UsageError(f"--engine {name}: {fault}; let --engine auto choose")
    return [entry]


def declare_frozen_weights() -> None:
    """Declare that this process, and those it starts from now on, never change weights."""
    os.environ[FROZEN_WEIGHTS] = "1"
