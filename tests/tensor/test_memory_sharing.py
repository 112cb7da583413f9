"""Memory shared with NumPy: results land in it, and what was written before a change keeps the value it had then."""

import copy
import gc
import weakref

import numpy as np
import pytest
import torch

import genesis
from genesis.runtime.dlpack import exported


@pytest.mark.parametrize("size", [3, 1 << 19])  # snapshot, and flush soon
def test_an_expression_keeps_the_value_that_shared_memory_had(size):
    array = np.zeros(size, np.float32)
    x = genesis.from_numpy(array)
    y = x + 1
    array[:] = 5
    assert (y.numpy()[0], x.numpy()[0]) == (1, 5)
    assert (x + 1).numpy()[0] == 6


def test_numpy_shares_and_fixes_what_came_before():
    x = genesis.zeros(3)
    y = x * 1 + 2
    array = x.numpy()
    array[0] = 9
    assert x.tolist() == [9, 0, 0]
    assert y.tolist() == [2, 2, 2]
    assert (x + 0).tolist() == [9, 0, 0]


def test_an_input_placed_before_it_was_shared_keeps_its_value():
    x = genesis.tensor([1.0, 2.0])
    y = x + 1
    array = x.numpy()
    array[:] = 100
    z = y + x
    assert (y.tolist(), z.tolist()) == ([2, 3], [102, 103])


def test_reads_between_writes_from_outside_see_each():
    array = np.zeros(2, np.float32)
    x = genesis.from_numpy(array)
    results = []
    for value in (1, 2, 3):
        array[:] = value
        results.append(x * 10)
    assert [r.tolist()[0] for r in results] == [10, 20, 30]


def test_in_place_results_land_in_shared_memory():
    array = np.arange(4, dtype=np.float32)
    x = genesis.from_numpy(array)
    x += 1
    x[0] = 7
    assert array.tolist() == [7, 2, 3, 4]
    x[1:].mul_(2)
    assert array.tolist() == [7, 4, 6, 8]


def test_a_view_shares_with_numpy_where_it_lies():
    x = genesis.zeros(2, 3)
    column = x[:, 1].numpy()
    column[:] = 4
    assert x.tolist() == [[0, 4, 0], [0, 4, 0]]
    x.add_(1)
    assert column.tolist() == [5, 5]


def test_strided_and_reversed_arrays_are_shared():
    array = np.arange(12, dtype=np.int64).reshape(3, 4)
    for part in (array[:, ::2], array.T, array[::-1, 1:]):
        x = genesis.from_numpy(part)
        assert x.tolist() == part.tolist()
        x.add_(100)
        assert x.tolist() == part.tolist()
        np.testing.assert_array_equal((x * 2).numpy(), part * 2)


def test_an_array_that_cannot_be_shared_is_refused():
    packed = np.zeros(3, [("flag", "u1"), ("value", "f4")])["value"]
    for share in (genesis.from_numpy, genesis.as_tensor, torch.from_numpy):
        with pytest.raises(ValueError, match="strides"):
            share(packed)
    assert genesis.tensor(packed).tolist() == [0, 0, 0]


def test_two_tensors_of_one_array_see_each_other():
    array = np.zeros(3, np.float32)
    x, y = genesis.from_numpy(array), genesis.from_numpy(array[1:])
    y.fill_(2)
    assert x.tolist() == [0, 2, 2]


def test_tensor_copies_and_as_tensor_shares():
    array = np.zeros(2, np.float32)
    copied, shared = genesis.tensor(array), genesis.as_tensor(array)
    array[0] = 1
    assert (copied.tolist(), shared.tolist()) == ([0, 0], [1, 0])


def test_detach_shares_memory():
    x = genesis.ones(2, requires_grad=True)
    x.detach().numpy()[0] = 8
    assert x.tolist() == [8, 1]


def test_numpy_refuses_what_requires_grad():
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires a gradient"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1, 1]


def test_the_array_outlives_the_tensor():
    array = (genesis.arange(3.0) * 2).numpy()
    assert array.tolist() == [0, 2, 4]


def test_dlpack_and_array_protocols_share():
    x = genesis.zeros(2)
    np.from_dlpack(x)[0] = 3
    np.asarray(x)[1] = 4
    assert x.tolist() == [3, 4]


def test_every_dtype_goes_through_numpy():
    for dtype in (np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_):
        array = np.array([0, 1, 1], dtype)
        assert genesis.from_numpy(array).numpy().dtype == dtype
        assert genesis.tensor(array).tolist() == array.tolist()
    with pytest.raises(TypeError, match="no dtype for"):
        genesis.from_numpy(np.zeros(2, np.clongdouble))


def test_numpy_operands_on_either_side_give_tensors():
    x, array = genesis.ones(2), np.array([1.0, 2.0], np.float32)
    for result in (array + x, x + array, np.float32(2) * x, x * np.float64(2)):
        assert isinstance(result, genesis.Tensor) and result.dtype is genesis.float32


def test_arrays_of_other_libraries_come_by_dlpack():
    theirs = torch.arange(6.0).reshape(2, 3)
    ours = genesis.from_dlpack(theirs.T)
    assert ours.shape == (3, 2) and ours.stride() == (1, 3)
    theirs[0, 1] = 9
    ours[2] = genesis.tensor([7.0, 8.0])
    assert ours.tolist() == [[0, 3], [9, 4], [7, 8]] and theirs.tolist() == [[0, 9, 7], [3, 4, 8]]
    for dtype in ("bfloat16", "float16", "int8", "bool", "float64"):
        assert genesis.from_dlpack(torch.ones(2, dtype=getattr(torch, dtype))).dtype is getattr(genesis, dtype)
    assert genesis.from_dlpack(torch.ones(())).shape == () and genesis.from_dlpack(torch.ones(0, 2)).shape == (0, 2)


def test_what_is_no_array_of_ours_is_told():
    with pytest.raises(TypeError, match="from_dlpack: wants an array with __dlpack__, got list"):
        genesis.from_dlpack([1, 2])
    owner = np.ones(4, np.uint64)
    with pytest.raises(BufferError, match="genesis has no dtype float128"):
        genesis.from_dlpack(exported(owner.ctypes.data, (2,), (1,), "float128", (1, 0), owner))
    assert genesis.from_dlpack(np.ones(2, np.uint16)).dtype is genesis.uint16


def test_a_storage_without_views_ends_when_data_is_replaced():
    x = genesis.ones(100_000) + 1  # too large for its program to keep
    x.tolist()
    former = weakref.ref(x._array.memory.buffer)
    x.data = x.data[:3] * 2
    x.tolist()
    gc.collect()
    assert former() is None


@pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "logcumsumexp", "sort", "cummax", "max", "kthvalue", "topk", "roll", "msort"])
def test_a_result_without_axes_is_no_other_name_of_the_operand(name):
    x = genesis.ones(4).sum()
    found = getattr(x, name)(*{"kthvalue": (1, 0), "topk": (1,), "roll": (1,), "msort": ()}.get(name, (0,)))
    y = found[0] if isinstance(found, tuple) else found
    y.numpy()
    x.numpy()[...] = 7
    assert y.item() == 4


AS_ARRAYS = {
    "a tensor": lambda lib, a, x: lib.asarray(x), "a copy": lambda lib, a, x: lib.asarray(x, copy=True),
    "another dtype": lambda lib, a, x: lib.asarray(x, dtype=lib.float64),
    "a cast that is refused": lambda lib, a, x: lib.asarray(x, dtype=lib.float64, copy=False),
    "a tensor, detached": lambda lib, a, x: lib.asarray(x * 2, requires_grad=False),
    "a tensor in its graph": lambda lib, a, x: lib.asarray(x * 2, requires_grad=True),
    "an array": lambda lib, a, x: lib.asarray(a, copy=False), "an array's copy": lambda lib, a, x: lib.asarray(a, copy=True),
    "an array, cast": lambda lib, a, x: lib.asarray(a, dtype=lib.float32, requires_grad=True),
    "an array that would be copied": lambda lib, a, x: lib.asarray(a, dtype=lib.float32, copy=False),
    "a number": lambda lib, a, x: lib.asarray(True), "a number of NumPy's": lambda lib, a, x: lib.asarray(np.float32(2)),
    "a number that would be copied": lambda lib, a, x: lib.asarray(1, copy=False),
    "lists": lambda lib, a, x: lib.asarray([[1], [2]], dtype=lib.int32),
    "lists with a gradient": lambda lib, a, x: lib.asarray([1.0, 2.0], requires_grad=True),
    "whole numbers with one": lambda lib, a, x: lib.asarray([1, 2], requires_grad=True),
    "a buffer": lambda lib, a, x: lib.asarray(bytearray(b"abcdefgh")),
    "a buffer of bytes": lambda lib, a, x: lib.asarray(bytearray(b"abcd"), dtype=lib.uint8, copy=False),
    "the dtype by position": lambda lib, a, x: lib.asarray(x, lib.float64),
}


@pytest.mark.parametrize("name", AS_ARRAYS)
def test_asarray_is_torchs(name):
    def outcome(lib):
        a, x = np.arange(3.0), lib.tensor([1.0, 2.0], requires_grad=True)
        try:
            made = AS_ARRAYS[name](lib, a, x)
        except (RuntimeError, TypeError, ValueError) as problem:
            return next(kind for kind in (TypeError, ValueError, RuntimeError) if isinstance(problem, kind)).__name__
        a[:] = 9
        result = made.tolist(), str(made.dtype).rpartition(".")[2], made.requires_grad, made.is_leaf, made is x
        return result

    ours, theirs = outcome(genesis), outcome(torch)
    assert ours == theirs or {ours, theirs} <= {"RuntimeError", "TypeError"}  # a dtype that takes no gradient is one of both


def test_devices_that_do_not_exist_are_runtime_errors_too():
    with pytest.raises(RuntimeError, match=r"Expected one of cpu, cuda, .*meta device type at start of device string"):
        genesis.device("nowhere")


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_shallow_copy_shares_memory(lib):
    leaf, part, parameter = lib.ones(3, requires_grad=True), lib.arange(4)[1:], lib.nn.Parameter(lib.ones(2))
    parameter.note = "kept"
    copies = [copy.copy(one) for one in (leaf, part, parameter, leaf * 2)]
    with lib.no_grad():
        for one in copies:
            one[0] = 7
    assert (leaf.tolist(), part.tolist(), parameter.tolist()) == ([7, 1, 1], [7, 2, 3], [7, 1])
    assert [(type(one), one.requires_grad, one.is_leaf) for one in copies] == [
        (lib.Tensor, True, True), (lib.Tensor, False, True), (lib.nn.Parameter, True, True), (lib.Tensor, True, True)]
    assert copies[2].note == "kept"
    assert copies[1].storage_offset() == 1


def test_deep_copies_share_a_copy_of_the_storage_as_their_originals_do():
    found = []
    for lib in (genesis, torch):
        x = lib.arange(6.0)
        w = lib.ones(3, requires_grad=True)
        given = [x[1:4], x, x.view(2, 3).t(), x, w, w.detach()[1:]]
        copied = copy.deepcopy(given)
        copied[0].mul_(10)
        copied[2][0, 1] = -1
        copied[5].fill_(7)
        (copied[4] * 2).sum().backward()
        assert copied[1] is copied[3]
        found.append([t.tolist() for t in [*copied, *given, copied[4].grad]])
    assert found[0] == found[1]


@pytest.mark.parametrize("write", [
    lambda x: x.add_(1), lambda x: x.fill_(1), lambda x: x.copy_(genesis.zeros(4, dtype=genesis.float64)),
    lambda x: x[1:3].add_(1), lambda x: x.__setitem__(1, 5.0), lambda x: x.view(2, 2)[0].copy_(x[2:].clone()),
])
def test_an_array_for_reading_is_not_written_to(write):
    values = np.arange(4.0)
    values.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        write(genesis.from_numpy(values))
    assert values.tolist() == [0, 1, 2, 3]
