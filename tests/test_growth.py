"""What tests of memory measure: one object, or one buffer, that a step leaves behind is found."""

import mmap

import genesis
from tests.growth import growth


def test_steps_that_leave_nothing_are_flat():
    assert growth(lambda: genesis.ones(3).sum().item()).is_flat()


def test_an_object_that_each_step_leaves_is_found():
    left: list[object] = []
    found = growth(lambda: left.append(object()), warm=10)
    assert found.objects >= found.steps and not found.is_flat()


def test_a_buffer_that_each_step_leaves_is_found():
    left: list[genesis.Tensor] = []
    found = growth(lambda: left.append(genesis.ones(64).exp_()) or left[-1].tolist(), warm=10)
    # Two results' memory lies ready at the start of a window, and may be in use at its end.
    assert found.buffers >= 64 * 4 * (found.steps - 2) and not found.is_flat()


def test_a_page_that_python_does_not_count_is_found():
    left: list[mmap.mmap] = []
    found = growth(lambda: left.append(mmap.mmap(-1, 4096)) or left[-1].write_byte(1), warm=10)
    assert found.resident >= 4000 * found.steps and not found.is_flat()
