"""Checking gradients against finite differences: `gradcheck`, `gradgradcheck`, `numerical_gradient_check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.autograd.forward_ad import dual_level, make_dual, unpack_dual
from genesis.autograd.gradients import grad
from genesis.ir.annotations import AnyFunction, Arguments
from genesis.ir.dtypes import complex128, float64
from genesis.ir.shapes import Shape, numel
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

Inputs = Tensor | Sequence[Any]


class GradcheckError(RuntimeError):
    """A gradient that differs from finite differences, or between two runs."""


def gradcheck(
    func: AnyFunction, inputs: Inputs, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, fast_mode: bool = False, *, check_forward_ad: bool = False,
    check_backward_ad: bool = True, check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` by the `inputs` that require one match central differences.

    All floating inputs are copied to float64 first, so that differences of `eps` are meaningful, and complex ones to
    complex128, whose parts are varied separately. Modules that `func` uses must be in float64 as well:
    `module.to(genesis.float64)`.

    Args:
        func: takes the inputs and returns one or several tensors. Results that require no gradient are skipped, unless none
            does: then differences must be zero.
        inputs: a tensor, or a sequence of tensors and other arguments. Inputs that require no gradient are constant.
        eps: the step of the differences.
        atol, rtol: analytical and numerical values may differ by atol + rtol * |numerical|.
        raise_exception: if False, return False instead of raising GradcheckError.
        nondet_tol: the allowed difference between two runs of backward.
        fast_mode: compare the Jacobians only along one random direction of each input and output.
        check_forward_ad: whether to check tangents (`autograd.forward_ad`); check_backward_ad: whether to check gradients.
        check_batched_grad: whether to check that batched cotangents give the same gradients as single ones.
        check_batched_forward_grad, check_undefined_grad, check_grad_dtypes, masked: no effect. Tangents are linear in
        gradients,
            dtypes are always checked, and `sparse.as_sparse_gradcheck` is for sparse tensors.

    Raises GradcheckError, with the input, the output and both numbers at the largest difference, and ValueError if no input
    requires a gradient or no check is enabled. A gradient that is None counts as zeros.

    >>> x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> genesis.autograd.gradcheck(lambda x: (x**2).sum(), x)
    True
    """
    settings = _Settings(eps, atol, rtol, nondet_tol, fast_mode, check_forward_ad, check_backward_ad, check_batched_grad)
    return _holds(_Check("gradcheck", func, _sequence(inputs)), settings, raise_exception)


def gradgradcheck(
    func: AnyFunction, inputs: Inputs, grad_outputs: Inputs | None = None, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0, fast_mode: bool = False, *,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, check_batched_grad: bool = False,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, gen_non_contig_grad_outputs: bool = False,
    masked: bool = False,
) -> bool:
    """Checks second derivatives of `func`: `gradcheck` of its gradients, by the inputs and by `grad_outputs`.

    `grad_outputs` has a tensor for each output that requires a gradient; random by default. In errors, output i is the gradient
    by the i-th input that has one, and inputs after those of `func` are the `grad_outputs`. `check_fwd_over_rev` checks the
    gradients' tangents, `check_rev_over_rev` their gradients; other arguments as in `gradcheck`.

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
    settings = _Settings(eps, atol, rtol, nondet_tol, fast_mode, check_fwd_over_rev, check_rev_over_rev, check_batched_grad)
    return _holds(check, settings, raise_exception)


def numerical_gradient_check(func: Callable[[Tensor], object], input: Tensor, eps: float = 1e-5) -> bool:
    """True if the gradient of `func` at `input` matches central differences; otherwise raises GradcheckError.

    `gradcheck` with one input, which need not require a gradient.

    >>> genesis.autograd.numerical_gradient_check(genesis.sigmoid, genesis.tensor([-1.0, 2.0]))
    True
    """
    return gradcheck(func, from_data(input, float64, True), eps)


# ---- the check ----
class _Settings(NamedTuple):
    """The settings of the comparison."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    fast: bool
    forward: bool
    backward: bool
    batched: bool


def _holds(check: _Check, settings: _Settings, raise_exception: bool) -> bool:
    if not (settings.forward or settings.backward):
        raise ValueError(f"{check.name}: nothing is to be checked; want forward or backward derivatives")
    try:
        with grad_mode(True):
            check.compare(settings)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Check:
    """A function at a point: floating inputs are float64 arrays, from which each run makes tensors on their devices.

    Complex inputs and outputs are pairs of real numbers, with the gradients of the parts.
    """

    def __init__(self, name: str, func: AnyFunction, arguments: Arguments) -> None:
        self.name = name
        self.func = func
        self.wanted = [i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.requires_grad]
        if not self.wanted:
            raise ValueError(f"{name}: none of the {len(arguments)} inputs requires a gradient; set requires_grad on one")
        self.devices = [array_of(a).device if isinstance(a, Tensor) else None for a in arguments]
        self.point = [_parts(a.numpy(force=True)) if isinstance(a, Tensor) and a.dtype.category >= 2 else a for a in arguments]
        self.complex = [isinstance(a, Tensor) and a.dtype.is_complex for a in arguments]

    def run(self, moved: Mapping[int, np.ndarray] | None = None) -> tuple[list[Tensor], list[Tensor]]:
        """(the outputs at the point with the inputs `moved`, the leaves of the checked inputs)."""
        point = [(moved or {}).get(i, a) for i, a in enumerate(self.point)]
        given = self.given(point)
        outputs = _as_parts(self.called(given))
        self.shapes = [y.shape for y in outputs]
        for y in outputs:
            y.numpy(force=True)  # computed, so that every row of the Jacobian is the same program
        return outputs, [given[i] for i in self.wanted]

    def given(self, point: Sequence[Any]) -> list[Any]:
        """The inputs at a point: arrays become tensors on their devices, leaves if they are checked."""
        return [
            from_data(a, float64, i in self.wanted, device) if isinstance(a, np.ndarray) else a
            for i, (a, device) in enumerate(zip(point, self.devices, strict=True))
        ]

    def called(self, given: Sequence[Any]) -> list[Tensor]:
        """Calls the function; complex inputs are given by their parts."""
        joined = zip(given, self.complex, strict=True)
        arguments = [call(OPERATIONS["view_as_complex"], (a,)) if pairs else a for a, pairs in joined]
        return _tensors(self.name, self.func(*arguments))

    def compare(self, settings: _Settings) -> None:
        """The Jacobians, each as numbers for every direction of an output and of an input, unit vectors unless `fast`."""
        outputs, leaves = self.run()
        kept = [k for k, y in enumerate(outputs) if y.requires_grad]
        kept = kept or [k for k, y in enumerate(outputs) if y.dtype.category >= 2]
        rows = [_directions(outputs[k].shape, settings.fast, seed=0) for k in kept]
        gradients = []
        if settings.backward:
            gradients = [self.gradients(k, outputs[k], leaves, u) for k, u in zip(kept, rows, strict=True)]
            self.check_again(kept, rows, gradients, settings)
        for n, i in enumerate(self.wanted):
            columns = _directions(self.point[i].shape, settings.fast, seed=1)
            slopes = [self.slopes(i, v, settings.eps) for v in columns]
            tangents = [self.tangents(i, v) for v in columns] if settings.forward else []
            for m, (k, u) in enumerate(zip(kept, rows, strict=True)):
                numerical = u @ _columns([s[k] for s in slopes], u)
                if gradients:
                    self.compare_one(k, i, gradients[m][n] @ columns.T, numerical, settings)
                if tangents:
                    self.compare_one(k, i, u @ _columns([t[k] for t in tangents], u), numerical, settings, ", forward,")

    def check_again(
        self, kept: Sequence[int], rows: Sequence[np.ndarray], gradients: Sequence[Sequence[np.ndarray]], settings: _Settings
    ) -> None:
        """Check that a second run of backward and, if requested, a batched run give the same gradients."""
        outputs, leaves = self.run()
        for k, u, before in zip(kept, rows, gradients, strict=True):
            again = [("not deterministic: two runs", False, settings.nondet_tol)]
            if settings.batched:
                again.append(("another of several cotangents at once: they", True, settings.atol + settings.nondet_tol))
            for what, batched, within in again:
                for i, a, b in zip(self.wanted, before, self.gradients(k, outputs[k], leaves, u, batched), strict=True):
                    if not np.allclose(a, b, 0, within, equal_nan=True):
                        raise GradcheckError(f"{self.name}: backward of output {k} to input {i} is {what} "
                                             f"lie {np.abs(a - b).max():.6g} apart; want {within} at most")

    def compare_one(
        self, k: int, i: int, analytical: np.ndarray, numerical: np.ndarray, settings: _Settings, mode: str = ""
    ) -> None:
        """Raise GradcheckError if the Jacobian of output k by input i differs from the numerical one."""
        off, atol, rtol = np.abs(analytical - numerical), settings.atol, settings.rtol
        wrong = ~(off <= atol + rtol * np.abs(numerical))
        if not wrong.any():
            return
        row, column = np.unravel_index(np.where(wrong, np.nan_to_num(off, nan=np.inf), -1).argmax(), off.shape)
        shape = self.shapes[k]
        where = " along a random direction" if settings.fast else (
            f" at element {_element(row, shape)} by element {_element(column, self.point[i].shape)}")
        raise GradcheckError(
            f"{self.name}: the Jacobian of output {k} by input {i}{mode} differs most{where}: "
            f"numerical {numerical[row, column]:.8g}, analytical {analytical[row, column]:.8g}; "
            f"want them within {atol} + {rtol} * |numerical| (wrong: {wrong.sum()} of {wrong.size})")

    def gradients(
        self, k: int, output: Tensor, leaves: Sequence[Tensor], rows: np.ndarray, batched: bool = False
    ) -> list[np.ndarray]:
        """Each leaf's gradients (rows, elements) for the rows, which are cotangents of output k: one by one, or `batched`."""
        found = [np.zeros((len(rows), leaf.numel())) for leaf in leaves]
        for at in () if not output.requires_grad else (slice(None),) if batched else range(len(rows)):
            seeds = from_data(rows[at].reshape((*rows.shape[:batched], *output.shape)), float64, device=array_of(output).device)
            cotangents = grad(output, leaves, seeds, retain_graph=True, allow_unused=True, is_grads_batched=batched)
            for n, (got, leaf) in enumerate(zip(cotangents, leaves, strict=True)):
                if got is None:
                    continue
                if got.shape[batched:] != leaf.shape or got.dtype is not leaf.dtype:
                    raise GradcheckError(
                        f"{self.name}: the gradient of output {k} has shape {got.shape} and dtype {got.dtype.name}; "
                        f"want the input's, {leaf.shape} and {leaf.dtype.name}")
                found[n][at] = got.numpy(force=True).reshape(found[n][at].shape)
        return found

    def tangents(self, i: int, direction: np.ndarray) -> list[np.ndarray]:
        """The flattened tangents of all outputs for a direction of input i."""
        given = self.given(self.point)
        with dual_level():
            given[i] = make_dual(given[i], from_data(direction.reshape(self.point[i].shape), float64, device=self.devices[i]))
            outputs = _as_parts(self.called(given))
            found = [unpack_dual(y).tangent for y in outputs]
        return [np.zeros(y.numel()) if t is None else _flat(t) for y, t in zip(outputs, found, strict=True)]

    def slopes(self, i: int, direction: np.ndarray, eps: float) -> list[np.ndarray]:
        """The flattened central differences of all outputs for a direction of input i."""
        step = eps * direction.reshape(self.point[i].shape)
        lower, upper = [[*map(_flat, self.run({i: np.asarray(self.point[i] + by)})[0])] for by in (-step, step)]
        return [(a - b) / (2 * eps) for a, b in zip(upper, lower, strict=True)]


def _directions(shape: Shape, fast: bool, seed: int) -> np.ndarray:
    """(directions, elements): all unit vectors for a shape, or one random direction.

    Inputs and outputs have different seeds: along the same direction a Jacobian could not be told from its transpose.
    """
    if not fast:
        return np.eye(numel(shape))
    vector = np.random.default_rng(seed).standard_normal((1, numel(shape)))
    return vector / max(float(np.linalg.norm(vector)), 1e-300)


def _as_parts(outputs: Sequence[Tensor]) -> list[Tensor]:
    return [call(OPERATIONS["view_as_real"], (y,)) if y.dtype.is_complex else y for y in outputs]


def _flat(x: Tensor) -> np.ndarray:
    return x.numpy(force=True).astype(np.float64).reshape(-1)


def _columns(found: Sequence[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """The results for each direction of an input as the columns of a matrix, multiplied by `rows`."""
    return np.array(found).reshape(len(found), rows.shape[1]).T


def _element(flat: np.intp, shape: Shape) -> tuple[int, ...]:
    return tuple([int(i) for i in np.unravel_index(flat, shape)])


def _parts(values: np.ndarray) -> np.ndarray:
    """Numbers in float64; complex ones as their parts, along a last axis."""
    if values.dtype.kind != "c":
        return values.astype(np.float64)
    return np.stack([values.real, values.imag], -1).astype(np.float64)


def _random(random: np.random.Generator, like: Tensor) -> Tensor:
    """A leaf of random numbers, in double precision."""
    values, is_complex = random.standard_normal(like.shape), like.dtype.is_complex
    values = values + 1j * random.standard_normal(like.shape) if is_complex else values
    return from_data(values, complex128 if is_complex else float64, True, array_of(like).device)


def _sequence(inputs: Inputs) -> Arguments:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _tensors(name: str, outputs: object) -> list[Tensor]:
    listed = [outputs] if isinstance(outputs, Tensor) else outputs
    if not isinstance(listed, tuple | list) or not all(isinstance(y, Tensor) for y in listed):
        raise TypeError(f"{name}: the function must return a tensor or a tuple of tensors, not {type(outputs).__name__}")
    return list(listed)
