"""Streams and machines in one driver, on a network of datagrams in a list."""

from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.protocols.actions import Send, SendMessage
from gradplane.hosts.protocols.messages import Kind, Message
from gradplane.hosts.stream.stream import Stream
from gradplane.hosts.wire.payloads import Payloads

HERE, THERE = ("10.0.0.1", 5), ("10.0.0.2", 5)
MESSAGE = Message(Kind.DECISION, ticket=0).pack()


class ListEnvironment:
    """A clock at 0, and the calls that are scheduled."""

    granularity = 0

    def __init__(self):
        self.calls = []

    def now(self):
        return 0

    def call_at(self, at, callback):
        self.calls.append(callback)
        return self.Handle(self.calls, callback)

    class Handle:
        def __init__(self, calls, callback):
            self._calls, self._callback = calls, callback

        def cancel(self):
            if self._callback in self._calls:
                self._calls.remove(self._callback)


def datagrams(actions):
    """Return the datagrams that a stream's actions send."""
    sends = [action for action in actions if isinstance(action, Send)]
    return [bytes(payload) for send in sends for payload in send.payloads]


def test_an_answer_to_what_came_with_an_acknowledgement_is_sent_again_when_it_is_lost():
    """The acknowledgement of all that was sent before says that no timer is needed any more."""
    env, sent = ListEnvironment(), []
    driver = ActionDriver(env, HERE[1], sent.append, None, None)
    driver.route([Kind.DECISION], lambda peer, data, now: [SendMessage(peer, MESSAGE)])
    peer = Stream(THERE[1])
    driver.perform([SendMessage(THERE, MESSAGE)])
    (first,) = datagrams(sent)
    answer = datagrams(peer.send_message(HERE, MESSAGE, 0))
    acknowledgement = datagrams(peer.receive(HERE, Payloads.of([first]), 0))
    sent.clear()
    driver.receive(*THERE, Payloads.of([*answer, *acknowledgement]))
    reply = datagrams(sent)[-1]
    (timer,) = env.calls
    sent.clear()
    env.calls.clear()
    env.now = lambda: 10**9
    timer()
    assert datagrams(sent) == [reply]
