"""What every operation must pass: NumPy's values, torch's values and dtypes, finite differences, torch's gradients."""

import warnings

import numpy as np
import torch

import genesis
from genesis.ir.dtypes import DTYPES
from genesis.ops.registry import OPERATIONS
from genesis.ops.view import LAYOUT_RULES
from tests.conformance.samples import Sample, is_elementwise, samples_of
from tests.tolerances import GRADIENT, assert_close, to_torch

_AXES = {"dim": "axis", "keepdim": "keepdims"}
# Where results of low precision are sums of many terms, they are held to so many times the tolerance.
_LOOSER = {
    "prod": 8, "matmul": 4, "linear": 4, "cross_entropy": 4, "layer_norm": 4, "var": 4, "std": 4, "mean": 4, "sum": 8,
    "pow": 4,
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
    if name in LAYOUT_RULES:
        return getattr(library.Tensor, name)(*arguments, **keywords)
    if library is genesis:
        return getattr(genesis, name)(*arguments, **keywords)
    function = getattr(torch.nn.functional, name, None) or getattr(torch, name)
    return function(*arguments, **keywords)


def check_values(name):
    """Values and dtypes as torch's in every dtype where torch has the operation; one flush for all of them."""
    ours, theirs, notes = [], [], []
    for dtype in DTYPES.values():
        for sample in samples_of(name, dtype):
            sample = sample._replace(
                arguments=tuple(cast(a, dtype) for a in sample.arguments),
                keywords={k: cast(v, dtype) for k, v in sample.keywords.items()},
            )
            try:
                expected = run(name, sample, to_torch, torch) if hasattr(torch, name) or _known(name) else None
            except (RuntimeError, TypeError, IndexError, ZeroDivisionError, NotImplementedError):
                continue
            ours.append(run(name, sample, genesis.tensor, genesis))
            theirs.append(expected)
            shapes = [getattr(a, "shape", a) for a in sample.arguments]
            notes.append(f"{name} {dtype.name} {shapes} {list(sample.keywords.items())}")
    assert ours, f"no dtype of {name} was tried"
    for mine, other, note in zip(ours, theirs, notes, strict=True):
        assert_close(mine, other, note, scale=_LOOSER.get(name, 1))


def _known(name):
    return hasattr(torch.nn.functional, name) or name in LAYOUT_RULES


def check_reference(name):
    """Values as the row's NumPy reference in float64."""
    reference = OPERATIONS[name].reference
    integral = name.startswith("bitwise")
    for sample in samples_of(name, genesis.int64 if integral else genesis.float64):
        if integral:
            sample = Sample(tuple(np.asarray(a).astype(np.int64) for a in sample.arguments))
        with np.errstate(all="ignore"):
            expected = reference(*sample.arguments, **{_AXES.get(k, k): v for k, v in sample.keywords.items()})
        result = run(name, sample, genesis.tensor, genesis)
        assert_close(result[0] if isinstance(result, tuple) else result, expected, name)


def check_gradients(name):
    """First and second derivatives as torch's in float64, and first ones as finite differences."""
    for sample in samples_of(name, genesis.float64):
        if is_elementwise(name):
            sample = Sample(tuple(_smooth(name, a, seed) for seed, a in enumerate(sample.arguments)))
        leaves = [a for a in _flat(sample.arguments) if isinstance(a, np.ndarray) and a.dtype == np.float64]
        known = hasattr(torch, name) or _known(name)
        try:
            expected = _derivatives(name, sample, torch, to_torch) if known else None
        except (RuntimeError, TypeError, IndexError):
            continue
        first, second, _ = _derivatives(name, sample, genesis, genesis.tensor)
        if expected is not None:
            assert_close(first, expected[0], f"{name} first derivative")
            assert_close(second, expected[1], f"{name} second derivative", scale=100)
        if all(a.size for a in leaves):
            _compare_with_differences(name, sample, leaves, first)


def _smooth(name, argument, seed):
    """Numbers at which the functions are defined and smooth."""
    if not isinstance(argument, np.ndarray):
        return argument
    return np.random.default_rng(seed).uniform(0.15, 0.85, argument.shape) + (name == "acosh")


def _flat(arguments):
    for a in arguments:
        yield from a if isinstance(a, list) else [a]


def _scalar(result, library):
    """A number that depends on every element in its own way."""
    total = 0
    for part in result if isinstance(result, tuple) else [result]:
        if part.dtype.is_floating_point:
            weights = np.cos(np.arange(max(part.numel(), 1)))[: part.numel()].reshape(tuple(part.shape))
            total = total + (part * (genesis.tensor(weights) if library is genesis else torch.from_numpy(weights))).sum()
    return total


def _derivatives(name, sample, library, make):
    leaves = []

    def leaf(array):
        if array.dtype != np.float64:
            return make(array)
        leaves.append(make(array, requires_grad=True))
        return leaves[-1]

    value = _scalar(run(name, sample, leaf, library), library)
    grads = library.autograd.grad(value, leaves, create_graph=True, allow_unused=True)
    grads = [library.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True)]
    total = sum(((g * g).sum() for g in grads), library.zeros((), dtype=library.float64))
    second = [None] * len(leaves)
    if total.requires_grad:
        second = library.autograd.grad(total, leaves, allow_unused=True)
    second = [library.zeros_like(x) if g is None else g for g, x in zip(second, leaves, strict=True)]
    return grads, second, value


def _compare_with_differences(name, sample, leaves, first):
    """A directional derivative against a central difference."""
    rng, step = np.random.default_rng(0), 1e-6
    directions = [rng.normal(size=a.shape) for a in leaves]

    def at(sign):
        moved = iter([a + sign * step * d for a, d in zip(leaves, directions, strict=True)])

        def make(array):
            return genesis.tensor(next(moved) if array.dtype == np.float64 else array)

        return _scalar(run(name, sample, make, genesis), genesis)

    upper, lower = at(1), at(-1)
    slope = sum((genesis.tensor(d) * g).sum() for d, g in zip(directions, first, strict=True))
    np.testing.assert_allclose(slope.item(), (upper - lower).item() / (2 * step), *GRADIENT, err_msg=name)
