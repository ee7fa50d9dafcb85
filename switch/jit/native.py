"""From LLVM assembly to machine code for this computer, with a cache on disk.

A cached object's name is a hash of all that it depends on: the assembly, LLVM's and llvmlite's
versions, the processor and its features.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

DIGEST = 32  # bytes of the hash in front of a cached object
KEPT = 500  # objects in the cache
FORMAT = 1  # to be raised when compiling the same assembly gives other code


class Native:
    """Loaded code. `function(name, ...)`: a callable that releases the GIL."""

    def __init__(self, assembly: str, cache: bool = True) -> None:
        self._machine = _target_machine()
        object_code = _object_code(assembly, self._machine, cache)
        # MCJIT wants a module of its own beside the object.
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, self._machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def function(self, name: str, *types: Any) -> Any:
        """An exported function without result."""
        address = self._engine.get_function_address(name)
        return ctypes.CFUNCTYPE(None, *types)(address)

    def address(self, name: str) -> int:
        """Of an exported variable."""
        found: int = self._engine.get_global_value_address(name)
        return found


def cache_dir() -> Path:
    """Where compiled code is kept: $XDG_CACHE_HOME/gradplane/jit."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "gradplane" / "jit"


def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=2, jit=True, reloc="pic",
        codemodel="small",
    )  # fmt: skip


def _features() -> str:
    """The processor's features. Vectors of 512 bits gain nothing here and cost compile time."""
    features = llvm.get_host_cpu_features()
    return str(features.flatten())


def _object_code(assembly: str, machine: llvm.TargetMachine, cache: bool) -> bytes:
    if not cache:
        return _compiled(assembly, machine)
    path = cache_dir() / f"{_key(assembly)}.o"
    code = _read(path)
    if code is None:
        code = _compiled(assembly, machine)
        _save(path, code)
    return code


def _read(path: Path) -> bytes | None:
    """A cached object, if it is there and whole: LLVM trusts what it loads."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, code = data[:DIGEST], data[DIGEST:]
    return code if digest == hashlib.sha256(code).digest() else None


def _key(assembly: str) -> str:
    parts = (
        str(FORMAT), llvmlite.__version__, str(llvm.llvm_version_info),
        llvm.get_default_triple(), llvm.get_host_cpu_name(), _features(), assembly,
    )  # fmt: skip
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _save(path: Path, code: bytes) -> None:
    """Atomically; without a writable cache folder nothing is kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(name, path)
        _prune(path.parent)
    except OSError:
        return


def _prune(folder: Path) -> None:
    """Removes the oldest objects when there are too many."""
    objects = sorted(folder.glob("*.o"), key=lambda path: path.stat().st_mtime)
    for path in objects[:-KEPT]:
        path.unlink(missing_ok=True)


def _compiled(assembly: str, machine: llvm.TargetMachine) -> bytes:
    module = llvm.parse_assembly(assembly)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False  # it makes vectors of wide integers, which LLVM cannot lower
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    code: bytes = machine.emit_object(module)
    return code
