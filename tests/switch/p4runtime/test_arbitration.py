"""Elections as tables of cases: announcements in, notices out."""

from __future__ import annotations

import pytest
from finsy.proto import U128, p4r, stratum
from google.protobuf.any_pb2 import Any
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.p4runtime.arbitration import Arbitration
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS
from gradplane.switch.p4runtime.roles import FULL_ACCESS
from gradplane.switch.p4runtime.status_errors import RpcError

OK, ALREADY_EXISTS, NOT_FOUND = 0, 6, 5


def update(
    election_id: int | None, role: str = "", device_id: int = 1, config: Any | None = None
) -> p4r.MasterArbitrationUpdate:
    message = p4r.MasterArbitrationUpdate(device_id=device_id)
    if election_id is not None:
        message.election_id.CopyFrom(U128.encode(election_id))
    if role:
        message.role.name = role
    if config is not None:
        message.role.config.CopyFrom(config)
    return message


def notified(notices: list) -> dict[object, tuple[int | None, int]]:
    """Return stream -> (election id in the notice, status)."""
    assert len({stream for stream, _ in notices}) == len(notices)
    return {
        stream: (
            U128.decode(n.election_id) if n.HasField("election_id") else None,
            n.status.code,
        )
        for stream, n in notices
    }


CASES = [
    ("the first controller becomes primary", [(("a", 5), {"a": (5, OK)})]),
    ("an election id of 0 counts", [(("a", 0), {"a": (0, OK)})]),
    ("an unset election id never does", [(("a", None), {"a": (None, NOT_FOUND)})]),
    (
        "a lower one is a backup, and only it hears of it",
        [(("a", 5), {"a": (5, OK)}), (("b", 4), {"b": (5, ALREADY_EXISTS)})],
    ),
    (
        "a higher one takes over, and all hear of it",
        [
            (("a", 5), {"a": (5, OK)}),
            (("b", 4), {"b": (5, ALREADY_EXISTS)}),
            (("c", 9), {"a": (9, ALREADY_EXISTS), "b": (9, ALREADY_EXISTS), "c": (9, OK)}),
        ],
    ),
    (
        "the primary leaves: nobody is primary, the highest id stays",
        [
            (("a", 5), {"a": (5, OK)}),
            (("b", 4), {"b": (5, ALREADY_EXISTS)}),
            (("a", "leaves"), {"b": (5, NOT_FOUND)}),
            (("b", 4), {"b": (5, NOT_FOUND)}),
            (("b", 5), {"b": (5, OK)}),
        ],
    ),
    (
        "it returns with the same id",
        [
            (("a", 5), {"a": (5, OK)}),
            (("a", "leaves"), {}),
            (("again", 5), {"again": (5, OK)}),
        ],
    ),
    (
        "a backup leaves: nobody hears of it",
        [
            (("a", 5), {"a": (5, OK)}),
            (("b", 4), {"b": (5, ALREADY_EXISTS)}),
            (("b", "leaves"), {}),
        ],
    ),
    (
        "the primary steps down: all hear of it",
        [
            (("a", 5), {"a": (5, OK)}),
            (("b", 4), {"b": (5, ALREADY_EXISTS)}),
            (("a", 1), {"a": (5, NOT_FOUND), "b": (5, NOT_FOUND)}),
        ],
    ),
    (
        "the primary raises its id",
        [(("a", 5), {"a": (5, OK)}), (("a", 8), {"a": (8, OK)})],
    ),
    (
        "128 bits",
        [(("a", 1 << 64), {"a": (1 << 64, OK)}), (("b", 7), {"b": (1 << 64, ALREADY_EXISTS)})],
    ),
]


@pytest.mark.p4runtime("5-2 5-3 5-7 5.3-9 5.3-12 5.3-13 5.4-1 5.4-3 5.4-4 16.2.1-1 16.2.1-2")
@pytest.mark.parametrize("steps", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_elections(steps: list) -> None:
    arbitration = Arbitration(1)
    for (stream, election_id), expected in steps:
        if election_id == "leaves":
            notices = arbitration.leave(stream)
        else:
            notices = arbitration.announce(stream, update(election_id))
        assert notified(notices) == expected


@pytest.mark.p4runtime("5-1")
def test_roles_have_elections_of_their_own() -> None:
    arbitration = Arbitration(1)
    assert notified(arbitration.announce("a", update(5))) == {"a": (5, OK)}
    assert notified(arbitration.announce("b", update(5, "qos"))) == {"b": (5, OK)}
    assert notified(arbitration.announce("c", update(6, "qos"))) == {
        "b": (6, ALREADY_EXISTS),
        "c": (6, OK),
    }
    assert arbitration.check_primary("", 5) is FULL_ACCESS
    assert arbitration.check_primary("qos", 6) is FULL_ACCESS


@pytest.mark.p4runtime("5-4 5.3-1 5.3-2 5.3-3 16.6-4")
@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (update(7, device_id=3), "NOT_FOUND", "device id 3 is not served here, only 1"),
        (
            update(5),
            "INVALID_ARGUMENT",
            "election id 5 is already used by another live controller of the default role",
        ),
        (
            update(7, "r", config=Any(type_url="type.example/x.Y")),
            "INVALID_ARGUMENT",
            "role config of type type.example/x.Y: expected none, or a stratum.P4RoleConfig",
        ),
    ],
)
def test_a_new_stream_that_is_ended(
    message: p4r.MasterArbitrationUpdate, code: str, text: str
) -> None:
    arbitration = Arbitration(1)
    arbitration.announce("a", update(5))
    with pytest.raises(RpcError) as caught:
        arbitration.announce("new", message)
    assert (caught.value.code, caught.value.message) == (code, text)
    assert list(arbitration.clients) == ["a"]


@pytest.mark.p4runtime("5.3-5 5.3-6")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (update(5, device_id=3), "device id 3 is not served here, only 1"),
        (
            update(5, "r"),
            'this stream has the default role; for role "r" open another',
        ),
    ],
)
def test_a_known_stream_may_not_change_device_or_role(
    message: p4r.MasterArbitrationUpdate, text: str
) -> None:
    arbitration = Arbitration(1)
    arbitration.announce("a", update(5))
    with pytest.raises(RpcError) as caught:
        arbitration.announce("a", message)
    assert (caught.value.code, caught.value.message) == ("FAILED_PRECONDITION", text)


@pytest.mark.p4runtime("5.3-4")
def test_streams_are_limited() -> None:
    arbitration = Arbitration(1)
    for i in range(DEFAULT_LIMITS.streams):
        arbitration.announce(i, update(i))
    with pytest.raises(RpcError) as caught:
        arbitration.announce("one more", update(99))
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    assert caught.value.message == "32 streams are open, the limit (--limit streams=N)"


@pytest.mark.p4runtime("5-5 5.3-10 12-1 12-2")
@pytest.mark.parametrize(
    ("role", "election_id", "code", "text"),
    [
        ("x", 5, "NOT_FOUND", 'role "x" is not known on device 1'),
        ("", 4, "PERMISSION_DENIED",
         "election id 4 is not the primary's of the default role, which is 5"),
        ("", None, "PERMISSION_DENIED",
         "election id unset is not the primary's of the default role, which is 5"),
        ("idle", 5, "PERMISSION_DENIED",
         'role "idle" has no primary controller: open a StreamChannel and send a'
         " MasterArbitrationUpdate first"),
    ],
)  # fmt: skip
def test_only_the_primary_may_write(
    role: str, election_id: int | None, code: str, text: str
) -> None:
    arbitration = Arbitration(1)
    arbitration.announce("a", update(5))
    arbitration.announce("b", update(None, "idle"))
    with pytest.raises(RpcError) as caught:
        arbitration.check_primary(role, election_id)
    assert (caught.value.code, caught.value.message) == (code, text)


@pytest.mark.p4runtime("5.2-1 5.2-5 5.4-5")
def test_a_role_config_is_remembered_and_returned() -> None:
    config = Any()
    config.Pack(stratum.P4RoleConfig(exclusive_p4_ids=[7], can_push_pipeline=False))
    arbitration = Arbitration(1)
    ((_, notice),) = arbitration.announce("a", update(5, "r", config=config))
    assert notice.role.config == config
    other = Any()
    other.Pack(stratum.P4RoleConfig(exclusive_p4_ids=[8]))
    ((stream, notice),) = arbitration.announce("b", update(4, "r", config=other))
    assert (stream, notice.role.config) == ("b", config)  # a backup's is not the role's
    rights = arbitration.check_primary("r", 5)
    assert rights.may_access(7)
    assert rights.may_access(0)
    assert not rights.may_access(8)
    assert not rights.can_push_pipeline


events = st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 5) | st.just("leaves"))


@pytest.mark.p4runtime("5-2 16.2-2")
@given(st.lists(events, max_size=30))
def test_there_is_at_most_one_primary_and_it_has_the_highest_id_ever(steps: list) -> None:
    arbitration, highest = Arbitration(1), None
    for stream, election_id in steps:
        try:
            if election_id == "leaves":
                notices = arbitration.leave(stream)
            else:
                notices = arbitration.announce(stream, update(election_id))
        except RpcError as error:
            assert error.code == "INVALID_ARGUMENT"
            continue
        if isinstance(election_id, int):
            highest = election_id if highest is None else max(highest, election_id)
        primary = arbitration.primary("")
        assert primary is None or primary.election_id == highest
        assert sum(n.status.code == OK for _, n in notices) <= 1
        for told_stream, notice in notices:
            is_primary = primary is not None and primary.stream == told_stream
            assert (notice.status.code == OK) == is_primary
