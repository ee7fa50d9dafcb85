"""One's own models and data: "module:object" to the object, and what to say when that fails."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any


class LoadError(ValueError):
    """A model or data set that cannot be had; says what was asked, found and allowed."""


def is_reference(name: str) -> bool:
    """Whether a model's or data set's name means a Python object."""
    return ":" in name


def load(what: str, reference: str) -> Any:
    """The object behind "module:object" (dots after the colon reach inside); LoadError if none."""
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise LoadError(f"{what} {reference!r}: write module:object, such as mymodels:Net")
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
    """function(**arguments); LoadError, with what it takes, if it takes others."""
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
