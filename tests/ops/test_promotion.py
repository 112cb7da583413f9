"""Result dtypes of two operands: dimensioned, 0-d and Python scalars, for all pairs of dtypes."""

import operator

import pytest
import torch

import genesis
from genesis.ir.dtypes import DTYPES
from tests.tolerances import torch_dtype

OPERATIONS = {"add": operator.add, "div": operator.truediv, "eq": operator.eq}
SCALARS = (True, 3, 2.5)


def operands(library, dtype):
    """(a dimensioned tensor, a 0-d one)."""
    dtype = dtype if library is genesis else torch_dtype(dtype)
    return library.ones(2, dtype=dtype), library.ones((), dtype=dtype)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("left", DTYPES)
def test_result_dtypes_are_torchs(name, left):
    apply = OPERATIONS[name]
    for right in DTYPES:
        ours = zip(operands(genesis, DTYPES[left]), operands(torch, DTYPES[left]), strict=True)
        for a, ta in ours:
            for b, tb in zip(operands(genesis, DTYPES[right]), operands(torch, DTYPES[right]), strict=True):
                assert torch_dtype(apply(a, b).dtype) is apply(ta, tb).dtype, (left, a.ndim, right, b.ndim)


@pytest.mark.parametrize("left", DTYPES)
def test_python_scalars_widen_as_in_torch(left):
    for a, ta in zip(operands(genesis, DTYPES[left]), operands(torch, DTYPES[left]), strict=True):
        for scalar in SCALARS:
            for apply in OPERATIONS.values():
                assert torch_dtype(apply(a, scalar).dtype) is apply(ta, scalar).dtype, (left, a.ndim, scalar)
                assert torch_dtype(apply(scalar, a).dtype) is apply(scalar, ta).dtype, (scalar, left, a.ndim)


def test_promote_types_is_torchs():
    for a in DTYPES.values():
        for b in DTYPES.values():
            assert torch_dtype(genesis.promote_types(a, b)) is torch.promote_types(torch_dtype(a), torch_dtype(b))


@pytest.mark.parametrize("default", [genesis.float64, genesis.float16])
def test_the_default_dtype_is_what_floats_take(default):
    genesis.set_default_dtype(default)
    try:
        assert genesis.tensor(1.5).dtype is genesis.zeros(2).dtype is (genesis.arange(3) / 2).dtype is default
        assert (genesis.arange(3) + 0.5).dtype is default
        counts = genesis.arange(3)
        assert (counts.numel(), counts.tolist()) == (3, [0, 1, 2])  # what comes now begins a trace
        assert (counts / 2).dtype is default
    finally:
        genesis.set_default_dtype(genesis.float32)


def test_alpha_scales_in_the_common_dtype():
    """Not in the uint8 of the second operand, where 3 * 100 is 44."""
    for name in ("add", "sub"):
        ours = getattr(genesis, name)(genesis.ones(2), genesis.tensor([100, 30], dtype=genesis.uint8), alpha=3)
        theirs = getattr(torch, name)(torch.ones(2), torch.tensor([100, 30], dtype=torch.uint8), alpha=3)
        assert ours.tolist() == theirs.tolist()


REFUSED = {
    "a bool as alpha": lambda lib, x: lib.add(x, x, alpha=True),
    "a false alpha": lambda lib, x: x.sub(x, alpha=False),
    "a complex alpha of real tensors": lambda lib, x: lib.add(x, x, alpha=1j),
    "a bool scaling bools by a number": lambda lib, x: lib.add(x > 0, 1, alpha=True),
    "differences of bools": lambda lib, x: lib.sub(x > 0, x > 0, alpha=2),
    "a float as bound": lambda lib, x: lib.randint(0, 3.5, (2,)),
    "a whole float as bound": lambda lib, x: lib.randint(4.0, (2,)),
    "a float tensor as bound": lambda lib, x: lib.randint(lib.tensor(4.0), (2,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_of_the_wrong_kind_are_refused(name):
    for lib in (genesis, torch):
        with pytest.raises((RuntimeError, TypeError)):
            REFUSED[name](lib, lib.ones(2))


def test_a_bool_scales_bools():
    for lib in (genesis, torch):
        x = lib.tensor([True, False])
        assert lib.add(x, ~x, alpha=True).tolist() == [True, True] and lib.add(x, ~x, alpha=False).tolist() == [True, False]


TAKE_NAMES = {
    "tensor": lambda dtype: genesis.tensor([1], dtype=dtype), "zeros": lambda dtype: genesis.zeros(2, dtype=dtype),
    "a tensor of one": lambda dtype: genesis.tensor(genesis.ones(2), dtype=dtype),
    "view": lambda dtype: genesis.ones(2).view(dtype=dtype), "type": lambda dtype: genesis.ones(2).type(dtype),
    "sparse": lambda dtype: genesis.eye(2).to_sparse().type(dtype),
    "nested": lambda dtype: genesis.nested.nested_tensor([genesis.ones(2)]).type(dtype),
    "sum": lambda dtype: genesis.ones(2).sum(dtype=dtype),
}


@pytest.mark.parametrize("name", ["int32", "complex64"])
@pytest.mark.parametrize("what", TAKE_NAMES)
def test_dtypes_are_given_by_name(what, name):
    assert TAKE_NAMES[what](name).dtype is getattr(genesis, name)


def test_names_are_those_of_dtypes_everywhere():
    assert genesis.tensor([1 + 2j], dtype="complex32").dtype is genesis.complex32 is genesis.chalf
    assert genesis.tensor([1], dtype=complex).dtype is genesis.complex128
    assert genesis.iinfo("int8").max == 127 and genesis.signal.windows.hann(3, dtype="float64").dtype is genesis.float64
    with genesis.autocast("cpu", dtype="float16"):
        assert (genesis.ones(2, 2) @ genesis.ones(2, 2)).dtype is genesis.float16
    x = genesis.ones(2)
    genesis.tensor(x, dtype="float32").zero_()
    assert x.tolist() == [1, 1]
    for wrong in (lambda: genesis.tensor([1j], dtype="complex31"), lambda: x.view("complex31"),
                  lambda: genesis.set_default_dtype("complex31"), lambda: genesis.autocast("cpu", "complex31")):
        with pytest.raises(TypeError, match=r"wants a genesis dtype such as genesis\.float32, got str 'complex31'"):
            wrong()
    for wrong in ("float8_e5m2", "int32"):
        with pytest.raises(TypeError, match="set_default_dtype: "):
            genesis.set_default_dtype(wrong)


@pytest.mark.parametrize("bounds", [(-3, 1.5), (-300, 1.5), (-1.5, 300), (2, 100.0)])
def test_bounds_of_two_dtypes_are_promoted_at_once(bounds):
    """Of unsigned integers, -3 by itself is 253."""
    values = [0, 1, 100, 255]
    for given in (lambda library: bounds, lambda library: [library.tensor(bound) for bound in bounds]):
        ours, theirs = (
            library.clamp(library.tensor(values, dtype=library.uint8), *given(library)) for library in (genesis, torch))
        assert torch_dtype(ours.dtype) is theirs.dtype
        assert ours.tolist() == theirs.tolist()
