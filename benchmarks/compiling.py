"""What compiling costs: cold, in a second process, for batch sizes never seen before, and for chains of operations."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.measure import Bar, Result, Settings
from benchmarks.peers import jax

__all__ = ["run"]

# Every chain has another structure, so each flush compiles one kernel.
COLD = """
import json, sys, time
import genesis
count = int(sys.argv[1])
names = ["exp", "tanh", "sigmoid", "sqrt", "sin", "cos", "log1p", "erf"]
x, y = genesis.rand(4096), genesis.rand(4096)
(x + y).tolist()
genesis.debug.reset_stats()
times = []
for number in range(count):
    began = time.perf_counter()
    z = x * y + 0.5
    for place in range(4):
        z = getattr(genesis, names[(number >> place) % 8])(z) + (x if place % 2 else y)
    z.tolist()
    times.append(time.perf_counter() - began)
print(json.dumps({"times": times, "kernels": genesis.debug.stats()["kernels_compiled"]}))
"""

TRAIN = """
import json, sys, time
import genesis
from genesis import nn, optim
began = time.perf_counter()
genesis.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = optim.Adam(model.parameters())

def step(rows):
    x, y = genesis.randn(rows, 64), genesis.randint(10, (rows,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

step(32)
first = time.perf_counter() - began
step(32)
before, began, sizes = genesis.debug.stats()["kernels_compiled"], time.perf_counter(), int(sys.argv[1])
for rows in range(33, 33 + sizes):
    step(rows)
stats = genesis.debug.stats()
print(json.dumps({
    "first": first, "numba": "numba" in sys.modules, "compiled": before, "loaded": stats["kernels_loaded"],
    "later": stats["kernels_compiled"] - before, "per_size": (time.perf_counter() - began) / max(sizes, 1),
}))
"""


# The value of a chain of operations and its gradient: a stretch of 60 operations drawn at random, again and again.
CHAIN = """
import json, random, sys, time
import numpy as np
contestant, operations = sys.argv[1], int(sys.argv[2])
draw = random.Random(0)
stretch = [draw.randrange(5) for _ in range(60)]
data = np.linspace(0.1, 0.9, 1000, dtype=np.float32)

def chain(library, x, y):
    for number in range(operations):
        op = stretch[number % 60]
        x = library.sin(x) if op == 0 else library.tanh(x) if op == 1 else x * y if op == 2 else x + y if op == 3 else x - 0.5
    return x.sum()

if contestant == "genesis":
    import genesis
    began = time.perf_counter()
    x, y = genesis.tensor(data, requires_grad=True), genesis.tensor(data)
    z = chain(genesis, x, y)
    z.backward()
    values = z.item(), x.grad.sum().item()
else:
    import jax
    began = time.perf_counter()
    both = jax.jit(jax.value_and_grad(lambda x, y: chain(jax.numpy, x, y)))
    values = [float(a.sum()) for a in both(jax.numpy.asarray(data), jax.numpy.asarray(data))]
print(json.dumps({"seconds": time.perf_counter() - began, "values": values}))
"""


def _chains(settings: Settings) -> Result:
    few, many = settings.size(3_000, 60), settings.size(30_000, 600)
    with tempfile.TemporaryDirectory() as cache:
        seconds = _in_process(CHAIN, cache, "genesis", few)["seconds"]
    with tempfile.TemporaryDirectory() as cache:
        longer = _in_process(CHAIN, cache, "genesis", many)["seconds"]
        result = Result(f"a chain of {few} operations and its gradient, from trace to value", {"genesis": seconds})
        if jax is not None:
            result.medians["jax.jit"] = _in_process(CHAIN, cache, "jax.jit", few)["seconds"]
    result.facts[f"{many} operations"] = f"{longer:.2f} s"
    result.no_slower_than("jax.jit")
    result.bars.append(Bar(f"time of {many} operations over that of {few}, at most 12", longer / seconds,
                           longer <= 12 * seconds))
    return result


def _in_process(program: str, cache: str, *arguments: object) -> Any:
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=True,
        env=os.environ | {"GENESIS_CACHE_DIR": cache},
    )
    return json.loads(run.stdout.splitlines()[-1])


def run(settings: Settings) -> list[Result]:
    """Each in processes of its own, over a cache directory of its own."""
    sizes = settings.size(50, 3)
    with tempfile.TemporaryDirectory() as cache:
        cold = _in_process(COLD, cache, settings.size(40, 3))
    with tempfile.TemporaryDirectory() as cache:
        first = _in_process(TRAIN, cache, sizes)
        second = _in_process(TRAIN, cache, sizes)
    median = statistics.median(cold["times"])
    compiling = Result("cold compile of a fused kernel", {"genesis": median}, facts={"kernels": cold["kernels"]})
    compiling.bars.append(Bar("ms, at most 40", median * 1e3, median <= 0.040))

    again = Result("first training step of a process", {"genesis": second["first"]}, facts={
        "in the process before": f"{first['first']:.2f} s, {first['compiled']} kernels compiled",
        "kernels loaded": second["loaded"],
    })
    again.bars += [
        Bar("kernels compiled, exactly 0", second["compiled"], second["compiled"] == 0),
        Bar("numba imported, 0 for no", second["numba"], not second["numba"]),
        Bar("seconds after import, at most 0.3", second["first"], second["first"] <= 0.3),
    ]

    new = Result(f"{sizes} batch sizes after one", {"genesis": first["per_size"]})
    new.bars.append(Bar("kernels compiled for them, exactly 0", first["later"], first["later"] == 0))
    return [compiling, again, new, _chains(settings)]
