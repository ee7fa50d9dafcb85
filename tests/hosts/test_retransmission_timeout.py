"""RFC 6298's estimate, Karn's rule and the back-off."""

from gradplane.hosts.retransmission_timeout import RetransmissionTimeout

MS = 1_000_000


def test_the_first_measurement_gives_three_times_itself():
    timeout = RetransmissionTimeout(1000 * MS, 1, 2000 * MS)
    assert timeout.value == 1000 * MS
    timeout.measure(0, 10 * MS)
    assert timeout.value == 30 * MS, "SRTT + 4 RTTVAR, with RTTVAR = R / 2"
    timeout.measure(20 * MS, 30 * MS)
    assert timeout.value == 25 * MS


def test_the_timeout_is_for_the_last_packet_of_a_window():
    timeout = RetransmissionTimeout(1000 * MS, 1, 2000 * MS)
    for start in range(0, 10_000, 100):
        for place in range(8):  # each waits behind the one before it
            assert timeout.value > (10 + 2 * place) * MS
            timeout.measure(start * MS, (start + 10 + 2 * place) * MS)


def test_a_back_off_counts_once_for_packets_lost_together():
    timeout = RetransmissionTimeout(10 * MS, MS, 100 * MS)
    for sent_at in (0, 1, 2):
        timeout.back_off(sent_at, 10 * MS)
    assert timeout.value == 20 * MS
    for now in (40, 80, 200, 400):
        timeout.back_off(now * MS, now * MS)
    assert timeout.value == 100 * MS, "the ceiling"


def test_an_answer_to_a_retransmission_ends_the_back_off_unless_it_comes_too_soon():
    timeout = RetransmissionTimeout(1000 * MS, 1, 2000 * MS)
    timeout.measure(0, 10 * MS)
    timeout.back_off(20 * MS, 50 * MS)
    timeout.answered(50 * MS, 51 * MS)
    assert timeout.value == 60 * MS
    timeout.answered(50 * MS, 60 * MS)
    assert timeout.value == 30 * MS


def test_an_answer_that_took_longer_than_the_estimate_raises_it():
    timeout = RetransmissionTimeout(1000 * MS, 1, 2000 * MS)
    timeout.measure(0, MS)
    timeout.answered(10 * MS, 90 * MS)  # of several transmissions: at least the last one's 80 ms
    assert timeout.value > 80 * MS
    raised = timeout.value
    timeout.answered(100 * MS, 101 * MS)
    assert timeout.value == raised, "a shorter one may answer an earlier transmission"


def test_each_attempt_doubles_up_to_the_ceiling():
    timeout = RetransmissionTimeout(10 * MS, MS, 100 * MS)
    waits = [timeout.after(attempts, MS) // MS for attempts in (1, 2, 3, 4, 5, 99)]
    assert waits == [10, 20, 40, 80, 100, 100]


def test_to_ask_takes_twice_the_round_trip_where_another_least_timeout_is_enough():
    timeout = RetransmissionTimeout(50 * MS, 25 * MS, 100 * MS)
    assert timeout.prompt(MS) == 50 * MS, "nothing is measured"
    timeout.measure(0, 2 * MS)
    assert (timeout.value, timeout.prompt(MS), timeout.prompt(8 * MS)) == (25 * MS, 4 * MS, 8 * MS)
    assert [timeout.after(attempts, MS) // MS for attempts in (1, 2, 6)] == [4, 8, 100]
    assert timeout.prompt(25 * MS) == 25 * MS, "the bound is not above it"
