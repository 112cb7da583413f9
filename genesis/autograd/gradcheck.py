"""Checking gradients against finite differences: `gradcheck`, `gradgradcheck`, `numerical_gradient_check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from genesis.autograd.backward_pass import grad
from genesis.ir.annotations import AnyFunction, Arguments
from genesis.ir.dtypes import complex128, float64
from genesis.ir.shapes import Shape, numel
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording

Inputs = Tensor | Sequence[Any]


class GradcheckError(RuntimeError):
    """A gradient that is not what finite differences say, or not the same twice."""


def gradcheck(
    func: AnyFunction, inputs: Inputs, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, fast_mode: bool = False,
) -> bool:
    """Whether the gradients of `func` by the `inputs` that require one are those of central differences.

    All floating inputs are copied to float64 before `func` sees them, whatever their dtype, so that differences of `eps`
    mean something, and complex ones to complex128, of which both parts are moved. A module that `func` uses has to be in
    float64 as well: `module.to(genesis.float64)`.

    Args:
        func: takes the inputs and returns a tensor or several. Those that require no gradient are left out, unless none
            does: then differences must be zero.
        inputs: a tensor, or a sequence of tensors and other arguments. What requires no gradient is constant.
        eps: the step of the differences.
        atol, rtol: an analytical number may be off the numerical one by atol + rtol * |numerical|.
        raise_exception: without it, False is returned where GradcheckError would be raised.
        nondet_tol: how far two runs of backward may be apart.
        fast_mode: compare the Jacobians along one random direction of each input and output, not everywhere.

    Raises GradcheckError, which names the input, the output and both numbers where they differ most, and ValueError if no
    input requires a gradient. A gradient that is None counts as zeros.

    >>> x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> genesis.autograd.gradcheck(lambda x: (x**2).sum(), x)
    True
    """
    return _holds(_Check("gradcheck", func, _sequence(inputs)), eps, atol, rtol, raise_exception, nondet_tol, fast_mode)


def gradgradcheck(
    func: AnyFunction, inputs: Inputs, grad_outputs: Inputs | None = None, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0, fast_mode: bool = False,
) -> bool:
    """Whether second derivatives of `func` are right: `gradcheck` of its gradients by the inputs and by `grad_outputs`.

    `grad_outputs` has a tensor for each output that requires a gradient; left out, they are random. In what is raised,
    output i is the gradient by the i-th input that has one, and inputs after those of `func` are the `grad_outputs`.

    >>> x = genesis.tensor([0.5, 1.5], requires_grad=True)
    >>> genesis.autograd.gradgradcheck(lambda x: x.exp() * x, x)
    True
    """
    arguments = _sequence(inputs)
    if grad_outputs is None:
        random = np.random.default_rng(0)
        check = _Check("gradgradcheck", func, arguments)
        cotangents = tuple([_random(random, y) for y in check.called(check.given(check.point)) if y.requires_grad])
    else:
        cotangents = _sequence(grad_outputs)

    def gradients(*given: Any) -> tuple[Tensor, ...]:
        own = given[: len(arguments)]
        outputs = [y for y in _tensors("gradgradcheck", func(*own)) if y.requires_grad]
        wanted = [a for a in own if isinstance(a, Tensor) and a.requires_grad]
        seeds = given[len(arguments) :]
        found = grad(outputs, wanted, seeds, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    check = _Check("gradgradcheck", gradients, (*arguments, *cotangents))
    return _holds(check, eps, atol, rtol, raise_exception, nondet_tol, fast_mode)


def numerical_gradient_check(func: Callable[[Tensor], object], input: Tensor, eps: float = 1e-5) -> bool:
    """True if the gradient of `func` at `input` is that of central differences; raises GradcheckError if it is not.

    `gradcheck` with one input, which need not require a gradient.

    >>> genesis.autograd.numerical_gradient_check(genesis.sigmoid, genesis.tensor([-1.0, 2.0]))
    True
    """
    return gradcheck(func, from_data(input, float64, True), eps)


# ---- the check ----


def _holds(check: _Check, eps: float, atol: float, rtol: float, raise_exception: bool, nondet_tol: float, fast: bool) -> bool:
    try:
        with recording(True) as again, again:
            check.compare(eps, atol, rtol, nondet_tol, fast)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Check:
    """A function at a point: floating inputs are arrays of float64, from which each run makes tensors on their devices.

    Complex inputs and outputs are pairs of real numbers here, whose gradient is that of the parts.
    """

    def __init__(self, name: str, func: AnyFunction, arguments: Arguments) -> None:
        self.name = name
        self.func = func
        self.wanted = [i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.requires_grad]
        if not self.wanted:
            raise ValueError(f"{name}: none of the {len(arguments)} inputs requires a gradient; set requires_grad on one")
        self.devices = [array_of(a).device if isinstance(a, Tensor) else None for a in arguments]
        self.point = [
            _parts(a.numpy(force=True)) if isinstance(a, Tensor) and a.dtype.category >= 2 else a for a in arguments
        ]
        self.complex = [isinstance(a, Tensor) and a.dtype.is_complex for a in arguments]

    def run(self, moved: Mapping[int, np.ndarray] | None = None) -> tuple[list[Tensor], list[Tensor]]:
        """(the outputs at the point, with the inputs `moved`; the leaves that stand for the wanted inputs)."""
        point = [(moved or {}).get(i, a) for i, a in enumerate(self.point)]
        given = self.given(point)
        outputs = [call(OPERATIONS["view_as_real"], (y,)) if y.dtype.is_complex else y for y in self.called(given)]
        for y in outputs:
            y.numpy(force=True)  # so that every row of the Jacobian is the same program
        return outputs, [given[i] for i in self.wanted]

    def given(self, point: Sequence[Any]) -> list[Any]:
        """The inputs at a point: of arrays tensors on their devices, leaves where they are wanted."""
        return [
            from_data(a, float64, i in self.wanted, device) if isinstance(a, np.ndarray) else a
            for i, (a, device) in enumerate(zip(point, self.devices, strict=True))
        ]

    def called(self, given: Sequence[Any]) -> list[Tensor]:
        """What the function makes of inputs, of which complex ones are given by their parts."""
        joined = zip(given, self.complex, strict=True)
        arguments = [call(OPERATIONS["view_as_complex"], (a,)) if pairs else a for a, pairs in joined]
        return _tensors(self.name, self.func(*arguments))

    def compare(self, eps: float, atol: float, rtol: float, nondet_tol: float, fast: bool) -> None:
        """Both Jacobians, each as numbers for every direction of an output and of an input, unit vectors unless `fast`."""
        outputs, leaves = self.run()
        kept = [k for k, y in enumerate(outputs) if y.requires_grad]
        kept = kept or [k for k, y in enumerate(outputs) if y.dtype.category >= 2]
        rows = [_directions(outputs[k].shape, fast, seed=0) for k in kept]
        gradients = [self.gradients(k, outputs[k], leaves, u) for k, u in zip(kept, rows, strict=True)]
        outputs, leaves = self.run()
        for k, u, before in zip(kept, rows, gradients, strict=True):
            for i, a, b in zip(self.wanted, before, self.gradients(k, outputs[k], leaves, u), strict=True):
                if not np.allclose(a, b, 0, nondet_tol, equal_nan=True):
                    raise GradcheckError(f"{self.name}: backward of output {k} to input {i} is not deterministic: "
                                         f"two runs lie {np.abs(a - b).max():.6g} apart; want {nondet_tol} at most")
        for n, i in enumerate(self.wanted):
            columns = _directions(self.point[i].shape, fast, seed=1)
            slopes = [self.slopes(i, v, eps) for v in columns]
            for k, u, found in zip(kept, rows, gradients, strict=True):
                numerical = u @ np.array([s[k] for s in slopes]).reshape(len(columns), u.shape[1]).T
                analytical = found[n] @ columns.T
                off = np.abs(analytical - numerical)
                wrong = ~(off <= atol + rtol * np.abs(numerical))
                if wrong.any():
                    worst = np.where(wrong, np.nan_to_num(off, nan=np.inf), -1).argmax()
                    row, column = np.unravel_index(worst, off.shape)
                    where = " along a random direction" if fast else (
                        f" at element {_element(row, outputs[k].shape)} by element {_element(column, self.point[i].shape)}")
                    raise GradcheckError(
                        f"{self.name}: the Jacobian of output {k} by input {i} differs most{where}: "
                        f"numerical {numerical[row, column]:.8g}, analytical {analytical[row, column]:.8g}; "
                        f"want them within {atol} + {rtol} * |numerical| (wrong: {wrong.sum()} of {wrong.size})")

    def gradients(self, k: int, output: Tensor, leaves: Sequence[Tensor], rows: np.ndarray) -> list[np.ndarray]:
        """For each leaf the cotangents (rows, elements) that the rows, cotangents of output k, lead to."""
        found = [np.zeros((len(rows), leaf.numel())) for leaf in leaves]
        for row, seed in enumerate(rows if output.requires_grad else ()):
            cotangent = from_data(seed.reshape(output.shape), float64, device=array_of(output).device)
            cotangents = grad(output, leaves, cotangent, retain_graph=True, allow_unused=True)
            for n, (got, leaf) in enumerate(zip(cotangents, leaves, strict=True)):
                if got is None:
                    continue
                if got.shape != leaf.shape or got.dtype is not leaf.dtype:
                    raise GradcheckError(
                        f"{self.name}: the gradient of output {k} has shape {got.shape} and dtype {got.dtype.name}; "
                        f"want the input's, {leaf.shape} and {leaf.dtype.name}")
                found[n][row] = got.numpy(force=True).reshape(-1)
        return found

    def slopes(self, i: int, direction: np.ndarray, eps: float) -> list[np.ndarray]:
        """Central differences of all outputs, flattened, as input i moves in a direction."""
        step = eps * direction.reshape(self.point[i].shape)
        lower, upper = [
            [y.numpy(force=True).astype(np.float64).reshape(-1) for y in self.run({i: np.asarray(self.point[i] + by)})[0]]
            for by in (-step, step)
        ]
        return [(a - b) / (2 * eps) for a, b in zip(upper, lower, strict=True)]


def _directions(shape: Shape, fast: bool, seed: int) -> np.ndarray:
    """(directions, elements): the unit vectors of a space of arrays, or one random direction in it.

    Inputs and outputs have seeds of their own: along one and the same direction a Jacobian is as its transpose.
    """
    if not fast:
        return np.eye(numel(shape))
    vector = np.random.default_rng(seed).standard_normal((1, numel(shape)))
    return vector / max(float(np.linalg.norm(vector)), 1e-300)


def _element(flat: np.intp, shape: Shape) -> tuple[int, ...]:
    return tuple([int(i) for i in np.unravel_index(flat, shape)])


def _parts(values: np.ndarray) -> np.ndarray:
    """Numbers in float64; of complex ones the parts, along a last axis."""
    if values.dtype.kind != "c":
        return values.astype(np.float64)
    return np.stack([values.real, values.imag], -1).astype(np.float64)


def _random(random: np.random.Generator, like: Tensor) -> Tensor:
    """A leaf of random numbers, in double precision."""
    values = random.standard_normal(like.shape)
    if like.dtype.is_complex:
        return from_data(values + 1j * random.standard_normal(like.shape), complex128, True, array_of(like).device)
    return from_data(values, float64, True, array_of(like).device)


def _sequence(inputs: Inputs) -> Arguments:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _tensors(name: str, outputs: object) -> list[Tensor]:
    listed = [outputs] if isinstance(outputs, Tensor) else outputs
    if not isinstance(listed, tuple | list) or not all(isinstance(y, Tensor) for y in listed):
        raise TypeError(f"{name}: the function must return a tensor or a tuple of tensors, not {type(outputs).__name__}")
    return list(listed)
