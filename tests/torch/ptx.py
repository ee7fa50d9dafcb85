"""Compile the Triton kernels for sm_90, which needs no GPU; print their instructions as JSON.

{variant: {"ptx": {instruction: count}, "sass": {instruction: count}}}; run by
test_triton_kernels.py in a process of its own, where they are not interpreted.
"""

import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gradplane.torch import triton_kernels as kernels

TYPES = {
    **dict.fromkeys(("x", "grid"), "*fp32"),
    **dict.fromkeys(("part", "cells"), "*i32"),
    **dict.fromkeys(("bounds", "keys"), "*i64"),
    **dict.fromkeys(("first", "total", "key"), "i64"),
    "scales": "*fp64",
    "steps": "i32",
}
MILLION = kernels._launches(0, 1 << 20)  # a partition of the largest size
SOME = kernels._launches(0, 5000)  # several small ones, and a row that is not full


def variants():
    """Yield name, kernel, types of its own arguments, options."""
    yield "squares", kernels._squares, {"out": "*fp64"}, {"UNROLL": 32, "num_warps": 1}
    for name, launches in (("million", MILLION), ("some", SOME)):
        within, between = launches.within, launches.between
        yield f"flip rows, {name}", kernels._flip_rows, {}, within
        for width in (1, 8) if name == "million" else (4,):
            rounded = {"WIDTH": width, **between}
            yield f"round {width}, {name}", kernels._round_columns, {"out": "*u8"}, rounded
        for sums, each in (("*u8", False), ("*i32", True))[: 2 if name == "million" else 1]:
            own = {"sums": sums, "workers": "*i32" if each else "fp32"}
            options = {"EACH": each, **within}
            yield f"centre {sums} {each}, {name}", kernels._centre_rows, own, options
        yield f"flip columns, {name}", kernels._flip_columns, {"out": "*fp32"}, between


def compiled(kernel, own, options):
    constants = {name: value for name, value in options.items() if name.isupper()}
    signature = {
        name: "constexpr" if name in constants else (TYPES | own)[name] for name in kernel.arg_names
    }
    source = ASTSource(kernel, signature, constants, {})
    rest = {name: value for name, value in options.items() if name not in constants}
    return triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options=rest | kernels._EXACT
    ).asm


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


found = {}
for name, kernel, own, options in variants():
    asm = compiled(kernel, own, options)
    found[name] = {"ptx": ptx(asm["ptx"]), "sass": sass(asm["cubin"])}
print(json.dumps(found))
