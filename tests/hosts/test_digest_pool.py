"""Digests that are computed together are those that each has alone."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gradplane.hosts import digest_pool, sha256_lanes
from gradplane.hosts.digest import digest
from gradplane.hosts.digest_pool import PooledDigest
from gradplane.hosts.protocols.once import constant

RANDOM = np.random.default_rng(3)


def some_bytes(size):
    return RANDOM.integers(0, 256, size, dtype=np.uint8)


def test_lanes_hash_messages_of_all_sizes():
    messages = [[some_bytes(size)] for size in range(200)] + [[]]
    messages += [[some_bytes(64 * k), some_bytes(128), some_bytes(k)] for k in range(40)]
    expected = [hashlib.sha256(b"".join(map(bytes, parts))).hexdigest()[:16] for parts in messages]
    assert sha256_lanes.digests(messages) == expected
    for few in (0, 3):
        assert sha256_lanes.digests(messages[:few]) == expected[:few]


@pytest.fixture(params=[True, False])
def lanes(request, monkeypatch):
    """Take processors with and without such vectors; no digests of other tests wait."""
    monkeypatch.setattr(sha256_lanes, "worthwhile", lambda: request.param)
    digest_pool._waiting.clear()


def vectors():
    """Return the arrays of many digests: of one, of several, of equal memory, and in parts that
    are not of whole blocks."""
    common = constant(RANDOM.standard_normal(50_000).astype(np.float32))
    return (
        [(common[k : k + 40_000],) for k in range(10)]
        + [(common[:40_000],)] * 3
        + [(common.astype(">f4"),), (some_bytes(9),)]
        + [tuple(map(some_bytes, (1 << 16, 1 << 10, k))) for k in range(10)]
        + [(some_bytes(70_000), some_bytes(7))]
    )


def test_each_digest_is_its_own(lanes):
    arrays = vectors()
    waiting = [PooledDigest(*parts) for parts in arrays]
    del waiting[3:5], arrays[3:5]  # nobody wants these any more
    assert [one.get() for one in waiting] == [digest(*parts) for parts in arrays]
    assert [one.get() for one in waiting] == [digest(*parts) for parts in arrays]


def test_threads_may_want_them_at_once(lanes):
    arrays = 4 * vectors()
    waiting = [PooledDigest(*parts) for parts in arrays]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(PooledDigest.get, waiting[::-1]))
    assert found[::-1] == [digest(*parts) for parts in arrays]
