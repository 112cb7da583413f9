"""Arrays handed over: DLPack with versions, the array interface, and NumPy's functions of tensors."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
import torch

import genesis
from genesis.runtime import dlpack

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64",
]


def name_of(capsule):
    return repr(capsule).partition('"')[2].partition('"')[0]


# ---- DLPack ----
@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_both_ways_shares_memory(dtype):
    ours = genesis.arange(6).reshape(2, 3).to(getattr(genesis, dtype))
    theirs = torch.from_dlpack(ours.T)
    assert str(theirs.dtype)[6:] == dtype and theirs.shape == (3, 2) and theirs.stride() == (1, 3)
    theirs[1, 1] = 0
    assert ours[1, 1].item() == 0
    back = genesis.from_dlpack(theirs)
    back[0, 0] = 1
    assert back.dtype is ours.dtype and ours[0, 0].item() == 1 and theirs[0, 0] == 1


def test_versions_are_those_that_are_asked_for():
    x = genesis.ones(2)
    assert name_of(x.__dlpack__()) == "dltensor" == name_of(x.__dlpack__(max_version=(0, 8)))
    assert name_of(x.__dlpack__(max_version=(1, 0))) == "dltensor_versioned" == name_of(x.__dlpack__(max_version=(2, 3)))
    for version in (None, (1, 0)):
        assert genesis.from_dlpack(x.__dlpack__(max_version=version)).tolist() == [1, 1]
    capsule = x.__dlpack__(max_version=(1, 0))
    genesis.from_dlpack(capsule)
    assert name_of(capsule) == "used_dltensor_versioned"
    with pytest.raises(BufferError, match="nobody has taken it"):
        genesis.from_dlpack(capsule)


def test_a_newer_major_version_is_refused():
    capsule = genesis.ones(2).__dlpack__(max_version=(1, 0))
    address = dlpack._python.PyCapsule_GetPointer(id(capsule), b"dltensor_versioned")
    dlpack._Versioned.from_address(address).version.major = 2
    with pytest.raises(BufferError, match="DLPack 2"):
        genesis.from_dlpack(capsule)


def test_copies_are_made_on_request():
    x = genesis.zeros(2)
    theirs = np.from_dlpack(x, copy=True)
    theirs[0] = 5
    assert x.tolist() == [0, 0]
    source = np.zeros(2)
    copied, shared = genesis.from_dlpack(source, copy=True), genesis.from_dlpack(source, copy=False)
    source[1] = 3
    assert copied.tolist() == [0, 0] and shared.tolist() == [0, 3]
    assert genesis.from_dlpack(source, device="cpu:1").device.index == 1
    with pytest.raises(ValueError, match="copy=False"):
        genesis.from_dlpack(source, device="cpu:1", copy=False)
    with pytest.raises(BufferError, match=r"use \.to\(\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(RuntimeError, match="detach"):
        genesis.ones(2, requires_grad=True).__dlpack__()


def test_memory_that_may_not_be_written_is_told_and_heard():
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    tensor = genesis.from_dlpack(fixed)
    assert tensor.tolist() == [0, 1, 2] and not np.from_dlpack(tensor).flags.writeable
    assert not tensor.numpy().flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()


class Old:
    """An array of a library from before DLPack 1.0."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def test_libraries_from_before_versions_are_read():
    values = np.zeros(2)
    tensor = genesis.from_dlpack(Old(values))
    values[0] = 4
    assert tensor.tolist() == [4, 0] and genesis.from_dlpack(Old(values), copy=True).tolist() == [4, 0]


def test_memory_lives_as_long_as_a_versioned_capsule_is_used():
    x = genesis.arange(1000).float()
    theirs = np.from_dlpack(x)
    del x
    gc.collect()
    again = [genesis.full((1000,), -1.0).sum().item() for _ in range(3)]
    assert theirs.sum() == 499500 and again == [-1000.0] * 3
    owner = np.zeros(10)
    seen = weakref.ref(owner)
    tensor = genesis.from_dlpack(owner)
    del owner
    gc.collect()
    assert seen() is not None
    del tensor
    gc.collect()
    assert seen() is None


# ---- the array interface ----
class Interface:
    """What has a tensor's interface and nothing else of it."""

    def __init__(self, tensor):
        self.__array_interface__ = tensor.__array_interface__


def test_the_interface_shares_memory_while_it_is_looked_at():
    x = genesis.arange(12).reshape(3, 4).float()
    for view in (x, x.T, x[1:, ::2], x[0, 1], x[:0]):
        seen = np.asarray(Interface(view))
        np.testing.assert_array_equal(seen, view.numpy(), strict=True)
    seen = np.asarray(Interface(x[1]))
    x.add_(1)
    seen[0] = 50
    assert x[1].tolist() == [50, 6, 7, 8] and seen.tolist() == [50, 6, 7, 8]
    del seen
    gc.collect()
    assert not x._array.memory.buffer.shared, "nobody looks any more: writes may wait again"


def test_what_has_no_interface_says_so():
    for x in (genesis.ones(2, requires_grad=True), genesis.ones(2, dtype=genesis.bfloat16)):
        with pytest.raises(AttributeError, match="__array_interface__"):
            x.__array_interface__  # noqa: B018
    assert np.asarray(genesis.ones(2, dtype=genesis.bfloat16)).dtype == ml_dtypes.bfloat16
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(genesis.ones(2, requires_grad=True))


# ---- NumPy's functions ----
@pytest.mark.parametrize("name", [
    "sin", "exp", "sqrt", "negative", "abs", "floor", "square", "add", "multiply", "maximum", "arctan2"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_ufuncs_of_tensors_give_what_pytorch_gives(name, dtype):
    ufunc = getattr(np, name)
    ours, theirs = (library.arange(1, 5).to(getattr(library, dtype)) for library in (genesis, torch))
    result, expected = ufunc(*[ours] * ufunc.nin), ufunc(*[theirs] * ufunc.nin)
    assert isinstance(result, genesis.Tensor) and result.dtype.name == str(expected.dtype)[6:]
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)
    assert isinstance(ufunc(*[ours[0]] * ufunc.nin), genesis.Tensor)


def test_ufuncs_mixed_with_arrays_and_outputs():
    x, array = genesis.ones(2), np.array([1.0, 2.0], np.float32)
    assert isinstance(np.add(array, x), genesis.Tensor) and isinstance(np.multiply(x, array), genesis.Tensor)
    assert np.isnan(x).tolist() == [False, False] and np.isnan(x).dtype is genesis.bool
    np.add(array, x, out=array)
    assert array.tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="detach"):
        np.sin(genesis.ones(2, requires_grad=True))


def test_grids_of_both_indexings_are_pytorchs():
    for indexing in ("ij", "xy"):
        for sizes in ((3,), (3, 2), (2, 3, 4)):
            ours = genesis.meshgrid(*[genesis.arange(n) for n in sizes], indexing=indexing)
            theirs = torch.meshgrid(*[torch.arange(n) for n in sizes], indexing=indexing)
            assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]


def test_unique_keeps_each_nan():
    values = [float("nan"), 1.0, float("nan"), 1.0]
    ours, theirs = (library.unique(library.tensor(values), return_counts=True) for library in (genesis, torch))
    assert ours[0].shape == tuple(theirs[0].shape) == (3,) and ours[1].tolist() == theirs[1].tolist()
