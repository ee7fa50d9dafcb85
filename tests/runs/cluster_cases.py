"""The parts of the tests of clusters that run among the machines of docs/cluster.md's script:

    sh machines.sh python cluster_cases.py FOLDER

FOLDER has lab.toml; what was found is written into found.json there.
"""

import json
import sys
from pathlib import Path
from typing import Any

from gradplane.runs.run_experiment import run


def main(folder: Path) -> None:
    """Run the page's experiment."""
    found: dict[str, Any] = {}
    run(folder / "lab.toml", folder / "cluster", net="cluster")
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
