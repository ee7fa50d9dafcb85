"""Compile Triton's kernels for sm_90, which needs no GPU; print their instructions as JSON.

In: a list of launches, {"module", "kernel", "signature", "constants", "options"}. Out: for each,
{"ptx": {instruction: count}, "sass": {instruction: count}}. Run by test_kernel_rows.py in a
process of its own, where kernels are not interpreted.
"""

import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gradplane.torch.triton_launch import EXACT


def compiled(launch):
    kernel = getattr(importlib.import_module(launch["module"]), launch["kernel"])
    source = ASTSource(kernel, launch["signature"], launch["constants"], {})
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options=launch["options"] | EXACT).asm


def ptx(text):
    return Counter(re.findall(r"^\s*(?:@!?%p\d+ )?([a-z]\w*(?:\.[\w:]+)*)\s[^\n]*;", text, re.M))


def sass(binary):
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        shown = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True)
    place = r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ )?"
    return Counter(re.findall(place + r"([A-Z][\w.]*)", shown.stdout, re.M))


if __name__ == "__main__":
    found = []
    for launch in json.load(sys.stdin):
        asm = compiled(launch)
        found.append({"ptx": ptx(asm["ptx"]), "sass": sass(asm["cubin"])})
    print(json.dumps(found))
