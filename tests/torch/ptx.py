"""Compile Triton's kernels for sm_90, which needs no GPU; print their instructions as JSON.

In: a list of launches, {"module", "kernel", "signature", "constants", "options"}. Out: for each,
{"ptx": {instruction: count}, "sass": {instruction: count}}. Run by test_kernel_rows.py in a
process of its own, where kernels are not interpreted.
"""

import importlib
import json
import re
import struct
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gradplane.torch.triton_launch import EXACT

INSTRUCTION = 16  # bytes


def compiled(launch):
    kernel = getattr(importlib.import_module(launch["module"]), launch["kernel"])
    source = ASTSource(kernel, launch["signature"], launch["constants"], {})
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options=launch["options"] | EXACT).asm


def ptx(text):
    return Counter(re.findall(r"^\s*(?:@!?%p\d+ )?([a-z]\w*(?:\.[\w:]+)*)\s[^\n]*;", text, re.M))


def machine_code(elf):
    """Return the instructions of a binary's only kernel."""
    sections, (size, count, names) = u64(elf, 40), struct.unpack_from("<HHH", elf, 58)
    found = [elf[sections + size * k :][:40] for k in range(count)]
    start = u64(found[names], 24)
    texts = [s for s in found if elf[start + u32(s, 0) :].startswith(b".text.")]
    (code,) = (elf[u64(s, 24) :][: u64(s, 32)] for s in texts)
    return code


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def sass(codes):
    """Return the instructions of each machine code; starting the disassembler takes a third of a
    second, so it gets all of them as one."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(codes))
        file.flush()
        command = [tool, "--binary", "SM90", file.name]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+ )?([A-Z][\w.]*)"
    found = [(int(place, 16), op) for place, op in re.findall(line, shown, re.M)]
    ends = list(accumulate(map(len, codes)))
    assert len(found) == ends[-1] // INSTRUCTION
    own = [Counter() for _ in codes]
    for place, op in found:
        own[bisect_right(ends, place)][op] += 1
    return own


if __name__ == "__main__":
    asm = [compiled(launch) for launch in json.load(sys.stdin)]
    texts = [ptx(each["ptx"]) for each in asm]
    codes = sass([machine_code(each["cubin"]) for each in asm])
    print(json.dumps([{"ptx": t, "sass": c} for t, c in zip(texts, codes, strict=True)]))
