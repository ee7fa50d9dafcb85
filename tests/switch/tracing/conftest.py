"""Makes tests/switch/v1programs.py importable: pytest's importlib mode does not."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
