"""A small GPT over characters that learns to write Python from the standard library's own sources.

Four layers of width 256 with 8 heads see 128 characters at a time, 16 sequences a step, trained by AdamW with warm-up, a
cosine and clipped gradients. Now and then it writes a few lines, so that one sees what it has learned.

    python examples/char_gpt.py [--compile] [--steps 600] [--sample 300] [--picture out/char_gpt.png]
    mpiexec -n 4 python -m genesis.distributed examples/char_gpt.py --mesh 2x2 [..]

With a mesh of ranks, the first axis divides the batch and the second one the layers.
"""

from __future__ import annotations

import math
import random
import sysconfig
from pathlib import Path

import numpy as np
from tqdm import tqdm
from training import options_of, report, train

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.tensor import Replicate
from genesis.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from genesis.nn import functional

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))  # what else occurs in a source is left out
BATCH, LENGTH = 16, 128
PROMPT = "def "
SEED = 0
PLAN = {  # how ranks divide the layers
    "words": RowwiseParallel(), "blocks.*.attention.project": ColwiseParallel(), "blocks.*.attention.out": RowwiseParallel(),
    "blocks.*.network.0": ColwiseParallel(), "blocks.*.network.2": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=Replicate()),
}


class Attention(nn.Module):
    """Causal self-attention over (rows, length, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: genesis.Tensor) -> genesis.Tensor:
        rows, length, _ = x.shape
        parts = self.project(x).view(rows, length, -1, 3, self.head_width)  # head by head: a rank may have some of them
        query, key, value = parts.transpose(1, 2).unbind(3)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(rows, length, -1))


class Block(nn.Module):
    """Attention, then a network of two layers, each added to what it has read."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.attention, self.between = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: genesis.Tensor) -> genesis.Tensor:
        x = x + self.attention(self.before(x))
        return x + self.network(self.between(x))


class GPT(nn.Module):
    """Characters (rows, length) -> scores of the next one (rows, length, characters)."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(len(CHARACTERS), width), nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, len(CHARACTERS), bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:  # the initialisation of GPT-2 (Radford et al., 2019)
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if "out" in name else 0.02)

    def forward(self, x: genesis.Tensor) -> genesis.Tensor:
        return self.head(self.last(self.blocks(self.words(x) + self.places.weight[: x.shape[1]])))


def sources() -> tuple[np.ndarray, np.ndarray]:
    """The standard library as numbers of characters: nine tenths of its files to train on, and the rest."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    random.Random(SEED).shuffle(files)
    held_out = len(files) // 10
    number = {character: k for k, character in enumerate(CHARACTERS)}
    texts = [file.read_text(encoding="utf-8", errors="ignore") for file in files]
    numbers = [np.array([number[c] for c in text if c in number], dtype=np.int64) for text in texts]
    return np.concatenate(numbers[held_out:]), np.concatenate(numbers[:held_out])


def batch(text: np.ndarray, draw: np.random.Generator) -> tuple[genesis.Tensor, genesis.Tensor]:
    """Sequences from anywhere in `text` (rows, length), and the characters that follow each of theirs."""
    starts = draw.integers(len(text) - LENGTH, size=(BATCH, 1))
    pieces = text[starts + np.arange(LENGTH + 1)]
    return genesis.tensor(pieces[:, :-1]), genesis.tensor(pieces[:, 1:])


@genesis.no_grad()
def write(model: GPT, count: int, temperature: float = 0.8) -> str:
    """`count` characters after the prompt, each drawn by its probability."""
    numbers = [CHARACTERS.index(character) for character in PROMPT]
    for _ in range(count):
        seen = genesis.tensor([([0] * LENGTH + numbers)[-LENGTH:]])
        scores = model(seen)[0, -1] / temperature
        numbers.append(int(genesis.multinomial(scores.softmax(dim=-1), 1).item()))
    return "".join(CHARACTERS[k] for k in numbers)


def main() -> None:
    parser = options_of(__doc__, "char_gpt")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--sample", type=int, default=300, help="characters to write, four times in the course of training")
    parser.add_argument("--mesh", default="1x1", help="ranks that divide the batch x ranks that divide the layers")
    options = parser.parse_args()
    dist.init_process_group()
    mesh = dist.init_device_mesh("cpu", [*map(int, options.mesh.split("x"))], mesh_dim_names=("data", "tensor"))
    is_first = dist.get_rank() == 0

    genesis.manual_seed(SEED)
    draw = np.random.default_rng(SEED)
    text, held_out = sources()
    model = GPT(options.layers, options.width, options.heads)
    weights = sum(parameter.numel() for parameter in model.parameters())
    model = parallelize_module(model, mesh["tensor"], PLAN)
    model = dist.DistributedDataParallel(model, process_group=mesh.get_group("data"))
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    warm_up = max(options.steps // 20, 1)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(
        (step + 1) / warm_up, 0.55 + 0.45 * math.cos(math.pi * min(step / options.steps, 1))
    ))

    def loss_of(seen: genesis.Tensor, following: genesis.Tensor) -> genesis.Tensor:
        return functional.cross_entropy(model(seen).reshape(-1, len(CHARACTERS)), following.reshape(-1))

    def step(seen: genesis.Tensor, following: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = loss_of(seen, following)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.detach()

    @genesis.no_grad()
    def held_out_loss(steps: int) -> float:
        fixed = np.random.default_rng(SEED)
        loss = genesis.stack([loss_of(*batch(held_out, fixed)) for _ in range(8)]).mean().item()
        written = write(model, options.sample)
        if is_first:
            tqdm.write(f"\n--- after {steps} steps, held-out loss {loss:.3f} ---\n{written}\n")
        return loss

    if is_first:
        print(f"{len(text) / 1e6:.1f} million characters, {weights / 1e6:.2f} million parameters")
    quarter = math.ceil(options.steps / 4)
    sizes = [min(quarter, options.steps - done) for done in range(0, options.steps, quarter)]
    place, parts = mesh.get_local_rank("data"), mesh.size("data")
    mine = slice(place * BATCH // parts, (place + 1) * BATCH // parts)
    rounds = (([tensor[mine] for tensor in batch(text, draw)] for _ in range(size)) for size in sizes)
    step = genesis.compile(step) if options.compile else step
    training = train(step, rounds, options.steps, held_out_loss)
    if is_first:
        report(training, "held-out loss", "nats a character", f"{BATCH}x{LENGTH}", options.picture)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
