"""What every operation must pass: torch's values and dtypes, NumPy's values, derivatives as finite differences say."""

import contextlib
import functools
import warnings
from types import SimpleNamespace

import numpy as np
import torch

import genesis
from genesis.autograd import gradcheck, gradgradcheck
from genesis.ir.dtypes import DTYPES
from genesis.ops.layout import LAYOUT_RULES
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from tests.codegen.every_operation import CALLS
from tests.devices import tensor
from tests.ops.samples import INTERNAL, KINKS, SAMPLES, Sample, gradient_samples, samples_of
from tests.tolerances import assert_close, to_torch

_MOVED = SimpleNamespace(solve=torch.linalg.solve)  # whose old names only say where they have gone
_HOMES = (_MOVED, torch.nn.functional, torch, torch.Tensor, torch.linalg, torch.special)  # where torch has its operations
COMPILED_ELSEWHERE = {name for name, _ in CALLS}
COMPILED = [genesis.bool, genesis.uint8, genesis.float16, genesis.int64, genesis.float64]  # one of each size and category
EVERY_SAMPLE = {genesis.float32, genesis.float64, genesis.int64}  # in others, one of a row's settings
_AXES = {"dim": "axis", "keepdim": "keepdims"}
# Where results of low precision are sums of many terms, they are held to so many times the tolerance.
_LOOSER = {
    "prod": 8, "matmul": 4, "linear": 4, "cross_entropy": 4, "layer_norm": 4, "var": 4, "std": 4, "mean": 4, "sum": 8,
    "pow": 4, "mm": 4, "bmm": 4, "mv": 4, "dot": 4, "inner": 4, "tensordot": 4, "einsum": 4, "addmm": 4, "addmv": 4,
    "baddbmm": 4, "addbmm": 8, "grid_sample": 16,
}


def cast(argument, dtype):
    """The argument in the dtype under test, if it stands for a tensor of it."""
    if isinstance(argument, list):
        return [cast(a, dtype) for a in argument]
    if isinstance(argument, np.ndarray) and argument.dtype == np.float64:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return argument.astype(dtype.numpy)
    return argument


def convert(argument, make):
    """The argument with its arrays as tensors."""
    if isinstance(argument, list):
        return [convert(a, make) for a in argument]
    return make(argument) if isinstance(argument, np.ndarray) else argument


def run(name, sample, make, library):
    """Call the operation of `library`: genesis or torch."""
    arguments = [convert(a, make) for a in sample.arguments]
    keywords = {k: convert(v, make) for k, v in sample.keywords.items()}
    if name in INTERNAL:
        return call(OPERATIONS[name], arguments, keywords)
    if name in LAYOUT_RULES:
        return getattr(library.Tensor, name)(*arguments, **keywords)
    if library is genesis:
        return getattr(genesis, name)(*arguments, **keywords)
    function = next(getattr(home, name) for home in _HOMES if hasattr(home, name))
    return function(*arguments, **keywords)


def check_values(name):
    """Values and dtypes as torch's in every dtype where torch has the operation.

    All samples are compiled in float32, one in another dtype as well, by turns, unless `every_operation` compiles the row in
    all of them; what is left is computed by the references.
    """
    ours, theirs, notes = [], [], []
    turn, waits = sum(map(ord, name)) % len(COMPILED), name not in COMPILED_ELSEWHERE
    for dtype in dict.fromkeys([*COMPILED[turn:], *COMPILED[:turn], *DTYPES.values()]):
        tried = len(ours)
        for sample in samples_of(name, dtype):
            if len(ours) > tried and name in SAMPLES and dtype not in EVERY_SAMPLE:
                break
            sample = sample._replace(
                arguments=tuple(cast(a, dtype) for a in sample.arguments),
                keywords={k: cast(v, dtype) for k, v in sample.keywords.items()},
            )
            try:
                expected = run(name, sample, to_torch, torch) if _known(name) else None
            except (RuntimeError, TypeError, IndexError, ZeroDivisionError, NotImplementedError):
                continue
            is_turn = waits and dtype in COMPILED
            waits = waits and not is_turn
            with contextlib.nullcontext() if is_turn or dtype is genesis.float32 else genesis.eager():
                ours.append(run(name, sample, tensor, genesis))
            theirs.append(expected)
            shapes = [getattr(a, "shape", a) for a in sample.arguments]
            notes.append(f"{name} {dtype.name} {shapes} {list(sample.keywords.items())}")
    assert ours, f"no dtype of {name} was tried"
    for mine, other, note in zip(ours, theirs, notes, strict=True):
        assert_close(mine, other, note, scale=_LOOSER.get(name, 1))


def _known(name):
    return any(hasattr(home, name) for home in _HOMES)


def check_reference(name):
    """Values as the row's NumPy reference in float64."""
    reference = OPERATIONS[name].reference
    integral = name.startswith("bitwise")
    for sample in samples_of(name, genesis.int64 if integral else genesis.float64):
        if integral:
            sample = Sample(tuple(np.asarray(a).astype(np.int64) for a in sample.arguments))
        with np.errstate(all="ignore"):
            expected = reference(*sample.arguments, **{_AXES.get(k, k): v for k, v in sample.keywords.items()})
        result = run(name, sample, tensor, genesis)
        assert_close(result[0] if isinstance(result, tuple) else result, expected, name)


def check_gradients(name):
    """First and second derivatives as finite differences', in float64.

    By the references of their graphs: thousands that run once would take minutes to compile, and consist of rows that
    `check_values` compiles. All inputs vary at once, in a random direction; each by itself where that leaves a doubt.
    """
    for sample in gradient_samples(name):
        function, inputs = _of_leaves(name, sample)
        with genesis.eager():
            _slope_is_a_difference(function, inputs) or gradcheck(function, inputs)
            cotangents = [tensor(_random(y, 2), requires_grad=True) for y in function(*inputs) if y.requires_grad]
            gradients = functools.partial(_gradients, function, len(inputs))
            _slope_is_a_difference(gradients, [*inputs, *cotangents]) or gradgradcheck(function, inputs)


def _gradients(function, count, *given):
    """The gradients by the first `count` tensors, pulled from the cotangents that follow."""
    outputs = [y for y in function(*given[:count]) if y.requires_grad]
    found = genesis.autograd.grad(outputs, given[:count], given[count:], create_graph=True, allow_unused=True)
    return [g for g in found if g is not None]


def _slope_is_a_difference(function, inputs, step=1e-6):
    """Whether results, weighed at random, change along a random direction as their gradients say: within 1e-5."""
    directions = [_random(x, 0) for x in inputs]

    def results(by):
        leaves = [tensor(x.numpy(force=True) + by * d, requires_grad=True) for x, d in zip(inputs, directions, strict=True)]
        return leaves, [y for y in function(*leaves) if y.requires_grad]

    leaves, outputs = results(0)
    if not outputs:
        return False
    weights = [_random(y, 1) for y in outputs]
    above, below = (sum((w * y.numpy(force=True)).sum() for w, y in zip(weights, results(by)[1], strict=True))
                    for by in (step, -step))
    pulled = genesis.autograd.grad(outputs, leaves, [tensor(w) for w in weights], allow_unused=True)
    assert all(g is None or (g.shape, g.dtype) == (x.shape, x.dtype) for g, x in zip(pulled, leaves, strict=True))
    slope = sum((d * g.numpy(force=True)).sum() for d, g in zip(directions, pulled, strict=True) if g is not None)
    return np.isclose(slope, (above - below) / (2 * step), rtol=1e-5, atol=1e-5)


def _random(like, seed):
    return np.random.default_rng(seed).standard_normal(like.shape)


def check_batches(name):
    """Two examples at once are the two one by one; so are the rows of the Jacobian, which are cotangents pulled at once."""
    for sample in gradient_samples(name):
        with genesis.eager():  # by the references, as second derivatives are
            _check_batch(name, sample)


def _check_batch(name, sample):
    function, inputs = _of_leaves(name, sample)
    examples = [[x.detach() for x in inputs], [x.detach() * 0.75 + 0.125 for x in inputs]]
    both = genesis.func.vmap(function)(*[genesis.stack(pair) for pair in zip(*examples, strict=True)])
    each = [function(*example) for example in examples]
    assert_close(both, [genesis.stack(pair) for pair in zip(*each, strict=True)], name, scale=10)
    k, shape = next(((k, y.shape) for k, y in enumerate(function(*inputs)) if y.requires_grad), (0, None))
    if shape is not None:
        _check_rows(name, lambda *given: function(*given)[k], inputs, shape)


def _check_rows(name, function, inputs, shape):
    weights = np.cos(np.arange(np.prod(shape)))
    rows = genesis.autograd.functional.jacobian(function, tuple(inputs), vectorize=True)
    _, products = genesis.autograd.functional.vjp(function, tuple(inputs), tensor(weights.reshape(shape)))
    for jacobian, product in zip(rows, products, strict=True):
        pulled = weights @ jacobian.cpu().numpy().reshape(len(weights), product.numel())
        assert_close(pulled.reshape(product.shape), product, name, scale=10)


def is_differentiable(name):
    """Whether the operation has samples with floating tensors, takes them, and answers with what requires a gradient."""
    for sample in gradient_samples(name):
        function, inputs = _of_leaves(name, sample)
        try:
            if inputs and any(y.requires_grad for y in function(*inputs)):
                return True
        except TypeError as refused:
            assert "wants" in str(refused)
    return False


def _of_leaves(name, sample):
    """(the call as a function of its floating tensors, those)."""
    def function(*given):
        given = iter(given)
        result = run(name, sample, lambda a: next(given) if a.dtype == np.float64 else tensor(a), genesis)
        return result if isinstance(result, tuple) else (result,)

    leaves = [a for a in _flat([*sample.arguments, *sample.keywords.values()]) if isinstance(a, np.ndarray)]
    return function, [tensor(a, requires_grad=True) for a in leaves if a.dtype == np.float64]


def check_kinks(name):
    """First and second derivatives of an elementwise row as torch's, at zeros, ties, poles and ends of domains."""
    arrays = (KINKS,) if len(OPERATIONS[name].operands) == 1 else (np.repeat(KINKS, KINKS.size), np.tile(KINKS, KINKS.size))
    expected = _derivatives(name, arrays, torch, to_torch)
    assert_close(_derivatives(name, arrays, genesis, tensor), expected, name)


def _derivatives(name, arrays, library, make):
    leaves = [make(a, requires_grad=True) for a in arrays]
    first = library.autograd.grad(run(name, Sample(tuple(leaves)), None, library).sum(), leaves, create_graph=True)
    total = sum(g.sum() for g in first)
    second = library.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)
    return [library.zeros_like(x) if g is None else g for g, x in zip([*first, *second], leaves * 2, strict=True)]


def _flat(arguments):
    for a in arguments:
        yield from a if isinstance(a, list) else [a]
