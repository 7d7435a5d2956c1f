"""The import rule: one direction between and inside the packages, and a light command line."""

import ast
import functools
import importlib.util
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from size import measure_module

import bert_tf
from bert_tf.tasks import PRETRAINED_TASKS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration, TaskDeclaration
from bert_tf.tasks.registry import TASKS, declared_task

ROOT = Path(__file__).parent.parent

# A package may import those to its left, never those to its right.
BERT_TF_ORDER = [
    "base", "config", "data", "layers", "cpu", "xla", "models", "weights", "training",
    "pretraining", "serving", "tasks", "engines", "embeddings", "export",
]  # fmt: skip
PIPELINE_LEVELS = {
    "beam": 0,
    "outputs": 1,
    "corpus": 2,
    "vocabulary": 3,
    "examples": 3,
    "scoring": 3,
    "embedding": 4,
    "report": 5,
    "proposal": 6,
    "trying": 6,
    "jobs": 7,
    "demo": 8,
    "cli": 9,
    "__main__": 10,
    "api": 10,
    "__init__": 11,
}


@functools.cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(syntax_tree(path)))


@functools.cache
def imported_modules(path: Path) -> list[str]:
    names = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module)
    return names


def imports_inside(package: str) -> list[tuple[str, str, str]]:
    """(file, its room, the imported module) for every import of this project's modules."""
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        room = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        for module in imported_modules(path):
            if module.split(".")[0] in ("bert_tf", "pipeline"):
                found.append((str(path.relative_to(ROOT)), room, module))
    assert found
    return found


def modules_on_import(path: Path, *, and_later: bool = False) -> list[str]:
    """Return the modules that the import of a file imports, without those for type checkers alone.

    Args:
        path: the file.
        and_later: whether what its functions import when they are called is wanted too.
    """
    waiting = list(syntax_tree(path).body)
    names = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif and_later or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)
    return names


def files_of(module: str) -> list[Path]:
    """Return a module's file; a package's, all of it."""
    path = ROOT / module.replace(".", "/")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


@pytest.mark.parametrize("package", ["bert_tf", "pipeline"])
def test_nothing_can_run_code_of_a_file(package):
    """Neither pickles nor `eval`; `pickletools` only names opcodes."""
    unsafe = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    names = {"eval", "exec", "compile"}
    for path in (ROOT / package).rglob("*.py"):
        found = unsafe & {module.partition(".")[0] for module in imported_modules(path)}
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found |= names & {node.func.id}
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                found |= {"allow_pickle"} if ast.unparse(node.value) != "False" else set()
        assert not found, path


def test_the_model_never_imports_the_pipeline():
    wrong = [row for row in imports_inside("bert_tf") if row[2].split(".")[0] == "pipeline"]
    assert not wrong


def test_bert_tf_imports_flow_one_way():
    wrong = [
        (file, module)
        for file, room, module in imports_inside("bert_tf")
        if room != "__init__"
        and BERT_TF_ORDER.index(module.split(".")[1]) > BERT_TF_ORDER.index(room)
    ]
    assert not wrong


def test_pipeline_imports_flow_one_way():
    wrong = [
        (file, module)
        for file, room, module in imports_inside("pipeline")
        if module.split(".")[0] == "pipeline"
        and module.split(".")[1] != room
        and PIPELINE_LEVELS[module.split(".")[1]] >= PIPELINE_LEVELS[room]
    ]
    assert not wrong


def folder_of(module: str) -> str:
    """Return the folder whose code a module is."""
    return module if (ROOT / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


@pytest.mark.parametrize("package", ["bert_tf", "pipeline"])
def test_no_two_folders_import_each_other(package):
    edges: dict[str, set[str]] = {}
    for file, _, module in imports_inside(package):
        here = ".".join(Path(file).parent.parts)
        there = folder_of(module)
        # A folder's files may name what its subfolders hold, which use them: a registry, say.
        # That no files among these import each other is the test below.
        is_nested = f"{here}.".startswith(f"{there}.") or f"{there}.".startswith(f"{here}.")
        if there.split(".")[0] == package and not is_nested:
            edges.setdefault(here, set()).add(there)
    assert not cycles(edges)


@pytest.mark.parametrize("package", ["bert_tf", "pipeline"])
def test_no_two_files_import_each_other(package):
    """Nor several in a circle, in functions either; types alone may name one another."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / package).rglob("*.py")
    }
    edges = {
        module: set(modules_on_import(path, and_later=True)) & files.keys()
        for module, path in files.items()
    }
    assert sum(map(len, edges.values())) > len(files)
    assert not cycles(edges)


def cycles(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the rest of a graph when all nodes that lead to no cycle are taken away."""
    waiting = dict(edges)
    while leaves := [here for here, there in waiting.items() if not there & waiting.keys()]:
        for here in leaves:
            del waiting[here]
    return waiting


@pytest.mark.parametrize("room", ["corpus", "vocabulary", "examples"])
def test_data_workers_never_load_a_model(room):
    allowed = {"base", "config", "data"}
    wrong = [
        (file, module)
        for file, here, module in imports_inside("pipeline")
        if here == room and module.split(".")[0] == "bert_tf"
        and module.split(".")[1] not in allowed
    ]  # fmt: skip
    assert not wrong


@pytest.mark.parametrize(
    "module",
    ["bert_tf.config", "bert_tf.layers", "bert_tf.models", "bert_tf.weights.model_directory"],
)
def test_models_and_their_weights_import_without_tensorflow(module):
    waiting = files_of(module)
    seen = set()
    wrong = []
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in modules_on_import(path):
            root = name.split(".")[0]
            if root == "bert_tf":
                waiting += filter(Path.is_file, files_of(name))
            elif root in ("tensorflow", "tensorflow_text", "keras_hub"):
                wrong.append((str(path.relative_to(ROOT)), name))
    assert not wrong


def test_kerashub_is_loaded_only_for_its_presets():
    """It takes a second of the start of a command."""
    preset = "bert_tf.weights.keras_hub_preset"
    for path in sorted({*files_of("bert_tf"), *files_of("pipeline")} - {*files_of(preset)}):
        assert not {preset, "keras_hub"} & {*modules_on_import(path)}, path


def test_tensorflow_text_is_imported_in_one_place():
    """That place names the version to install where the versions do not fit."""
    for path in sorted({*files_of("bert_tf"), *files_of("pipeline")}):
        assert "tensorflow_text" not in modules_on_import(path, and_later=True), path


def test_imports_have_a_form_that_the_cache_of_compiled_functions_follows():
    for path in sorted({*files_of("bert_tf"), *files_of("pipeline")}):
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                assert len(node.names) == 1, f"{path}: one module per import"
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path}: imports are absolute"


def test_numba_is_imported_with_the_cache_that_notices_all_changes():
    cached = "bert_tf/base/compiled.py"
    for path in sorted({*files_of("bert_tf"), *files_of("pipeline")} - {ROOT / cached}):
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            is_part = isinstance(node, ast.ImportFrom) and node.module == "numba"
            assert "numba" not in names and not is_part, f"{path}: import it from {cached}"


def test_every_function_of_tensorflow_is_without_autograph():
    """It looks at all modules, and so loads those that wait for their use."""
    for path in files_of("bert_tf"):
        without = {
            node.func
            for node in nodes_of(path)
            if isinstance(node, ast.Call) and "autograph=False" in map(ast.unparse, node.keywords)
        }
        for node in set(nodes_of(path)) - without:
            assert not isinstance(node, ast.Attribute) or ast.unparse(node) != "tf.function", path


def test_the_wrappers_of_keras_load_late_and_whole(monkeypatch):
    import keras

    monkeypatch.delitem(sys.modules, "keras.wrappers", raising=False)
    spec = bert_tf.LateWrappers.find_spec("keras.wrappers", keras.__path__)
    assert isinstance(spec.loader, importlib.util.LazyLoader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "SKLearnClassifier" not in object.__getattribute__(module, "__dict__")
    assert module.SKLearnClassifier.__module__.startswith("keras.")


def test_no_context_variables_but_that_of_the_implementation():
    """Elsewhere arguments and attributes decide how something is computed."""
    found = {
        str(path.relative_to(ROOT))
        for package in ("bert_tf", "pipeline")
        for path in (ROOT / package).rglob("*.py")
        if any(name.split(".")[0] == "contextvars" for name in imported_modules(path))
    }
    assert found == {"bert_tf/layers/implementation.py"}


def test_layers_and_models_do_not_ask_how_they_are_computed():
    """They ask for an implementation, and nothing else."""
    asking = {
        str(path.relative_to(ROOT))
        for room in ("layers", "models")
        for path in (ROOT / "bert_tf" / room).rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Name | ast.arg | ast.Attribute | ast.alias)
        and {getattr(node, field, "") for field in ("id", "arg", "attr", "name")}
        & {"implementation", "are_fused", "is_fused", "is_finished", "use_kernels", "is_compiled"}
    }
    assert asking == {
        "bert_tf/layers/projection.py",
        "bert_tf/models/encoder.py",
        "bert_tf/models/heads.py",
    }
    forms = {
        module
        for _, room, module in imports_inside("bert_tf")
        if room in ("layers", "models") and module.startswith(("bert_tf.cpu", "bert_tf.xla"))
    }
    assert not forms


# Names of tasks that are words of the field besides: what `search` compares vectors by, the Hub's
# tag of masked language models, the head of pretraining, the measure of `train --eval-likelihood`.
# Such a task is found by its classes and by what it predicts.
WORDS_OF_THE_FIELD = {"similarity", "fill-mask", "next-sentence", "next_sentence", "likelihood"}


def own_names(declaration: ServedTaskDeclaration) -> set[str]:
    """Return a task's names and predictions, which its own folder and the registry may use."""
    module, _, name = declaration.implementation.partition(":")
    options = {declaration.options.__name__} if isinstance(declaration, TaskDeclaration) else set()
    predictions = {field.name for field in declaration.predictions}
    called = {declaration.name, module.split(".")[-2]} - WORDS_OF_THE_FIELD
    return {*called, name, *options, *predictions}


def words_of(path: Path) -> Iterator[str]:
    """Yield the texts but docstrings, the names, and the imports of tasks."""
    bodies = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {node.body[0] for node in nodes_of(path) if isinstance(node, bodies) and node.body}
    docstrings = {node.value for node in docs if isinstance(node, ast.Expr)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if node in docstrings else node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("bert_tf.tasks"):
            yield from (*node.module.split("."), *(alias.name for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (word for alias in node.names for word in alias.name.split("."))


def test_only_its_folder_and_the_registry_name_a_task():
    """No text, import or name, nor what it predicts; the demo names what it trains, and the graph
    of a task is in a file with the name of its folder."""
    files = ("bert_tf/tasks/registry.py", "bert_tf/tasks/__init__.py")
    demo = ("pipeline/demo/plan.py", "pipeline/demo/run.py")
    card = "pipeline/report/corpus/data_card.py"  # how the Hub names the use of records
    allowed = {ROOT / file for file in (*files, *demo, card)}
    pretrained = [declared_task({"task": name}, "m") for name in PRETRAINED_TASKS]
    tasks = (*TASKS.values(), *pretrained)
    folders = [ROOT / Path(*task.implementation.split(".")[:-1]) for task in tasks]
    graphs = ROOT / "bert_tf" / "serving" / "graphs"
    wrong = []
    for path in [*(ROOT / "bert_tf").rglob("*.py"), *(ROOT / "pipeline").rglob("*.py")]:
        words = "" if path in allowed else "\n".join(words_of(path))
        for task, folder in zip(tasks, folders, strict=True):
            # Tasks may share the name of a prediction, as those of HuggingFace's pipelines do.
            inside = [
                other
                for other in folders
                if other in path.parents or path == graphs / f"{other.name}.py"
            ]
            if folder in inside:
                continue
            names = own_names(task) - {field.name for field in task.predictions if inside}
            pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])")
            wrong += [(str(path.relative_to(ROOT)), name) for name in pattern.findall(words)]
    assert not wrong


@pytest.mark.parametrize("package", ["bert_tf", "pipeline"])
def test_nobody_asks_which_task_it_is(package):
    """Not by type, not by matching: what differs is a member of the task. (JSON is a dict.)"""
    wrong = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in nodes_of(path):
            asked = None
            if isinstance(node, ast.Match):
                asked = node.subject
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "isinstance",
                "type",
            ):
                asked = None if "dict" in map(ast.unparse, node.args) else node.args[0]
            if asked is not None and re.search(r"\b(task|teacher)$", ast.unparse(asked)):
                wrong.append((str(path.relative_to(ROOT)), ast.unparse(asked)))
    assert not wrong


def test_help_needs_no_heavy_package():
    code = (
        "import sys\n"
        "from pipeline.cli.main import COMMANDS, bert_pipeline\n"
        "for name in COMMANDS:\n"
        "    assert bert_pipeline.get_command(None, name) is not None\n"
        "heavy = {'tensorflow', 'keras', 'apache_beam', 'numpy', 'pyarrow', 'numba'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", ["bert_tf", "pipeline"])
def test_tests_carry_the_name_of_what_they_hold(package):
    """`a/test_b.py` or `a/test_b_aspect.py` is about the module or the folder `a/b`."""
    wrong = []
    for path in sorted((ROOT / "tests" / package).rglob("test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests")
        words = path.stem.removeprefix("test_").split("_")
        names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        files = [ROOT / folder / name for name in names]
        if not any(file.is_dir() or file.with_suffix(".py").is_file() for file in files):
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


def test_folders_have_few_enough_files_to_find_one_at_the_first_guess():
    sizes = {
        folder.relative_to(ROOT): len([path for path in folder.glob("*.py") if path.stem[0] != "_"])
        for package in ("bert_tf", "pipeline")
        for folder in (ROOT / package).rglob("*/")
    }
    assert {folder: size for folder, size in sizes.items() if size > 16} == {}


# Files that stay short: what they hold is a concept of its own, or must be imported by itself.
SHORT_FILES = {
    "bert_tf/base/arrays.py",
    "bert_tf/base/wording.py",
    "bert_tf/cpu/availability.py",
    "bert_tf/cpu/cores.py",
    "bert_tf/embeddings/settings.py",
    "bert_tf/engines/onnx_runtime.py",
    "bert_tf/engines/openvino_runtime.py",
    "bert_tf/layers/cross_entropy.py",
    "bert_tf/layers/encoder_inputs.py",
    "bert_tf/layers/pooling.py",
    "bert_tf/serving/graphs/next_sentence.py",
    "bert_tf/tasks/fill_mask/declaration.py",
    "bert_tf/tasks/next_sentence/declaration.py",
    "bert_tf/tasks/next_sentence/host.py",
    "bert_tf/tasks/regression/options.py",
    "bert_tf/training/tracking/wandb_run.py",
    "bert_tf/weights/graph_names.py",
    "bert_tf/xla/barrier.py",
    "bert_tf/xla/embedding_gradient.py",
    "pipeline/jobs/import_weights.py",
}


def test_no_file_is_too_short_to_be_a_place_of_its_own():
    """Under 60 lines, code belongs to its user; not entry points, commands, registries, rules."""
    short = set()
    for package in ("bert_tf", "pipeline"):
        for path in (ROOT / package).rglob("*.py"):
            is_entry = path.stem[0] == "_" or "registry" in path.stem or "commands" in path.parts
            is_entry |= path.parent == RULES
            if not is_entry and len(path.read_text(encoding="utf-8").splitlines()) < 60:
                short.add(str(path.relative_to(ROOT)))
    assert short <= SHORT_FILES


RULES = ROOT / "pipeline" / "corpus" / "curation" / "rules"


def test_a_curation_rule_is_a_file_of_at_most_60_lines():
    """Code lines, as of functions: an explained rule may be longer."""
    lines = {path.name: measure_module(path.read_text()).code_lines for path in RULES.glob("*.py")}
    assert len(lines) > 5
    assert max(lines.values()) <= 60, lines


def test_functions_are_short_enough_to_read_at_a_glance():
    """Counts code lines, as the budgets do: a docstring never makes a function too long."""
    long = {}
    for package in ("bert_tf", "pipeline"):
        for path in (ROOT / package).rglob("*.py"):
            lines = path.read_text(encoding="utf-8").splitlines()
            for node in nodes_of(path):
                if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno > 60:
                    source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                    code_lines = measure_module(textwrap.dedent(source)).code_lines
                    if code_lines > 73:
                        long[f"{path.relative_to(ROOT)}:{node.name}"] = code_lines
    assert long == {}
