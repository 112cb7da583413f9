"""Sources of values: inputs, Python scalars, literals, ranges and random numbers.

Random numbers are counter-based: element i of a draw is Threefry2x32-20 (Salmon, Moraes, Dror and Shaw, "Parallel
random numbers: as easy as 1, 2, 3", 2011) of the key `seed` and the counter `start + i`. A draw is therefore an
expression like any other, recomputed instead of stored, the same on every device and for any number of threads.
"""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import DType, bool_, complex128, float32, float64, int64
from genesis.ir.graph import Graph, Node, Value, check_size
from genesis.ir.shapes import Shape
from genesis.ops.elementwise import floor, where
from genesis.ops.registry import as_values, cast, composite, expand, primitive
from genesis.ops.views import reshape_value

primitive("input", "source")
primitive("scalar", "source")
primitive("constant", "source", reference=lambda node: np.asarray(node.attrs["value"]).astype(node.dtype.numpy))
primitive("iota", "source", reference=lambda node: np.arange(node.shape[0], dtype=node.dtype.numpy))


def iota(graph: Graph, extent: int, dtype: DType = int64) -> Value:
    """0, 1, .., extent-1."""
    return graph.add("iota", (), (extent,), dtype)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(key: tuple[int, int], counter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Twenty rounds of Threefry over uint64 counters: two uint32 arrays."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x = (counter & 0xFFFFFFFF).astype(np.uint32)
    y = (counter >> np.uint64(32)).astype(np.uint32)
    with np.errstate(over="ignore"):
        x, y = x + np.uint32(keys[0]), y + np.uint32(keys[1])
        for block in range(5):
            for turn in _ROTATIONS[block % 2]:
                x = x + y
                y = x ^ ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn)))
            x = x + np.uint32(keys[(block + 1) % 3])
            y = y + np.uint32((keys[(block + 2) % 3] + block + 1) & 0xFFFFFFFF)
    return x, y


def _bits(node: Node, seed: np.ndarray, start: np.ndarray, half: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two uint32 of random bits per element; draws that need four use the upper `half` of the counters too."""
    counter = np.arange(node.numel, dtype=np.uint64) + np.uint64(int(start) & (1 << 64) - 1)
    key = int(seed) & (1 << 64) - 1
    x, y = threefry2x32((key & 0xFFFFFFFF, key >> 32), counter ^ np.uint64(half << 63))
    return x.reshape(node.shape), y.reshape(node.shape)


def _unit(node: Node, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Uniform in [0, 1): 24 bits of `x`; in float64, 27 bits of `x` and 26 of `y`."""
    if node.dtype is float32:
        return (x >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
    return ((x >> np.uint32(5)) * 2.0**26 + (y >> np.uint32(6))) * 2.0**-53


def _normal_reference(node: Node, seed: np.ndarray, start: np.ndarray) -> np.ndarray:
    t = node.dtype.numpy.type
    x, y = _bits(node, seed, start)
    radius, angle = (_unit(node, x, y), _unit(node, y, x)) if node.dtype is float32 else (
        _unit(node, x, y), _unit(node, *_bits(node, seed, start, half=1)))
    return (np.sqrt(t(-2) * np.log(t(1) - radius)) * np.cos(t(2 * np.pi) * angle)).astype(t)


primitive("uniform", "source", reference=lambda node, *counter: _unit(node, *_bits(node, *counter)), cost=20, draws=True)
primitive("normal", "source", reference=_normal_reference, cost=50, draws=True)


def _draw(kind: str, seed: Value, start: Value, shape: Shape, dtype: DType) -> Value:
    wide = float64 if dtype is float64 else float32
    seed, start = as_values(seed, start)
    graph = seed.graph
    return cast(graph.add(kind, (cast(seed, int64), cast(start, int64)), shape, wide), dtype)


@composite("uniform", 2, method=False, public=False)
def uniform(seed: Value, start: Value, shape: Shape, dtype: DType, low: float = 0.0, high: float = 1.0) -> Value:
    """Numbers in [low, high): 24 random bits each, 53 for float64."""
    u = _draw("uniform", seed, start, shape, dtype)
    return u if (low, high) == (0.0, 1.0) else u * (high - low) + low


@composite("normal", 2, method=False, public=False)
def normal(seed: Value, start: Value, shape: Shape, dtype: DType, mean: float = 0.0, std: float = 1.0) -> Value:
    """Normal numbers, by the Box-Muller transform."""
    z = _draw("normal", seed, start, shape, dtype)
    return z if (mean, std) == (0.0, 1.0) else z * std + mean


@composite("randint", 2, method=False, public=False)
def randint(seed: Value, start: Value, shape: Shape, dtype: DType, low: int, high: int) -> Value:
    """Integers in [low, high)."""
    u = _draw("uniform", seed, start, shape, float64)
    return cast(floor(u * (high - low)) + low, dtype)


@composite("dropout", 3, method=False, public=False)
def dropout(input: Value, seed: Value, start: Value, p: float) -> Value:
    """`input` with each element zeroed with probability `p` and the others scaled by 1/(1-p).

    `genesis.nn.functional.dropout` draws `seed` and `start`: element i uses the number `start` + i of `seed`.
    """
    input, seed, start = as_values(input, seed, start)
    kept = _draw("uniform", seed, start, input.shape, float32) >= p
    return where(kept, input * (1 / (1 - p)) if p < 1 else 0.0 * input, 0)


@composite("full", 1, method=False, public=False, takes_complex=True, elements=("value",), fills=True)
def full(value: Value, shape: Shape, dtype: DType) -> Value:
    """`value` everywhere."""
    check_size("full", shape, dtype)
    value = cast(value, dtype)
    if value.is_scalar:  # a tensor from here on, so it takes part in promotion
        attrs = {k: v for k, v in value.node.attrs.items() if k != "weak"}
        value = value.graph.add(value.node.op, (), (), dtype, attrs)
    return expand(value, shape)


@composite("fill", 2, method=False, takes_complex=True)
def fill(input: Value, value: Value | float) -> Value:
    """`value`, a number or a 0-d tensor, everywhere, with the shape and dtype of `input`, whose gradient is zeros.

    >>> genesis.fill(genesis.zeros(2), 3)
    tensor([3., 3.])
    """
    _, value = as_values(input, value)
    if value.shape:
        raise ValueError(f"fill: value must be a number or a 0-d tensor, got shape {value.shape}")
    return _overwritten(input, expand(cast(value, input.dtype), input.shape))


@composite("overwrite", 2, method=False, public=False, takes_complex=True)
def overwrite(input: Value, value: Value) -> Value:
    """`value`, of the shape and dtype of `input`, which gets zeros for a gradient."""
    return _overwritten(input, value)


def _overwritten(input: Value, value: Value) -> Value:
    return where(expand(input.graph.constant(False, bool_), input.shape), input, value)


@composite("arange", 2, method=False, public=False)
def arange(start: Value, step: Value, count: int, dtype: DType) -> Value:
    """start, start+step, .., `count` of them."""
    wide = int64 if dtype.category < 2 else float64
    start, step = as_values(start, step)
    steps = cast(iota(start.graph, count), wide)
    return cast(steps * cast(step, wide) + cast(start, wide), dtype)


def is_diagonal(graph: Graph, rows: int, columns: int) -> Value:
    """Whether an element of a matrix is on its diagonal."""
    return reshape_value(iota(graph, rows), (rows, 1)) == iota(graph, columns)


@composite("eye", 1, method=False, public=False, takes_complex=True)
def eye(value: Value, rows: int, columns: int, dtype: DType) -> Value:
    """`value` on the diagonal of a matrix, 0 elsewhere."""
    check_size("eye", (rows, columns), dtype)
    [value] = as_values(value)
    return cast(where(is_diagonal(value.graph, rows, columns), value, 0), dtype)


@composite("linspace", 2, method=False, public=False, takes_complex=True)
def linspace(start: Value, end: Value, count: int, dtype: DType | None = None, is_rounded: bool = False) -> Value:
    """`count` evenly spaced numbers from `start` to `end` in float64 or complex128. The last one is `end`.

    With a `dtype`, real ends are of it, and each number is computed from the nearer one; of float32, the step is, too. The
    numbers are rounded to it if `is_rounded`.
    """
    start, end = as_values(start, end)
    wide = complex128 if start.dtype.is_complex or end.dtype.is_complex else float64
    if wide is complex128:
        dtype = None
    low, high = (cast(x if dtype is None else cast(x, dtype), wide) for x in (start, end))
    index, span, last = cast(iota(start.graph, count), float64), high - low, max(count - 1, 1)
    if dtype is None:
        return where(index == last, high, low + span / last * index)
    step = cast(cast(cast(span, dtype) / last, dtype), wide) if dtype is float32 else span / last
    numbers = where(index < max(count // 2, 1), low + step * index, high - step * (count - 1 - index))
    return cast(numbers, dtype) if is_rounded else numbers
