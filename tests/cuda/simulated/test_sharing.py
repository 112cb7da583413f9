"""Memory of a GPU that other libraries see: by DLPack and by the array interface, both ways, without a copy."""

import gc

import numpy as np
import pytest

import genesis
from genesis.runtime.dlpack import exported, imported

DEVICE = genesis.device("cuda")


def address(tensor):
    return imported(tensor.__dlpack__()).address


class Foreign:
    """Another library's array on the GPU: memory of a tensor that only this knows."""

    def __init__(self, values, strides=None):
        self.kept = genesis.tensor(values, device=DEVICE)
        self.shape = np.shape(values)
        self.strides = strides
        self.alive = True

    @property
    def address(self):
        return self.kept._array.memory.buffer.ptr

    def read(self):
        return np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * self.kept.numel()).from_address(self.address))


class ByDLPack(Foreign):
    def __dlpack__(self, stream):
        steps = self.strides or tuple(s // 4 for s in np.empty(self.shape, np.float32).strides)
        return exported(self.address, self.shape, steps, "float32", (2, 0), self)

    def __dlpack_device__(self):
        return 2, 0


class ByInterface(Foreign):
    @property
    def __cuda_array_interface__(self):
        steps = self.strides and tuple(4 * s for s in self.strides)
        return {
            "data": (self.address, False), "shape": self.shape, "strides": steps, "typestr": "<f4", "version": 3, "stream": 1,
        }


TAKEN = {"DLPack": (ByDLPack, genesis.from_dlpack), "interface": (ByInterface, genesis.as_tensor)}


@pytest.mark.parametrize("way", TAKEN)
def test_memory_of_others_is_read_and_written_where_it_lies(way):
    kind, taken = TAKEN[way]
    theirs = kind([[1.0, 2.0], [3.0, 4.0]])
    ours = taken(theirs)
    assert ours.device is DEVICE and ours.dtype is genesis.float32 and ours.tolist() == [[1, 2], [3, 4]]
    pending = ours * 10
    theirs.read()[0] = 7
    assert pending.tolist() == [[10, 20], [30, 40]], "read when it was written down, not when it was looked at"
    assert ours.tolist() == [[7, 2], [3, 4]]
    ours.add_(1)
    ours[1] = 0
    assert theirs.read().tolist() == [8, 3, 0, 0]


@pytest.mark.parametrize("way", TAKEN)
def test_strides_of_others_are_kept(way):
    kind, taken = TAKEN[way]
    theirs = kind([[1.0, 2.0], [3.0, 4.0]], strides=(1, 2))
    ours = taken(theirs)
    assert ours.tolist() == [[1, 3], [2, 4]] and ours.stride() == (1, 2)
    assert (ours + 1).tolist() == [[2, 4], [3, 5]]
    ours[0, 1] = 9
    assert theirs.read().tolist() == [1, 2, 9, 4]


def test_others_read_a_tensor_where_it_lies_as_long_as_they_like():
    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]], device=DEVICE)
    found = imported(x.T.__dlpack__())
    assert (found.shape, found.strides, found.dtype, found.device) == ((2, 2), (1, 2), "float32", (2, 0))
    again = genesis.from_dlpack(x[1])
    assert x.__dlpack_device__() == (2, 0) and address(again) == address(x[1]) == found.address + 8
    x.mul_(2)
    assert again.tolist() == [6, 8], "what others see is written at once"
    del x, found
    gc.collect()
    assert again.tolist() == [6, 8]


def test_the_array_interface_tells_where_a_tensor_lies():
    x = genesis.tensor([[1, 2], [3, 4]], device=DEVICE) + 1
    about = x.T.__cuda_array_interface__
    assert (about["shape"], about["strides"], about["typestr"]) == ((2, 2), (8, 16), "<i8")
    assert about["data"] == (address(x), False)
    x.add_(1)
    assert x.__cuda_array_interface__["data"][0] == about["data"][0], "a write stays where others look"
    y = genesis.ones(2, device=DEVICE, requires_grad=True)
    for other in (x.cpu(), y, y.detach().bfloat16()):
        assert not hasattr(other, "__cuda_array_interface__")


def test_who_wants_it_elsewhere_is_told():
    x = genesis.ones(2, device=DEVICE)
    with pytest.raises(BufferError, match="the tensor is on cuda:0"):
        x.__dlpack__(dl_device=(1, 0))
    with pytest.raises((BufferError, RuntimeError), match=r"(?i)device"):
        np.from_dlpack(x)
    with pytest.raises(RuntimeError, match="detach"):
        genesis.ones(2, device=DEVICE, requires_grad=True).__dlpack__()


def test_capsules_are_taken_once():
    capsule = genesis.ones(2, device=DEVICE).__dlpack__()
    assert genesis.from_dlpack(capsule).tolist() == [1, 1]
    with pytest.raises(BufferError, match="nobody has taken it"):
        genesis.from_dlpack(capsule)


def test_what_was_lent_comes_back(memory):
    before = 0
    for _ in range(3):  # the first makes programs, which stay; a capsule that nobody used goes when the next is made
        before = genesis.cuda.memory_allocated()
        capsule = genesis.zeros(1000, device=DEVICE).__dlpack__()
        taken = genesis.from_dlpack(genesis.ones(1000, device=DEVICE))
        assert genesis.cuda.memory_allocated() > before
        del capsule, taken
        gc.collect()
    assert genesis.cuda.memory_allocated() == before
