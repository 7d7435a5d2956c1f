"""Checks the specification of a flex template against the message that Dataflow reads it as."""

import sys
from pathlib import Path

from google.cloud.dataflow_v1beta3.types import ContainerSpec

ContainerSpec.from_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
