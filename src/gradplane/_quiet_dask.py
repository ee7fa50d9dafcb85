"""Dask's log, kept off the terminal while its workers may be lost; every room may use it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_dask() -> Iterator[None]:
    """Keep Dask's messages about lost workers off the terminal: what becomes of them is said."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
