"""Check the cases of a small model from the command line."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def check(
    cases: Mapping[str, Any],
    explore: Callable[[Any], int],
    violation: type[Exception],
    wanted: Iterable[str],
) -> int:
    """Explore the cases whose names have one of the words in them, or all; print what was found.

    Returns 1 if a case breaks a rule, else 0. violation: has `events`, those that led there."""
    words, failed = list(wanted), 0
    for name, model in cases.items():
        if words and not any(word in name for word in words):
            continue
        begun = time.perf_counter()
        try:
            found = f"{explore(model)} states"
        except violation as broken:
            failed = 1
            found = "\n  ".join([str(broken), *getattr(broken, "events", ())])
        print(f"{name}: {found}, {time.perf_counter() - begun:.1f} s", flush=True)
    return failed
