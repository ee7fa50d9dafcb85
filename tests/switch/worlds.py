"""Scripts of tests that run in a network namespace of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def namespaces_refused() -> str:
    """Return why no network namespace can be made here; empty if one can."""
    command = ["unshare", "--net", "--map-root-user", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no unshare(1) here"
    return "" if done.returncode == 0 else f"no network namespace here: {done.stderr.strip()}"


REFUSED = namespaces_refused()


def inside(world: Path, *arguments: str) -> Any:
    """Return the output of a script that runs in a network namespace of its own."""
    command = ["unshare", "--net", "--map-root-user", sys.executable, str(world), *arguments]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
