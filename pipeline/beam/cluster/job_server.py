"""Beam's job server in Java, which Beam starts for a runner on Flink or Spark."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

from apache_beam.options.pipeline_options import JobServerOptions, PipelineOptions

_SCRIPT = """#!{python}
import os, sys
os.setsid()
os.execvp({java!r}, [{java!r}, *sys.argv[1:]])
"""


def let_job_server_outlive_ctrl_c(options: PipelineOptions) -> None:
    """Has the job server started in a session of its own.

    A terminal sends Ctrl-C to the whole group of processes: without this, the job server would be
    gone before it can be asked to cancel the job. Beam stops it in any case.
    """
    server = options.view_as(JobServerOptions)
    folder = tempfile.mkdtemp(prefix="bert-pipeline-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = Path(folder) / "java"
    script.write_text(
        _SCRIPT.format(python=sys.executable, java=server.job_server_java_launcher),
        encoding="utf-8",
    )
    script.chmod(0o700)
    server.job_server_java_launcher = str(script)
