"""`model = "recorded"`: another run's verdicts, a CSV, a pair of captures."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradplane.experiment.impairment_sections import DropListSection, _note_old_name
from gradplane.experiment.loading import ExperimentError, load
from gradplane.hosts.impairments.impairment_models import DropList, ModelPlace, PacketIdentity
from gradplane.runs.records.recorder import Tally
from gradplane.runs.records.summary import outcome, unmet

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)


def capture(
    path: Path, frames: list[bytes], times: Sequence[int] = range(0, 1 << 20, 1000)
) -> None:
    """Write a capture, with times in ns."""
    records = [
        struct.pack("<IIII", 7, time, len(frame), len(frame)) + frame
        for frame, time in zip(frames, times, strict=False)
    ]
    path.write_bytes(HEADER + b"".join(records))


def experiment(folder: Path, *lines: str) -> Any:
    text = '[[impairment]]\nmodel = "recorded"\n' + "\n".join(lines)
    (folder / "x.toml").write_text(text)
    return load(folder / "x.toml")


def refusal(folder: Path, *lines: str) -> str:
    with pytest.raises(ExperimentError) as error:
        experiment(folder, *lines)
    return str(error.value).removeprefix(str(folder) + "/")


def verdicts(section: Any, packets: list[PacketIdentity], link: str = "h1") -> list[Any]:
    spec = section.model_dump(mode="json", exclude_none=True)
    model = DropList(spec, ModelPlace(link, 0, 4))
    return [model.judge(packet) for packet in packets]


def packet(direction: str = "up", at: int = 0, link: str = "h1") -> PacketIdentity:
    return PacketIdentity(link, direction, 0, "indices", 1, 0, 0, "", 0, at)


def test_a_csv_names_packets_by_their_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("packet, link, direction\n2, h1, up\n3, h2, up\n1, h1, down\n")
    (section,) = experiment(tmp_path, 'file = "a.csv"').impairment
    assert section.model == "drop list"
    ways = ["up", "up", "up", "down"]
    found = verdicts(section, [packet(way) for way in ways])
    assert found == [None, ("drop", 0), None, ("drop", 0)]
    assert verdicts(section, [packet(link="h2") for _ in range(3)], "h2") == [
        None,
        None,
        ("drop", 0),
    ]


def test_a_csv_names_packets_of_both_directions(tmp_path: Path) -> None:
    """Told by "both" or by an empty cell."""
    (tmp_path / "a.csv").write_text("packet,link,direction\n2,h1,both\n3,h1,\n")
    (section,) = experiment(tmp_path, 'file = "a.csv"').impairment
    ways = ["up", "down"] * 3
    found = verdicts(section, [packet(way) for way in ways])
    assert found == [None, None, *[("drop", 0)] * 4]
    (tmp_path / "a.csv").write_text("link,direction,type\nh1,both,indices\nh1,both,norm\n")
    (section,) = experiment(tmp_path, 'file = "a.csv"').impairment
    assert verdicts(section, [packet(), packet("down")]) == [("drop", 0)] * 2


def test_a_csv_names_packets_by_their_time(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time_ms,verdict,delay_ns\n5,,\n2,delay,7\n\n")
    (section,) = experiment(tmp_path, 'file = "a.csv"', 'direction = "up"').impairment
    times = [1_000_000, 3_000_000, 4_000_000, 9_000_000]
    found = verdicts(section, [packet(at=time) for time in times])
    assert found == [None, ("delay", 7), None, ("drop", 0)]
    (section,) = experiment(tmp_path, 'file = "a.csv"', "within_ms = 1").impairment
    found = verdicts(section, [packet(at=time) for time in (3_000_000, 6_000_001, 7_000_000)])
    assert found == [("delay", 7), None, None]


def test_a_csv_names_all_packets_of_a_while(tmp_path: Path) -> None:
    text = "# two bursts\ntime_ms,until_ms,link\n2,4,h1\n# the second\n3,9,h2\n"
    (tmp_path / "a.csv").write_text(text)
    (section,) = experiment(tmp_path, 'file = "a.csv"').impairment
    assert [entry.origin.rpartition(":")[2] for entry in section.packets] == ["3", "5"]
    times = [1_999_999, 2_000_000, 3_000_000, 3_999_999, 4_000_000]
    found = verdicts(section, [packet(at=time) for time in times])
    assert found == [None, *[("drop", 0)] * 3, None]


def test_packets_that_were_changed_on_the_way_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frames = [bytes([n] * 60) for n in range(5)]
    capture(tmp_path / "in.pcap", frames)
    capture(tmp_path / "out.pcap", [frames[0], bytes([77] * 60), frames[4]])
    (section,) = experiment(tmp_path, 'file = ["in.pcap", "out.pcap"]').impairment
    assert [entry.packet for entry in section.packets] == [2, 3, 4]
    assert "out.pcap: 1 packets of it are not in" in caplog.text


def test_a_pair_of_captures_names_what_did_not_leave(tmp_path: Path) -> None:
    """Routers change Ethernet's addresses, time to live and checksum; equal packets count."""
    ip = [
        bytes([0x45, 0, 0, 21, 0, n, 0, 0, 64, 17, 1, 2, 10, 0, 0, 1, 10, 0, 0, 2, n])
        for n in (1, 2, 2, 3)
    ]
    before = [b"\1" * 12 + b"\x08\x00" + p + bytes(25) for p in ip]
    after = [b"\2" * 12 + b"\x08\x00" + p[:8] + b"\x3f" + p[9:10] + b"\7\7" + p[12:] for p in ip]
    capture(tmp_path / "in.pcap", [*before, b"\3" * 60])
    capture(tmp_path / "out.pcap", [after[3], after[1]])
    pair = 'file = ["in.pcap", "out.pcap"]'
    (section,) = experiment(tmp_path, pair).impairment
    assert [entry.packet for entry in section.packets] == [1, 2, 5]
    (section,) = experiment(tmp_path, pair, 'by = "time"').impairment
    assert [entry.time_ns for entry in section.packets] == [0, 1000, 4000]


def losses(folder: Path, frames: list[bytes], lost: set[int], *times: Sequence[int]) -> list[int]:
    """Return the packets that are found to be lost; times: of what entered, and of all that left
    without losses (by default the same)."""
    entered, left = times if len(times) == 2 else times * 2
    capture(folder / "in.pcap", frames, entered)
    kept = [number for number in range(len(frames)) if number not in lost]
    capture(folder / "out.pcap", [frames[n] for n in kept], [left[n] for n in kept])
    (section,) = experiment(folder, 'file = ["in.pcap", "out.pcap"]').impairment
    return [entry.packet - 1 for entry in section.packets]


ALIKE = [b"\1" * 60] * 120
SOME_DIFFER = [bytes([2, n] * 30) if n % 10 == 0 else ALIKE[0] for n in range(120)]
LOST = {2, 7, 31, 32, 33, 91}
EVERY_MS = range(0, 120_000_000, 1_000_000)


def irregular(step: int, seed: int) -> list[int]:
    draw = random.Random(seed)
    times = [0]
    for _ in range(119):
        times.append(times[-1] + draw.randrange(step // 4, 2 * step))
    return times


@pytest.mark.parametrize(
    ("frames", "entered", "delay"),
    [
        (ALIKE, EVERY_MS, lambda n: 0),
        (ALIKE, irregular(1_000_000, 1), lambda n: 50_000_000 + n % 7 * 1000),
        (SOME_DIFFER, EVERY_MS, lambda n: 700_000_000 + n % 5 * 90_000),
        (SOME_DIFFER, EVERY_MS, lambda n: 300_000 * (n % 40)),  # a queue that grows and empties
    ],
    ids=["equal clocks", "irregular times", "another clock", "a queue"],
)
def test_times_tell_which_of_equal_packets_left(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    frames: list[bytes],
    entered: Sequence[int],
    delay: Callable[[int], int],
) -> None:
    left = [time + delay(number) for number, time in enumerate(entered)]
    assert losses(tmp_path, frames, LOST, entered, left) == sorted(LOST)
    assert frames is SOME_DIFFER or not caplog.messages


def test_order_tells_which_of_equal_packets_left_without_times(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frames = [ALIKE[0] if n % 2 else bytes([2, n] * 30) for n in range(120)]
    assert losses(tmp_path, frames, {3, 8, 57}, [0] * 120) == [3, 8, 57]
    assert not caplog.messages


def test_losses_among_equal_packets_that_nothing_tells_apart_are_named_a_guess(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(losses(tmp_path, ALIKE, LOST, [0] * 120)) == len(LOST)
    assert caplog.messages == [
        f"{tmp_path}/in.pcap: 120 of 120 packets look alike, and neither order nor times tell which"
        " of them left; losses that are guesses: 6"
    ]
    caplog.clear()
    assert 20 in losses(tmp_path, SOME_DIFFER, {12, 20}, [0] * 120)
    assert "18 of 120 packets look alike" in caplog.text and "guesses: 1" in caplog.text


def test_another_runs_verdicts(tmp_path: Path) -> None:
    line = (
        '{"kind":"verdict","link":"h1","direction":"up","job":0,"type":"indices","peer":"",'
        '"use":1,"slot":0,"attempt":0,"verdict":"%s","delay_ns":%d,"at":5}\n'
    )
    run = tmp_path / "run"
    run.mkdir()
    (run / "impairments.jsonl").write_text(line % ("delay", 3) + line % ("delay", 4))
    first, second = experiment(tmp_path, 'file = "run"', 'link = "h1"').impairment
    assert verdicts(first, [packet()]) + verdicts(second, [packet()]) == [
        ("delay", 3),
        ("delay", 4),
    ]
    assert first.link == "h1"
    first, second = experiment(tmp_path, 'file = "run"', 'by = "time"').impairment
    other = packet(at=4)._replace(type="stream", use=7)
    assert verdicts(first, [other, other._replace(at=5)]) == [None, ("delay", 3)]


def test_packets_that_no_job_sends_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_text("type,use\nnorm,1\n")
    for aggregation, warned in (("switch", False), ("ps", True)):
        job = f'file = "a.csv"\n[[job]]\naggregation = "{aggregation}"'
        experiment(tmp_path, job)
        assert ("only jobs summed in switches send" in caplog.text) is warned


def test_the_verdicts_of_a_scripts_run(tmp_path: Path) -> None:
    """They are among the other lines of its hosts' logs."""
    (tmp_path / "script" / "hosts").mkdir(parents=True)
    where = '"link": "h1", "direction": "up", "job": 0, "type": "indices", "use": 1, "slot": 0'
    line = f'{{"kind": "verdict", {where}, "attempt": 0, "peer": "", "verdict": "drop"'
    log = '{"kind": "reduce", "ticket": 1}\n' + line + ', "delay_ns": 0, "at": 5}\n'
    (tmp_path / "script" / "hosts" / "h1.jsonl").write_text(log)
    (tmp_path / "script" / "hosts" / "h1.values.jsonl").write_text('{"loss": 1.0}\n')
    (section,) = experiment(tmp_path, 'file = "script"').impairment
    assert verdicts(section, [packet(), packet("down")]) == [("drop", 0), None]


def test_entries_that_met_no_packet_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("packet,link\n1,h1\n\n9,h2\n" + 6 * "9,h3\n")
    found = experiment(tmp_path, 'file = "a.csv"')
    values = outcome(found, [Tally(4)], {}, {(0, 0), (1, 0)}, {})
    assert values["loss_lists"]["entries"] == 8
    place = f"{tmp_path}/a.csv"
    named = (f"{place}:4 (link h2, packet 9)", f"{place}:5 (link h3, packet 9)")
    assert unmet(values).startswith("6 of 8 entries of loss lists met no packet (or one that was")
    assert all(text in unmet(values) for text in named) and unmet(values).endswith("; ...")
    everything = {(number, index) for number in range(6) for index in range(3)}
    assert unmet(outcome(found, [Tally(4)], {}, everything, {})) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("packet,lnk\n1,h1\n", 'a.csv:1: no column "lnk": did you mean "link"?'),
        ("packet\nx\n", 'a.csv:2: packet = "x": expected a whole number'),
        ("until\n1\n", "a.csv:2: until ends what a time begins"),
        ("time,until\n2,1\n", "a.csv:2: until 1000000000 ns ends what begins at 2000000000 ns"),
        ("#\ntme\n", 'a.csv:2: no column "tme"'),
        ("time\nx\n", 'a.csv:2: time = "x": expected a number'),
        ("packet;link\n1;h1\n", "a.csv:1: no column \"packet;link\": ';' stands between columns"),
        ("packet\n0\n\n-1\n", "a.csv:2: packet = 0: expected at least 1"),
        ("packet\n0\n\n-1\n", "a.csv:4: packet = -1: expected at least 1"),
        ("packet\n" + 7 * "0\n", "a.csv: 2 more lines are wrong"),
        ("packet,slot\n1,1\n", "a.csv:2: give one of packet (its number), time and job, type,"),
        ("packet\n1,2\n", "a.csv:2: more cells than columns in the first line"),
        ("packet\n", "a.csv: no packet was lost or delayed there"),
        ("", "a.csv: it is empty; its first line has the columns' names"),
        (
            "packet,direction\n1,left\n",
            'a.csv:2: direction = "left": expected "up", "down" or "both"',
        ),
        ("packet,link\n1,h77\n", 'a.csv:2: no link "h77": known: h1, '),
    ],
)
def test_a_wrong_csv_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    found = refusal(tmp_path, 'file = "a.csv"')
    assert found.startswith("x.toml:3: " if "h77" not in text else "x.toml:1: ")
    assert message in found


def test_files_that_are_no_losses_are_refused(tmp_path: Path) -> None:
    assert "none.csv: No such file or directory" in refusal(tmp_path, 'file = "none.csv"')
    (tmp_path / "folder").mkdir()
    found = refusal(tmp_path, 'file = "folder"')
    assert found.endswith("folder: not a run's folder: it has no impairments.jsonl")
    assert "by is a key of two captures" in refusal(tmp_path, 'file = "a.csv"', 'by = "time"')
    (tmp_path / "b.csv").write_text("packet\n3\n")
    found = refusal(tmp_path, 'file = "b.csv"', "within_ms = 5")
    assert "within_ms ends losses that go by their time" in found
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert "a.jsonl:1: not a line of impairments.jsonl" in refusal(tmp_path, 'file = "a.jsonl"')
    capture(tmp_path / "in.pcap", [b"\1" * 60])
    capture(tmp_path / "out.pcap", [b"\2" * 60])
    assert "none of the 1 packets" in refusal(tmp_path, 'file = ["in.pcap", "out.pcap"]')
    assert "not a capture" in refusal(tmp_path, 'file = ["x.toml", "out.pcap"]')
    alone = refusal(tmp_path, 'file = "in.pcap"')
    assert "neither a CSV nor" in alone and "file = [ENTERED, LEFT]" in alone
    pair = refusal(tmp_path, 'file = ["in.pcap"]')
    assert pair.endswith("file: two captures are a pair of names: file = [ENTERED, LEFT]"), pair
    same = refusal(tmp_path, 'file = ["in.pcap", "in.pcap"]')
    assert "every packet of" in same and "what entered comes first" in same


def test_a_drop_list_counts_training_rounds_or_uses_of_a_slot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Lists of older versions say round for a slot's use, and are read so, with a note."""
    entries = "{training_round = 3, slot = 1}, {use = 7}, {round = 9, link = 'h1'}, {round = 10}"
    text = f'[[impairment]]\nmodel = "drop list"\npackets = [{entries}]\n'
    (tmp_path / "x.toml").write_text(text)
    _note_old_name.cache_clear()
    (section,) = load(tmp_path / "x.toml").impairment
    assert isinstance(section, DropListSection)
    assert [entry.use for entry in section.packets] == [None, 7, 9, 10]
    assert len(caplog.messages) == 1, caplog.messages
    assert caplog.messages[0].startswith("round in a drop list is read as use: the number of")
    uses = [(1, 3), (7, 0), (8, 4), (9, 5)]
    found = verdicts(
        section,
        [PacketIdentity("h1", "up", 0, "sums", use, 1, 0, "", number) for use, number in uses],
    )
    assert found == [("drop", 0), ("drop", 0), None, ("drop", 0)]
