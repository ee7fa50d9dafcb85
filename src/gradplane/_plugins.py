"""Plug-ins: a module of a folder of this package, found by its name, or a user's own object.

A user's object is named "module:object", or by a Python file: "half.py:Half", or "half.py" where it
has one object of the kind that is looked for. A file's module is called `gradplane._plugins.x` and
the file's path in hexadecimal, so that other processes can import it, too, by that name alone.
"""

import functools
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from gradplane._suggestions import did_you_mean, near_file, quoted

__path__: list[str] = []  # submodules are files, which the finder below finds
_FILES = f"{__name__}.x"
OWN = 'or your own: "module:object", or "file.py" (docs/own-parts.md)'
"""The end of each refusal of an unknown name."""

_references: dict[object, str] = {}  # of users' objects


class LoadError(ValueError):
    """A user's object that cannot be loaded, or that returned something else than it must; the text
    names the object, what was found and what is expected.
    """


def names(path: Iterable[str], *shared: str) -> list[str]:
    """Return the sorted names of the modules in a `__path__`, except the `shared` ones."""
    return sorted(module.name for module in pkgutil.iter_modules(path) if module.name not in shared)


def find(package: str, name: str, base: type[Any]) -> type[Any]:
    """Return the class that module `name` of a package derives from `base`."""
    module = importlib.import_module(f"{package}.{name}")
    found = _derived(module, base)
    assert len(found) == 1, f"{module.__file__} derives {len(found)} classes of {base}, expected 1"
    return found[0]


def _derived(module: ModuleType, base: type[Any]) -> list[type[Any]]:
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    ]


# -- users' objects -------------------------------------------------------------------------------


def is_reference(name: str) -> bool:
    """Return whether a name refers to a user's object."""
    return ":" in name or name.endswith(".py")


def located(reference: str, folder: Path) -> str:
    """Return a reference with the absolute path of its file, where that, or a file of the module's
    name, is in a folder; else as it is."""
    if not is_reference(reference):
        return reference
    file, colon, name = _parted(reference)
    path = folder / (file if file.endswith(".py") else f"{file.replace('.', '/')}.py")
    if not file or not path.is_file():
        return reference
    return f"{path.resolve()}{colon}{name}"


def load(what: str, reference: str, base: type[Any] | None = None) -> Any:
    """Return a user's object; LoadError if there is none, or it does not derive from a base.

    Dots stand for attributes. A module may be in the current folder, which is then the last one
    that Python looks into."""
    file, colon, path = _parted(reference)
    if not file or (colon and not path):
        raise LoadError(
            f'{what} "{reference}": write module:object, such as mymodels:Net, or a file, such as'
            " mymodels.py:Net"
        )
    module = _imported(what, reference, file)
    found: Any = module
    if not path:
        found = _only(what, reference, module, base)
    for attribute in path.split(".") if path else ():
        if not hasattr(found, attribute):
            raise LoadError(f"{what} {reference}: {file} has no {path}")
        found = getattr(found, attribute)
    if base is not None and not (isinstance(found, type) and issubclass(found, base)):
        raise LoadError(
            f"{what} {reference}: found {described(found)}; expected a class derived from"
            f" {_public(base)}"
        )
    if isinstance(found, type):
        _references[found] = reference
    return found


def reference_of(kind: type[Any]) -> str | None:
    """Return the reference by which a class was loaded here; None for others."""
    return _references.get(kind)


def error_of_own(error: BaseException) -> str | None:
    """Return an error's traceback from a user's module on, and its notes; None if it came through
    none: it is gradplane's own."""
    classes = (kind.__module__ for kind in _references if isinstance(kind, type))
    modules = {name for name in classes if not name.startswith("gradplane.")}
    place = error.__traceback__
    while place is not None:
        module = place.tb_frame.f_globals.get("__name__", "")
        if module.startswith(_FILES) or module in modules:
            lines = traceback.format_exception(type(error), error, place)
            return f"an error in {place.tb_frame.f_code.co_filename}\n{''.join(lines).rstrip()}"
        place = place.tb_next
    return None


def _parted(reference: str) -> tuple[str, str, str]:
    """Return module or file, the colon, and the name of the object; both empty without one."""
    if reference.endswith(".py"):
        return reference, "", ""
    return reference.rpartition(":")


def _imported(what: str, reference: str, name: str) -> ModuleType:
    is_file = name.endswith(".py")
    folder = str(Path(name).resolve().parent) if is_file else os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)
    if is_file and not Path(name).is_file():
        missing = f"there is no file {name}{near_file(Path(name))}"
        raise LoadError(f"{what} {reference}: {missing}")
    try:
        return importlib.import_module(_file_module(Path(name)) if is_file else name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if is_file or not (name == missing or name.startswith(f"{missing}.")):
            raise LoadError(f"{what} {reference}: {_raised(error)}") from error
        raise LoadError(
            f"{what} {reference}: cannot import {name} ({error});"
            " is its folder the current one, the experiment's or on PYTHONPATH?"
        ) from error
    except Exception as error:
        raise LoadError(f"{what} {reference}: {_raised(error)}") from error


def _raised(error: BaseException) -> str:
    """Return an error of a user's code with its place."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return text
    return f"{frames[-1].filename}:{frames[-1].lineno}: {text}"


def _only(what: str, reference: str, module: ModuleType, base: type[Any] | None) -> Any:
    """Return the only object that is meant in a file: of a base, or of the file's name."""
    if base is None:
        name = Path(reference).stem.replace("-", "_")
        if not hasattr(module, name):
            raise LoadError(f"{what} {reference}: the file has no {name}: write {reference}:OBJECT")
        return getattr(module, name)
    found = _derived(module, base)
    if len(found) != 1:
        listed = ", ".join(kind.__name__ for kind in found) or "none"
        raise LoadError(
            f"{what} {reference}: found {listed} derived from {_public(base)}; expected one class,"
            f" or write {reference}:CLASS"
        )
    return found[0]


def _public(base: type[Any]) -> str:
    """Return the name by which a class is imported: its package's, if it has it."""
    package = base.__module__.rpartition(".")[0]
    exported = getattr(sys.modules.get(package), base.__name__, None) is base
    return f"{package if exported else base.__module__}.{base.__name__}"


def _file_module(path: Path) -> str:
    return _FILES + os.fsencode(path.resolve()).hex()


class _Files(MetaPathFinder):
    """Finds the modules of users' files."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how a file is imported; None for all other modules."""
        if not name.startswith(_FILES):
            return None
        file = os.fsdecode(bytes.fromhex(name.removeprefix(_FILES)))
        return importlib.util.spec_from_file_location(name, file)


sys.meta_path.append(_Files())


# -- what users' objects get and return -----------------------------------------------------------


def call(what: str, name: str, function: Callable[..., Any], **arguments: Any) -> Any:
    """Return function(**arguments); LoadError with its signature if it takes other arguments."""
    if not callable(function):
        raise LoadError(f"{what} {name}: expected a callable, got {type(function).__name__}")
    signature = inspect.signature(function)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        given, takes = ", ".join(arguments), signature.parameters
        plain = [one.replace(annotation=one.empty) for one in takes.values()]
        near = (did_you_mean(one, takes, quoted) for one in arguments if one not in takes)
        raise LoadError(
            f"{what} {name}: called with {given}, but it takes {inspect.Signature(plain)}"
            f" ({next(filter(None, near), error)})"
        ) from None
    return function(**arguments)


def described(found: Any) -> str:
    """Return what was found, in a few words."""
    if isinstance(found, ModuleType):
        return f"the module {found.__name__}"
    if hasattr(found, "dtype") and hasattr(found, "shape"):
        return f"{found.dtype} of shape {found.shape}"
    if isinstance(found, type):
        return f"the class {found.__name__}"
    if callable(found):
        return f"the function {getattr(found, '__name__', found)}"
    if isinstance(found, tuple):
        return _short(f"({', '.join(map(described, found))})")
    return "None" if found is None else _short(f"{type(found).__name__} {found!r}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def returned(what: str, method: str, found: Any, right: bool, expected: str) -> None:
    """Raise LoadError unless what an object's method returned is right."""
    if not right:
        raise LoadError(f"{what}: {method} returned {described(found)}; expected {expected}")


Doors = Mapping[str, tuple[Callable[[Any], bool], str]]
"""By method: a test of what it returned, and the words for what is expected."""


def watch(what: str, kind: type[Any], doors: Doors) -> None:
    """Check what methods of a user's class get and return, wherever they are called: LoadError."""
    for owner in kind.__mro__:
        if owner.__module__.startswith("gradplane.") and not owner.__module__.startswith(_FILES):
            continue
        for name in doors.keys() & vars(owner).keys():
            method = vars(owner)[name]
            if inspect.isfunction(method) and not hasattr(method, "__wrapped__"):
                setattr(owner, name, _watched(what, method, *doors[name]))


def _watched(
    what: str, method: Callable[..., Any], right: Callable[[Any], bool], expected: str
) -> Callable[..., Any]:
    name, signature = method.__name__, inspect.signature(method)

    @functools.wraps(method)
    def checked(*arguments: Any, **named: Any) -> Any:
        try:
            signature.bind(*arguments, **named)
        except TypeError as error:
            raise LoadError(f"{what}: {name} takes {signature}: {error}") from None
        found = method(*arguments, **named)
        returned(what, name, found, right(found), expected)
        return found

    return checked


def returned_array(what: str, method: str, found: Any, kind: str, shape: tuple[int, ...]) -> None:
    """Raise LoadError unless a method returned an array of that dtype and shape."""
    right = getattr(found, "dtype", None) == kind and getattr(found, "shape", None) == shape
    returned(what, method, found, right, f"{kind} of shape {shape}")
