"""Makes what other folders' tests have importable: pytest's importlib mode does not."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "ports")]
