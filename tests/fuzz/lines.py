"""What a line of a random program may do: each function takes operands from the writer's pool and writes, or gives up."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np

import genesis
from genesis.execution.flush import flush_all
from tests.fuzz.sources import Writer

SMOOTH = [
    "sin", "cos", "tanh", "sigmoid", "exp", "erf", "erfc", "atan", "asinh", "expm1", "exp2", "sinh", "cosh", "silu", "gelu",
    "mish", "softplus", "logsigmoid", "softsign", "elu", "selu", "celu", "tanhshrink",
]
POSITIVE = ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal"]
BENT = [
    "abs", "relu", "leaky_relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "neg", "square",
]
STEPPED = ["floor", "ceil", "round", "trunc", "sign"]
EXTENTS = [2, 3, 1, 4, 5, 8, 17, 33, 70, 0]


def pointwise(w: Writer) -> None:
    kind = w.integer(0, 4)
    x = w.operand(w.exact if kind == 3 else w.floating)
    if x is None:
        return
    if kind == 0:
        w.write(f"genesis.{w.one_of(SMOOTH)}({x})", x, rounds=True)
    elif kind == 1:
        w.write(f"genesis.{w.one_of(POSITIVE)}({x} * {x} + 0.5)", x, rounds=True)
    elif kind == 2:
        name = w.one_of(BENT)
        w.write(f"genesis.{name}({x})", x, rounds=name.startswith(("hards", "leaky", "relu6", "softs")))
    elif kind == 3:
        w.write(f"genesis.{w.one_of(STEPPED)}({x})", x)
    else:
        w.write(f"genesis.clamp({x}, {w.one_of([-1, -0.5, 'None'])}, {w.one_of([0.5, 1, 2])})", x)


def partner(w: Writer, x: str) -> str | None:
    """What broadcasts with `x`: a number or a tensor."""
    if w.integer(0, 2) == 0:
        return str(w.one_of([0, 1, -1, 2, 0.5, 3, -0.25]))
    shape = w.value(x).shape

    def fits(name: str) -> bool:
        try:
            return math.prod(np.broadcast_shapes(shape, w.value(name).shape)) <= 20_000
        except ValueError:
            return False

    return w.operand(fits)


def arithmetic(w: Writer) -> None:
    x = w.operand()
    y = None if x is None else partner(w, x)
    if x is None or y is None:
        return
    both = [name for name in (x, y) if name in w.storage]
    kind = w.integer(0, 6)
    if kind < 3:
        w.write(f"{x} {'+-*'[kind]} {y}" if w.integer(0, 1) else f"{y} {'+-*'[kind]} {x}", *both)
    elif kind == 3:
        w.write(f"{x} / ({y} * {y} + 1)", *both, rounds=True)
    elif kind == 4:
        w.write(f"genesis.{w.one_of(['maximum', 'minimum'])}({x}, {y})", *both)
    elif kind == 5:
        w.write(f"genesis.{w.one_of(['atan2', 'pow'])}({x} * {x} + 0.5, {y})", *both, rounds=True)
    else:
        name = w.one_of(["floor_divide", "remainder", "fmod"])
        w.write(f"genesis.{name}({x}, {w.one_of([2, 3, -3])})", x, rounds=w.floating(x))


def decision(w: Writer) -> None:
    x = w.operand(w.exact)
    y = None if x is None else partner(w, x)
    if x is None or y is None or (y in w.storage and not w.exact(y)):
        return
    compared = f"{x} {w.one_of(['<', '<=', '>', '>=', '==', '!='])} {y}"
    if w.integer(0, 2):
        other = w.operand(lambda name: w.value(name).shape == w.value(x).shape)
        assert other is not None
        w.write(f"genesis.where({compared}, {w.one_of([x, other])}, {w.one_of([other, '0.5'])})", x, other)
    elif w.integer(0, 1):
        w.write(f"{w.one_of(['genesis.logical_not', 'genesis.isfinite'])}({compared})", x)
    else:
        w.write(compared, x)


def convert(w: Writer) -> None:
    dtype = w.one_of(["float32", "float64", "int64", "int32", "bool"])
    x = w.operand((lambda name: True) if dtype.startswith("float") else w.exact)
    if x is not None:
        w.write(f"{x}.to(genesis.{dtype})", x, rounds=dtype == "float32" and not w.exact(x))


def view(w: Writer) -> None:
    x = w.operand()
    if x is None:
        return
    shape, rank = w.value(x).shape, w.value(x).ndim
    kind = w.integer(0, 8)
    if kind == 0:
        size = w.value(x).numel()
        shapes = [(size,), (1, size), (size, 1)] + [(f, size // f) for f in (2, 3, 4) if size and size % f == 0]
        w.write(f"{x}.reshape{w.one_of(shapes)}", shares=x)
    elif kind == 1:
        left = list(range(rank))
        w.write(f"{x}.permute({[left.pop(w.integer(0, len(left) - 1)) for _ in range(rank)]})", shares=x)
    elif kind == 2:
        name = w.one_of(["unsqueeze(0)", "unsqueeze(-1)", "squeeze()", "flatten()", "detach()", "clone()", "contiguous()"])
        w.write(f"{x}.{name}", shares=x)
    elif kind == 3:
        w.write(f"{x}.unsqueeze(0).expand{(w.one_of([1, 2, 3]), *shape)}", shares=x)
    elif not rank:
        return
    elif kind == 4:
        w.write(f"{x}.flip({w.axis(x)})", x)
    elif kind == 5:
        w.write(f"{x}.diagonal({w.integer(-1, 1)})", shares=x)
    elif kind == 6:
        axis = w.integer(0, rank - 1)
        if shape[axis]:
            w.write(f"{x}.select({axis}, {w.integer(-shape[axis], shape[axis] - 1)})", shares=x)
    elif kind == 7:
        w.write(f"{x}.{w.one_of(['tril()', 'triu()', 'unfold(-1, 2, 1)'])}", shares=x)
    else:
        axis = w.integer(0, rank - 1)
        start = w.integer(0, shape[axis])
        at = ":, " * axis + f"{start}:{w.integer(start, shape[axis])}:{w.integer(1, 3)}"
        w.write(f"{x}[{at}]", shares=x)


def reduction(w: Writer) -> None:
    x = w.operand()
    if x is None:
        return
    rank = w.value(x).ndim
    axes = w.one_of(["None", *([str(w.axis(x))] if rank else []), *([str((0, rank - 1))] if rank > 1 else [])])
    keep = w.one_of(["", ", keepdim=True"])
    kind = w.integer(0, 5)
    if kind < 2:
        w.write(f"{x}.sum({axes}{keep})", x)
    elif kind == 2:
        w.write(f"{x}.{w.one_of(['mean', 'var', 'std'])}({axes}{keep})", x, rounds=True)
    elif kind == 3:
        w.write(f"{x}.{w.one_of(['amax', 'amin'])}({axes}{keep})", x)
    elif kind == 4:
        if w.exact(x):
            w.write(f"{x}.{w.one_of(['any', 'all', 'argmax', 'argmin'])}({w.axis(x) if rank else ''})", x)
    elif w.value(x).numel() <= 6:
        w.write(f"{x}.prod()", x, rounds=True)


def across(w: Writer) -> None:
    """A row at a time: softmax and norms, cumulative sums, sorting."""
    x = w.operand(lambda name: w.value(name).ndim > 0 and w.floating(name))
    if x is None:
        return
    axis, last = w.axis(x), w.value(x).shape[-1]
    kind = w.integer(0, 7)
    if kind == 0:
        w.write(f"genesis.{w.one_of(['softmax', 'log_softmax', 'softmin', 'logsumexp'])}({x}, {axis})", x, rounds=True)
    elif kind == 1:
        weight = w.one_of(["", f", weight={w.one_of(w.pool)}", f", weight=genesis.ones({last}, dtype={x}.dtype) * 0.5"])
        w.write(f"F.{w.one_of(['layer_norm', 'rms_norm'])}({x}, ({last},){weight}, eps=0.01)", x, rounds=True)
    elif kind == 2:
        centred, variance = f"{x} - {x}.mean({axis}, keepdim=True)", f"{x}.var({axis}, keepdim=True, unbiased=False)"
        w.write(f"({centred}) / ({variance} + 0.1).sqrt()", x, rounds=True)
    elif kind == 3:
        w.write(f"{x} / ({x}.abs().amax({axis}, keepdim=True) + 1)", x, rounds=True)
    elif kind == 4:
        w.write(f"F.group_norm({x}, 1, eps=0.1)", x, rounds=True)
    elif kind == 5:
        w.write(f"genesis.cumsum({x}, {axis})", x, rounds=not w.exact(x))
    elif kind == 6:
        w.write(f"F.batch_norm({x}, None, None, training=True, eps=0.1)", x, rounds=True)
    elif w.exact(x):
        w.write(f"{x}.{w.one_of(['sort', 'max', 'min'])}({axis})[{w.integer(0, 1)}]", x)


def product(w: Writer) -> None:
    x = w.operand(lambda name: w.value(name).ndim > 0 and w.floating(name))
    if x is None:
        return
    shape, dtype = w.value(x).shape, w.value(x).dtype
    y = w.operand(lambda name: w.value(name).dtype is dtype and w.value(name).ndim > 0)
    kind = w.integer(0, 4)
    if kind == 0:
        w.write(f"{x} @ {y}", x, y, rounds=not (w.exact(x) and w.exact(y)))
    elif kind == 1:
        w.write(f"{x} @ {y}.transpose(-1, -2)", x, y, rounds=True)
    elif kind == 2:
        weight = w.new_input((w.one_of([1, 3, 8]), shape[-1]), dtype.name, w.integer(0, 4), True)
        w.write(f"F.linear({x}, {weight})", x, rounds=True)
    elif kind == 3:
        vector = w.new_input((shape[-1],), dtype.name, 0, False)
        w.write(f"genesis.cat([{x}, {x} * 2, {x}], {w.axis(x)}) @ {vector}", x, rounds=True)
    else:
        causal = w.one_of(["", ", is_causal=True"])
        w.write(f"F.scaled_dot_product_attention({x}, {x} * 0.5, {y}{causal})", x, y, rounds=True)


def window(w: Writer) -> None:
    """Convolution and pooling, of images made for it or of what is there."""
    x = w.operand(lambda name: w.value(name).ndim in (3, 4) and w.floating(name))
    if x is None:
        dims = w.integer(1, 2)
        shape = (w.one_of([1, 2]), w.one_of([1, 2, 3]), *[w.one_of([1, 3, 5, 8]) for _ in range(dims)])
        x = w.new_input(shape, w.one_of(["float32", "float64"]), w.integer(0, 4), True)
    shape, dtype = w.value(x).shape, w.value(x).dtype.name
    dims, kind = len(shape) - 2, w.integer(0, 3)
    if shape[1] > 17:
        return
    size, stride, padding = w.integer(1, 3), w.integer(1, 2), w.integer(0, 1)
    if kind == 0:
        weight = w.new_input((w.one_of([1, 2, 4]), shape[1], *[size] * dims), dtype, w.integer(0, 4), True)
        w.write(f"F.conv{dims}d({x}, {weight}, None, {stride}, {padding}, {w.integer(1, 2)})", x, rounds=True)
    elif kind == 1:
        weight = w.new_input((shape[1], w.one_of([1, 2, 4]), *[size] * dims), dtype, w.integer(0, 4), True)
        w.write(f"F.conv_transpose{dims}d({x}, {weight}, None, {stride}, {padding})", x, rounds=True)
    elif kind == 2:
        if w.exact(x):
            w.write(f"F.max_pool{dims}d({x}, {size}, {stride}, {min(padding, size // 2)})", x)
    else:
        w.write(f"F.avg_pool{dims}d({x}, {size}, {stride}, {min(padding, size // 2)})", x, rounds=True)


def gathering(w: Writer) -> None:
    x = w.operand(lambda name: w.value(name).ndim > 0 and 0 not in w.value(name).shape)
    if x is None:
        return
    rank = w.value(x).ndim
    axis = w.integer(0, rank - 1)
    extent = w.value(x).shape[axis]
    places = [w.integer(0, extent - 1) for _ in range(w.integer(1, 4))]
    kind = w.integer(0, 5)
    index = f"genesis.tensor({places})"
    if kind == 0:
        w.write(f"{x}.index_select({axis}, {index})", x)
    elif kind == 1:
        w.write(f"{x}[{':, ' * axis}{index}]", x)
    elif kind == 2 and rank == 2:
        w.write(f"F.embedding({index}, {x})", x)
    elif kind == 3:
        shape = tuple(len(places) if a == axis else 1 for a in range(rank))
        w.write(f"genesis.gather({x}, {axis}, {index}.reshape{shape})", x)
    elif kind == 4:
        source = f"{x}.index_select({axis}, {index})"
        shape = tuple(len(places) if a == axis else 1 for a in range(rank))
        w.write(f"genesis.scatter_add({x}, {axis}, {index}.reshape{shape}.expand({source}.shape), {source})", x)
    else:
        w.write(f"genesis.{w.one_of(['cat', 'stack'])}([{x}, {x}], {axis})", x)


def writing(w: Writer) -> None:
    """In place: into a result, a view, or (without recording) a leaf."""
    x = w.operand(lambda name: name not in w.leaves)
    if x is None:
        return
    y = partner(w, x)
    if y is None:
        return
    both = [x, *([y] if y in w.storage else [])]
    kind = w.integer(0, 6)
    if kind == 0:
        w.act(f"{x}.{w.one_of(['add_', 'mul_', 'sub_', 'copy_'])}(genesis.as_tensor({y}))", x, *both)
    elif kind == 1:
        w.act(f"{x} += {y}", x, *both)
    elif kind == 2 and w.value(x).ndim:
        w.act(f"{x}[{w.one_of(['0', '...', '-1:', '::2'])}] = {y}", x, *both)
    elif kind == 3 and w.value(x).ndim:
        w.act(f"{x}[{w.one_of(['0', '...', '-1:', '::2'])}] *= 0.5", x, x)
    elif kind == 4 and w.exact(x):
        w.act(f"{x}[{x} > 0] = 0.25", x, x)
    elif kind == 5 and w.floating(x):
        w.act(f"{x}.{w.one_of(['sin_()', 'zero_()', 'relu_()', 'tanh_()'])}", x, rounds=True)
    elif w.leaves:
        leaf = w.one_of(w.leaves)
        w.act(f"with genesis.no_grad(): {leaf}.mul_(0.5)", leaf, leaf)


def looking(w: Writer) -> None:
    """A value is looked at, let go, or decides what comes next."""
    x = w.operand()
    if x is None:
        return
    kind = w.integer(0, 4)
    if kind == 0:
        w.act(f"seen.append({x}.detach().numpy().copy())")
    elif kind == 1:
        w.act(f"seen.append({x}.sum().item())")
    elif kind == 2 and w.exact(x):
        w.write(f"{x} * 2 if {x}.sum() > 0 else {x} - 1", x)
    elif kind == 3 and len(w.pool) > 2 and x.startswith("v"):
        w.act(f"del {x}")
        w.pool.remove(x)
    else:
        w.act(f"str({x})")


def backward(w: Writer) -> None:
    y = w.operand(lambda name: w.floating(name) and w.value(name).requires_grad and w.value(name).numel() > 0)
    if y is None or not w.leaves:
        return
    kind = w.integer(0, 5)
    leaf = w.one_of(w.leaves)
    if kind < 2:
        w.act(f"({y} * 0.5).sum().backward({w.one_of(['', 'retain_graph=True'])})")
    elif kind == 2:
        w.write(f"genesis.autograd.grad({y}.sum(), {leaf}, retain_graph=True)[0]", y, rounds=True)
    elif kind == 3:
        w.write(f"genesis.autograd.grad(({y} * {y}).sum(), {leaf}, create_graph=True)[0]", y, rounds=True)
    elif kind == 4:
        w.write(f"{leaf}.grad * 0.5", rounds=True)
    else:
        w.act(f"{leaf}.grad = None")


def drawing(w: Writer) -> None:
    x = w.operand(w.floating)
    if x is None:
        return
    if w.integer(0, 1):
        w.write(f"F.dropout({x}, 0.5)", x)
    else:
        w.write(f"{x} + genesis.rand({tuple(w.value(x).shape)}, dtype={x}.dtype)", x, rounds=True)


STEPS = [
    pointwise, pointwise, arithmetic, arithmetic, decision, convert, view, view, reduction, reduction, across, across, product,
    product, window, gathering, writing, looking, backward, drawing,
]


def written(integer: Callable[[int, int], int], length: int) -> Writer:
    """A program of at most `length` lines."""
    w = Writer(integer)
    with contextlib.suppress(Exception):
        flush_all()  # what an example before this one left behind is not this one's concern
    genesis.manual_seed(0)
    with genesis.eager(), np.errstate(all="ignore"):
        for _ in range(integer(1, 3)):
            shape = [w.one_of(EXTENTS) for _ in range(integer(0, w.one_of([2, 2, 2, 4])))]
            dtype = w.one_of(["float32", "float32", "float64", "int64", "bool"])
            w.new_input(shape, dtype, integer(0, 4), bool(integer(0, 3)))
        for _ in range(length):
            w.one_of(STEPS)(w)
    return w
