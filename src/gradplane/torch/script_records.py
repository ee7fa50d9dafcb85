"""Values that a script records beside its exchanges: accuracies, losses."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from gradplane.torch.membership import HOST_VARIABLE, NETWORK_VARIABLE, available


def record(**values: float | int | str) -> None:
    """Append values, with the time, to this rank's records; do nothing where there is no network.

    `test_accuracy` (from 0 to 1) and `loss` are shown in the report where all ranks record them;
    other names are kept. The file is HOST.values.jsonl beside the host's configuration.
    """
    if not available():
        return
    path = Path(os.environ[NETWORK_VARIABLE]) / f"{os.environ[HOST_VARIABLE]}.values.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": time.monotonic_ns()} | values) + "\n")
