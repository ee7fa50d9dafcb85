"""Workers and servers of a job, with their messages in memory."""

from random import Random

from gradplane.hosts.protocols.actions import Deliver, Record, SendMessage, SetTimer


class Wired:
    """State machines: a job's workers by number, `servers` by address.

    Messages of each pair stay in order, the pairs' are mixed by `seed`; None: all come in the order
    in which they were sent. What `held` machines send waits until release(). A reduce runs to the
    end, unless `run` is False. sent: source, destination, header and values of each message.
    """

    def __init__(self, job, workers, servers=(), seed=0, held=(), run=True):
        self.job, self.workers, self.servers = job, workers, dict(servers)
        self.peers = [job.addresses.stream(w) for w in range(job.workers)]
        self.machines = dict(enumerate(workers)) | self.servers
        self.random = None if seed is None else Random(seed)
        self.now, self.held, self.at_once = 0, set(held), run
        self.waiting, self.sent, self.timers = [], [], []
        self.delivered, self.records = {}, []

    def reduce(self, ticket, xs, tensor=0):
        for w, x in enumerate(xs):
            self.perform(w, self.workers[w].reduce(ticket, x, self.now, tensor))
        if self.at_once:
            self.run()

    def perform(self, here, actions):
        for action in actions:
            match action:
                case SendMessage(peer, data, values):
                    to = self.peers.index(peer) if peer in self.peers else peer
                    self.sent.append((here, to, data, values))
                    self.waiting.append((here, to, data + values))
                case SetTimer(key, at):
                    self.timers.append((at, here, key))
                case Deliver(ticket, result):
                    assert (here, ticket) not in self.delivered
                    self.delivered[here, ticket] = result
                case Record():
                    self.records.append(action)

    def step(self):
        """Handle one message, or else the next timer; return whether there was one."""
        ready = list(dict.fromkeys(m[:2] for m in self.waiting if m[0] not in self.held))
        if ready:
            pair = self.random.choice(ready) if self.random else ready[0]
            message = next(m for m in self.waiting if m[:2] == pair)
            self.waiting.remove(message)
            source, to, data = message
            address = self.peers[source] if isinstance(source, int) else source
            self.perform(to, self.machines[to].receive(address, data, self.now))
        elif self.timers:
            self.timers.sort(key=lambda timer: timer[0])
            self.now, here, key = self.timers.pop(0)
            self.perform(here, self.machines[here].timer(key, self.now))
        else:
            return False
        return True

    def run(self):
        while self.step():
            pass

    def release(self):
        self.held = set()
        self.run()
