"""Hugging Face's Trainer on a small GPT-2 of characters, unmodified, on Python's own help topics.

    pip install "gradplane[examples]"
    gradplane torchrun --set topology.workers=2 thc-star examples/hf_trainer.py --steps 30
    torchrun --nproc-per-node 2 examples/hf_trainer.py --steps 30

The process group is made before the Trainer, which takes it as it is: its DistributedDataParallel
then reduces gradients by the network of the experiment. The model comes from a configuration, and
nothing is downloaded.
"""

import argparse
import tempfile
from pydoc_data.topics import topics

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import gradplane.torch

CONTEXT = 64


class Pieces(Dataset[dict[str, Tensor]]):
    """Pieces of CONTEXT characters, one behind the other: each a dict of int64[CONTEXT]."""

    def __init__(self, text: Tensor) -> None:
        self._text = text

    def __len__(self) -> int:
        return len(self._text) // CONTEXT

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        piece = self._text[i * CONTEXT : (i + 1) * CONTEXT]
        return {"input_ids": piece, "labels": piece}


def main() -> None:
    """Train, and print the test loss of a character."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=30)
    steps = options.parse_args().steps

    torch.set_num_threads(1)
    dist.init_process_group("gradplane" if gradplane.torch.available() else "gloo")
    text = "\n".join(topics[name] for name in sorted(topics))
    number = {letter: place for place, letter in enumerate(sorted(set(text)))}
    numbers = torch.tensor([number[letter] for letter in text])
    cut = len(numbers) * 9 // 10
    torch.manual_seed(1)
    shape = {"n_positions": CONTEXT, "n_embd": 64, "n_layer": 2, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(number), **shape))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=16,
            learning_rate=3e-3,
            logging_steps=10,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            ddp_find_unused_parameters=False,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=Pieces(numbers[:cut]),
            eval_dataset=Pieces(numbers[cut : cut + 64 * CONTEXT]),
        )
        gradplane.torch.record(step=0)
        trainer.train()
        loss = trainer.evaluate()["eval_loss"]
    gradplane.torch.record(step=steps, loss=loss)
    if dist.get_rank() == 0:
        print(f"after {steps} steps: test loss of a character {loss:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
