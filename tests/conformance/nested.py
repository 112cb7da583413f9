"""The entries of PyTorch's database that take nested tensors of the jagged layout, with its samples of these."""

import itertools
import unittest

import torch
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

import genesis
from tests.conformance.converting import UnconvertibleError, assert_same, converted
from tests.conformance.samples import RANDOM, ours, title

_UNKNOWN = ("_", "torch.", "jiterator_", "sparse.", "to_sparse")

__all__ = ["CHECKS", "entries", "title"]


def entries(names=None):
    """Those of public names, or of `names` alone, for which there are samples."""
    found = []
    for op in njt_op_db:
        if names is not None and op.name not in names:
            continue
        if op.name.startswith(_UNKNOWN) and not op.name.startswith("__r"):
            continue
        try:
            next(iter(op.sample_inputs("cpu", _dtype(op))))
        except (RuntimeError, StopIteration, unittest.SkipTest):
            continue
        found.append(op)
    return found


def _dtype(op):
    return next(dtype for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64) if dtype in op.dtypes)


def _converted(value):
    """As `converted`, of nested tensors and of what stands beside them."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        ragged = value._ragged_idx
        plain = value if ragged == 1 else value.transpose(1, ragged)
        lengths = None if plain.lengths() is None else converted(plain.lengths())
        made = genesis.nested.nested_tensor_from_jagged(converted(plain.values()), converted(plain.offsets()), lengths)
        return made if ragged == 1 else made.transpose(1, ragged)
    if isinstance(value, tuple | list):
        return [_converted(item) for item in value]
    if isinstance(value, dict):
        return {key: _converted(item) for key, item in value.items()}
    return converted(value)


def _same(ours, theirs, what, values):
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), f"{what}: {len(ours)} results for {len(theirs)}"
        for place, pair in enumerate(zip(ours, theirs, strict=True)):
            _same(*pair, f"{what}[{place}]", values)
    elif isinstance(theirs, torch.Tensor) and theirs.is_nested:
        assert isinstance(ours, genesis.nested.NestedTensor), f"{what}: {type(ours).__name__} for a nested one"
        _same(ours.unbind(), theirs.unbind(), what, values)
    else:
        assert_same(ours, theirs, what, values)


def check_values(op, limit=None):
    """Values and dtypes of results, of every sample that PyTorch computes."""
    function, count = ours(op), 0
    torch.manual_seed(0)
    for sample in itertools.islice(op.sample_inputs("cpu", _dtype(op)), limit):
        if "holes" in sample.name and "full reduction" in sample.name:  # PyTorch counts the rows between sequences too
            continue
        try:
            theirs = op(sample.input, *sample.args, **sample.kwargs)
            args, kwargs = _converted([sample.input, *sample.args]), _converted(sample.kwargs)
        except (RuntimeError, ValueError, NotImplementedError, UnconvertibleError, AttributeError, AssertionError):
            continue
        _same(function(*args, **kwargs), theirs, sample.name, op.name not in RANDOM)
        count += 1
    if not count:
        raise NotImplementedError


CHECKS = {"values": check_values}
