"""Plug-ins: each module of a folder is one, found by its name, with one class of a given base."""

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def names(path: Iterable[str], *shared: str) -> list[str]:
    """Return the sorted names of the modules in a `__path__`, except the `shared` ones."""
    return sorted(module.name for module in pkgutil.iter_modules(path) if module.name not in shared)


def find(package: str, name: str, base: type[Any]) -> type[Any]:
    """Return the class that module `name` of a package derives from `base`."""
    module = importlib.import_module(f"{package}.{name}")
    found = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    ]
    assert len(found) == 1, f"{module.__file__} derives {len(found)} classes of {base}, expected 1"
    return found[0]
