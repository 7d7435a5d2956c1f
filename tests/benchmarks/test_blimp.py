"""BLiMP: pairs of a folder or a zip, accuracies by phenomenon, chance for an untrained model."""

import json
import sys
import zipfile

import blimp
import numpy as np
import pytest
from behavior.exported_models import LIKELIHOOD
from behavior.small_models import write_model
from scipy import stats

WORDS = ["cat", "cats", "sleep", "sleeps", "never", "every", "who", "the"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
FILES = {"agreement_1": "agreement", "agreement_2": "agreement", "islands_1": "islands"}
PAIRS = 100


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder of three files of two phenomena, of random sentences."""
    folder = tmp_path_factory.mktemp("blimp") / "data"
    folder.mkdir()
    generator = np.random.default_rng(2)
    for name, phenomenon in FILES.items():
        rows = [
            {
                "sentence_good": " ".join(generator.choice(WORDS, 6)),
                "sentence_bad": " ".join(generator.choice(WORDS, 6)),
                "linguistics_term": phenomenon,
            }
            for _ in range(PAIRS)
        ]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_a_zip_is_read_as_the_folder_is(data, tmp_path):
    archive = tmp_path / "BLiMP.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in data.iterdir():
            file.write(path, f"data/{path.name}")
            file.writestr(f"__MACOSX/data/._{path.name}", b"\0")
    pairs = blimp.read_pairs(archive, 0)
    assert pairs == blimp.read_pairs(data, 0)
    assert len(pairs) == len(FILES) * PAIRS
    sampled = blimp.read_pairs(data, 10)
    assert [pair.file for pair in sampled] == [name for name in sorted(FILES) for _ in range(10)]
    assert set(sampled) <= set(pairs)


def test_accuracies_have_standard_errors_by_phenomenon():
    names = ["a"] * 4 + ["b"] * 2
    pairs = [blimp.Pair(name, "file", "good", "bad") for name in names]
    found = blimp.results_of(pairs, np.array([1.0, 1.0, 0.0, 0.5, 0.0, 0.0]))
    assert found["a"][0] == 62.5
    assert found["a"][1] == pytest.approx(100 * np.std([1, 1, 0, 0.5], ddof=1) / 2)
    assert found["b"] == (0.0, 0.0, 2)
    assert found["all"][0] == pytest.approx(100 * 2.5 / 6)
    assert list(found) == ["a", "b", "all"]


def test_models_are_compared_pair_by_pair():
    """The error of a difference is not that of two samples: equal models differ by exactly 0."""
    generator = np.random.default_rng(3)
    right = generator.integers(0, 2, 400).astype(np.float64)
    better = np.maximum(right, np.arange(400) % 8 == 0)
    difference, error, errors = blimp.compared(better, right)
    test = stats.ttest_rel(better, right)
    assert difference == pytest.approx(100 * (better.mean() - right.mean()))
    assert errors == pytest.approx(test.statistic)
    assert error == pytest.approx(difference / test.statistic)
    assert blimp.compared(right, right) == (0.0, 0.0, 0.0)


def test_an_untrained_model_is_right_by_chance(data, tmp_path, monkeypatch, capsys):
    run = write_model(tmp_path / "run", {**LIKELIHOOD, "max_seq_length": 16}, vocab=VOCAB, seed=4)
    results = tmp_path / "results.jsonl"
    arguments = [str(run), "--data", str(data), "--results", str(results)]
    monkeypatch.setattr(sys, "argv", ["blimp.py", *arguments])
    blimp.main()
    (line,) = map(json.loads, results.read_text().splitlines())
    percent, error, count = line["results"]["all"]
    assert count == len(FILES) * PAIRS
    assert abs(percent - 50) < 4 * error
    shown = capsys.readouterr().out
    for name, value in blimp.PUBLISHED:
        assert f"{name:<28} {value:>8.1f}" in shown
    assert "agreement " in shown and "islands " in shown


def test_a_model_without_the_head_is_refused_in_a_line(data, tmp_path, monkeypatch):
    run = write_model(tmp_path / "run", None, vocab=VOCAB, seed=4)
    monkeypatch.setattr(sys, "argv", ["blimp.py", str(run), "--data", str(data)])
    with pytest.raises(SystemExit, match=r"^error: .*: has no masked-LM head"):
        blimp.main()
