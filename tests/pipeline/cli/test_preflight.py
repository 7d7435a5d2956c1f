"""Mistakes are found before TensorFlow and Beam are imported."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import (
    EvaluateConfig,
    PreprocessConfig,
    ScoreConfig,
    SearchConfig,
    VocabConfig,
)
from bert_tf.engines.registry import ENGINES
from bert_tf.tasks.registry import finetune_config
from pipeline.cli.preflight import check_request, path_fault
from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.manifest import write_manifest

ROOT = Path(__file__).parents[3]
# Runs command lines one after the other; shows what each says, and what is imported at the end.
CODE = """
import contextlib, io, json, sys
from pipeline.cli.main import main
said = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as stream, contextlib.suppress(SystemExit):
        main(arguments)
    said.append(stream.getvalue())
print(json.dumps([said, sorted({"tensorflow", "keras", "apache_beam"} & set(sys.modules))]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a table, a folder with the name of a model, and an export."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text("text,label\na,b\n")
    (tmp_path / "bert").mkdir()
    exported = tmp_path / "exported"
    exported.mkdir()
    (exported / "saved_model.pb").touch()
    columns = {"text": "body", "text_pair": None, "label": "kind"}
    task = {"task": "classification", "columns": columns}
    (exported / "task.json").write_text(json.dumps(task))
    return tmp_path


def finetuning(**keys):
    values = {"task": "classification", "train": "train.csv", "init": "bert", "output": "run"}
    return finetune_config({**values, **keys})


def score(**keys):
    values = {"model": "exported", "input": ["train.csv"], "output": "scored.csv"}
    return build_section(ScoreConfig, {**values, **keys})


def finish(config, command, *, inputs, **changed):
    """Write an output and its manifest as a job does."""
    Path(config.output).mkdir()
    found = [{"key": key, **fingerprint(path)} for key, path in inputs.items()]
    saved = {**config.as_dict(), **changed}
    write_manifest(config.output, {"command": command, "config": saved, "inputs": found})


@pytest.mark.slow
def test_no_simple_mistake_needs_tensorflow_or_beam(folder):
    mistakes = {
        "did you mean 'train.csv'?": "finetune classification --train trian.csv --init bert",
        "hf download bert-base-uncased": "finetune classification --train train.csv --init "
        "bert-base-uncased",
        "no column 'txt'": "finetune qa --train train.csv --init bert --question-column txt",
        "no column 'body'": "score --model exported --input train.csv",
        "is not an exported model": "score --model bert --input train.csv",
        "no file matches": "vocab --input *.txt",
        "no column 'txt'; ": "preprocess --input train.csv --vocab train.csv --text-column txt",
        "DATA: no such file or folder": "train --data DATA --size tiny",
        "pip install 'bert-pipeline[mlflow]'": "train --data bert --size tiny --report-to mlflow",
        "SOURCE weights: no such": "import-weights weights",
        "RUN... bret: no such": "report bret",
        "MODEL bret: no such": "try bret",
        "--from trian.csv: no such": "init classification --from trian.csv --init bert",
        "made by bert-pipeline vocab": "finetune classification --train train.csv --init bert "
        "--output finished",
    }
    finished = finetuning(output="finished")
    finish(finished, "vocab", inputs={})
    lines = [line.split() for line in mistakes.values()]
    for line in lines:
        if "--output" not in line and line[0] != "try":
            line += ["--output", "new.yaml" if line[0] == "init" else "new.csv"]
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(lines)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    said, heavy = json.loads(done.stdout)
    wrong = {
        line: text
        for (words, line), text in zip(mistakes.items(), said, strict=True)
        if words not in text or text.count("\n") != 1
    }
    assert not wrong
    assert heavy == []
    assert sorted(path.name for path in folder.iterdir()) == [
        *("bert", "exported", "finished", "train.csv")
    ]


def test_all_paths_are_looked_for_at_once(folder):
    config = build_section(
        PreprocessConfig, {"input": ["a*.txt", "train.csv"], "vocab": "v.txt", "output": "data"}
    )
    with pytest.raises(ConfigError) as caught:
        check_request("preprocess", [config], overwrite=False)
    assert caught.value.faults == [
        "--input a*.txt: no file matches; check the path and quote the glob",
        "--vocab v.txt: no such file or folder; check the path",
    ]


def test_a_path_is_what_it_should_be(folder):
    assert path_fault("model", "--init", "bert") is None
    assert path_fault("file", "--vocab", "s3://bucket/vocab.txt") is None
    assert path_fault("table", "--train", "bert") == "--train bert: is a folder; name a file"
    os.mkfifo("pipe.csv")
    assert "--train pipe.csv: is a pipe or device" in path_fault("table", "--train", "pipe.csv")
    assert "--train -: is a pipe or device" in path_fault("table", "--train", "-")
    fault = "--train *.csv: no such file; globs are not expanded here"
    assert path_fault("table", "--train", "*.csv") == fault
    (folder / "link.txt").symlink_to("gone.txt")
    fault = "--vocab link.txt: no such file or folder; it is a broken link to gone.txt"
    assert path_fault("file", "--vocab", "link.txt") == fault
    assert path_fault("any", "PATH", "bert") is None
    (folder / "bert" / "a.txt.gz").touch()
    fault = "--input bert: is a folder; name its files, e.g. 'bert/*.txt.gz'"
    assert path_fault("files", "--input", "bert") == fault
    fault = "--init train.csv: is a file; give a folder"
    assert path_fault("model", "--init", "train.csv") == fault


@pytest.mark.parametrize(
    ("path", "is_of_hub"),
    [
        ("bert-base-uncased", True),
        ("google-bert/bert-base-uncased", True),
        ("./bert-base-uncased", False),
        ("bert/bests", False),  # in a folder that is there
        ("models/old/bert", False),
        ("/models", False),
    ],
)
def test_names_of_the_hub_are_told_from_paths(folder, path, is_of_hub):
    fault = path_fault("model", "--init", path)
    assert ("hf download" in fault) == is_of_hub
    if is_of_hub:
        assert f"hf download {path} " in fault
        assert fault.endswith("--init bert-base-uncased")


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({}, None),
        ({"text_column": "body"}, "body"),
        ({"label_column": "kind"}, "kind"),
        ({"task": "qa"}, "question"),
        ({"task": "similarity"}, "anchor"),
        ({"task": "tagging"}, None),  # several layouts: the task decides
        ({"task": "tagging", "tag_column": "ner"}, "ner"),
        ({"eval": "dev.csv", "weight_column": "label"}, None),  # weights are for training
        ({"eval": "other.csv"}, "text"),
        ({"header": False, "text_column": "1", "label_column": "2"}, None),
    ],
)
def test_columns_are_looked_for(folder, keys, missing):
    (folder / "dev.csv").write_text("text,label,more\na,b,c\n")
    (folder / "other.csv").write_text("body,label\na,b\n")
    config = finetuning(**keys)
    if missing is None:
        assert check_request("finetune", [config], overwrite=False) is None
        return
    with pytest.raises(UsageError, match=f"csv: no column '{missing}'; it has"):
        check_request("finetune", [config], overwrite=False)


def test_the_columns_of_a_model_are_those_it_was_trained_on(folder):
    with pytest.raises(UsageError, match=r"train.csv: no column 'body'; it has"):
        check_request("score", [score()], overwrite=False)
    for keys in ({"text_column": "text"}, {"columns": ["text=text"]}):
        assert check_request("score", [score(**keys)], overwrite=False) is None


def test_vectors_need_no_column_of_texts(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": [1], "embedding": [[0.5]]}), "vectors.parquet")
    values = {"queries": "vectors.parquet", "corpus": "vectors.parquet", "output": "found.csv"}
    config = build_section(SearchConfig, values)
    assert check_request("search", [config], overwrite=False) is None


def test_a_pipe_is_not_read(folder):
    os.mkfifo("pipe.csv")
    config = build_section(VocabConfig, {"input": ["pipe.csv"], "output": "v.txt"})
    with pytest.raises(UsageError, match="is a pipe"):
        check_request("vocab", [config], overwrite=False)


def test_a_missing_engine_names_its_extra(folder, monkeypatch):
    entry = dataclasses.replace(ENGINES["openvino"], packages=("no_such_package",))
    monkeypatch.setitem(ENGINES, "openvino", entry)
    with pytest.raises(UsageError, match=r"needs no_such_package.*'bert-pipeline\[openvino\]'"):
        check_request("score", [score(engine="openvino")], overwrite=False)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("train.csv", "--output train.csv: is or contains the input train.csv"),
        ("file", "--output file: is a file; give a folder"),
        ("full", "full: contains files that bert-pipeline did not make; choose an empty folder"),
        ("bert/run", "--output bert/run: is inside the input bert"),
        ("begun", None),  # the job resumes it, or says that its config is another
        ("left", None),
        ("new", None),
    ],
)
def test_an_output_is_looked_at(folder, output, message):
    (folder / "file").touch()
    for name in ("full/notes.txt", "begun/config.yaml", "begun/vocab.txt", "left/.vocab.tmp"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "begun" / "config.yaml").write_text("finetune: {output: begun}\n")
    config = finetuning(output=output)
    if message is None:
        assert check_request("finetune", [config], overwrite=False) is None
        return
    with pytest.raises(UsageError, match=message):
        check_request("finetune", [config], overwrite=False)


def test_a_folder_is_not_named_as_a_file(folder):
    with pytest.raises(
        UsageError, match=r"--output s\.xlsx: \.xlsx is not a format .* end the name with \.csv, "
    ):
        check_request("score", [score(output="s.xlsx", text_column="text")], overwrite=False)
    values = {"model": "exported", "data": "train.csv", "output": "dev.json"}
    config = build_section(EvaluateConfig, {**values, "text_column": "text"})
    with pytest.raises(
        UsageError, match=r"--output dev\.json: .*; it makes a folder: leave out the"
    ):
        check_request("evaluate", [config], overwrite=False)


def test_an_evaluation_may_lie_in_the_run_of_its_model(folder):
    (folder / "run" / "best").mkdir(parents=True)
    values = {"model": "run", "data": "train.csv", "output": "run/dev"}
    config = build_section(EvaluateConfig, values)
    assert check_request("evaluate", [config], overwrite=False) is None


def test_what_is_finished_is_not_done_again(folder):
    config = finetuning(epochs=2)
    of_old_release = {"batch_size": 32, "learning_rate": 5e-5, "early_stop_loss": 0.0}
    inputs = {"train": "train.csv", "init": "bert"}
    finish(config, "finetune", inputs=inputs, log_every=3, **of_old_release)
    manifest = check_request("finetune", [config], overwrite=False)
    assert manifest["config"]["epochs"] == 2
    assert check_request("finetune", [config], overwrite=True) is None
    longer = dataclasses.replace(config, epochs=3)  # the job extends it
    assert check_request("finetune", [longer], overwrite=False) is None
    shorter = dataclasses.replace(config, epochs=1)
    with pytest.raises(UsageError, match=r"made with another config \(epochs: 2.0 then, 1 now"):
        check_request("finetune", [shorter], overwrite=False)
    other = dataclasses.replace(config, batch_size=7)
    with pytest.raises(UsageError, match=r"run: made with another config \(batch_size: 32 then, 7"):
        check_request("finetune", [other], overwrite=False)
    (folder / "train.csv").write_text("text,label\nc,d\n")  # the job says what has changed
    assert check_request("finetune", [config], overwrite=False) is None


def test_what_is_finished_beside_its_input_is_not_done_again(folder):
    (folder / "a.txt").write_text("A text.\n")
    values = {"input": ["*.txt"], "output": "vocab.txt", "vocab_size": 90}
    config = build_section(VocabConfig, values)
    manifest = {
        "command": "vocab",
        "config": config.as_dict(),
        "inputs": [{"key": "input", **fingerprint("a.txt")}],
    }
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    write_manifest("vocab.txt", manifest)
    assert check_request("vocab", [config], overwrite=False) is not None


def test_what_a_job_chose_is_no_other_config(folder):
    config = score(output="scored", text_column="text")
    inputs = {"model": "exported", "input": "train.csv"}
    finish(config, "score", inputs=inputs, engine="openvino", precision="bfloat16")
    assert check_request("score", [config], overwrite=False) is not None
    with pytest.raises(UsageError, match="engine: 'openvino' then, 'tensorflow' now"):
        chosen = dataclasses.replace(config, engine="tensorflow")
        check_request("score", [chosen], overwrite=False)
    with pytest.raises(UsageError, match="scores: 'all' then, 'best' now"):
        finish(dataclasses.replace(config, output="all", scores="all"), "score", inputs=inputs)
        check_request("score", [dataclasses.replace(config, output="all")], overwrite=False)
    dry = dataclasses.replace(config, dry_run=True)
    assert check_request("score", [dry], overwrite=False) is None


def test_auto_is_another_config_where_the_job_does_not_choose(folder):
    values = {"input": ["train.csv"], "vocab": "train.csv", "output": "data"}
    config = build_section(PreprocessConfig, values)
    inputs = {"input": "train.csv", "vocab": "train.csv"}
    finish(config, "preprocess", inputs=inputs, format="csv", lowercase=True)
    with pytest.raises(UsageError, match=r"data: made with another config \(format: 'csv' then"):
        check_request("preprocess", [config], overwrite=False)


def test_rules_of_curation_are_looked_up_before_the_job(folder):
    values = {"input": ["train.csv"], "output": "vocab.txt", "curation": ["gophr"]}
    with pytest.raises(UsageError, match="no rule 'gophr'; did you mean 'gopher'"):
        check_request("vocab", [build_section(VocabConfig, values)], overwrite=False)
