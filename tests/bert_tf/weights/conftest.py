"""Makes the script that writes TensorFlow 2 checkpoints importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
