"""Makes the small task of the tests of training importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
