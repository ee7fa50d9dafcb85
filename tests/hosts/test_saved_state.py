"""State as bytes: what of codecs is read back, and that nothing else is."""

import pickle
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest

from gradplane import codecs
from gradplane.hosts.saved_state import StateError, pack, unpack


@dataclass(frozen=True)
class Own:
    values: np.ndarray
    count: int


class OwnCodec:
    """A codec of this module, as far as its state goes."""


def test_an_own_codecs_state_of_its_own_module():
    state = {0: [Own(np.arange(3.0), 2), None, (np.float32(1.5), "text")]}
    found = unpack(pack(state, [OwnCodec()]), [OwnCodec()])
    assert found[0][0].values.tolist() == [0, 1, 2] and found[0][1:] == state[0][1:]
    with pytest.raises(StateError, match="Own: a state consists of NumPy arrays"):
        unpack(pack(state, [OwnCodec()]), [codecs.get("thc")])


@pytest.mark.parametrize("state", [OrderedDict, len, lambda: 0, OrderedDict(a=1)])
def test_other_objects_are_refused(state):
    with pytest.raises(StateError, match="a state consists of NumPy arrays, numbers"):
        pack({0: state}, [OwnCodec()])


def test_reading_runs_nothing():
    data = pickle.dumps({0: print})
    with pytest.raises(StateError, match="it has an object of builtins.print"):
        unpack(data, [OwnCodec()])
