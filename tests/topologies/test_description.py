"""Topologies as data: the naming rule, and what is refused, in whole sentences."""

import pytest

from gradplane._plugins import OWN
from gradplane.topologies import (
    HostNode,
    Link,
    SwitchNode,
    Topology,
    TopologyError,
    build,
    kinds,
    parse_rate,
)


def test_star_follows_the_naming_rule():
    star = build("star", workers=2, servers=1)
    assert [(h.name, h.ip, h.mac) for h in star.hosts] == [
        ("h1", "10.0.0.1", "00:00:00:00:00:01"),
        ("h2", "10.0.0.2", "00:00:00:00:00:02"),
        ("h3", "10.0.0.3", "00:00:00:00:00:03"),
    ]
    assert star.switches == (SwitchNode("s1", "10.0.0.254", "00:00:00:00:00:fe"),)
    assert {port: link.name for port, link in star.ports("s1").items()} == {
        1: "h1-s1",
        2: "h2-s1",
        3: "h3-s1",
    }
    assert star.attachment("h3") == ("s1", 3)
    assert star.host["h2"].mac == "00:00:00:00:00:02"


def test_host_sixteen_has_a_hexadecimal_mac():
    assert HostNode.numbered(16).mac == "00:00:00:00:00:10"


def test_rates_delays_and_queues_for_all_or_for_each():
    star = build("star", workers=2, rate="10Mbit", delay=["1ms", 500], queue=[5, 6])
    assert [(link.rate, link.delay, link.queue) for link in star.links] == [
        (10_000_000, 1_000_000, 5),
        (10_000_000, 500, 6),
    ]
    assert build("star", workers=1, rate="1.5 Gbit").links[0].rate == 1_500_000_000


def test_no_rate_is_no_limit():
    link = build("star", workers=1).links[0]
    assert (link.rate, link.delay, link.queue) == (None, 0, 1000)


def test_kinds_are_found_by_file_name():
    assert "star" in kinds()
    assert not {"description", "sim", "mininet", "network", "link_options"} & set(kinds())


STAR_OPTIONS = "delay, nics, queue, rate, servers, workers"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "strar",
            {},
            f'no topology "strar": did you mean "star"? known: {", ".join(kinds())}, {OWN}',
        ),
        ("no/way", {}, f'no topology "no/way": known: {", ".join(kinds())}, {OWN}'),
        (
            "star",
            {"workers": 2, "leaves": 2},
            f'topology star has no option "leaves": it is one of leaf-spine; known: {STAR_OPTIONS}',
        ),
        (
            "star",
            {"workers": 2, "delays": 1},
            f'topology star has no option "delays": did you mean "delay"? known: {STAR_OPTIONS}',
        ),
        ("star", {}, "topology star needs workers"),
        (
            "star",
            {"workers": 0},
            "workers = 0, servers = 0: a star has 1 worker or more, and 32767 hosts at most",
        ),
        (
            "star",
            {"workers": 32767, "servers": 1},
            "workers = 32767, servers = 1: a star has 1 worker or more, and 32767 hosts at most",
        ),
        (
            "star",
            {"workers": 1, "rate": "10Mb"},
            'rate = "10Mb": expected a number with a unit (bit, kbit, mbit, gbit),'
            ' such as "100Mbit"',
        ),
        (
            "star",
            {"workers": 1, "rate": 0},
            "rate = 0: a rate is more than 0 bit/s; leave it out for no limit",
        ),
        (
            "star",
            {"workers": 2, "delay": ["1ms", -1]},
            'delay[1] = -1: expected a number with a unit (ns, us, ms, s), such as "2ms"',
        ),
        (
            "star",
            {"workers": 2, "delay": ["1ms"]},
            "delay has 1 values for 2 hosts: give one for each",
        ),
        ("star", {"workers": 1, "queue": 0}, "queue = 0: a queue holds 1 packet or more"),
    ],
)
def test_what_cannot_be_is_refused(kind, options, message):
    with pytest.raises(TopologyError) as error:
        build(kind, **options)
    assert str(error.value) == message


H1, H2, S1 = HostNode.numbered(1), HostNode.numbered(2), SwitchNode("s1")
LINK = Link("h1", "s1", 0, 1)


@pytest.mark.parametrize(
    ("hosts", "links", "message"),
    [
        ((H1, H1), (LINK,), "name h1 is used 2 times, once is allowed"),
        (
            (H1, HostNode("h2", "10.0.0.1", "00:00:00:00:00:02")),
            (LINK,),
            "address 10.0.0.1 is used 2 times, once is allowed",
        ),
        (
            (H1, HostNode("h2", "10.0.0.2", "00:00:00:00:00:01")),
            (LINK,),
            "MAC address 00:00:00:00:00:01 is used 2 times, once is allowed",
        ),
        ((H1,), (LINK, LINK), "link h1-s1 is used 2 times, once is allowed"),
        (
            (H1, H2),
            (LINK, Link("h2", "s1", 0, 1)),
            "interface s1-eth1 is used 2 times, once is allowed",
        ),
        (
            (H1,),
            (LINK, Link("s1", "s2", 2, 1)),
            'a link leads to "s2", which does not exist: known: h1, s1',
        ),
        ((H1, H2), (LINK,), "host h2 has interfaces []: a host has exactly one, numbered 0"),
        (
            (HostNode("h1", "10.0.0.300", "00:00:00:00:00:01"),),
            (LINK,),
            'host h1: "10.0.0.300" is not an IPv4 address',
        ),
        (
            (H1,),
            (("h1", "s1", 0, 1),),
            "mine: among the links is (str 'h1', str 's1', int 0, int 1): expected a Link",
        ),
        (("h1",), (LINK,), "mine: among the hosts is str 'h1': expected a HostNode"),
    ],
)
def test_a_wrong_description_is_refused(hosts, links, message):
    with pytest.raises(TopologyError) as error:
        Topology("mine", hosts, (S1,), links)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("port", "options", "message"),
    [
        (
            1,
            {"delay": "50us"},
            "delay = '50us': expected a whole number of ns, such as"
            ' parse_time("2ms", "delay") returns',
        ),
        (
            1,
            {"rate": -5},
            "rate = -5: expected a whole number of bit/s, such as"
            ' parse_rate("25Mbit", "rate") returns',
        ),
        (1, {"queue": 0}, "queue = 0: expected a whole number of packets, 1 or more"),
        ("1", {}, "b_port = '1': expected a whole number from 0 to 510"),
        (511, {}, "b_port = 511: expected a whole number from 0 to 510"),
    ],
)
def test_a_link_with_a_wrong_number_is_refused(port, options, message):
    with pytest.raises(TopologyError) as error:
        Link("h1", "s1", 0, port, **options)
    assert str(error.value) == f"link h1-s1: {message}"


def test_a_small_rate_without_a_unit_is_refused():
    told = 'trunk = 20 is 20 bit/s: write the unit, such as trunk = "20Mbit"'
    with pytest.raises(TopologyError, match=told):
        parse_rate(20, "trunk")


def test_hosts_beyond_253_have_addresses_of_their_own():
    last, first, later = (HostNode.numbered(n) for n in (253, 254, 4096))
    assert (last.ip, last.mac) == ("10.0.0.253", "00:00:00:00:00:fd")
    assert (first.ip, first.mac) == ("10.1.0.254", "00:00:00:01:00:fe")
    assert (later.ip, later.mac) == ("10.1.16.0", "00:00:00:01:10:00")
    large = build("leaf-spine", workers=300, leaves=5, hosts_per_leaf=60)
    assert (large.prefix_length, build("star", workers=4).prefix_length) == (8, 24)
