"""Checks of an entry of PyTorch's operator database. Each raises AssertionError, or whatever the operation raised."""

import contextlib
import itertools

import torch

import genesis
from tests.conformance.converting import COMPLEX, DTYPES, UnconvertibleError, assert_same, converted, leaves
from tests.conformance.derivatives import DERIVATIVES, POINTS
from tests.conformance.samples import (
    SIGNS,
    TIED,
    arguments,
    described,
    dtype_for,
    magnitudes,
    ours,
    same_numbers,
    samples,
    theirs_of,
)


def _exact(op, sample, like):
    """What torch computes in float64, rounded at the end."""
    def wide(x):
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    exact, like = leaves(theirs_of(op, sample.transform(wide)), torch.Tensor), leaves(like, torch.Tensor)
    return tuple([found.to(t.dtype) for found, t in zip(exact, like, strict=True)])


def check_values(op, limit=None, references=False):
    """Values and dtypes of results, of every sample."""
    function = ours(op)
    for sample in samples(op, limit=limit, references=references):
        theirs = theirs_of(op, sample)
        args, kwargs = arguments(sample)
        assert_same(magnitudes(op, function(*args, **kwargs)), theirs, described(sample), same_numbers(op))


def check_references(op, limit=None):
    """As values, of what PyTorch compares with its own references: more shapes, scalars, extremal and large numbers."""
    if op.reference_inputs_func is None and type(op).__name__ == "OpInfo":
        raise NotImplementedError
    check_values(op, limit, references=True)


def check_dtypes(op, limit=3):
    """Values and dtypes in each of the other dtypes that torch takes."""
    function = ours(op)
    for dtype in DTYPES:
        if dtype not in op.dtypes or dtype is dtype_for(op):
            continue
        for sample in samples(op, dtype, limit=limit):
            theirs = theirs_of(op, sample)
            args, kwargs = arguments(sample)
            low = dtype in (torch.float16, torch.bfloat16)
            got = magnitudes(op, function(*args, **kwargs))
            if op.name in TIED and not sample.kwargs.get("stable"):
                got, theirs = _first(got), _first(theirs)
            values, what = same_numbers(op) and op.name != "argsort", f"{dtype} {described(sample)}"
            try:
                assert_same(got, theirs, what, values, scale=1 + 3 * low)
            except AssertionError:
                if not low or not values:
                    raise
                assert_same(got, theirs, what, values=False)  # it may only be nearer to what is right than torch is
                assert_same(tuple(leaves(got, genesis.Tensor)), _exact(op, sample, theirs), what)


def _first(results):
    return results[0] if isinstance(results, tuple) else results


def check_complex(op, limit=None):
    """Values and dtypes of results of complex numbers."""
    function = ours(op)
    for dtype in COMPLEX:
        if dtype not in op.dtypes:
            raise NotImplementedError
        for sample in samples(op, dtype, limit=limit):
            theirs = theirs_of(op, sample)
            args, kwargs = arguments(sample)
            assert_same(magnitudes(op, function(*args, **kwargs)), theirs, f"{dtype} {described(sample)}", same_numbers(op))


def check_method(op, limit=None):
    """The method of Tensor."""
    variant = getattr(op, "method_variant", None)
    name = getattr(variant, "__name__", "")
    if variant is None or name == "<lambda>" or not hasattr(torch.Tensor, name):
        raise NotImplementedError
    method = getattr(genesis.Tensor, name)
    for sample in samples(op, limit=limit):
        if not isinstance(sample.input, torch.Tensor):
            continue
        theirs = theirs_of(op, sample, variant)
        args, kwargs = arguments(sample)
        assert_same(magnitudes(op, method(*args, **kwargs)), theirs, described(sample), same_numbers(op))


def check_in_place(op, limit=None):
    """The form that writes into its input."""
    variant = getattr(op, "inplace_variant", None)
    if variant is None:
        raise NotImplementedError
    name = getattr(variant, "__name__", "")
    named = hasattr(torch.Tensor, name)
    function = getattr(genesis.Tensor, name) if named else ours(op)
    for sample in samples(op, limit=limit):
        if not isinstance(sample.input, torch.Tensor):
            continue
        args, kwargs = arguments(sample)
        target = sample.input.clone()
        args[0] = converted(target)
        try:
            theirs = variant(target, *sample.args, **sample.kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError):  # it does not fit into the input
            before = args[0].shape
            with contextlib.suppress(Exception):
                function(*args, **kwargs)
            assert args[0].shape == before, f"in place changes a shape {described(sample)}"
            continue
        got = function(*args, **kwargs) if named else function(*args, **{**kwargs, "inplace": True})
        assert got is args[0], f"another tensor is returned {described(sample)}"
        assert_same(got, theirs, described(sample), same_numbers(op))


def check_out(op, limit=None):
    """`out=`: an empty tensor is resized, another shape's is too with a warning, another kind's is refused."""
    if not op.supports_out:
        raise NotImplementedError
    function = ours(op)
    for sample in samples(op, limit=limit):
        theirs = op(sample.input, *sample.args, **sample.kwargs)
        single = isinstance(theirs, torch.Tensor)
        wanted = [theirs] if single else [*theirs] if isinstance(theirs, tuple | list) else [None]
        if not all(isinstance(t, torch.Tensor) and t.dtype in DTYPES for t in wanted):
            continue
        for fitting in (True, False):
            given = [genesis.empty(tuple(t.shape) if fitting else (0,), dtype=DTYPES[t.dtype]) for t in wanted]
            args, kwargs = arguments(sample)
            got = function(*args, **kwargs, out=given[0] if single else tuple(given))
            got = [got] if single else [*got]
            assert all(a is b for a, b in zip(got, given, strict=True)), f"not what out= gave {described(sample)}"
            assert_same(got, wanted, f"out {described(sample)}", same_numbers(op) and op.name not in SIGNS)
        if single and theirs.dtype.is_floating_point:
            args, kwargs = arguments(sample)
            try:
                function(*args, **kwargs, out=genesis.empty(tuple(theirs.shape), dtype=genesis.int64))
            except (RuntimeError, TypeError):
                continue
            raise AssertionError(f"out= of integers took floats {described(sample)}")


def check_strided(op, limit=None):
    """Inputs with gaps between their elements."""
    function = ours(op)
    for sample in samples(op, limit=limit):
        gapped = sample.noncontiguous()
        try:
            theirs = theirs_of(op, gapped)
        except RuntimeError:  # torch's wants them without gaps
            continue
        args, kwargs = arguments(gapped, keep_strides=True)
        assert_same(magnitudes(op, function(*args, **kwargs)), theirs, described(sample), same_numbers(op))


def check_compile(op, limit=3):
    """A function made by `genesis.compile`, at the first call and replayed."""
    function = ours(op)
    for sample in samples(op, limit=limit, small=True):
        theirs = theirs_of(op, sample)
        compiled = genesis.compile(lambda args, kwargs: function(*args, **kwargs))
        for _ in range(3):
            args, kwargs = arguments(sample)
            assert_same(magnitudes(op, compiled(args, kwargs)), theirs, described(sample), same_numbers(op))


def check_vmap(op, limit=4):
    """`vmap` over the first tensor, beside torch's."""
    if not same_numbers(op):
        raise NotImplementedError
    function = ours(op)
    for sample in samples(op, limit=limit, small=True):
        if not isinstance(sample.input, torch.Tensor):
            continue
        turned = (-2, -1) if op.name in POINTS and sample.input.ndim > 1 else 0  # symmetric matrices stay that
        stacked = torch.stack([sample.input, sample.input.flip(turned) if sample.input.ndim else sample.input])
        try:
            theirs = magnitudes(op, torch.func.vmap(lambda x, s=sample: op(x, *s.args, **s.kwargs))(stacked))
        except Exception:
            continue
        args, kwargs = arguments(sample)
        got = genesis.vmap(lambda x, a=args, k=kwargs: function(x, *a[1:], **k))(converted(stacked))
        assert_same(magnitudes(op, got), theirs, f"vmap {described(sample)}")


def check_errors(op, limit=None):
    """What torch refuses is refused. Where it names no reason it refuses numbers, which are operands here: no error."""
    if op.error_inputs_func is None:
        raise NotImplementedError
    function = ours(op)
    for error in itertools.islice(op.error_inputs("cpu"), limit):
        try:
            args, kwargs = arguments(error.sample_input)
        except UnconvertibleError:
            continue
        if {"out", "device"} & {*kwargs} or not error.error_regex:
            continue
        try:
            results = function(*args, **kwargs)
            [t.numpy() for t in leaves(results, genesis.Tensor)]
        except Exception:
            continue
        raise AssertionError(f"nothing raised, want {error.error_type} {error.error_regex!r} {described(error.sample_input)}")


CHECKS = {
    "values": check_values, "references": check_references, "dtypes": check_dtypes, "methods": check_method,
    "in-place": check_in_place, "out": check_out, "strided": check_strided, "compile": check_compile, "complex": check_complex,
    "vmap": check_vmap, "errors": check_errors, **DERIVATIVES,
}
