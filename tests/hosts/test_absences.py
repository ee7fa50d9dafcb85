"""The schedule of absences: who is there, who joins, who gives its state."""

from gradplane.hosts.absences import Absence, donor, joining, of_worker, present

AWAY = (Absence(2, 5, 9), Absence(0, 0, 3), Absence(0, 9, 11), Absence(1, 2, 9))


def test_who_is_there() -> None:
    assert present(AWAY, 4, 0) == (1, 2, 3)
    assert present(AWAY, 4, 2) == (2, 3)
    assert present(AWAY, 4, 3) == (0, 2, 3)
    assert present(AWAY, 4, 5) == (0, 3)
    assert present(AWAY, 4, 9) == (1, 2, 3)
    assert present((), 2, 7) == (0, 1)


def test_who_joins_and_who_gives_its_state() -> None:
    assert joining(AWAY, 3) == (0,) and donor(AWAY, 4, 3) == 2
    assert joining(AWAY, 9) == (1, 2) and donor(AWAY, 4, 9) == 3
    assert joining(AWAY, 4) == ()


def test_nobody_has_the_state_where_all_were_away() -> None:
    away = (Absence(0, 0, 4), Absence(1, 4, 6))
    assert donor(away, 2, 4) is None


def test_a_workers_absences_are_in_order() -> None:
    assert of_worker(AWAY[::-1], 0) == [Absence(0, 0, 3), Absence(0, 9, 11)]
