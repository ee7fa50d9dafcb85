"""What each module of the package imports, also for types only and within functions; read once, by
the first test that asks: to parse the package while tests are collected would keep all waiting."""

from functools import cache

import count_source


@cache
def modules() -> dict[str, count_source.Module]:
    """Return the package's modules, by name."""
    return count_source.modules()


@cache
def arrows() -> count_source.Imports:
    """Return the modules that each module imports."""
    return count_source.imports(modules())
