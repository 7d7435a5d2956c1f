"""The file of TensorFlow that holds the registry of operations."""

import pytest

from bert_tf.cpu.kernels.operation import framework_library


@pytest.mark.parametrize(
    ("names", "flags", "expected"),
    [
        (["so.2"], ["-Lfolder", "-l:libtensorflow_framework.so.2"], "so.2"),
        (["so", "so.2", "so.2.21.0"], ["-Lfolder", "-l:libtensorflow_framework.so.2"], "so.2"),
        (["2.dylib", "dylib"], ["-Lfolder", "-ltensorflow_framework.2"], "2.dylib"),
    ],
)
def test_of_several_files_the_one_that_is_linked_is_taken(tmp_path, names, flags, expected):
    for name in names:
        (tmp_path / f"libtensorflow_framework.{name}").touch()
    assert framework_library(tmp_path, flags).name == f"libtensorflow_framework.{expected}"
