"""Checks of an entry's derivatives: first, second, forward, and of complex numbers."""

import contextlib

import torch

import genesis
from tests.conformance.converting import COMPLEX, DTYPES, assert_same, converted, leaves
from tests.conformance.samples import arguments, described, dtype_for, magnitudes, ours, same_numbers, samples, theirs_of


def _symmetric(function):
    return lambda x, *args, **kwargs: function(x + x.mH, *args, **kwargs)


# Derivatives are compared where both libraries have the same: of matrices of the kind that the operation is for.
POINTS = {
    **dict.fromkeys(("cholesky", "linalg.cholesky", "linalg.cholesky_ex", "linalg.eigh", "linalg.eigvalsh"), _symmetric),
    "nn.functional.ctc_loss": lambda function: lambda x, *args, **kwargs: function(x.log_softmax(-1), *args, **kwargs),
}


def derived(op, wanted=torch.float64):
    """The two functions whose derivatives are compared; raises NotImplementedError where there are none."""
    if not op.supports_autograd or not same_numbers(op) or not (
        (dtype := dtype_for(op, wanted)).is_floating_point or dtype.is_complex
    ):
        raise NotImplementedError
    within = POINTS.get(op.name, lambda function: function)
    return within(ours(op)), within(op)


def check_gradients(op, limit=None, wanted=torch.float64):
    """First derivatives in float64."""
    function, other = derived(op, wanted)
    for sample in samples(op, dtype_for(op, wanted), grad=True, limit=limit):
        given = [sample.input, *sample.args, sample.kwargs]
        theirs = _differentiable(leaves(theirs_of(op, sample, other), torch.Tensor), torch.Tensor)
        inputs = [t for t in leaves(given, torch.Tensor) if t.requires_grad]
        if not theirs or not inputs:
            continue
        args, kwargs = arguments(sample)
        results = leaves(magnitudes(op, function(*args, **kwargs)), genesis.Tensor)
        results = _differentiable(results, genesis.Tensor)
        seeds = [torch.randn(t.shape, dtype=t.dtype if t.is_complex() else torch.float64).to(t.dtype) for t in theirs]
        want = torch.autograd.grad(theirs, inputs, seeds, allow_unused=True)
        own = [t for t in leaves([args, kwargs], genesis.Tensor) if t.requires_grad]
        assert len(results) in (0, len(theirs)), f"{len(results)} differentiable results for {len(theirs)} {described(sample)}"
        got = genesis.autograd.grad(results, own, converted(seeds), allow_unused=True) if results else [None] * len(own)
        assert_same(_zeros_for_none(got, own), _zeros_for_none(want, inputs), f"gradient {described(sample)}")


def check_second(op, limit=8, wanted=torch.float64):
    """Second derivatives in float64."""
    if not op.supports_gradgrad:
        raise NotImplementedError
    function, other = derived(op, wanted)
    for sample in samples(op, dtype_for(op, wanted), grad=True, limit=limit, small=True):
        given = [sample.input, *sample.args, sample.kwargs]
        inputs = [t for t in leaves(given, torch.Tensor) if t.requires_grad]
        want = None
        with contextlib.suppress(RuntimeError):  # torch's has none in this form
            want = _second(leaves(theirs_of(op, sample, other), torch.Tensor), inputs, torch, torch.Tensor)
        if want is None:
            continue
        args, kwargs = arguments(sample)
        own = [t for t in leaves([args, kwargs], genesis.Tensor) if t.requires_grad]
        got = _second(leaves(magnitudes(op, function(*args, **kwargs)), genesis.Tensor), own, genesis, genesis.Tensor)
        got = [genesis.zeros_like(t) for t in own] if got is None else got
        assert_same(_zeros_for_none(got, own), _zeros_for_none(want, inputs), f"second {described(sample)}")


def _second(results, inputs, library, kind):
    results = _differentiable(results, kind)
    if not results or not inputs:
        return None
    loss = sum(_real((r * r).sum() + r.sum()) for r in results)
    first = [g for g in library.autograd.grad(loss, inputs, create_graph=True, allow_unused=True) if g is not None]
    first = _differentiable(first, kind)
    if not first:
        return None
    return library.autograd.grad(sum(_real((g * g).sum()) for g in first), inputs, allow_unused=True)


def _real(x):
    """A number of which to take a derivative: of a complex one, both parts count."""
    return x.real + 2 * x.imag if x.is_complex() else x


def _differentiable(tensors, kind):
    return [t for t in tensors if t.requires_grad and t.numel() and (t.dtype in DTYPES | COMPLEX or kind is genesis.Tensor)]


def _zeros_for_none(gradients, inputs):
    return [(torch if isinstance(t, torch.Tensor) else genesis).zeros_like(t).detach() if g is None else g
            for g, t in zip(gradients, inputs, strict=True)]


def check_complex_gradients(op, limit=None):
    """First derivatives in complex128."""
    if torch.complex128 not in op.dtypes:
        raise NotImplementedError
    check_gradients(op, limit, torch.complex128)


def check_complex_second(op, limit=8):
    """Second derivatives in complex128."""
    if torch.complex128 not in op.dtypes:
        raise NotImplementedError
    check_second(op, limit, torch.complex128)


def check_jvp(op, limit=8):
    """Forward derivatives in float64, beside torch's."""
    if not op.supports_forward_ad:
        raise NotImplementedError
    function, other = derived(op)
    for sample in samples(op, dtype_for(op, torch.float64), limit=limit, small=True):
        if not isinstance(sample.input, torch.Tensor) or not sample.input.is_floating_point():
            continue
        x, tangent = sample.input, torch.randn_like(sample.input)
        try:
            _, theirs = torch.func.jvp(lambda x, s=sample: other(x, *s.args, **s.kwargs), (x,), (tangent,))
        except Exception:
            continue
        args, kwargs = arguments(sample)
        _, got = genesis.func.jvp(lambda x, a=args, k=kwargs: function(x, *a[1:], **k), (args[0],), (converted(tangent),))
        if not isinstance(theirs, torch.Tensor | tuple | list):
            continue
        got, theirs = (magnitudes(op, changes) for changes in (got, theirs))
        pairs = zip(leaves(got, genesis.Tensor), leaves(theirs, torch.Tensor), strict=True)
        for mine, want in pairs:
            if want.is_floating_point():
                assert_same(mine, want, f"jvp {described(sample)}")


DERIVATIVES = {
    "gradients": check_gradients, "second": check_second, "jvp": check_jvp, "complex gradients": check_complex_gradients,
    "complex second": check_complex_second,
}
