"""The cost of tasks: computed by hand on a small system, and under the network's limits."""

import pytest
from pydantic import ValidationError

from gradplane.planner.costs import INTER, INTRA, CostModel, offered
from gradplane.planner.inputs import Compression, Curve, Framing, Network, SwitchAbility, System
from gradplane.planner.options import tree

CURVE = Curve(values=(1.0, 2.0), compress=(1.0, 2.0), decompress=(10.0, 20.0))
CODEC = Compression(codec="c", ratio=0.25, gpu=CURVE, cpu=CURVE, sums=True)
TWO = System(  # 1 byte a second inside, 0.5 between
    name="two",
    machines=2,
    gpus=4,
    intra=Network(gbit=8e-9, latency_us=0.0),
    inter=Network(gbit=4e-9, latency_us=0.0),
)


def seconds(text: str, system: System = TWO) -> list[float]:
    network, shapes = offered(CODEC, system)
    option = next(option for option in tree(network, shapes) if str(option) == text)
    times = CostModel(CODEC, system).task_times(option, 16)
    return [time for _, _, time in times]


@pytest.mark.parametrize(
    ("option", "times"),
    [
        # 64 bytes: 3/4 of them inside, a ring of 16 bytes for each of 4 GPUs between
        ("reduce-scatter@intra1 > allreduce@inter > allgather@intra2", [48, 128, 48]),
        # one GPU has 16 values, compressed to 16 bytes; the other machine's 16 bytes arrive; two
        # pieces are decompressed
        (
            "reduce@intra1 > compress:gpu > allgather*@inter > decompress:gpu > broadcast@intra2",
            [64, 16, 32, 320, 64],
        ),
        # each GPU has 4 values of each of 4 pieces
        (
            "compress:gpu > alltoall*@intra1 > decompress:gpu > allreduce@inter > allgather@intra2",
            [16, 12, 160, 128, 48],
        ),
        # the CPUs of a machine serve its 4 GPUs
        (
            "reduce-scatter@intra1 > allreduce@inter > compress:cpu > allgather*@intra2"
            " > decompress:cpu",
            [48, 128, 16, 12, 160],
        ),
        ("allreduce@flat", [2 * 7 / 8 * 64 / 0.5]),
    ],
)
def test_costs_by_hand(option: str, times: list[float]) -> None:
    assert seconds(option) == pytest.approx(times)


def test_tasks_are_on_the_link_of_their_phase() -> None:
    option = next(o for o in tree() if str(o).startswith("reduce-scatter@intra1 > allreduce@inter"))
    resources = [resource for _, resource, _ in CostModel(CODEC, TWO).task_times(option, 16)]
    assert resources[:3] == [INTRA, INTER, INTRA]


def switched(**keys: object) -> System:
    return TWO.model_copy(update={"switch": SwitchAbility(**{"passes": 1, **keys})})  # type: ignore[arg-type]


def test_a_switch_offers_what_it_can_add_within_its_rack() -> None:
    assert offered(CODEC, TWO)[0] == ()
    assert offered(CODEC, switched(add=("int32", "codes")))[0] == ("switch-int32", "switch-codes")
    assert offered(CODEC, switched(add=("int32", "codes"), rack_machines=1))[0] == ()
    alone = switched(add=("int32",)).model_copy(update={"machines": 1})
    assert offered(CODEC, alone) == ((), ("flat",))
    no_sums = CODEC.model_copy(update={"sums": False})
    assert offered(no_sums, switched(add=("int32", "codes")))[0] == ("switch-int32",)


def test_a_switch_halves_an_allreduce_of_many_and_its_passes_cost() -> None:
    text = "reduce-scatter@intra1 > switch-int32@inter > allgather@intra2"
    one = seconds(text, switched(add=("int32",), payload=9000))[1]
    assert one == pytest.approx(64 * 1.01 / 0.5)
    slow = switched(add=("int32",), payload=900, passes=10, recirculation_gbit=8e-9)
    assert seconds(text, slow)[1] == pytest.approx(64 * 2 / 0.5)
    quick = switched(add=("int32",), payload=900, passes=10, recirculation_gbit=1.0)
    assert seconds(text, quick)[1] == pytest.approx(64 * 1.1 / 0.5)


def test_slots_bound_what_is_in_flight() -> None:
    text = "reduce-scatter@intra1 > switch-int32@inter > allgather@intra2"
    system = switched(add=("int32",), slots=1, payload=1)
    far = system.model_copy(update={"inter": Network(gbit=4e-9, latency_us=5e6)})
    assert seconds(text, far)[1] == pytest.approx(10 + 64 * 91 / 0.1)


def test_the_edge_switches_help_where_the_fabric_is_slower() -> None:
    text = "reduce-scatter@intra1 > {}@inter > allgather@intra2"
    equal, slower = switched(tos_ratio=0.25), switched(tos_ratio=0.25, fabric_gbit=1e-9)
    assert seconds(text.format("tos"), equal) == seconds(text.format("allreduce"), equal)
    assert seconds(text.format("tos"), slower)[1] == pytest.approx(128)
    assert seconds(text.format("allreduce"), slower)[1] == pytest.approx(512)


def test_values_that_the_edge_switches_compress_are_packets_on_both_links() -> None:
    text = "reduce-scatter@intra1 > tos@inter > allgather@intra2"
    small = {"payload": 1400, "packet": 1, "acknowledgement": 0, "message": 0, "piece": 0}
    framing = Framing(**small, marked=1024, marked_packet=1, shim=0)
    slower = switched(tos_ratio=0.25, fabric_gbit=1e-9).model_copy(update={"framing": framing})
    # 8 bytes for each of 4 GPUs, twice: a packet of 1 byte, then one of 1 + 2 at 1/8 byte a second;
    # the first of values is stored by two edge switches, 9 bytes at 1/2 byte a second
    assert seconds(text, slower)[1] == pytest.approx(2 * (4 * 4 * 8 + 2 * 9 * 2))


def test_switches_run_one_program() -> None:
    with pytest.raises(ValidationError, match="plan with each of both systems"):
        switched(add=("int32",), tos_ratio=0.25)


def test_one_server_is_slower_than_as_many_as_machines() -> None:
    text = "reduce-scatter@intra1 > server@inter > allgather@intra2"
    few, many = (TWO.model_copy(update={"servers": n}) for n in (1, 2))
    assert [seconds(text, few)[1], seconds(text, many)[1]] == [256, 128]
