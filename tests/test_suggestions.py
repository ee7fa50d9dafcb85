"""Hints for unknown names, and the one definition of SplitMix64."""

import numpy as np

from gradplane import _splitmix64, _suggestions
from gradplane.codecs import _random

KNOWN = ["quorum", "slots"]


def test_the_nearest_name_is_suggested():
    assert _suggestions.hint("qorum", KNOWN) == "did you mean quorum?"
    assert _suggestions.hint("qorum", KNOWN, repr) == "did you mean 'quorum'?"
    assert _suggestions.nearest("slot", ["slots", "slit", "x"], count=3) == ["slots", "slit"]


def test_without_a_near_name_the_known_ones_are_listed():
    assert _suggestions.hint("zzz", KNOWN) == "known: quorum, slots"
    assert _suggestions.did_you_mean("zzz", KNOWN) == ""


def test_a_file_of_a_similar_name_is_suggested(tmp_path):
    (tmp_path / "mine.toml").touch()
    (tmp_path / "mien.pcap").touch()
    missing = _suggestions.near_file(tmp_path / "mien.toml")
    assert missing == f"; did you mean {tmp_path / 'mine.toml'}?"
    for other in ("none.toml", "mine.toml", "no/mine.toml"):
        assert _suggestions.near_file(tmp_path / other) == ""


def test_splitmix64_makes_its_published_words():
    """From seed 1234567, as Vigna's C program prints them."""
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    seeds = [(1234567 + i * _splitmix64.GOLDEN) & _splitmix64.MASK for i in range(3)]
    assert [_splitmix64.mix(seed) for seed in seeds] == words
    assert np.array_equal(_random.words(1234567, 0, 3), np.array(words, np.uint64))
