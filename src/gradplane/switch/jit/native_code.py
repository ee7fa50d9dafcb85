"""Compilation of LLVM assembly to machine code for this computer, with a cache on disk.

A cached object's name is a hash of all that it depends on: the assembly, LLVM's and llvmlite's
versions, the processor and its features.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from gradplane._user_folders import cache_folder
from gradplane.switch import disk_cache

# LLVM's own limit, and ours in large programs, on the search backwards for the source of a load, in
# blocks: there it takes a tenth of the compile time.
ALL, SOME = 200, 10
LARGE = 1 << 18  # bytes of assembly
FORMAT = 6  # to be raised when compiling the same assembly gives other code


class Native:
    """Loaded code. `function(name, ...)`: a callable that releases the GIL.

    quick: code that is made in a sixth of the time and takes two to fifteen times as long to run,
    unless there is a better one in the cache."""

    def __init__(self, assembly: str, cached: bool = True, quick: bool = False) -> None:
        self._machine = _target_machine(0 if quick else 2)
        object_code = _object_code(assembly, self._machine, cached, quick)
        # MCJIT needs a module beside the object.
        empty = llvm.parse_assembly("")
        # llvmlite's memory manager takes one block for the code and its data. LLVM's own looks for
        # a place for each, and aborts the process where two are more than 2 GiB apart, the reach of
        # the small code model (seen with llvmlite 0.50.0), as in processes of many threads.
        self._engine = llvm.create_mcjit_compiler(empty, self._machine, use_lmm=True)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def function(self, name: str, *types: Any) -> Any:
        """Return an exported function without result."""
        return ctypes.CFUNCTYPE(None, *types)(self.function_address(name))

    def function_address(self, name: str) -> int:
        """Return the address of an exported function."""
        found: int = self._engine.get_function_address(name)
        return found

    def address(self, name: str) -> int:
        """Return the address of an exported variable."""
        found: int = self._engine.get_global_value_address(name)
        return found


def _target_machine(level: int) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, jit=True, reloc="pic",
        codemodel="small",
    )  # fmt: skip


def _features() -> str:
    """Return the processor's features; vectors of 512 bits are slow to compile and gain nothing."""
    features = llvm.get_host_cpu_features()
    return str(features.flatten())


def _object_code(assembly: str, machine: llvm.TargetMachine, cached: bool, quick: bool) -> bytes:
    make = _made_quickly if quick else _compiled
    if not cached:
        return make(assembly, machine)
    folder, key = cache_folder("jit"), _key(assembly)
    better, path = folder / f"{key}.o", folder / f"{key}{'-quick' * quick}.o"
    code = disk_cache.read(better) or (disk_cache.read(path) if quick else None)
    if code is None:
        code = make(assembly, machine)
        disk_cache.write(path, code)
    return code


def _key(assembly: str) -> str:
    return disk_cache.name(
        str(FORMAT), llvmlite.__version__, str(llvm.llvm_version_info),
        llvm.get_default_triple(), llvm.get_host_cpu_name(), _features(), assembly,
    )  # fmt: skip


def _made_quickly(assembly: str, machine: llvm.TargetMachine) -> bytes:
    code: bytes = machine.emit_object(_parsed(assembly, machine))
    return code


def _parsed(assembly: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = llvm.parse_assembly(assembly)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    return module


def _compiled(assembly: str, machine: llvm.TargetMachine) -> bytes:
    module = _parsed(assembly, machine)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = _widest_integer(assembly) <= 64  # LLVM cannot lower wider vectors
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    passes = builder.getModulePassManager()
    _look_back(ALL if len(assembly) < LARGE else SOME)
    try:
        passes.run(module, builder)
    finally:
        _look_back(ALL)
    code: bytes = machine.emit_object(module)
    return code


def _widest_integer(assembly: str) -> int:
    """Return the bits of the widest integer type."""
    return max(map(int, set(re.findall(r"\bi(\d+)\b", assembly))), default=0)


def _look_back(blocks: int) -> None:
    """Set how far LLVM looks back for a memory access.

    LLVM's options are global to the process, so they are restored after use."""
    llvm.set_option("gradplane", f"-memdep-block-number-limit={blocks}")
