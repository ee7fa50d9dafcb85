#!/usr/bin/env bash
# SimPy's PriorityStore gives items of equal priority out of order; its PriorityResource does not.
#
# Versions:  simpy 4.1.2 from PyPI.
# Expected:  A queue with priorities is first in, first out within a priority, as a strict-priority port is
#            and as SimPy's own PriorityResource is. A heap alone would not do it, so a tie is broken by a count.
# Seen:      Eight packets of one priority come out as 0 2 6 5 7 4 1 3. A port that serves two classes, with
#            packets every half unit and a service of one, keeps the order of the urgent class, whose queue
#            is short, and sends the other as 1 9 11 13 15 3 7 5. As requests of a PriorityResource the same
#            packets leave in order.
# Matters:   A simulated switch reorders flows by itself: spurious retransmissions, and waiting times whose mean
#            is right and whose tail is not. Put (priority, count) into PriorityItem.
# Source:    SimPy's page on shared resources; PriorityItem's docstring (only the priority is compared).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet simpy==4.1.2

"$venv/bin/python" - <<'PY' | tee "$work/seen"
import simpy


def of_one_priority():
    env = simpy.Environment()
    queue = simpy.PriorityStore(env)
    left = []

    def port():
        for number in range(8):
            yield queue.put(simpy.PriorityItem(0, number))
        while queue.items:
            left.append((yield queue.get()).item)

    env.process(port())
    env.run()
    return left


def with_store(packets):
    env = simpy.Environment()
    queue = simpy.PriorityStore(env)
    left = []

    def source():
        for number in range(packets):
            yield queue.put(simpy.PriorityItem(number % 2, number))
            yield env.timeout(0.5)

    def port():
        while True:
            packet = yield queue.get()
            yield env.timeout(1)
            left.append(packet.item)

    env.process(source())
    env.process(port())
    env.run()
    return left


def with_resource(packets):
    env = simpy.Environment()
    port = simpy.PriorityResource(env)
    left = []

    def packet(number):
        with port.request(priority=number % 2) as turn:
            yield turn
            yield env.timeout(1)
            left.append(number)

    def source():
        for number in range(packets):
            env.process(packet(number))
            yield env.timeout(0.5)

    env.process(source())
    env.run()
    return left


print("one priority:", *of_one_priority())
for name, simulate in (("PriorityStore", with_store), ("PriorityResource", with_resource)):
    left = simulate(16)
    for priority in (0, 1):
        print(f"{name}, {priority}:", *(number for number in left if number % 2 == priority))
PY
diff - "$work/seen" <<'TXT' && echo "as described"
one priority: 0 2 6 5 7 4 1 3
PriorityStore, 0: 0 2 4 6 8 10 12 14
PriorityStore, 1: 1 9 11 13 15 3 7 5
PriorityResource, 0: 0 2 4 6 8 10 12 14
PriorityResource, 1: 1 3 5 7 9 11 13 15
TXT
