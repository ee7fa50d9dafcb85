"""Numba, with a cache of machine code that all copies of this package share.

Numba keeps compiled kernels beside their module: each checkout and each installation compiles them
anew, for minutes in all. Here they are in $XDG_CACHE_HOME/gradplane/kernels, in a folder whose name
depends on the module's text and on the texts of the modules whose kernels it may call. So a change
of a kernel in another module is noticed, too, which Numba does not look for. And of processes that
need a kernel at the same time, as the hosts of a first run do, one compiles it and the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, config, sigutils, types
from numba.core.compiler_lock import global_compiler_lock

from gradplane._user_folders import cache_folder

_settings: Any = config
if _settings.USE_LLVMLITE_MEMORY_MANAGER is None:  # see switch/jit/native_code.py: Native
    _settings.USE_LLVMLITE_MEMORY_MANAGER = 1

PACKAGE = Path(__file__).parent
MODULES_KEPT = 400  # some forty are of one version

_IMPORT = re.compile(r"^from gradplane([\w.]*) import (\([^)]*|.*)", re.M)
_KERNELS = re.compile(r"^from (gradplane\._kernels|numba)\b", re.M)


def njit(function: Callable[..., Any], general: bool = False, **options: Any) -> Any:
    """Return the function as Numba compiles it when it is called.

    general: Numba would compile it anew for each constant that another kernel gives it, which is
    worth the wait where it makes loops faster; this one takes them as any number."""
    try:
        made = numba.njit(**options)(function)
    except RuntimeError:  # no folder can be written: each process compiles for itself
        made = numba.njit(**options | {"cache": False})(function)
    compile, path = made.compile, getattr(made._cache, "_cache_path", "")

    def compile_alone(signature: Any) -> Any:
        if general:
            arguments, _ = sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
            signature = tuple(map(types.unliteral, arguments))
        name = f"{function.__name__}-{function.__code__.co_firstlineno}.lock"
        with global_compiler_lock, _alone(Path(path, name)):  # in this order in all threads
            return compile(signature)

    if path:
        made.compile = compile_alone
    return made


_held: set[Path] = set()


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Keep other processes out, but for a kernel that calls itself and where nothing can be kept.

    Kernels call each other one way only, so that no two processes wait for each other."""
    with ExitStack() as stack:
        if lock not in _held:
            with suppress(OSError):
                fcntl.flock(stack.enter_context(lock.open("a")), fcntl.LOCK_EX)
                _held.add(lock)
                stack.callback(_held.discard, lock)
        yield


@cache
def digest(module: Path) -> str:
    """Return a hash of all that the compiled kernels of a module depend on."""
    versions = (sys.version, numba.__version__, llvmlite.__version__)
    texts = map(_text, sorted(_called(module)))
    return hashlib.sha256("\0".join([*versions, *texts]).encode()).hexdigest()[:24]


def _called(module: Path) -> set[Path]:
    """Return a module and those that it imports, for their functions and constants; of private
    ones and those with kernels also what they import."""
    found, left = {module}, [module]
    while left:
        new = _imported(left.pop()) - found
        found |= new
        left += [each for each in new if each.name[0] == "_" or _KERNELS.search(_text(each))]
    return found


@cache
def _text(module: Path) -> str:
    return module.read_text("utf-8")


@cache
def _imported(module: Path) -> set[Path]:
    """Return the modules of this package that a module imports, also as names from a room."""
    paths = []
    for package, names in _IMPORT.findall(_text(module)):
        base = PACKAGE.joinpath(*package.split(".")[1:])
        paths += [base.with_suffix(".py"), *(base / f"{n}.py" for n in re.findall(r"\w+", names))]
    return {path for path in paths if path.is_file()}


class SharedLocator(caching._CacheLocator):
    """Where Numba keeps the kernels of a module of this package."""

    def __init__(self, function: Any, module: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._digest = digest(module)
        name = ".".join(module.relative_to(PACKAGE).with_suffix("").parts)
        self._folder = cache_folder("kernels") / f"{name}-{self._digest}"

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> SharedLocator | None:
        """Return the place; None, where Numba's own rules hold: for functions of others, where the
        user has set a folder, and where ours cannot be written."""
        module, chosen = Path(py_file), config.CACHE_DIR  # type: ignore[attr-defined]
        if chosen or not module.is_relative_to(PACKAGE):
            return None
        found = cls(py_func, module)
        try:
            found._make()
        except OSError:
            return None
        return found

    def _make(self) -> None:
        if not self._folder.is_dir():
            self.ensure_cache_path()  # type: ignore[no-untyped-call]
            _prune()
        os.utime(self._folder)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return what must be equal for a kept kernel to be used."""
        return self._digest

    def get_disambiguator(self) -> str:
        """Return what distinguishes functions of one name in a module."""
        return str(self._line)


def _prune() -> None:
    """Remove the folders that were not used for longest, above the limit."""
    with suppress(OSError):
        folders = sorted(
            cache_folder("kernels").iterdir(), key=lambda folder: -folder.stat().st_mtime_ns
        )
        for folder in folders[MODULES_KEPT:]:
            shutil.rmtree(folder, ignore_errors=True)


caching.CacheImpl._locator_classes.insert(0, SharedLocator)
