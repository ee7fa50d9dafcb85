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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from gradplane._suggestions import did_you_mean, near_file, nearest, quoted

__path__: list[str] = []  # submodules are files, which the finder below finds
_FILES = f"{__name__}.x"
_beside: ContextVar[Path] = ContextVar("folder of the experiment", default=Path())
OWN = 'or your own: "module:object", or "file.py" (docs/own-parts.md)'
"""The end of each refusal of an unknown name."""

_references: dict[type[Any] | FunctionType, str] = {}  # of users' objects


def own(name: str) -> str:
    """Return OWN, with the file of nearly that name in the experiment's or the current folder."""
    files: dict[str, Path] = {}
    for folder in (Path(), _beside.get()):
        with suppress(OSError):
            files |= {path.stem: path for path in folder.iterdir() if path.suffix == ".py"}
    near = nearest(name.replace("-", "_"), files)
    return OWN + (f'; did you mean "{files[near[0]].name}"?' if near else "")


@contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Look for files that a user may mean in an experiment's folder, too."""
    token = _beside.set(folder)
    try:
        yield
    finally:
        _beside.reset(token)


class LoadError(ValueError):
    """A user's object that cannot be loaded, or that returned something else than it must; the text
    names the object, what was found and what is expected.
    """


def names(path: Iterable[str], *shared: str) -> list[str]:
    """Return the sorted names of the modules in a `__path__`, except the `shared` ones."""
    return [name for name in _modules(tuple(path)) if name not in shared]


@functools.cache  # a start asks some hundred times
def _modules(path: tuple[str, ...]) -> tuple[str, ...]:
    found = pkgutil.iter_modules(path)
    return tuple(sorted(module.name for module in found if not module.ispkg))


def find(package: str, name: str, base: type[Any]) -> type[Any]:
    """Return the class that module `name` of a package derives from `base`."""
    module = importlib.import_module(f"{package}.{name}")
    found = _derived(module, base)
    assert len(found) == 1, f"{module.__file__} derives {len(found)} classes of {base}, expected 1"
    return found[0]


def _derived(module: ModuleType, base: type[Any]) -> list[type[Any]]:
    """Return the classes of a module that derive from a base, and from which no other one there
    does."""
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    ]
    return [kind for kind in kinds if not any(kind in other.__mro__[1:] for other in kinds)]


# -- users' objects -------------------------------------------------------------------------------


def is_reference(name: str) -> bool:
    """Return whether a name refers to a user's object."""
    return ":" in name or name.endswith(".py")


def file_of(reference: str) -> Path | None:
    """Return the Python file that a reference names; None if it is missing or none is named."""
    file = _parted(reference)[0] if is_reference(reference) else ""
    return Path(file) if file.endswith(".py") and Path(file).is_file() else None


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


def load(
    what: str, reference: str, base: type[Any] | None = None, takes: Collection[str] = ()
) -> Any:
    """Return a user's object; LoadError if there is none, or it does not derive from a base.

    takes: without a base, the arguments by which an object of a file is known that has another
    name than the file. Dots stand for attributes. A module may be in the current folder, which is
    then the last one that Python looks into."""
    file, colon, path = _parted(reference)
    if not file or (colon and not path):
        raise LoadError(
            f'{what} "{reference}": write module:object, such as mymodels:Net, or a file, such as'
            " mymodels.py:Net"
        )
    module = _imported(what, reference, file)
    found: Any = module
    if not path:
        found = _only(what, reference, module, base, takes)
    for attribute in path.split(".") if path else ():
        if not hasattr(found, attribute):
            near = did_you_mean(attribute, _public_names(found))
            raise LoadError(f"{what} {reference}: {file} has no {path}{near and f'; {near}'}")
        found = getattr(found, attribute)
    if base is not None and not (isinstance(found, type) and issubclass(found, base)):
        raise LoadError(
            f"{what} {reference}: found {described(found)}; expected a class derived from"
            f" {_public(base)}"
        )
    if isinstance(found, type | FunctionType):
        _references[found] = reference
    return found


def reference_of(kind: type[Any]) -> str | None:
    """Return the reference by which a class was loaded here; None for others."""
    return _references.get(kind)


def error_of_own(error: BaseException) -> str | None:
    """Return an error's traceback from a user's module on, and its notes; None if it came through
    none: it is gradplane's own."""
    place = next(_own_frames(error), None)
    if place is None:
        return None
    lines = traceback.format_exception(type(error), error, place)
    return f"an error in {place.tb_frame.f_code.co_filename}\n{''.join(lines).rstrip()}"


def own_place(error: BaseException) -> str | None:
    """Return file and line in a user's module from which an error came; None if it came through
    none."""
    places = list(_own_frames(error))
    return f"{places[-1].tb_frame.f_code.co_filename}:{places[-1].tb_lineno}" if places else None


def _own_frames(error: BaseException) -> Iterator[TracebackType]:
    """Yield the frames of an error's traceback that are in users' modules."""
    owners = {found.__module__ for found in _references}
    modules = {name for name in owners if not name.startswith("gradplane.")}
    place = error.__traceback__
    while place is not None:
        module = place.tb_frame.f_globals.get("__name__", "")
        if module.startswith(_FILES) or module in modules:
            yield place
        place = place.tb_next


def _parted(reference: str) -> tuple[str, str, str]:
    """Return module or file, the colon, and the name of the object; both empty without one."""
    if reference.endswith(".py"):
        return reference, "", ""
    return reference.rpartition(":")


def _imported(what: str, reference: str, name: str) -> ModuleType:
    is_file = name.endswith(".py")
    if not is_file:
        _look_into(os.getcwd())
    if is_file and not Path(name).is_file():
        missing = f"there is no file {name}{near_file(Path(name))}"
        raise LoadError(f"{what} {reference}: {missing}")
    try:
        module = importlib.import_module(_file_module(Path(name)) if is_file else name)
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
    if is_file:
        _helpers[Path(name).resolve()] = helpers(Path(name))
    return module


def _raised(error: BaseException) -> str:
    """Return an error of a user's code with its place."""
    text = f"{type(error).__name__}: {error}{_hidden(error)}"
    frames = traceback.extract_tb(error.__traceback__)
    unread = isinstance(error, OSError) and frames and frames[-1].filename.startswith("<frozen")
    if isinstance(error, SyntaxError) or not frames or unread:
        return text
    return f"{frames[-1].filename}:{frames[-1].lineno}: {text}"


def _hidden(error: BaseException) -> str:
    """Return why a user's import found another module than the one beside the file, or nothing."""
    module = error.obj if isinstance(error, AttributeError) else None
    name = error.name if isinstance(error, ImportError) else getattr(module, "__name__", None)
    if not isinstance(name, str) or isinstance(error, ModuleNotFoundError):
        return ""
    if name == __name__:
        return "; a file beside yours is imported by its name alone: import NAME"
    folder = _folders[0] if _folders else ""  # of the file that was imported last
    if not Path(folder, f"{name}.py").is_file() or _file_in(folder, sys.modules[name]):
        return ""
    return f"; this is Python's {name}, not {folder}/{name}.py: give that another name"


def _only(
    what: str, reference: str, module: ModuleType, base: type[Any] | None, takes: Collection[str]
) -> Any:
    """Return the only object that is meant in a file: of a base; or of the file's name, else one
    that takes the arguments."""
    if base is None:
        name, expected = Path(reference).stem.replace("-", "_"), f"taking {', '.join(takes)}"
        if hasattr(module, name):
            return getattr(module, name)
        found = [one for one in _defined(module) if _takes(one, takes)]
        of_name = f"; expected {name}, or one that takes them"
    else:
        found, expected = _derived(module, base), f"derived from {_public(base)}"
        of_name = "; expected one class"
    if len(found) != 1:
        listed = ", ".join(one.__name__ for one in found) or "none"
        raise LoadError(
            f"{what} {reference}: found {listed} {expected}{of_name}, or write {reference}:OBJECT"
        )
    return found[0]


def _public_names(found: Any) -> list[str]:
    return [name for name in dir(found) if not name.startswith("_")]


def _defined(module: ModuleType) -> list[Any]:
    """Return the public functions and classes that a module defines itself."""
    found = [getattr(module, name) for name in _public_names(module)]
    kinds = type | FunctionType
    return [one for one in found if isinstance(one, kinds) and one.__module__ == module.__name__]


def _takes(function: Any, names: Collection[str]) -> bool:
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return set(names) <= known.keys() or any(p.kind is p.VAR_KEYWORD for p in known.values())


def _public(base: type[Any]) -> str:
    """Return the name by which a class is imported: its package's, if it has it."""
    package = base.__module__.rpartition(".")[0]
    exported = getattr(sys.modules.get(package), base.__name__, None) is base
    return f"{package if exported else base.__module__}.{base.__name__}"


def _file_module(path: Path) -> str:
    return _FILES + os.fsencode(path.resolve()).hex()


_folders: list[str] = []  # in sys.path, at its end, for users' modules
_helpers: dict[Path, set[Path]] = {}


def _look_into(folder: str) -> None:
    """Have Python look into a user's folder after its own and before other users' folders; modules
    from these, of names that are files here, too, are imported anew."""
    if folder not in sys.path or folder in _folders:
        sys.path[:] = [known for known in sys.path if known not in _folders]
        _folders[:] = [folder, *(known for known in _folders if known != folder)]
        sys.path.extend(_folders)
    for name, other in _modules_in({*_folders} - {folder}):
        if Path(folder, _file_in(other, sys.modules[name])).is_file():
            del sys.modules[name]


def _modules_in(folders: Collection[str]) -> list[tuple[str, str]]:
    """Return the names and folders of the imported modules that are files of one of these folders,
    or of packages there."""
    found = []
    for name, module in sys.modules.items() if folders else ():
        file = getattr(module, "__file__", None) or ""
        for end in (".py", "/__init__.py"):
            path = f"/{name.replace('.', '/')}{end}"
            if file.endswith(path) and (folder := file.removesuffix(path)) in folders:
                found.append((name, folder))
    return found


def _file_in(folder: str, module: ModuleType) -> str:
    """Return the path of a module's file from a folder; empty if it is not in it."""
    file = getattr(module, "__file__", None) or ""
    return file.removeprefix(f"{folder}/") if file.startswith(f"{folder}/") else ""


def helpers(file: Path) -> set[Path]:
    """Return the files beside a user's file, or in packages there, that were imported when it was,
    or since then, by their names; those that it imports are among them."""
    folder = str(file.resolve().parent)
    found = _modules_in({folder})
    now = {Path(folder, _file_in(folder, sys.modules[name])) for name, _ in found}
    return now | _helpers.get(file.resolve(), set())


class _Files(MetaPathFinder):
    """Finds the modules of users' files."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how a file is imported; None for all other modules."""
        if not name.startswith(_FILES):
            return None
        file = os.fsdecode(bytes.fromhex(name.removeprefix(_FILES)))
        _look_into(os.path.dirname(file))
        return importlib.util.spec_from_file_location(name, file)


sys.meta_path.append(_Files())


# -- what users' objects get and return -----------------------------------------------------------


def call(what: str, name: str, function: Callable[..., Any], **arguments: Any) -> Any:
    """Return function(**arguments); LoadError with its signature if it takes other arguments."""
    if not callable(function):
        raise LoadError(f"{what} {name}: expected a callable, got {type(function).__name__}")
    try:
        return function(**arguments)
    except TypeError:  # of the call, or of something in the function
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
        raise


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
"""A test of each method's result, and the words for what is expected."""


def watch(what: str, kind: type[Any], doors: Doors) -> None:
    """Check what methods of a user's class get and return, wherever they are called: LoadError."""
    for owner, method in own_methods(kind, doors):
        setattr(owner, method.__name__, _watched(what, method, *doors[method.__name__]))


def own_methods(kind: type[Any], names: Iterable[str]) -> Iterator[tuple[type[Any], Any]]:
    """Yield the methods of these names that a user's class and its bases define, with the class
    that does; without those of gradplane, and those that are checked already."""
    for owner in kind.__mro__:
        if owner.__module__.startswith("gradplane.") and not owner.__module__.startswith(_FILES):
            continue
        for name in names:
            method = vars(owner).get(name)
            if inspect.isfunction(method) and not hasattr(method, "__wrapped__"):
                yield owner, method


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
