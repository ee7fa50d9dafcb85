"""User-defined models and data sets, loaded and called by "module:object"."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any


class LoadError(ValueError):
    """A model or data set that cannot be loaded; the text says what was found and is allowed."""


def is_reference(name: str) -> bool:
    """Return whether the name of a model or data set refers to a Python object."""
    return ":" in name


def load(what: str, reference: str) -> Any:
    """Return the object of "module:object" (dots for attributes); LoadError if there is none.

    The module may be in the current folder, which is then the last one that Python looks into."""
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise LoadError(f'{what} "{reference}": write module:object, such as mymodels:Net')
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = importlib.import_module(module_name)
    except ImportError as error:
        raise LoadError(
            f"{what} {reference}: cannot import {module_name} ({error});"
            " is its folder the current one or on PYTHONPATH?"
        ) from error
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            raise LoadError(f"{what} {reference}: {module_name} has no {path}")
        found = getattr(found, attribute)
    return found


def call(what: str, name: str, function: Callable[..., Any], **arguments: Any) -> Any:
    """Return function(**arguments); LoadError with its signature if it takes other arguments."""
    if not callable(function):
        raise LoadError(f"{what} {name}: expected a callable, got {type(function).__name__}")
    signature = inspect.signature(function)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        given = ", ".join(arguments)
        raise LoadError(
            f"{what} {name}: called with {given}, but it takes {signature} ({error})"
        ) from None
    return function(**arguments)
