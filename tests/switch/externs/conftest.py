"""Makes what other folders' tests have importable: pytest's importlib mode does not."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "ports")]
