"""Makes the helper modules of this folder and of tests/hosts importable, in processes too."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "hosts")]
