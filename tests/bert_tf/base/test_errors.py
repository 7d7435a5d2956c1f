"""The message about a path that is no folder, and the handlers of signals."""

import signal

from bert_tf.base.errors import handling_signals, missing_folder_error


def test_a_file_in_place_of_a_folder_is_called_one(tmp_path):
    path = tmp_path / "model"
    assert str(missing_folder_error(path, "model")) == f"{path}: no such model; check the path"
    path.touch()
    assert str(missing_folder_error(path, "model")) == f"{path}: is a file; expected a model"


def test_handlers_are_restored_and_a_handler_of_c_code_is_left_to_it(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    known = {signal.SIGTERM: before, signal.SIGINT: None}  # None: a handler that C code set
    interrupt = signal.getsignal(signal.SIGINT)
    handled = []
    with monkeypatch.context() as patched:
        patched.setattr(signal, "getsignal", known.__getitem__)
        with handling_signals(lambda number, restore: handled.append(number)):
            patched.undo()
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGINT) is interrupt
    assert handled == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before
