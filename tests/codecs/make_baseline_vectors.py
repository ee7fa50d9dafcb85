"""Writes the baselines' vectors/*.json from the slow reference. Run by hand, when a format is meant
to change:

python tests/codecs/make_baseline_vectors.py
"""

import json
from pathlib import Path
from typing import Any

import baseline_reference as reference
from make_vectors import floats, vector

FOLDER = Path(__file__).parent / "vectors"
SIZES = (0, 1, 2, 37, 100)
CHANCE = {"seed": 7, "worker": 3}

Case = dict[str, Any]


def case(params: Case, x: list[float], encoded: reference.Encoded, **more: Any) -> Case:
    data, decoded = encoded
    start = {"params": params, "n": len(x)} | more
    return start | {"x": floats(x), "data": data.hex(), "decoded": floats(decoded)}


def bfloat16() -> list[Case]:
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, -(1 + 2.0**-8), 3.38e38, -0.0, 2.0**-149, 2.0**-134]
    xs = [vector(n) for n in SIZES] + [[reference.f32(v) for v in ties]]
    return [case({}, x, reference.bfloat16(x)) for x in xs]


def terngrad() -> list[Case]:
    cases = []
    for clip in (2.5, 0.5, None):
        for n, size in ((0, 2**20), (1, 2**20), (37, 2**20), (37, 16)):
            x = vector(n)
            scales = [reference.f32(1.25 * s) for s in reference.terngrad_scales(x, clip, size)]
            encoded = reference.terngrad(x, scales, **CHANCE, size=size)
            more = {"shared": floats(scales), "partition": size} | CHANCE
            cases.append(case({"clip": clip}, x, encoded, **more))
    x = vector(100)
    encoded = reference.terngrad(x, reference.terngrad_scales(x, 2.5), **CHANCE)
    return [*cases, case({}, x, encoded, **CHANCE)]


def signsgd() -> list[Case]:
    cases = []
    for n, size in ((0, 2**20), (1, 2**20), (37, 2**20), (37, 16)):
        x = vector(n)
        scales = [reference.f32(1.5 * s) for s in reference.signsgd_scales(x, size)]
        encoded = reference.signsgd(x, scales, size)
        cases.append(case({}, x, encoded, shared=floats(scales), partition=size))
    x = vector(100)
    alone = reference.signsgd(x, reference.signsgd_scales(x))
    return [*cases, case({"vote": True}, x, alone)]


def efsignsgd() -> list[Case]:
    return [case({}, vector(n), reference.efsignsgd([vector(n)])[0]) for n in SIZES[1:]]


def topk() -> list[Case]:
    ties = [1.0, -2.0, 2.0, 0.0, -1.0, 2.0, -2.0, 1.0]
    params = ({}, {"fraction": 0.5}, {"k": 3}, {"fraction": 1.0}, {"k": 1000})
    cases = [case(p, vector(n), reference.topk(vector(n), **p)) for p in params for n in SIZES]
    return cases + [case({"k": k}, ties, reference.topk(ties, k=k)) for k in range(1, 9)]


def randomk() -> list[Case]:
    params = ({}, {"fraction": 0.5}, {"k": 3, "unbiased": True})
    return [
        case(p, vector(n), reference.randomk(vector(n), 7, **p), seed=7)
        for p in params
        for n in SIZES
    ]


def dgc() -> list[Case]:
    params = ({}, {"fraction": 0.1}, {"clip": 2.5, "warmup": 3})
    return [case(p, vector(n), reference.dgc([vector(n)], **p)[0]) for p in params for n in SIZES]


def qsgd() -> list[Case]:
    params = ({}, {"levels": 1}, {"levels": 5, "bucket": 16}, {"levels": 300, "bucket": 30})
    return [
        case(p, vector(n), reference.qsgd(vector(n), **CHANCE, **p), **CHANCE)
        for p in params
        for n in SIZES
    ]


def natural() -> list[Case]:
    tiny = [reference.f32(v) for v in (1e-45, -3e-45, 1e-40, 0.0, 2.0**-126, -1e-38)]
    cases = []
    for bits in (9, 8, 3):
        for x in [*map(vector, SIZES), tiny]:
            encoded = reference.natural(x, **CHANCE, bits=bits)
            cases.append(case({"bits": bits}, x, encoded, **CHANCE))
    return cases


def mxfp() -> list[Case]:
    """Among others, values half-way between two elements, and what float32 can hardly hold."""
    cases = []
    for element in reference.MX:
        numbers = [float(v) for v in reference.mx_magnitudes(element)]
        halves = [(a + b) / 2 for a, b in zip(numbers, numbers[1:], strict=False)]
        ties = [v * s for v in halves[-15:] for s in (1, -1)] + [numbers[-1]]
        odd = [reference.f32(v) for v in (1e-45, -3e-45, 1e-40, -0.0, 2.0**-126, -1e-38, 1.2e-38)]
        for x in [*map(vector, SIZES), ties, odd, odd[:3], [3.4e38, -1.0], [0.0, -0.0]]:
            cases.append(case({"element": element}, x, reference.mxfp(x, element)))
    return cases


def zeropp() -> list[Case]:
    params = ({}, {"bits": 8}, {"bits": 5, "block": 7}, {"block": 1})
    xs = [*map(vector, SIZES), [1.5, 0.5, -2.0, 2.0], [reference.f32(1e-45), -0.0]]
    return [case(p, x, reference.zeropp(x, **p)) for p in params for x in xs]


def sdp4bit() -> list[Case]:
    params = ({}, {"bits": 8}, {"bits": 3, "block": 32})
    xs = [*map(vector, SIZES), vector(300), [0.0] * 33]
    encoded = [(p, x, reference.sdp4bit(x, **CHANCE, **p)) for p in params for x in xs]
    return [case(*one, **CHANCE) for one in encoded]


def dynamiq() -> list[Case]:
    """Among others, 256 values each of one in a thousand times the last ones' size."""
    params = ({}, {"bits": 3.0, "workers": 4}, {"bits": 8.6875})
    falling = [reference.f32(v * 1e-3 ** (i // 256)) for i, v in enumerate(vector(700))]
    xs = [*map(vector, SIZES), falling, [0.0] * 33, [1e-40, -1e-45, 0.0], [1e37, -1e37]]
    xs = [[reference.f32(v) for v in x] for x in xs]
    encoded = [(p, x, reference.dynamiq(x, **CHANCE, **p)) for p in params for x in xs]
    return [case(*one, **CHANCE) for one in encoded]


def powersgd() -> list[Case]:
    params = ({}, {"rank": 1}, {"rank": 2, "columns": 7}, {"rank": 3, "columns": 1000})
    return [
        case(p, vector(n), reference.powersgd([vector(n)], [7], **p)[0], seed=7)
        for p in params
        for n in SIZES[1:]
    ]


def switchml() -> list[Case]:
    cases = []
    for workers in (64, 1, 65536):
        for n, size in ((0, 2**20), (1, 2**20), (37, 2**20), (37, 16)):
            x = vector(n)
            scales = [2 * s for s in reference.switchml_scales(x, size)]
            encoded = reference.switchml(x, scales, workers, size)
            more = {"shared": floats(scales), "partition": size}
            cases.append(case({"workers": workers}, x, encoded, **more))
    x = vector(100)
    return [*cases, case({}, x, reference.switchml(x, reference.switchml_scales(x)))]


# What NMSE may be on 5000 normal values: of the stochastic ones a little above the expectation.
MADE = {
    "bfloat16": (3e-6, bfloat16),
    "terngrad": (1.1, terngrad),
    "signsgd": (0.38, signsgd),
    "efsignsgd": (0.38, efsignsgd),
    "topk": (0.6, topk),
    "randomk": (0.95, randomk),
    "dgc": (1.0, dgc),
    "qsgd": (1.8, qsgd),
    "natural": (0.09, natural),
    "mxfp": (0.001, mxfp),
    "zeropp": (0.014, zeropp),
    "sdp4bit": (0.03, sdp4bit),
    "dynamiq": (0.02, dynamiq),
    "powersgd": (0.95, powersgd),
    "switchml": (1e-12, switchml),
}


def main() -> None:
    for name, (nmse, cases) in MADE.items():
        content = {"nmse_of_normal_vector": nmse, "cases": cases()}
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
