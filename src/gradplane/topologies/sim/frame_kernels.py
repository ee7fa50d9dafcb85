"""Frames of UDP datagrams in kernels: the same bytes and checks as in `frames`."""

import numpy as np
from numba import njit

from gradplane.topologies.sim.frames import HEADERS

_ETHERNET, _IPV4 = 14, 20
_UDP_AT = _ETHERNET + _IPV4
_HEADERS = HEADERS


@njit(cache=True, nogil=True)
def put(row, at, size, value):  # type: ignore[no-untyped-def]
    """Write a number of so many bytes, in network order."""
    for i in range(size):
        row[at + i] = np.uint8((value >> 8 * (size - 1 - i)) & 255)


@njit(cache=True, nogil=True)
def get(row, at, size):  # type: ignore[no-untyped-def]
    """Return the number of so many bytes."""
    value = np.int64(0)
    for i in range(at, at + size):
        value = value << 8 | np.int64(row[i])
    return value


@njit(cache=True, nogil=True)
def words_sum(row, start, stop):  # type: ignore[no-untyped-def]
    """Return the sum of 16-bit words in network order; an odd byte is the high half of a word."""
    high, low = np.int64(0), np.int64(0)
    pairs = (stop - start) // 2
    some = row[start : start + 2 * pairs]
    for i in range(pairs):
        high += np.int64(some[2 * i])
        low += np.int64(some[2 * i + 1])
    if (stop - start) % 2:
        high += np.int64(row[stop - 1])
    return (high << 8) + low


@njit(cache=True, nogil=True)
def checksum(total):  # type: ignore[no-untyped-def]
    """Return the Internet checksum of a sum of words, as `frames.internet_checksum` does."""
    if total == 0:
        return 0xFFFF
    folded = total % 0xFFFF
    return 0xFFFF - (folded if folded else 0xFFFF)


@njit(cache=True, nogil=True)
def build(frame, size, from_mac, from_ip, from_port, mac, ip, port, tos):  # type: ignore[no-untyped-def]
    """Write the headers before a payload of so many bytes, which is at frame[HEADERS:]."""
    put(frame, 0, 6, mac)
    put(frame, 6, 6, from_mac)
    put(frame, 12, 2, 0x0800)
    put(frame, 14, 2, 0x4500 | tos)
    put(frame, 16, 2, _HEADERS - _ETHERNET + size)
    put(frame, 18, 4, 0x4000)
    put(frame, 22, 2, 64 << 8 | 17)
    put(frame, 24, 2, 0)
    put(frame, 26, 4, from_ip)
    put(frame, 30, 4, ip)
    put(frame, 24, 2, checksum(words_sum(frame, _ETHERNET, _UDP_AT)))
    put(frame, 34, 2, from_port)
    put(frame, 36, 2, port)
    put(frame, 38, 2, 8 + size)
    put(frame, 40, 2, 0)
    found = checksum(words_sum(frame, 26, _HEADERS + size) + 17 + 8 + size)
    put(frame, 40, 2, found if found else 0xFFFF)


@njit(cache=True, nogil=True)
def payload_size(frame, size, mac):  # type: ignore[no-untyped-def]
    """Return the bytes of a frame's payload, which is at frame[HEADERS:]; -1 for a frame without IP
    options that the host with that MAC drops, and for any frame with options."""
    if size < _HEADERS or get(frame, 0, 6) != mac or get(frame, 12, 2) != 0x0800:
        return -1
    length, datagram = get(frame, 16, 2), get(frame, 38, 2)
    if frame[14] != 0x45 or length < _IPV4 + 8 or length > size - _ETHERNET:
        return -1
    if checksum(words_sum(frame, _ETHERNET, _UDP_AT)) != 0:
        return -1
    if get(frame, 20, 2) & 0xBFFF or frame[23] != 17:
        return -1
    if datagram < 8 or datagram > length - _IPV4:
        return -1
    if get(frame, 40, 2):
        total = words_sum(frame, 26, _UDP_AT + datagram) + 17 + datagram
        if checksum(total) != 0:
            return -1
    return datagram - 8
