"""Triton's kernels of the formats whose bytes depend on the values, equal to the codecs to the bit.

INCEPTIONN, 3LC and TopK: where a value's bytes lie depends on those before it. One launch counts
what each program or thread will write, a sum over these numbers says where it begins, and another
launch writes. As in triton_formats.py a flag is raised where the codec would refuse the input.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from gradplane.codecs import _base3, _bursts, _zero_runs
from gradplane.codecs.inceptionn import Inceptionn
from gradplane.codecs.threelc import ThreeLC
from gradplane.codecs.topk import TopK
from gradplane.torch.triton_formats import ALL, TILE, Decoded, Encoded, _largest, tiles
from gradplane.torch.triton_launch import INFINITY, blank, flag, launch, magnitude, places, raised

# Where kernels are interpreted, many threads of few steps are faster.
SPANS = {"cuda": 1024, "cpu": 48}
"""Bytes that a thread walks through, from burst to burst."""
CHUNKS = {"cuda": 32, "cpu": 4}
"""Groups of 3LC that a thread takes one after another."""
LANES = {"cuda": 128, "cpu": 1024}
"""Threads of a program."""

_BURSTS = TILE // _bursts.BURST
_ENTRIES = _bursts.LARGEST_BURST  # the places in a span where its first burst may begin
_BINS = 2048  # of TopK's counts

_ONE = tl.constexpr(_bursts._ONE)
_ZEROS, _LONGEST = tl.constexpr(_zero_runs._ZEROS), tl.constexpr(_zero_runs._LONGEST)
_RUN = tl.constexpr(_zero_runs._RUN)


def _walk(
    kernel: Any, threads: int, *arguments: Any, parts: int | None = None, **options: Any
) -> None:
    """Launch a kernel of so many threads, or so many for each part, that walk, each by itself."""
    lanes = LANES[arguments[0].device.type]
    programs = (triton.cdiv(threads, lanes), *([] if parts is None else [parts]))
    launch(kernel, programs, *arguments, LANES=lanes, **options)


def _before(counts: torch.Tensor) -> torch.Tensor:
    """Return the sums, int64, of the numbers before each, and that of all behind them."""
    out = torch.zeros(counts.numel() + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(counts, 0, out=out[1:])
    return out


# INCEPTIONN


def encode_inceptionn(codec: Inceptionn, x: torch.Tensor) -> Encoded:
    """Return the bursts."""
    n, wrong = x.numel(), flag(x)
    low, middle = _bursts.thresholds(codec.bound)
    options = {"LOW": low, "MIDDLE": middle, "BURSTS": _BURSTS}
    sizes = blank(x, tiles(n)[0], torch.int32)
    launch(_burst_sizes, tiles(n), x, sizes, wrong, n, **options)
    begins = _before(sizes)
    out = blank(x, int(begins[-1]))
    launch(_write_bursts, tiles(n), x, begins, out, n, **options)
    return out, wrong * (not codec.nonfinite)


def decode_inceptionn(codec: Inceptionn, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of bursts.

    Where a span's first burst begins depends on the spans before. So each span is walked through
    from each of the places where one may begin, which tells for each where the next span's first
    burst begins; put together, these say where each span's does; and then once more from there."""
    bursts, size = -(-n // _bursts.BURST), data.numel()
    out, wrong = blank(data, n, torch.float32), flag(data)
    span = SPANS[data.device.type]
    spans = -(-size // span)
    if 2 * bursts > size or size >= 2**31 or not spans:
        return out, wrong + (bursts > 0 or size > 0)
    exits = blank(data, spans * _ENTRIES).reshape(spans, _ENTRIES)
    _walk(_exits, exits.numel(), data, exits, size, ENTRIES=_ENTRIES, SPAN=span)
    after, step = exits.long(), 1
    while step < spans:  # after[b]: behind span b, from each entry of span max(0, b - 2 step + 1)
        after = torch.cat([after[:step], after[step:].gather(1, after[:-step])])
        step *= 2
    first = torch.zeros(spans, dtype=torch.int32, device=data.device)
    first[1:] = after[:-1, 0]
    counts, begins = blank(data, spans, torch.int32), blank(data, bursts, torch.int32)
    _walk(_count_bursts, spans, data, first, counts, size, spans, SPAN=span)
    number = _before(counts)
    given = data, first, number, begins, size, spans, bursts
    _walk(_place_bursts, spans, *given, SPAN=span)
    wrong = wrong | (number[-1:] != bursts).int() | (after[-1:, 0] != 0).int()
    if not bool(wrong):
        unit = float(2.0 ** (_bursts.thresholds(codec.bound)[1] - 134))
        launch(_from_bursts, tiles(n), data, begins, out, wrong, n, size, unit, BURSTS=_BURSTS)
    return out, wrong


@triton.jit
def _classified(x, place, n, LOW: tl.constexpr, MIDDLE: tl.constexpr):
    """Return the vectors, in the topmost bits, tags and sizes of values; 0 behind the last."""
    value = tl.load(x + place, mask=place < n, other=0.0)
    word = value.to(tl.uint32, bitcast=True)
    exponent = ((word >> 23) & 255).to(tl.int32)
    sign = word & 0x80000000
    bits = (word & 0x7FFFFF) | 0x800000
    byte = sign | ((bits >> ((16 + MIDDLE - exponent) & 31).to(tl.uint32)) << 24)
    half = sign | ((bits >> ((135 - exponent) & 31).to(tl.uint32)) << 16)
    vector = tl.where(exponent >= _ONE, word, tl.where(exponent >= MIDDLE, half, byte))
    tag = (exponent >= LOW).to(tl.int32) + (exponent >= MIDDLE).to(tl.int32)
    tag += (exponent >= _ONE).to(tl.int32)
    return vector, tag, (1 << tag) >> 1, exponent == 255


@triton.jit(do_not_specialize=["n"])
def _burst_sizes(x, sizes, wrong, n, LOW: tl.constexpr, MIDDLE: tl.constexpr, BURSTS: tl.constexpr):
    place = places(BURSTS * 8)
    vector, tag, size, odd = _classified(x, place, n, LOW, MIDDLE)
    head = tl.where((place < n) & (place % 8 == 0), 2, 0)
    tl.store(sizes + tl.program_id(0), tl.sum(size + head))
    raised(wrong, odd)


@triton.jit(do_not_specialize=["n"])
def _write_bursts(x, begins, out, n, LOW: tl.constexpr, MIDDLE: tl.constexpr, BURSTS: tl.constexpr):
    burst = places(BURSTS)
    place = burst[:, None] * 8 + tl.arange(0, 8)[None, :]
    vector, tag, size, odd = _classified(x, place, n, LOW, MIDDLE)
    whole = tl.where(burst * 8 < n, 2, 0) + tl.sum(size, axis=1)
    at = tl.load(begins + tl.program_id(0)) + tl.cumsum(whole, axis=0) - whole
    head = tl.sum(tag << (2 * tl.arange(0, 8))[None, :], axis=1)
    tl.store(out + at, (head >> 8).to(tl.uint8), mask=burst * 8 < n)
    tl.store(out + at + 1, (head & 255).to(tl.uint8), mask=burst * 8 < n)
    target = at[:, None] + 2 + tl.cumsum(size, axis=1) - size
    for k in tl.static_range(4):
        byte = (vector >> (24 - 8 * k)) & 255
        tl.store(out + target + k, byte.to(tl.uint8), mask=size > k)


@triton.jit
def _tags(data, at, size, inside):
    """Return the tags of the bursts at some places, 16 bits, and the bursts' bytes, int32."""
    high = tl.load(data + at, mask=inside & (at < size), other=0).to(tl.int32)
    low = tl.load(data + at + 1, mask=inside & (at + 1 < size), other=0).to(tl.int32)
    head = (high << 8) | low
    both = head & (head >> 1) & 0x5555  # tag 3: four bytes, one more than its number
    four = (head & 0x3333) + (both & 0x1111) + ((head >> 2) & 0x3333) + ((both >> 2) & 0x1111)
    four = (four & 0x0F0F) + ((four >> 4) & 0x0F0F)
    return head, 2 + (four & 255) + (four >> 8)


@triton.jit(do_not_specialize=["size"])
def _exits(data, exits, size, ENTRIES: tl.constexpr, SPAN: tl.constexpr, LANES: tl.constexpr):
    """Go through each span from each of the places where its first burst may begin; write by how
    much the last one goes beyond it."""
    lane = places(LANES)
    begin = lane // ENTRIES * SPAN
    end = tl.minimum(begin + SPAN, size)
    place = begin + lane % ENTRIES
    while tl.max(end - place) > 0:
        inside = place < end
        head, length = _tags(data, place, size, inside)
        place = tl.where(inside, place + length, place)
    tl.store(exits + lane, (place - end).to(tl.uint8), mask=begin < size)


@triton.jit(do_not_specialize=["size", "spans"])
def _count_bursts(data, first, counts, size, spans, SPAN: tl.constexpr, LANES: tl.constexpr):
    """Write how many bursts begin in a span."""
    lane = places(LANES)
    place = lane * SPAN + tl.load(first + lane, mask=lane < spans, other=0)
    end = tl.minimum((lane + 1) * SPAN, size)
    count = tl.full([LANES], 0, tl.int32)
    while tl.max(end - place) > 0:
        inside = place < end
        head, length = _tags(data, place, size, inside)
        count += inside.to(tl.int32)
        place = tl.where(inside, place + length, place)
    tl.store(counts + lane, count, mask=lane < spans)


@triton.jit(do_not_specialize=["size", "spans", "bursts"])
def _place_bursts(
    data, first, numbers, begins, size, spans, bursts, SPAN: tl.constexpr, LANES: tl.constexpr
):
    """Write where bursts begin, from the number of each span's first one on."""
    lane = places(LANES)
    place = lane * SPAN + tl.load(first + lane, mask=lane < spans, other=0)
    end = tl.minimum((lane + 1) * SPAN, size)
    number = tl.load(numbers + lane, mask=lane < spans, other=0)
    while tl.max(end - place) > 0:
        inside = place < end
        head, length = _tags(data, place, size, inside)
        tl.store(begins + number, place.to(tl.int32), mask=inside & (number < bursts))
        number += inside.to(tl.int64)
        place = tl.where(inside, place + length, place)


@triton.jit(do_not_specialize=["n", "size"])
def _from_bursts(data, begins, out, wrong, n, size, unit, BURSTS: tl.constexpr):
    burst = places(BURSTS)
    inside = burst * 8 < n
    at = tl.load(begins + burst, mask=inside, other=0).to(tl.int64)
    head, length = _tags(data, at, size, inside)
    tag = (head[:, None] >> (2 * tl.arange(0, 8))[None, :]) & 3
    bytes = (1 << tag) >> 1
    source = at[:, None] + 2 + tl.cumsum(bytes, axis=1) - bytes
    vector = tl.full([BURSTS, 8], 0, tl.uint32)
    for k in tl.static_range(4):
        mask = (bytes > k) & (source + k < size)
        vector |= tl.load(data + source + k, mask=mask, other=0).to(tl.uint32) << (24 - 8 * k)
    bits = (vector & 0x7FFFFFFF).to(tl.int32)
    half = (bits >> 16).to(tl.float32) * 3.0517578125e-05  # 2^-15
    value = tl.where(tag == 2, half, (bits >> 24).to(tl.float32) * unit)
    word = value.to(tl.uint32, bitcast=True) | (vector & 0x80000000)
    value = tl.where(tag == 3, vector, tl.where(tag > 0, word, 0)).to(tl.float32, bitcast=True)
    place = burst[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + place, value, mask=place < n)
    raised(wrong, (magnitude(value) >= INFINITY) | ((place >= n) & (tag > 0)))


# 3LC


def encode_threelc(
    codec: ThreeLC, x: torch.Tensor, error: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return bytes, flag and the new error, float32[n].

    error: what earlier rounds left, float32[n], or None for zeros."""
    n, most, wrong = x.numel(), flag(x), flag(x)
    size, keep = _base3.size(n), codec.accumulate
    total = torch.empty_like(x) if keep else x
    if keep:
        before = torch.zeros_like(x) if error is None else error.contiguous()
        launch(_add, tiles(n), x, before, total, most, n, TILE=TILE)
    else:
        launch(_largest, tiles(n), x, most, n, EACH=ALL, TILE=TILE)
    groups, head = blank(x, size), blank(x, 4)
    m = head.view(torch.float32)
    given = total, total if keep else m, most, float(codec.s), m, groups, wrong, n, size
    launch(_digits, (max(1, tiles(size)[0]),), *given, KEEP=keep, TILE=TILE)
    if codec.zero_runs:
        groups = _runs_of(groups, min(codec.parts, size))
    return torch.cat([head, groups]), wrong, total if keep else None


def _runs_of(groups: torch.Tensor, parts: int) -> torch.Tensor:
    """Return groups with runs of zeros shortened, as _zero_runs.encode does in so many parts, none
    of them empty."""
    size = groups.numel()
    if not size:
        return groups
    chunk = CHUNKS[groups.device.type]
    each = triton.cdiv(triton.cdiv(size, parts), chunk)  # chunks of a part
    chunks = parts * each
    tails, counts = blank(groups, chunks, torch.int32), blank(groups, chunks, torch.int32)
    cuts = *divmod(size, parts), each  # the first parts have one group more
    _walk(_tails, each, groups, tails, *cuts, parts=parts, CHUNK=chunk)
    tails[each - 1 :: each] = 0  # no run goes on in another part
    # a run that fills a chunk goes on in the next one
    number = torch.arange(chunks, device=groups.device)
    broken = torch.where(tails < chunk, number, -1).cummax(0).values
    length = (number - broken) * chunk + torch.where(broken < 0, 0, tails[broken.clamp(min=0)])
    length = torch.where(broken < 0, (number + 1) * chunk, length)
    before = torch.zeros_like(tails)
    before[1:] = (length[:-1] % _LONGEST.value).int()
    given, options = (groups, before, counts), {"parts": parts, "CHUNK": chunk}
    _walk(_runs, each, *given, counts, groups, *cuts, WRITE=False, **options)
    begins = _before(counts)
    out = blank(groups, int(begins[-1]))
    _walk(_runs, each, *given, begins, out, *cuts, WRITE=True, **options)
    return _joined(out, begins[each:-1:each]) if parts > 1 else out


def _joined(coded: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """Return parts with the two bytes at a border joined, as _zero_runs.join does.

    borders: where the parts but the first begin."""
    around = torch.stack([borders - 1, borders])
    (left, right), known = around.tolist(), coded[around].tolist()
    bytes = dict(zip(left, known[0], strict=True)) | dict(zip(right, known[1], strict=True))
    gone = []
    for before, behind in zip(left, right, strict=True):
        if run := _zero_runs.joined(bytes[before], bytes[behind]):
            bytes[behind] = _RUN.value + run
            gone.append(before)
    if not gone:
        return coded
    coded[borders] = torch.tensor([bytes[place] for place in right]).to(coded)
    kept = torch.ones_like(coded, dtype=torch.bool)
    kept[torch.tensor(gone, device=coded.device)] = False
    return coded[kept]


def decode_threelc(codec: ThreeLC, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of digits."""
    size, out, wrong = _base3.size(n), blank(data, n, torch.float32), flag(data)
    m, groups = data[:4].view(torch.int32), data[4:]
    if codec.zero_runs:
        coded, chunk = groups, CHUNKS[data.device.type]
        chunks = triton.cdiv(coded.numel(), chunk)
        counts, groups = blank(data, chunks, torch.int32), blank(data, size)
        _walk(_run_lengths, chunks, coded, counts, coded.numel(), CHUNK=chunk)
        begins = _before(counts)
        sizes = coded.numel(), size
        _walk(_from_runs, chunks, coded, begins, groups, *sizes, CHUNK=chunk)
        wrong = wrong | (begins[-1:] != size).int()
    wrong = wrong | (groups.numel() != size) | ((m < 0) | (m >= INFINITY.value)).int()
    if not bool(wrong):
        given = groups, m.view(torch.float32), out, wrong, n, size
        launch(_from_digits, tiles(size), *given, TILE=TILE)
    return out, wrong


@triton.jit(do_not_specialize=["n"])
def _add(x, y, out, most, n, TILE: tl.constexpr):
    place = places(TILE)
    value = tl.load(x + place, mask=place < n, other=0.0)
    value += tl.load(y + place, mask=place < n, other=0.0)
    tl.store(out + place, value, mask=place < n)
    raised(most, magnitude(value))


@triton.jit(do_not_specialize=["n", "size", "s"])
def _digits(v, left, most, s, m, groups, wrong, n, size, KEEP: tl.constexpr, TILE: tl.constexpr):
    """Write m and five digits a byte; KEEP: also what the values' digits lack."""
    group = places(TILE)
    top = tl.load(most).to(tl.float32, bitcast=True) * s
    tl.store(m, top)
    byte = tl.full([TILE], 0, tl.int32)
    for part in tl.static_range(5):
        place = part * size + group
        inside = (group < size) & (place < n)
        value = tl.load(v + place, mask=inside, other=0.0)
        twice = value + value
        digit = (twice > top).to(tl.int32) - (twice < -top).to(tl.int32)
        byte = 3 * byte + tl.where(inside, digit + 1, 0)
        if KEEP:
            tl.store(left + place, value - digit.to(tl.float32) * top, mask=inside)
    tl.store(groups + group, byte.to(tl.uint8), mask=group < size)
    raised(wrong, magnitude(tl.full([TILE], 0.0, tl.float32) + top) >= INFINITY)


@triton.jit
def _chunks(least, longer, each, CHUNK: tl.constexpr, LANES: tl.constexpr):
    """Return the numbers of a program's chunks, where they begin and where their part ends, and
    which of them are there: a part has `each`, of `least` groups, and the first ones have one group
    more."""
    lane, part = places(LANES), tl.program_id(1)
    start = part.to(tl.int64) * least + tl.minimum(part, longer)
    stop = start + least + (part < longer).to(tl.int64)
    return part.to(tl.int64) * each + lane, start + lane * CHUNK, stop, lane < each


@triton.jit(do_not_specialize=["least", "longer", "each"])
def _tails(groups, tails, least, longer, each, CHUNK: tl.constexpr, LANES: tl.constexpr):
    """Write how many of a chunk's last groups are zeros without a break."""
    number, start, stop, own = _chunks(least, longer, each, CHUNK, LANES)
    run = tl.full([LANES], 0, tl.int32)
    for k in range(CHUNK):
        zero = tl.load(groups + start + k, mask=start + k < stop, other=0) == _ZEROS
        run = tl.where(zero, run + 1, 0)
    tl.store(tails + number, run, mask=own)


@triton.jit(do_not_specialize=["least", "longer", "each"])
def _runs(
    groups, before, counts, begins, out, least, longer, each,
    WRITE: tl.constexpr, CHUNK: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the bytes of chunks of groups, or else their numbers.

    before: by how many zeros the last run has gone on in front of a chunk, less those that have a
    byte already."""
    number, start, stop, own = _chunks(least, longer, each, CHUNK, LANES)
    run = tl.load(before + number, mask=own, other=0)
    at = tl.load(begins + number, mask=own, other=0).to(tl.int64) if WRITE else number
    count = tl.full([LANES], 0, tl.int32)
    for k in range(CHUNK):
        place = start + k
        group = tl.load(groups + place, mask=place < stop, other=0).to(tl.int32)
        zero = group == _ZEROS
        first = (place < stop) & ((run == 0) | (group != _ZEROS))
        if WRITE:
            more, length = zero & first, tl.full([LANES], 1, tl.int32)
            for ahead in tl.static_range(1, _LONGEST):
                near = more & (place + ahead < stop)
                more = tl.load(groups + place + ahead, mask=near, other=0) == _ZEROS
                length += more.to(tl.int32)
            byte = tl.where(zero & (length > 1), _RUN + length, group)
            tl.store(out + at + count, byte.to(tl.uint8), mask=first)
        count += first.to(tl.int32)
        run = tl.where(zero & (run < _LONGEST - 1), run + 1, 0)
    if not WRITE:
        tl.store(counts + number, count, mask=own)


@triton.jit
def _length(coded, place, size):
    """Return bytes, int32, and for how many groups each stands; 0 for those behind the last."""
    byte = tl.load(coded + place, mask=place < size, other=0).to(tl.int32)
    return byte, tl.where(place < size, tl.maximum(byte - _RUN, 1), 0)


@triton.jit(do_not_specialize=["size"])
def _run_lengths(coded, counts, size, CHUNK: tl.constexpr, LANES: tl.constexpr):
    lane = places(LANES)
    total = tl.full([LANES], 0, tl.int32)
    for k in range(CHUNK):
        byte, length = _length(coded, lane * CHUNK + k, size)
        total += length
    tl.store(counts + lane, total, mask=lane * CHUNK < size)


@triton.jit(do_not_specialize=["size", "count"])
def _from_runs(coded, begins, groups, size, count, CHUNK: tl.constexpr, LANES: tl.constexpr):
    lane = places(LANES)
    at = tl.load(begins + lane, mask=lane * CHUNK < size, other=0)
    for k in range(CHUNK):
        byte, length = _length(coded, lane * CHUNK + k, size)
        group = tl.where(length > 1, _ZEROS, byte).to(tl.uint8)
        for step in tl.static_range(_LONGEST):
            tl.store(groups + at + step, group, mask=(step < length) & (at + step < count))
        at += length


@triton.jit(do_not_specialize=["n", "size"])
def _from_digits(groups, m, out, wrong, n, size, TILE: tl.constexpr):
    group = places(TILE)
    top = tl.load(m)
    byte = tl.load(groups + group, mask=group < size, other=0).to(tl.int32)
    bad = byte > 242
    rest = byte
    for k in tl.static_range(5):
        place = (4 - k) * size + group
        digit = rest % 3
        rest = rest // 3
        value = (digit - 1).to(tl.float32) * top
        tl.store(out + place, value, mask=(group < size) & (place < n))
        bad |= (place >= n) & (digit > 0)
    raised(wrong, bad)


# TopK


def encode_topk(codec: TopK, x: torch.Tensor) -> Encoded:
    """Return the indices of the largest magnitudes, ascending, and their values."""
    n, wrong = x.numel(), flag(x)
    k = codec._kept(n)
    out = blank(x, 2 * k, torch.int32)
    prefix, left = flag(x), torch.full((1,), k, device=x.device)
    for shift, above in ((20, 31), (9, 20), (0, 9)):  # 31 bits of a magnitude, in three passes
        counts = flag(x, _BINS)
        options = {"SHIFT": shift, "ABOVE": above, "BINS": _BINS, "TILE": TILE}
        launch(_count_keys, tiles(n), x, counts, prefix, wrong, n, **options)
        from_here = counts.flip(0).cumsum(0).flip(0)  # keys in a bin or above
        bin = (from_here >= left).sum(0, keepdim=True) - 1
        left = left - torch.cat([from_here, flag(x).long()])[bin.clamp(min=0) + 1]
        prefix = ((prefix << (above - shift)) | bin).int()
    found = blank(x, 2 * tiles(n)[0], torch.int32).reshape(2, -1)
    launch(_count_kept, tiles(n), x, prefix, found, n, found.shape[1], TILE=TILE)
    given = x, prefix, left, *map(_before, found), out[:k], out[k:].view(torch.float32), n
    launch(_keep, tiles(n), *given, TILE=TILE)
    return out.view(torch.uint8), wrong


def decode_topk(codec: TopK, data: torch.Tensor, n: int) -> Decoded:
    """Return values at their indices, and 0 elsewhere."""
    k, words, wrong = codec._kept(n), data.view(torch.int32), flag(data)
    out = torch.zeros(n, dtype=torch.float32, device=data.device)
    given = words[:k], words[k:].view(torch.float32), out, wrong, n, k
    launch(_scatter, tiles(k), *given, TILE=TILE)
    return out, wrong


@triton.jit(do_not_specialize=["n"])
def _count_keys(
    x, counts, prefix, wrong, n,
    SHIFT: tl.constexpr, ABOVE: tl.constexpr, BINS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Count the magnitudes of which the bits from ABOVE on are the prefix, by those from SHIFT."""
    place = places(TILE)
    bits = magnitude(tl.load(x + place, mask=place < n, other=0.0))
    own = (place < n) & ((bits >> ABOVE) == tl.load(prefix))
    bin = (bits >> SHIFT) & ((1 << (ABOVE - SHIFT)) - 1)
    found = tl.histogram(bin, BINS, mask=own)
    tl.atomic_add(counts + tl.arange(0, BINS), found, mask=found > 0)
    raised(wrong, bits >= INFINITY)


@triton.jit(do_not_specialize=["n", "programs"])
def _count_kept(x, threshold, found, n, programs, TILE: tl.constexpr):
    """Write how many of a program's magnitudes are above the threshold, and how many equal it."""
    place = places(TILE)
    bits = magnitude(tl.load(x + place, mask=place < n, other=0.0))
    least, own = tl.load(threshold), place < n
    tl.store(found + tl.program_id(0), tl.sum((own & (bits > least)).to(tl.int32)))
    tl.store(found + programs + tl.program_id(0), tl.sum((own & (bits == least)).to(tl.int32)))


@triton.jit(do_not_specialize=["n"])
def _keep(x, threshold, ties, above, equal, indices, values, n, TILE: tl.constexpr):
    """Write the values above the threshold, and the first ones that equal it."""
    place = places(TILE)
    value = tl.load(x + place, mask=place < n, other=0.0)
    bits, least, allowed = magnitude(value), tl.load(threshold), tl.load(ties)
    same = (place < n) & (bits == least)
    before = tl.load(equal + tl.program_id(0))
    rank = before + tl.cumsum(same.to(tl.int32), axis=0)
    keep = ((place < n) & (bits > least)) | (same & (rank <= allowed))
    first = tl.load(above + tl.program_id(0)) + tl.minimum(before, allowed)
    target = first + tl.cumsum(keep.to(tl.int32), axis=0) - 1
    tl.store(indices + target, place.to(tl.int32), mask=keep)
    tl.store(values + target, value, mask=keep)


@triton.jit(do_not_specialize=["n", "k"])
def _scatter(indices, values, out, wrong, n, k, TILE: tl.constexpr):
    place = places(TILE)
    index = tl.load(indices + place, mask=place < k, other=0)
    # signed, as n is below 2^31: larger ones are below 0
    last = tl.load(indices + place - 1, mask=(place < k) & (place > 0), other=-1)
    value = tl.load(values + place, mask=place < k, other=0.0)
    inside = (index >= 0) & (index < n)
    tl.store(out + index, value, mask=(place < k) & inside)
    bad = (place < k) & (~inside | (index <= last))
    raised(wrong, bad | (magnitude(value) >= INFINITY))
