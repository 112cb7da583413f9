"""softmax, layer norm and RMS norm over the rows of a square matrix: reductions fused with what stands around them."""

from __future__ import annotations

import numpy as np

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.peers import compiled, eager, finish, jax, jitted, torch
from genesis.nn import functional

__all__ = ["run"]

NAMES = ("softmax", "layer_norm", "rms_norm")


def run(settings: Settings) -> list[Result]:
    """One Result per function."""
    extent = settings.size(2048, 64)
    random = np.random.default_rng(0)
    x = random.normal(size=(extent, extent)).astype(np.float32)
    weight, bias = random.normal(size=(2, extent)).astype(np.float32)
    return [_one(name, [x, weight, bias], settings) for name in NAMES]


def _one(name: str, arrays: list[np.ndarray], settings: Settings) -> Result:
    x, weight, bias = map(genesis.tensor, arrays)
    ours = {
        "softmax": lambda: functional.softmax(x, dim=-1),
        "layer_norm": lambda: functional.layer_norm(x, weight.shape, weight, bias),
        "rms_norm": lambda: functional.rms_norm(x, weight.shape, weight, 1e-6),
    }[name]

    def call() -> object:
        y = ours()
        finish()
        return y

    result = compare(f"{name} over {x.shape[0]}x{x.shape[1]} float32", {
        "genesis": call,
        "torch eager": eager(lambda: _torch(name, arrays, lambda f: f)),
        "torch.compile": compiled(lambda: _torch(name, arrays, torch.compile)),
        "jax.jit": jitted(lambda: _jax(name, arrays)),
    }, settings)
    kernels = len(genesis.debug.program(ours()).kernels)
    result.bars.append(Bar("kernels, exactly 1", kernels, kernels == 1))
    result.no_slower_than("torch eager")
    return result


def _torch(name: str, arrays: list[np.ndarray], wrap: object) -> object:
    x, weight, bias = map(torch.tensor, arrays)
    functions = torch.nn.functional
    call = wrap({
        "softmax": lambda x, weight, bias: functions.softmax(x, -1),
        "layer_norm": lambda x, weight, bias: functions.layer_norm(x, weight.shape, weight, bias),
        "rms_norm": lambda x, weight, bias: functions.rms_norm(x, weight.shape, weight, 1e-6),
    }[name])
    return lambda: call(x, weight, bias)


def _jax(name: str, arrays: list[np.ndarray]) -> object:
    x, weight, bias = map(jax.numpy.asarray, arrays)

    def layer_norm(x, weight, bias):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias

    function = jax.jit({
        "softmax": lambda x, weight, bias: jax.nn.softmax(x, -1),
        "layer_norm": layer_norm,
        "rms_norm": lambda x, weight, bias: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight,
    }[name])
    return lambda: function(x, weight, bias).block_until_ready()
