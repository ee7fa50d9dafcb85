"""Makes the helper modules of the checker's tests importable."""

import sys
from pathlib import Path

if (HERE := str(Path(__file__).parent)) not in sys.path:
    sys.path.append(HERE)
