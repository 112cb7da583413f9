"""Elementwise chains, reductions, softmax, norms and Black-Scholes over four million numbers, and their gradients.

All of them are bound by memory or by the cost of exp, log and erf. The same lines serve genesis and torch. Who takes a
gradient computes the value too, as a step of training does; outputs are new memory for all contestants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import genesis
from benchmarks.measure import Limits, Result, Settings, averaged, compare
from benchmarks.peers import compiled, eager, finish, jax, jitted, torch

__all__ = ["CASES", "Case", "arrays_of", "contestants", "run"]

AVERAGE, WORST = Limits(compiled=0.9, eager=0.7), Limits(compiled=1.0, eager=1.0)


class Case(NamedTuple):
    """A function of arrays: `shared(library, functional, *tensors)` for genesis and torch, `jax(numpy, nn, *arrays)`."""

    title: str
    kinds: str  # of its arrays: one letter each, see `_array`
    shared: Callable[..., Any]
    jax: Callable[..., Any]
    gradient: bool = False


def _black_scholes(log: Any, exp: Any, sqrt: Any, erf: Any) -> Callable[..., Any]:
    """The price of a European call (Black and Scholes, 1973): spot, strike and time vary, rate and volatility do not."""
    rate, volatility = 0.05, 0.2

    def price(spot: Any, strike: Any, time: Any) -> Any:
        spread = volatility * sqrt(time)
        d1 = (log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
        below1, below2 = (0.5 * (1 + erf(d * 0.5**0.5)) for d in (d1, d1 - spread))
        return spot * below1 - strike * exp(-rate * time) * below2

    return price


def _layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias


def _cross_entropy(np_: Any, nn: Any, x: Any, labels: Any) -> Any:
    return -np_.take_along_axis(nn.log_softmax(x, -1), labels[:, None], 1).mean()


CASES = [
    Case("silu(a * b + c)", "vvv", lambda lib, F, a, b, c: F.silu(a * b + c), lambda np, nn, a, b, c: nn.silu(a * b + c)),
    Case("tanh(a) * exp(-b * b)", "vv", lambda lib, F, a, b: lib.tanh(a) * lib.exp(-b * b),
         lambda np, nn, a, b: np.tanh(a) * np.exp(-b * b)),
    Case("gelu", "v", lambda lib, F, x: F.gelu(x), lambda np, nn, x: nn.gelu(x, approximate=False)),
    Case("sum", "v", lambda lib, F, x: x.sum(), lambda np, nn, x: x.sum()),
    Case("mean and variance of rows", "m", lambda lib, F, x: (x.mean(1), x.var(1)), lambda np, nn, x: (x.mean(1), x.var(1))),
    Case("mean and variance of columns", "m", lambda lib, F, x: (x.mean(0), x.var(0)),
         lambda np, nn, x: (x.mean(0), x.var(0))),
    Case("sums of columns", "m", lambda lib, F, x: x.sum(0), lambda np, nn, x: x.sum(0)),
    Case("maxima of rows", "m", lambda lib, F, x: x.amax(1), lambda np, nn, x: x.max(1)),
    Case("softmax", "m", lambda lib, F, x: F.softmax(x, -1), lambda np, nn, x: nn.softmax(x, -1)),
    Case("log_softmax, nll_loss", "ml", lambda lib, F, x, y: F.nll_loss(F.log_softmax(x, -1), y), _cross_entropy),
    Case("layer_norm", "mrr", lambda lib, F, x, w, b: F.layer_norm(x, w.shape, w, b), lambda np, nn, *a: _layer_norm(*a)),
    Case("rms_norm", "mr", lambda lib, F, x, w: F.rms_norm(x, w.shape, w, 1e-6),
         lambda np, nn, x, w: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w),
    Case("Black-Scholes", "ppp", lambda lib, F, *a: _black_scholes(lib.log, lib.exp, lib.sqrt, lib.erf)(*a),
         lambda np, nn, *a: _black_scholes(np.log, np.exp, np.sqrt, jax.scipy.special.erf)(*a)),
]
_WITH_GRADIENT = (
    "silu(a * b + c)", "tanh(a) * exp(-b * b)", "gelu", "softmax", "log_softmax, nll_loss", "layer_norm", "rms_norm",
    "Black-Scholes",
)
CASES += [case._replace(gradient=True) for case in CASES if case.title in _WITH_GRADIENT]


def run(settings: Settings) -> list[Result]:
    """One Result per function, then one with the averages."""
    results = [_one(case, settings) for case in CASES]
    return [*results, averaged("functions of four million numbers, on average", results, AVERAGE)]


def contestants(case: Case, settings: Settings) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Who computes `case`: each places its operands, and then makes a call that computes all."""
    arrays, device = arrays_of(case, settings), settings.device
    return {
        "genesis": lambda: _finished(_like_torch(genesis, case, arrays, device)),
        "genesis compiled": lambda: _finished(
            _like_torch(genesis, case, arrays, device, whole=getattr(genesis, "compile", _as_it_is))),
        "torch eager": lambda: _like_torch(torch, case, arrays, device),
        "torch.compile": lambda: _like_torch(torch, case, arrays, device, forward=torch.compile),
        "jax.jit": lambda: _jax(case, arrays),
    }


def _one(case: Case, settings: Settings) -> Result:
    builders = contestants(case, settings)
    result = compare(case.title + (", value and gradients" if case.gradient else ""), {
        "genesis": builders["genesis"](),
        "genesis compiled": builders["genesis compiled"](),
        "torch eager": eager(builders["torch eager"]),
        "torch.compile": compiled(builders["torch.compile"]),
        "jax.jit": jitted(builders["jax.jit"]),
    }, settings)
    result.hold_to(WORST)
    return result


def _as_it_is(function: Any) -> Any:
    return function


def _finished(call: Callable[[], Any]) -> Callable[[], Any]:
    def finished() -> Any:
        y = call()
        finish()
        return y

    return finished


def arrays_of(case: Case, settings: Settings) -> list[np.ndarray]:
    """The operands of `case`."""
    return [_array(kind, number, settings) for number, kind in enumerate(case.kinds)]


def _array(kind: str, number: int, settings: Settings) -> np.ndarray:
    """v: a vector; p: one of positive numbers; m: a square matrix; r: a row of it; l: a label for each of its rows."""
    random, extent = np.random.default_rng(number), settings.size(2048 if settings.device == "cpu" else 8192, 64)
    if kind == "l":
        return random.integers(0, extent, extent)
    if kind == "p":
        return random.uniform(0.5, 2, extent * extent).astype(np.float32)
    shape = {"v": (extent * extent,), "m": (extent, extent), "r": (extent,)}[kind]
    return random.normal(size=shape).astype(np.float32)


def _like_torch(
    library: Any, case: Case, arrays: list[np.ndarray], device: str, forward: Callable[[Any], Any] = _as_it_is,
    whole: Callable[[Any], Any] = _as_it_is,
) -> Callable[[], Any]:
    """The function in genesis or torch; `forward` and `whole` compile it, without and with its gradients."""
    tensors = [library.tensor(array, device=device) for array in arrays]
    function = forward(lambda *tensors: case.shared(library, library.nn.functional, *tensors))
    if not case.gradient:
        call = whole(function)
        return lambda: call(*tensors)
    leaves = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point]
    cotangent = 0.5 * library.ones_like(function(*tensors).detach())

    @whole
    def step(*tensors: Any) -> Any:
        for leaf in leaves:
            leaf.grad = None
        y = function(*tensors)
        y.backward(cotangent)
        return y

    return lambda: step(*tensors)


def _jax(case: Case, arrays: list[np.ndarray]) -> Callable[[], Any]:
    np_, nn = jax.numpy, jax.nn
    operands = [np_.asarray(array) for array in arrays]
    where = [n for n, kind in enumerate(case.kinds) if kind != "l"]

    def value(*operands: Any) -> Any:
        return case.jax(np_, nn, *operands)

    def value_and_gradients(cotangent: Any, *operands: Any) -> Any:
        def of_leaves(*leaves: Any) -> Any:
            given = list(operands)
            for n, leaf in zip(where, leaves, strict=True):
                given[n] = leaf
            return value(*given)

        y, back = jax.vjp(of_leaves, *(operands[n] for n in where))
        return y, back(cotangent)

    if not case.gradient:
        function = jax.jit(value)
        return lambda: jax.block_until_ready(function(*operands))
    cotangent = 0.5 * np_.ones_like(value(*operands))
    function = jax.jit(value_and_gradients)
    return lambda: jax.block_until_ready(function(cotangent, *operands))
