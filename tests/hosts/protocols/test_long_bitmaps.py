"""Messages about more than 64 workers."""

import pytest

from gradplane.hosts.protocols.messages import Kind, Message, MessageError, kind_of, parse


@pytest.mark.parametrize("workers", [64, 65, 128, 1000])
def test_a_message_names_all_of_them(workers: int) -> None:
    everybody = (1 << workers) - 1
    made = Message(Kind.PULL, 7, 3, 2, workers, everybody, b"body")
    assert parse(made.pack()) == made
    assert kind_of(made.pack()) is Kind.PULL
    assert len(made.pack()) == 20 + 4 + (-(-workers // 8) if workers > 64 else 0)


def test_a_bitmap_that_is_cut_is_refused() -> None:
    data = Message(Kind.PULL, 7, 3, 2, 65, (1 << 65) - 1).pack()
    with pytest.raises(MessageError, match="message of 25 bytes with a bitmap of 9"):
        parse(data[:25])
