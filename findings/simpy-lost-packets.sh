#!/usr/bin/env bash
# In SimPy each receive that timed out takes a later packet, which nobody gets.
#
# Versions:  simpy 4.1.2 from PyPI.
# Expected:  `yield queue.get() | env.timeout(1)` waits for a packet for up to 1; once the time is up the wait is over,
#            as in a socket's recv with a timeout, and the next receive gets the next packet.
# Seen:      A receiver that had three timeouts before the source began gets none of its five packets: each goes
#            to the oldest get that was given up, and the receiver, which waits in vain, gives up another.
#            `with queue.get() as packet:` around the same wait takes the get back, as packet.cancel() does, and
#            all five arrive.
# Matters:   A simulated sender with a retransmission timer loses as many acknowledgements as it had timeouts, and
#            each loss makes the next timeout: a link without losses looks dead.
# Source:    SimPy's page on shared resources (says of requests in `with` that they are given back).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet simpy==4.1.2

"$venv/bin/python" - <<'PY' | tee "$work/seen"
import simpy


def received(receive):
    env = simpy.Environment()
    queue = simpy.Store(env)
    seen = []

    def source():
        yield env.timeout(3.5)
        for number in range(5):
            yield queue.put(f"packet {number}")
            yield env.timeout(0.5)

    def receiver():
        while env.now < 7:
            packet = yield from receive(env, queue)
            seen.append("timeout" if packet is None else packet)

    env.process(source())
    env.process(receiver())
    env.run()
    return ", ".join(seen)


def plain(env, queue):
    packet = queue.get()
    yield packet | env.timeout(1)
    return packet.value if packet.triggered else None


def in_with(env, queue):
    with queue.get() as packet:
        yield packet | env.timeout(1)
        return packet.value if packet.triggered else None


def cancelled(env, queue):
    packet = queue.get()
    yield packet | env.timeout(1)
    if packet.triggered:
        return packet.value
    packet.cancel()
    return None


for receive in (plain, in_with, cancelled):
    print(f"{receive.__name__}: {received(receive)}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
plain: timeout, timeout, timeout, timeout, timeout, timeout, timeout
in_with: timeout, timeout, timeout, packet 0, packet 1, packet 2, packet 3, packet 4, timeout, timeout
cancelled: timeout, timeout, timeout, packet 0, packet 1, packet 2, packet 3, packet 4, timeout, timeout
TXT
