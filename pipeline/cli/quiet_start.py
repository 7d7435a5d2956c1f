"""Starts TensorFlow and Beam without what they write on every machine, whatever is asked."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile

# Written to file descriptor 2 by the library's start-up on every machine without a GPU driver
# (303: there is no driver library at all). Everything else is passed on.
_NOISE = re.compile(rb"All log messages before absl|cudart_stub|cuInit: .*\(303\)")


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow and lists its devices; drops known noise from what that writes."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            import tensorflow as tf
            import tensorflow_text  # noqa: F401  its start-up writes the same lines

            tf.config.list_physical_devices()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            captured.seek(0)
            for line in captured:
                if not _NOISE.search(line):
                    os.write(2, line)


def drop_beam_import_warning() -> None:
    """Drops Beam's warning that Google's cloud clients are missing; using them says so anyway."""
    logging.getLogger().addFilter(
        lambda record: not record.getMessage().startswith("apitools not found")
    )
