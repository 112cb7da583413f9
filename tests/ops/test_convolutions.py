"""Convolutions and their gradients over settings and sizes, odd ones too, against torch; and what they keep in memory."""

import numpy as np
import pytest
import torch

import genesis
from genesis.codegen.cpu.emit import emit_kernel
from genesis.codegen.cpu.tiling import blocks_of, vector_bytes, width_of
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.lower.stages import Product, parts
from genesis.tensor.dispatch import array_of
from tests.devices import tensor
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
SETTINGS = {  # images, channels in and out, extents, window, (stride, padding, dilation, groups)
    "same": ((2, 3, 5), (16, 16), (3, 3), (1, 1, 1, 1)),
    "odd extents": ((1, 4, 7), (17, 19), (3, 3), (1, 1, 1, 1)),
    "steps of two": ((2, 4, 8), (20, 33), (3, 3), (2, 1, 1, 1)),
    "dilated, in groups": ((2, 4, 8), (20, 33), (3, 3), (1, 2, 2, 2)),
    "a group for each channel": ((3, 8, 8), (12, 12), (3, 3), (1, 1, 1, 8)),
    "wide, no padding": ((2, 3, 7), (9, 40), (5, 5), (1, 0, 1, 1)),
    "one axis at a time": ((2, 6, 4), (14, 28), (1, 5), ((1, 2), (0, 2), 1, 2)),
    "windows side by side": ((2, 2, 3), (30, 30), (4, 4), (4, 0, 1, 1)),
    "short rows": ((2, 3, 4), (7, 7), (3, 3), (1, 1, 1, 1)),
    "many channels": ((1, 37, 25), (10, 10), (3, 3), (1, 0, 1, 1)),
    "one of each": ((1, 1, 1), (8, 8), (3, 3), (1, 1, 1, 1)),
    "three steps, two taps": ((2, 3, 4), (31, 32), (2, 2), (3, 1, 1, 1)),
    "steps of two along one axis": ((2, 3, 4), (40, 21), (3, 5), ((2, 1), 1, (1, 2), 1)),
    "wide windows, two steps": ((1, 3, 4), (34, 35), (7, 6), (2, 3, 1, 1)),
}


def _results(library, operation, arrays, arguments):
    make = tensor if library is genesis else torch.tensor
    x, weight = (make(array, requires_grad=True) for array in arrays)
    y = getattr(library.nn.functional, operation)(x, weight, None, *arguments)
    (y * y.sin()).sum().backward()
    return y, x.grad, weight.grad


@pytest.mark.device
@pytest.mark.parametrize("name", SETTINGS)
def test_convolution_and_gradients_are_torchs(name):
    (images, channels, out), extents, window, (stride, padding, dilation, groups) = SETTINGS[name]
    x = RANDOM.normal(size=(images, channels, *extents))
    weight = RANDOM.normal(size=(out, channels // groups, *window))
    arguments = (stride, padding, dilation, groups)
    for ours, theirs in zip(*(_results(f, "conv2d", (x, weight), arguments) for f in (genesis, torch)), strict=True):
        assert_close(ours, theirs, scale=4)  # sums of hundreds of terms, in another order


@pytest.mark.device
@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("many channels", "one of each")])
def test_transposed_convolution_and_gradients_are_torchs(name):
    (images, channels, out), extents, window, (stride, padding, dilation, groups) = SETTINGS[name]
    x = RANDOM.normal(size=(images, channels, *extents))
    weight = RANDOM.normal(size=(channels, out // groups, *window))
    arguments = (stride, padding, 0, groups, dilation)
    for ours, theirs in zip(*(_results(f, "conv_transpose2d", (x, weight), arguments) for f in (genesis, torch)), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize(("operation", "shapes"), [
    ("conv1d", ((2, 3, 40), (4, 3, 3))), ("conv_transpose1d", ((2, 3, 20), (3, 4, 3))),
    ("conv2d", ((1, 2, 20, 21), (3, 2, 2, 3))),
])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_second_gradients_are_torchs(operation, shapes, stride):
    def second(library):
        x, weight = (library.tensor(array, requires_grad=True) for array in arrays)
        y = getattr(library.nn.functional, operation)(x, weight, stride=stride, padding=1)
        (first,) = library.autograd.grad((y * y * y).sum(), x, create_graph=True)
        return library.autograd.grad((first * first).sum(), (x, weight))

    arrays = [RANDOM.normal(size=shape) for shape in shapes]
    for ours, theirs in zip(second(genesis), second(torch), strict=True):
        assert_close(ours, theirs)


def test_second_gradients_after_a_look_at_the_first():
    def second(library):
        x, weight = (library.tensor(array, requires_grad=True) for array in arrays)
        around = library.nn.functional.pad(x, (1, 1))
        around.retain_grad()
        y = library.nn.functional.conv1d(around, weight, stride=2)
        first, padded = library.autograd.grad((y * y * y).sum(), (x, around), create_graph=True)
        assert first.sum().item() != 0
        return padded, *library.autograd.grad((first * first).sum(), (x, weight))

    arrays = RANDOM.normal(size=(2, 3, 40)), RANDOM.normal(size=(4, 3, 3))
    for ours, theirs in zip(second(genesis), second(torch), strict=True):
        assert_close(ours, theirs)


def test_gradients_after_a_look_at_what_came_from_a_transposed_convolution():
    def gradients(library):
        noise, weight = (library.tensor(array, requires_grad=True) for array in arrays)
        image = library.nn.functional.conv_transpose2d(noise, weight, stride=2, padding=1).tanh()
        assert image.detach().square().sum().item() > 0
        return library.autograd.grad(image.exp().sum(), (noise, weight))

    arrays = RANDOM.normal(size=(2, 6, 5, 16)), RANDOM.normal(size=(6, 3, 4, 4))
    for ours, theirs in zip(gradients(genesis), gradients(torch), strict=True):
        assert_close(ours, theirs)


def test_gradients_of_windows_steps_apart_are_products_with_windows():
    """No product of the input's gradient is larger than that gradient."""
    x, weight = (genesis.tensor(RANDOM.normal(size=shape), requires_grad=True) for shape in ((2, 8, 64, 64), (8, 8, 3, 3)))
    (x.sum() + weight.sum()).item()
    (gradient,) = genesis.autograd.grad(genesis.nn.functional.conv2d(x, weight, stride=2, padding=1).sum(), x)
    nodes = plan_for(array_of(gradient).trace).lowered.nodes
    assert max(node.numel for node in nodes if node.op == "matmul") <= x.numel() // 4


def test_examples_of_a_mapped_gradient_are_those_of_one_after_the_other():
    weight = genesis.tensor(RANDOM.normal(size=(3, 2, 3)))
    examples = genesis.tensor(RANDOM.normal(size=(4, 1, 2, 33)))

    def loss(x):
        return genesis.nn.functional.conv1d(x, weight, stride=2, padding=1).sin().sum()

    mapped = genesis.func.vmap(genesis.func.grad(loss))(examples)
    assert_close(mapped, np.stack([genesis.func.grad(loss)(x).numpy() for x in examples]))


def _training_plan():
    x = genesis.tensor(RANDOM.normal(size=(8, 8, 32, 32)).astype(np.float32), requires_grad=True)
    layer = genesis.nn.Conv2d(8, 8, 3, padding=1)
    weight = layer.weight.sum() + x.sum()
    weight.item()
    layer(x).square().sum().backward()
    return plan_for(array_of(x.grad).trace)


def test_no_matrix_of_windows_is_in_memory():
    windows = 8 * 8 * 9 * 32 * 32 * 4
    assert _training_plan().arena_bytes < windows


def test_convolution_and_gradients_are_blocked():
    calls = [call for stage in _training_plan().lowered.schedule.stages for call in stage if isinstance(call, KernelCall)]
    at_least = 16 if vector_bytes() == 64 else 8  # half of the registers
    assert sum(np.prod([*blocks_of(call.kernel, call.extents).values()]) >= at_least for call in calls) == 3


@pytest.mark.parametrize("columns", [5, 8, 9])
def test_rows_that_fill_half_a_vector_are_computed_in_halves(columns):
    x, weight = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((2, 6, 7, columns), (6, 1, 3, 3)))
    y = genesis.nn.functional.conv2d(genesis.tensor(x), genesis.tensor(weight), padding=1, groups=6)
    stages = plan_for(array_of(y).trace).lowered.schedule.stages
    [call] = [part for stage in stages for call in stage for part in parts(call)
              if isinstance(part, KernelCall) and part.kernel.factors is not None]
    assert (call.kernel.lane in blocks_of(call.kernel, call.extents)) == (columns <= width_of(call.kernel) // 2)
    assert_close(y, torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weight), padding=1, groups=6))


def test_windows_two_steps_apart_are_laid_out_and_those_of_the_gradient_are_read_as_vectors():
    x, weight = (genesis.tensor(RANDOM.normal(size=shape), requires_grad=True) for shape in ((2, 4, 32, 32), (6, 4, 3, 3)))
    (x.sum() + weight.sum()).item()
    genesis.nn.functional.conv2d(x, weight, stride=2, padding=1).square().sum().backward()
    stages = plan_for(array_of(weight.grad).trace).lowered.schedule.stages
    found = [part for stage in stages for call in stage for part in parts(call)]
    assert sum(isinstance(part, Product) for part in found) == 3  # forward, the weight's gradient, the input's of one tap
    kernels = [part.kernel for part in found if isinstance(part, KernelCall) and part.kernel.is_product]
    assert len(kernels) == 3  # of the input's gradient what has several taps
    assert not any("gathered" in emit_kernel(kernel, 8) for kernel in kernels)


def test_a_sum_that_is_added_to_an_input_in_its_place():
    x, weight = RANDOM.normal(size=(1, 3, 10, 10)).astype(np.float32), RANDOM.normal(size=(7, 3, 3, 3)).astype(np.float32)
    y = genesis.ones(1, 7, 10, 10)
    y.sum().item()
    for _ in range(3):
        y = genesis.nn.functional.conv2d(genesis.tensor(x), genesis.tensor(weight), padding=1) + y
        y.sum().item()
    assert_close(y, 3 * torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weight), padding=1) + 1)


def test_gradients_are_padded_no_further_than_windows_read():
    x, w = genesis.ones(2, 4, 10, 12, requires_grad=True), genesis.ones(3, 4, 3, 5)
    genesis.nn.functional.conv2d(x, w, padding=(1, 2)).square().sum().backward()
    lowered = plan_for(array_of(x.grad).trace).lowered
    assert {node.shape[-2:] for node in lowered.nodes if node.op == "put"} == {(12, 16)}
    assert x.grad[0, 0, 0, 0].item() == 1440  # as PyTorch computes
