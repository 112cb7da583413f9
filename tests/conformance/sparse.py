"""The entries of PyTorch's operator database that take sparse tensors, once for each layout that they take."""

import contextlib
import itertools
import unittest
from typing import NamedTuple

import torch
from torch.testing._internal.common_methods_invocations import op_db

import genesis
from tests.conformance.converting import UnconvertibleError, assert_same, converted, function_at, leaves
from tests.conformance.samples import described, ours, same_numbers

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
_POINTERS = {"csr": ("crow", "col"), "bsr": ("crow", "col"), "csc": ("ccol", "row"), "bsc": ("ccol", "row")}


class Entry(NamedTuple):
    """An operation, with sparse tensors of a layout."""

    op: object
    layout: str

    @property
    def name(self):
        return self.op.name


def entries():
    """All of them, by the flags of the database."""
    flags = {layout: "supports_sparse" + (f"_{layout}" if layout != "coo" else "") for layout in LAYOUTS}
    return [Entry(op, layout) for op in op_db for layout in LAYOUTS if getattr(op, flags[layout])]


def title(entry):
    """The name of the operation, and that of the layout."""
    return f"{entry.op.name}.{entry.layout}"


def samples(entry):
    """The samples that PyTorch gives for a layout; for functions of elements it gives none, and matrices are made here."""
    op, layout = entry
    dtype = torch.float32 if torch.float32 in op.dtypes else torch.bool
    torch.manual_seed(0)
    try:
        yield from op.sample_inputs_sparse(getattr(torch, f"sparse_{layout}"), "cpu", dtype)
    except unittest.SkipTest:
        return
    except NotImplementedError:
        for sample in itertools.islice(op.sample_inputs("cpu", dtype), 3):
            low, high = getattr(op, "domain", (None, None))
            whole = torch.testing.make_tensor(4, 6, device="cpu", dtype=dtype, low=low, high=high)
            sample.input = _sparse(whole * (torch.arange(6) % 3 != 0), layout)
            yield sample


def _sparse(dense, layout):
    return getattr(dense, f"to_sparse_{layout}")(*[(2, 2)] if layout[0] == "b" else [])


def _converted(value):
    """As `converted`, of sparse tensors and of what stands beside them. Batches of compressed ones are none here."""
    if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
        layout = str(value.layout).removeprefix("torch.sparse_")
        if layout == "coo":
            made = genesis.sparse_coo_tensor(
                converted(value._indices()), converted(value._values()), tuple(value.shape), is_coalesced=value.is_coalesced())
        else:
            if getattr(value, f"{_POINTERS[layout][0]}_indices")().ndim > 1:
                raise UnconvertibleError("a batch of compressed matrices")
            parts = [converted(getattr(value, f"{name}_indices")()) for name in _POINTERS[layout]]
            make = getattr(genesis, f"sparse_{layout}_tensor")
            made = make(*parts, converted(value.values()), tuple(value.shape))
        return made
    if isinstance(value, tuple | list):
        return type(value)([_converted(item) for item in value])
    if isinstance(value, dict):
        return {key: _converted(item) for key, item in value.items()}
    return converted(value)


def _function(op):
    with contextlib.suppress(AttributeError):
        return ours(op)
    return function_at(op.name)


def check_values(entry, limit=None):
    """Dense values, shapes, dtypes and layouts of results, of every sample that PyTorch computes."""
    function, count = _function(entry.op), 0
    for sample in itertools.islice(samples(entry), limit):
        what = f"{entry.layout} {_shown(sample)}"
        try:
            theirs = entry.op(sample.input, *sample.args, **sample.kwargs)
            args, kwargs = _converted([sample.input, *sample.args]), _converted(sample.kwargs)
        except (RuntimeError, UnconvertibleError):
            continue
        got = function(*args, **kwargs)
        for mine, want in zip(leaves(got, genesis.Tensor), leaves(theirs, torch.Tensor), strict=True):
            assert mine.is_sparse == want.is_sparse, f"{what}: {mine.layout} for {want.layout}"
            assert_same(mine.to_dense(), want.to_dense(), what, same_numbers(entry.op))
        count += 1
    if not count:
        raise NotImplementedError


def _shown(sample):
    with contextlib.suppress(Exception):
        return described(sample)
    return ""


CHECKS = {"values": check_values}
