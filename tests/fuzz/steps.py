"""The steps of random programs: each takes what it wants from the program's pool, or gives up with None."""

from __future__ import annotations

import numpy as np

import genesis
from tests.fuzz.programs import DTYPES, FLOATS, INTEGERS, PRECISION, Program, Term, made

SMOOTH = ["tanh", "sigmoid", "sin", "cos", "erf", "atan", "asinh"]  # bounded, and no steeper than the identity


def is_float(term: Term) -> bool:
    return term.dtype in FLOATS


def is_exact(term: Term) -> bool:
    return term.exact


def small(term: Term) -> bool:
    return term.tensor.numel() <= 1 << 14


# ---- elementwise ----


def partner(program: Program, term: Term) -> Term | float:
    """What broadcasts with `term`: itself, a number, one of its shape or of some of its axes, or a new leaf."""
    kind = program.integer(0, 5)
    if kind == 0:
        return program.one_of([0, 1, -1, 2, 3, 0.5, -0.25, True])
    if kind == 1:
        shape = tuple(1 if program.integer(0, 1) else e for e in term.shape)
        return program.leaf(shape[program.integer(0, len(shape)):])
    if kind == 2:
        return program.leaf(term.shape)
    fit = [t for t in reversed(program.pool) if fits(t.shape, term.shape)]
    return program.one_of(fit)


def fits(shape: tuple[int, ...], onto: tuple[int, ...]) -> bool:
    lead = len(onto) - len(shape)
    return lead >= 0 and all(e in (1, o) for e, o in zip(shape, onto[lead:], strict=True))


def binary(program: Program) -> Term | None:
    term = program.term()
    other = partner(program, term)
    second = other if isinstance(other, Term) else Term(None, abs(other), 2 if isinstance(other, float) else 0)
    y = other.tensor if isinstance(other, Term) else other
    x = term.tensor
    if program.integer(0, 1) and isinstance(other, Term):
        x, y = y, x
    name = program.one_of(["add", "sub", "mul", "maximum", "minimum"])
    dtypes = {term.dtype, *(getattr(operand, "dtype", genesis.bool).name for operand in (x, y))}
    if dtypes == {"bool"} and name == "sub":
        return None
    if name in ("maximum", "minimum") and not isinstance(other, Term):
        return None
    bound = term.bound * second.bound if name == "mul" else term.bound + second.bound
    fraction = term.fraction + second.fraction if name == "mul" else max(term.fraction, second.fraction)
    if bound > 1e15 and "int" in (x * y).dtype.name:
        return None
    return made(getattr(genesis, name)(x, y), bound, fraction, term, second)


def unary(program: Program) -> Term | None:
    term = program.term(lambda t: t.dtype != "bool")
    name = program.one_of(["neg", "abs", "relu", "square"])
    if term is None or (name == "square" and term.bound > 1e6):
        return None
    square = name == "square"
    return made(getattr(genesis, name)(term.tensor), term.bound ** (2 if square else 1),
                term.fraction * (2 if square else 1), term)


def smooth(program: Program) -> Term | None:
    term = program.term(lambda t: is_float(t) and t.bound <= 1e4)
    if term is None:
        return None
    y = getattr(genesis, program.one_of(SMOOTH))(term.tensor)
    return Term(y, 1e2, exact=False)


def exponential(program: Program) -> Term | None:
    term = program.term(lambda t: is_float(t) and t.bound <= 8)
    if term is None:
        return None
    name = program.one_of(["exp", "logarithm", "quotient", "root"])
    x = term.tensor
    y = {"exp": lambda: genesis.exp(x), "logarithm": lambda: genesis.log(x * x + 1),
         "quotient": lambda: x / (genesis.abs(x) + 1), "root": lambda: genesis.sqrt(x * x + 0.5)}[name]()
    return Term(y, 3e3 if name == "exp" else term.bound + 1, exact=False)


def comparison(program: Program) -> Term | None:
    term = program.term(is_exact)
    if term is None:
        return None
    other = partner(program, term)
    if isinstance(other, Term) and not other.exact:
        return None
    name = program.one_of(["eq", "ne", "lt", "le", "gt", "ge"])
    return made(getattr(genesis, name)(term.tensor, other.tensor if isinstance(other, Term) else other), 1, 0)


def where(program: Program) -> Term | None:
    condition = program.term(lambda t: t.dtype == "bool")
    if condition is None:
        return None
    term = program.term(lambda t: fits(t.shape, condition.shape) or fits(condition.shape, t.shape))
    other = partner(program, condition)
    second = other if isinstance(other, Term) else Term(None, abs(other), 2)
    try:
        np.broadcast_shapes(condition.shape, term.shape, second.shape if second.tensor is not None else ())
    except ValueError:
        return None
    y = genesis.where(condition.tensor, term.tensor, other.tensor if isinstance(other, Term) else other)
    return made(y, max(term.bound, second.bound), max(term.fraction, second.fraction), term, second)


def convert(program: Program) -> Term | None:
    name = program.one_of(DTYPES)
    term = program.term(lambda t: name in FLOATS or t.exact)
    if term is None or (name not in FLOATS and term.bound > 100) or (name == "uint8" and is_float(term)):
        return None
    if name == "float16" and term.bound > 1e4:
        return None
    return made(term.tensor.to(getattr(genesis, name)), term.bound, term.fraction, term)


def rounding(program: Program) -> Term | None:
    term = program.term(lambda t: is_float(t) and t.exact)
    if term is None:
        return None
    name = program.one_of(["floor", "ceil", "trunc", "round", "sign"])
    return made(getattr(genesis, name)(term.tensor), term.bound + 1, 0, term)


def division(program: Program) -> Term | None:
    term = program.term(lambda t: t.dtype in INTEGERS)
    if term is None:
        return None
    name = program.one_of(["floor_divide", "remainder", "fmod"])
    return made(getattr(genesis, name)(term.tensor, program.one_of([2, 3, 7])), term.bound + 8, 0, term)


# ---- views ----


def view(program: Program) -> Term | None:
    term = program.term()
    x, rank = term.tensor, term.tensor.ndim
    kind = program.one_of(["reshape", "permute", "slice", "flip", "expand", "diagonal", "unsqueeze", "squeeze", "select"])
    if kind == "reshape":
        y = x.reshape(program.one_of(factored(x.numel())))
    elif kind == "permute":
        y = x.permute(*program.order(rank))
    elif kind == "unsqueeze":
        y = x.unsqueeze(program.integer(0, rank))
    elif kind == "squeeze":
        y = x.squeeze()
    elif kind == "expand":
        y = x.unsqueeze(0).expand(program.one_of([1, 2, 3]), *x.shape)
    elif not rank:
        return None
    elif kind == "flip":
        y = x.flip(*program.axes(term))
    elif kind == "diagonal":
        y = x.diagonal(program.integer(-2, 2)) if rank > 1 else None
    else:
        axis = program.integer(0, rank - 1)
        extent = x.shape[axis]
        if kind == "select":
            y = x.select(axis, program.integer(-extent, extent - 1)) if extent else None
        else:
            start, step = program.integer(0, extent), program.integer(1, 3)
            y = x[(slice(None),) * axis + (slice(start, program.integer(start, extent), step),)]
    return None if y is None else made(y, term.bound, term.fraction, term)


def factored(count: int) -> list[tuple[int, ...]]:
    """Shapes of `count` elements."""
    shapes = [(count,), (1, count), (count, 1)]
    for factor in (2, 3, 4, 5, 7, 16):
        if count and count % factor == 0:
            shapes += [(factor, count // factor), (count // factor, factor)]
            if (count // factor) % 2 == 0:
                shapes += [(2, count // factor // 2, factor), (factor, 2, count // factor // 2)]
    return shapes


# ---- reductions ----


def reduce(program: Program) -> Term | None:
    term = program.term()
    name = program.one_of(["sum", "sum", "mean", "amax", "amin", "any", "all", "prod"])
    axes = program.axes(term)
    keepdim = bool(program.integer(0, 1))
    count = int(np.prod([term.shape[a] for a in axes])) if axes else term.tensor.numel()
    if (name in ("amax", "amin") and count == 0) or (name == "mean" and (not is_float(term) or not count)):
        return None
    if name == "mean" and term.dtype in ("float16", "bfloat16"):
        return None
    if name in ("any", "all") and not term.exact:
        return None
    if name == "prod" and (count > 6 or term.bound > 20 or not term.exact):
        return None
    bound = {"sum": term.bound * count, "prod": max(term.bound, 1) ** (count if name == "prod" else 1)}.get(name, term.bound)
    if term.dtype == "float16" and bound > 3e4:
        return None
    fraction = term.fraction * count if name == "prod" else term.fraction
    y = getattr(genesis, name)(term.tensor, axes or None, keepdim)
    return Term(y, bound, exact=False) if name == "mean" else made(y, bound, fraction, term)


def normalize(program: Program) -> Term | None:
    """Reductions broadcast back: softmax and its kin."""
    term = program.term(lambda t: is_float(t) and t.tensor.ndim and 0 not in t.shape and t.bound <= 100)
    if term is None:
        return None
    x, axis = term.tensor, program.integer(-1, term.tensor.ndim - 1)
    kind = program.one_of(["softmax", "log_softmax", "centred", "scaled", "ratio", "norm", "entropy"])
    if kind in ("softmax", "log_softmax"):
        y = getattr(genesis, kind)(x, axis)
    elif kind == "centred":
        y = x - x.sum(axis, True) * (1 / x.shape[axis])
    elif kind == "scaled":
        y = x / (x.abs().amax(axis, True) + 1)
    elif kind == "ratio":
        y = x / ((x * x).sum(axis, True) + 1)
    elif kind == "norm":
        centred = x - x.sum(axis, True) / x.shape[axis]
        y = centred * genesis.rsqrt((centred * centred).sum(axis, True) / x.shape[axis] + 0.5)
    elif x.ndim == 2:
        y = genesis.cross_entropy(x, genesis.tensor(np.zeros(x.shape[:1], np.int64)))
    else:
        y = genesis.logsumexp(x, axis)
    return Term(y, 200, exact=False)


def rank_of(program: Program) -> Term | None:
    term = program.term(lambda t: t.exact and t.tensor.ndim and 0 not in t.shape)
    if term is None:
        return None
    axis = program.one_of([None, *range(term.tensor.ndim)])
    y = getattr(genesis, program.one_of(["argmax", "argmin"]))(term.tensor, axis)
    return made(y, term.tensor.numel(), 0)


def extremum(program: Program) -> Term | None:
    term = program.term(lambda t: t.exact and t.tensor.ndim and 0 not in t.shape)
    if term is None:
        return None
    values, places = getattr(genesis, program.one_of(["max", "min"]))(term.tensor, program.integer(0, term.tensor.ndim - 1))
    program.keep(made(places, term.tensor.numel(), 0))
    return made(values, term.bound, term.fraction, term)


# ---- products ----


def matmul(program: Program) -> Term | None:
    term = program.term(lambda t: t.tensor.ndim and small(t) and t.dtype != "bool" and t.bound <= 1e4)
    if term is None or term.tensor.ndim > 4 or max(term.shape) > 5000:
        return None
    inner = term.shape[-1]
    batch = term.shape[:-2] if program.integer(0, 1) else ()
    other = program.leaf(program.one_of([(inner,), (*batch, inner, program.one_of([1, 2, 5])), (*batch, inner, 3)]), term.dtype)
    bound = term.bound * 4 * max(inner, 1)
    if term.dtype == "float16" and bound > 3e4:
        return None
    return made(term.tensor @ other.tensor, bound, term.fraction + 2, term)


# ---- joining, writing, indexing ----


def join(program: Program) -> Term | None:
    term = program.term()
    same = [t for t in program.pool if t.shape == term.shape]
    terms = [term, *(program.one_of(same) for _ in range(program.integer(1, 2)))]
    name = program.one_of(["cat", "stack"])
    if name == "cat" and not term.shape:
        return None
    rank = term.tensor.ndim + (name == "stack")
    y = getattr(genesis, name)([t.tensor for t in terms], program.integer(0, rank - 1))
    return made(y, max(t.bound for t in terms), max(t.fraction for t in terms), *terms)


def write(program: Program) -> Term | None:
    """A copy with a part overwritten, in place."""
    term = program.term(lambda t: t.tensor.ndim and 0 not in t.shape)
    if term is None:
        return None
    copy = term.tensor.clone()
    axis = program.integer(0, copy.ndim - 1)
    start = program.integer(0, copy.shape[axis] - 1)
    part = (slice(None),) * axis + (slice(start, None, program.integer(1, 3)),)
    if program.integer(0, 1):
        other = program.leaf(copy[part].shape, term.dtype)
        copy[part] = other.tensor
        return made(copy, max(term.bound, other.bound), max(term.fraction, other.fraction), term)
    if term.dtype == "bool":
        return None
    copy[part] += 1
    return made(copy, term.bound + 1, term.fraction, term)


def positions(program: Program, shape: tuple[int, ...], extent: int) -> genesis.Tensor:
    return genesis.tensor(program.random.integers(0, extent, shape))


def gather(program: Program) -> Term | None:
    term = program.term(lambda t: t.tensor.ndim and 0 not in t.shape and small(t))
    if term is None:
        return None
    x, axis = term.tensor, program.integer(0, term.tensor.ndim - 1)
    extent = x.shape[axis]
    kind = program.one_of(["gather", "index_select", "index", "two"])
    if kind == "gather":
        shape = tuple(program.integer(1, e) if a != axis else 3 for a, e in enumerate(x.shape))
        y = genesis.gather(x, axis, positions(program, shape, extent))
    elif kind == "index_select":
        y = genesis.index_select(x, axis, positions(program, (program.integer(0, 5),), extent))
    elif kind == "index":
        y = x[(slice(None),) * axis + (positions(program, (2, 3), extent),)]
    elif x.ndim > 1:
        y = x[positions(program, (3,), x.shape[0]), positions(program, (2, 1), x.shape[1])]
    else:
        return None
    return made(y, term.bound, term.fraction, term)


def scatter(program: Program) -> Term | None:
    term = program.term(lambda t: t.tensor.ndim and 0 not in t.shape and small(t) and t.dtype != "bool")
    if term is None:
        return None
    x, axis = term.tensor, program.integer(0, term.tensor.ndim - 1)
    count = program.integer(1, 40)
    shape = tuple(count if a == axis else program.integer(1, e) for a, e in enumerate(x.shape))
    source = program.leaf(shape, term.dtype)
    places = positions(program, shape, x.shape[axis])
    if program.integer(0, 2):
        y = genesis.scatter_add(x, axis, places, source.tensor)
        return made(y, term.bound + count * source.bound, max(term.fraction, source.fraction), term)
    return made(genesis.scatter(x, axis, places, source.tensor), max(term.bound, source.bound),
                max(term.fraction, source.fraction), term, source)


# ---- sources ----


def draw(program: Program) -> Term:
    kind = program.one_of([genesis.rand, genesis.randn])
    return Term(kind(program.shape(), dtype=getattr(genesis, program.one_of(["float32", "float64"]))), 8, exact=False)


def count(program: Program) -> Term:
    extent = program.one_of([0, 1, 3, 16, 17, 65])
    return made(genesis.arange(extent), max(extent, 1), 0)


def fill(program: Program) -> Term:
    dtype = program.one_of(DTYPES)
    value = program.one_of([0, 1, 3, 2.5])
    return made(genesis.full(program.shape(), value, dtype=getattr(genesis, dtype)), 3, 1 if dtype in PRECISION else 0)


STEPS = [
    binary, binary, binary, binary, unary, smooth, exponential, comparison, where, convert, rounding, division, view, view,
    view, view, reduce, reduce, reduce, normalize, normalize, rank_of, extremum, matmul, join, write, gather, scatter, draw,
    count, fill,
]
