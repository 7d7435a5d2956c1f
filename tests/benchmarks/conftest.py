"""Benchmarks are scripts: what is tested of them is imported from their folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
