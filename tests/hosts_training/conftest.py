"""Makes the helper modules of this folder and of tests/hosts importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hosts")]
