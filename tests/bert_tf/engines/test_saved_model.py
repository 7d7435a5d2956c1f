"""The engine of SavedModels refuses what is none; what it computes is held where it is exported."""

import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.engines.registry import ENGINES
from bert_tf.engines.saved_model import SavedModelEngine


def test_a_damaged_saved_model_is_named(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"no protobuf")
    with pytest.raises(InputError, match="the SavedModel cannot be loaded"):
        SavedModelEngine(tmp_path)


def test_a_folder_without_a_saved_model_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"it has no saved_model\.pb"):
        ENGINES["tensorflow"].load(tmp_path)
