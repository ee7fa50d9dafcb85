"""The model file of a PyTorch script, from its measured backward passes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from gradplane._suggestions import near_file
from gradplane.planner.inputs import Gradient, Model, PlannerError, model_text


class MeasuredModel(NamedTuple):
    """A model with the median times of so many backward passes; backward: the whole, in seconds."""

    model: Model
    backward: float
    passes: int

    def text(self, script: Path) -> str:
        """Return the model file."""
        return model_text(
            self.model,
            f"{script.name}, measured: medians of {self.passes} backward passes on this machine's",
            f"CPU, of {1e3 * self.backward:.3g} ms each.",
            "Tensors in backward order; times in seconds.",
        )


def measure(script: Path, arguments: Sequence[str] = ()) -> MeasuredModel:
    """Run a script, as torchrun with one rank does, on the CPU, until its passes are measured.

    `gradplane.torch.join()` stands for PyTorch's own all-reduce in it. It shares this process's
    standard output and error. Raises PlannerError where nothing can be measured.
    """
    if not script.is_file():
        raise PlannerError(f"there is no script {script}{near_file(script)}")
    if find_spec("torch") is None:
        raise PlannerError("--profile needs PyTorch: pip install gradplane[torch]")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "times.json")
        command = [sys.executable, "-P", "-m", "gradplane.torch.backward_times", str(result)]
        ended = subprocess.run(
            [*command, str(script), *arguments], env=_environment(), check=False
        ).returncode
        if not result.exists():
            how = f"was ended by signal {-ended}" if ended < 0 else "failed"
            raise PlannerError(f"{script} {how}: nothing was measured")
        found: dict[str, Any] = json.loads(result.read_text())
    if "problem" in found:
        raise PlannerError(f"{script}: {found['problem']}")
    tensors = tuple(Gradient(**tensor) for tensor in found["tensors"])
    model = Model(name=script.stem, forward=found["forward"], tensors=tensors)
    return MeasuredModel(model, found["backward"], found["passes"])


def _environment() -> dict[str, str]:
    """Return the environment of torchrun's only rank, without a network and without GPUs."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GRADPLANE_")}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sizes = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"), "1")
    ranks = dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK"), "0")
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CUDA_VISIBLE_DEVICES": ""}
    return own | sizes | ranks | place | {"GRADPLANE_HOOK": "allreduce"}
