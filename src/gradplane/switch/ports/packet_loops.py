"""Packet loops on several cores.

Each loop reads some of the ports, so that the packets of a port stay in order, and sends through
all of them. A batch runs through the program under the switch's lock, so any program may run on
several cores; the kernel's work for a packet that is sent, which takes most of the time, and the
copies of packets that arrive go on beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread

from gradplane.switch.ports.packet_loop import Capture, Outputs, PacketLoop, PacketPort


class PacketLoops:
    """Runs the first loop in the caller's thread, and each other one in a thread of its own.

    The first one watches links and queues for all."""

    def __init__(self, loops: Sequence[PacketLoop]) -> None:
        self._first, *self._others = self._loops = list(loops)
        self._first.others = self._others
        for loop in self._others:
            loop.first = self._first
        self._readers = {number: loop for loop in self._loops for number in loop.reads}
        self._failed: BaseException | None = None

    def run(self) -> None:
        """Process packets until `stop`. Raises what ended a loop."""
        threads = [Thread(target=self._beside, args=(loop,)) for loop in self._others]
        for thread in threads:
            thread.start()
        try:
            self._first.run()
        finally:
            self.stop()
            for thread in threads:
                thread.join()
        if self._failed is not None:
            raise self._failed

    def _beside(self, loop: PacketLoop) -> None:
        try:
            loop.run()
        except BaseException as error:
            self._failed = error
            self._first.stop()

    def stop(self) -> None:
        """End `run`, from any thread or signal handler."""
        for loop in self._loops:
            loop.stop()

    def close(self) -> None:
        for loop in self._loops:
            loop.close()

    def send(self, outputs: Outputs) -> None:
        """Send packets through their ports, from any thread."""
        self._first.send(outputs)

    def add(
        self, number: int, port: PacketPort, capture: Capture | None, then: Callable[[], None]
    ) -> None:
        """Let the loop that reads the fewest ports take a port, from any thread; `then` is called
        in the first one's thread."""
        readers = list(self._readers.values())
        least = self._readers[number] = min(self._loops, key=readers.count)
        least.add(number, port, capture, lambda: self._first.do(then))

    def remove(self, number: int, then: Callable[[], None]) -> None:
        """Take a port out of its loop, from any thread; `then` closes it, in the first one's
        thread, when no loop sends through it any more."""
        self._readers.pop(number).remove(
            number, lambda: self._through([*self._others, self._first], then)
        )

    def _through(self, loops: Sequence[PacketLoop], then: Callable[[], None]) -> None:
        """Call `then` in the last loop's thread, after each of them has ended a turn."""
        loops[0].do(then if len(loops) == 1 else lambda: self._through(loops[1:], then))
