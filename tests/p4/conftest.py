"""Makes the helper modules of the P4 tests importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "hosts"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
