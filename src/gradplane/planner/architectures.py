"""The shipped models: the tensors of six architectures, from their definitions.

Names, numbers and sizes of the tensors are the architectures' own and agree with Tables 4 and 5 of
Espresso. The computation times are ours, not measured: four operations a weight and position (the
two products of backward propagation) at RATE, and LAUNCH for each tensor; the forward propagation
takes half of the whole. Parameters without a product (biases, norms, embeddings) take LAUNCH alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

RATE = 14e12  # operations a second, about what a V100 does in single precision
LAUNCH = 20e-6  # seconds


class Parameter(NamedTuple):
    """A tensor in forward order; positions: how often a sample multiplies it (0: never)."""

    name: str
    values: int
    positions: int = 0


class ModelArchitecture(NamedTuple):
    """An architecture and the samples (or tokens) of one GPU's batch, as in Espresso's Table 4."""

    batch: int
    parameters: Callable[[], Iterator[Parameter]]

    def tensors(self) -> list[tuple[str, int, float]]:
        """Return the tensors in backward order: name, number of values, seconds."""
        return [
            (name, values, LAUNCH + 4 * values * positions * self.batch / RATE)
            for name, values, positions in reversed(list(self.parameters()))
        ]

    def comments(self) -> tuple[str, str, str]:
        """Return the comments at the top of the model's file."""
        return (
            (self.parameters.__doc__ or "").strip(),
            "Tensors in backward order. Sizes are the architecture's; times (seconds) are ours,",
            "computed by gradplane.planner.architectures, not measured.",
        )


def vgg16() -> Iterator[Parameter]:
    """VGG16 on 224 x 224 images."""
    inputs, side, number = 3, 224, 0
    for stage in ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3):
        for outputs in stage:
            number += 1
            yield Parameter(f"conv{number}.weight", 9 * inputs * outputs, side * side)
            yield Parameter(f"conv{number}.bias", outputs)
            inputs = outputs
        side //= 2
    for number, (inputs, outputs) in enumerate(((25088, 4096), (4096, 4096), (4096, 1000)), 1):
        yield from _linear(f"fc{number}", inputs, outputs, 1)


def resnet101() -> Iterator[Parameter]:
    """ResNet101 on 224 x 224 images."""
    yield from _normed("conv1", 7 * 7 * 3 * 64, 64, 112)
    inputs, side = 64, 56
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (23, 256), (3, 512)), 1):
        for block in range(blocks):
            at = f"layer{stage}.{block}"
            before = side
            if block == 0 and stage > 1:
                side //= 2
            yield from _normed(f"{at}.conv1", inputs * width, width, before)
            yield from _normed(f"{at}.conv2", 9 * width * width, width, side)
            yield from _normed(f"{at}.conv3", 4 * width * width, 4 * width, side)
            if block == 0:
                yield from _normed(f"{at}.downsample", inputs * 4 * width, 4 * width, side)
            inputs = 4 * width
    yield from _linear("fc", 2048, 1000, 1)


def ugatit() -> Iterator[Parameter]:
    """UGATIT on 256 x 256 images: two generators, two global and two local discriminators."""
    for name in ("genA2B", "genB2A"):
        yield from _generator(name)
    for name in ("disGA", "disGB"):
        yield from _discriminator(name, 7)
    for name in ("disLA", "disLB"):
        yield from _discriminator(name, 5)


def _generator(name: str) -> Iterator[Parameter]:
    yield Parameter(f"{name}.down1", 49 * 3 * 64, 256 * 256)
    yield Parameter(f"{name}.down2", 9 * 64 * 128, 128 * 128)
    yield Parameter(f"{name}.down3", 9 * 128 * 256, 64 * 64)
    for block in range(4):
        for conv in (1, 2):
            yield Parameter(f"{name}.res{block}.conv{conv}", 9 * 256 * 256, 64 * 64)
    yield Parameter(f"{name}.gap_fc", 256, 1)
    yield Parameter(f"{name}.gmp_fc", 256, 1)
    yield Parameter(f"{name}.conv1x1.weight", 512 * 256, 64 * 64)
    yield Parameter(f"{name}.conv1x1.bias", 256)
    yield Parameter(f"{name}.fc1", 64 * 64 * 256 * 256, 1)
    for part in ("fc2", "gamma", "beta"):
        yield Parameter(f"{name}.{part}", 256 * 256, 1)
    for block in range(4):
        for conv in (1, 2):
            yield Parameter(f"{name}.adailn{block}.conv{conv}", 9 * 256 * 256, 64 * 64)
            yield Parameter(f"{name}.adailn{block}.rho{conv}", 256)
    for number, (inputs, outputs, side) in enumerate(((256, 128, 128), (128, 64, 256)), 1):
        yield Parameter(f"{name}.up{number}", 9 * inputs * outputs, side * side)
        for part in ("rho", "gamma", "beta"):
            yield Parameter(f"{name}.up{number}.{part}", outputs)
    yield Parameter(f"{name}.image", 49 * 64 * 3, 256 * 256)


def _discriminator(name: str, layers: int) -> Iterator[Parameter]:
    inputs, outputs, side = 3, 64, 128
    for number in range(1, layers):
        yield Parameter(f"{name}.conv{number}.weight", 16 * inputs * outputs, side * side)
        yield Parameter(f"{name}.conv{number}.bias", outputs)
        inputs, outputs = outputs, 2 * outputs
        if number < layers - 2:
            side //= 2
    yield Parameter(f"{name}.gap_fc", inputs, 1)
    yield Parameter(f"{name}.gmp_fc", inputs, 1)
    yield Parameter(f"{name}.conv1x1.weight", 2 * inputs * inputs, side * side)
    yield Parameter(f"{name}.conv1x1.bias", inputs)
    yield Parameter(f"{name}.logit", 16 * inputs, side * side)


def bert_base() -> Iterator[Parameter]:
    """BERT-base with its two pre-training heads; the word embeddings are the decoder's weight."""
    yield Parameter("embeddings.word", 30522 * 768, 1)
    yield Parameter("embeddings.position", 512 * 768)
    yield Parameter("embeddings.token_type", 2 * 768)
    yield from _pair("embeddings.norm", 768)
    for layer in range(12):
        at = f"layer{layer}"
        for part in ("query", "key", "value", "attention"):
            yield from _linear(f"{at}.{part}", 768, 768, 1)
        yield from _pair(f"{at}.attention.norm", 768)
        yield from _linear(f"{at}.intermediate", 768, 3072, 1)
        yield from _linear(f"{at}.output", 3072, 768, 1)
        yield from _pair(f"{at}.output.norm", 768)
    yield from _linear("pooler", 768, 768, 0)
    yield Parameter("predictions.bias", 30522)
    yield from _linear("predictions.transform", 768, 768, 1)
    yield from _pair("predictions.norm", 768)
    yield Parameter("predictions.decoder.bias", 30522)
    yield from _linear("next_sentence", 768, 2, 0)


def gpt2() -> Iterator[Parameter]:
    """GPT-2 (small); the word embeddings are the output layer's weight, too."""
    yield Parameter("wte", 50257 * 768, 1)
    yield Parameter("wpe", 1024 * 768)
    for layer in range(12):
        at = f"h{layer}"
        yield from _pair(f"{at}.ln_1", 768)
        yield from _linear(f"{at}.attn.c_attn", 768, 3 * 768, 1)
        yield from _linear(f"{at}.attn.c_proj", 768, 768, 1)
        yield from _pair(f"{at}.ln_2", 768)
        yield from _linear(f"{at}.mlp.c_fc", 768, 3072, 1)
        yield from _linear(f"{at}.mlp.c_proj", 3072, 768, 1)
    yield from _pair("ln_f", 768)


def lstm() -> Iterator[Parameter]:
    """The word language model on WikiText-2: two LSTM layers of 1500, tied embeddings."""
    yield Parameter("encoder", 33278 * 1500, 1)
    for layer in range(2):
        for part in ("ih", "hh"):
            yield Parameter(f"rnn.weight_{part}_l{layer}", 4 * 1500 * 1500, 1)
        for part in ("ih", "hh"):
            yield Parameter(f"rnn.bias_{part}_l{layer}", 4 * 1500)
    yield Parameter("decoder.bias", 33278)


def _linear(name: str, inputs: int, outputs: int, positions: int) -> Iterator[Parameter]:
    yield Parameter(f"{name}.weight", inputs * outputs, positions)
    yield Parameter(f"{name}.bias", outputs)


def _pair(name: str, values: int) -> Iterator[Parameter]:
    yield Parameter(f"{name}.weight", values)
    yield Parameter(f"{name}.bias", values)


def _normed(name: str, values: int, outputs: int, side: int) -> Iterator[Parameter]:
    yield Parameter(f"{name}.weight", values, side * side)
    yield from _pair(f"{name}.bn", outputs)


ARCHITECTURES = {
    "vgg16": ModelArchitecture(32, vgg16),
    "resnet101": ModelArchitecture(32, resnet101),
    "ugatit": ModelArchitecture(2, ugatit),
    "bert-base": ModelArchitecture(1024, bert_base),
    "gpt2": ModelArchitecture(80, gpt2),
    "lstm": ModelArchitecture(80, lstm),
}
