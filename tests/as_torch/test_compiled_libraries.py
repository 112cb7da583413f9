"""Libraries with parts that are compiled for PyTorch: what stands in their place, beside torch's and SciPy's results."""

import importlib
import sys

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

import genesis
from genesis.as_torch.finder import Finder, look_up
from genesis.as_torch.table import AMENDED
from tests.tolerances import assert_close

OPS = look_up("torch", "ops").torchvision


def test_a_module_that_loads_a_compiled_part_gets_other_names_once_it_has_run(tmp_path, monkeypatch):
    (tmp_path / "loads_a_part.py").write_text("def load():\n    raise OSError\nkept = load\n")
    monkeypatch.setitem(AMENDED, "loads_a_part", {"load": len})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    module = importlib.import_module("loads_a_part")
    assert module.load is len and module.kept is not len
    assert module.__file__ == str(tmp_path / "loads_a_part.py")
    monkeypatch.setitem(AMENDED, "no_such_library", {"load": len})
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        importlib.import_module("no_such_library")


def overlap(a, b):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = sides.prod() if (sides > 0).all() else 0.0
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9])
def test_boxes_that_are_kept_overlap_little_and_all_others_overlap_one_of_a_higher_score(threshold):
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 30, (60, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0, 25, (60, 2))], 1)
    scores = rng.integers(0, 20, 60) / 20  # with ties
    kept = OPS.nms(genesis.tensor(boxes), genesis.tensor(scores), threshold)
    assert kept.dtype == genesis.int64
    kept = kept.tolist()
    order = np.lexsort((np.arange(60), -scores)).tolist()
    assert kept == sorted(kept, key=order.index)
    for place, box in enumerate(order):
        before = [other for other in order[:place] if other in kept and overlap(boxes[box], boxes[other]) > threshold]
        assert (box in kept) == (not before)
    assert OPS.nms(genesis.zeros(0, 4), genesis.zeros(0), 0.5).tolist() == []
    assert OPS.nms(genesis.zeros(2, 4), genesis.tensor([0.1, 0.2]), 0.5).tolist() == [1, 0]  # empty boxes overlap nothing


def deformed(x, weight, offset, mask, bias, stride, padding, dilation, groups, offset_groups):
    given = [None if v is None else genesis.tensor(v, requires_grad=True) for v in (x, weight, offset, mask, bias)]
    sizes = [*stride, *padding, *dilation]
    x, weight, offset, mask, bias = given
    return given, OPS.deform_conv2d(x, weight, offset, genesis.zeros(0) if mask is None else mask, bias, *sizes, groups,
                                    offset_groups, mask is not None)


def test_deformable_convolution_without_offsets_is_convolution_with_its_gradients():
    rng = np.random.default_rng(4)
    x, weight, bias = (rng.standard_normal(s) for s in ((2, 4, 9, 8), (6, 2, 3, 2), 6))
    sizes = (2, 1), (1, 2), (2, 1)
    given, result = deformed(x, weight, np.zeros((2, 24, 4, 11)), None, bias, *sizes, 2, 2)
    leaves = [torch.tensor(v, requires_grad=True) for v in (x, weight, bias)]
    expected = torch.conv2d(*leaves, *sizes, 2)
    assert_close(result, expected.detach().numpy())
    result.square().sum().backward()
    expected.square().sum().backward()
    for leaf, other in zip(leaves, (given[0], given[1], given[4]), strict=True):
        assert_close(other.grad, leaf.grad.numpy())


def test_deformable_convolution_reads_between_pixels_and_zeros_beyond_them():
    rng = np.random.default_rng(5)
    x, weight, bias = (rng.standard_normal(s) for s in ((2, 4, 6, 7), (3, 4, 2, 2), 3))
    offset, mask = rng.uniform(-4, 4, (2, 16, 3, 4)), rng.uniform(0, 1, (2, 8, 3, 4))
    _, result = deformed(x, weight, offset, mask, bias, (2, 2), (1, 1), (1, 1), 1, 2)
    expected = np.zeros((2, 3, 3, 4)) + bias[:, None, None]
    for n, o, i, j, channel, a, b in np.ndindex(2, 3, 3, 4, 4, 2, 2):
        tap = (channel // 2) * 4 + 2 * a + b  # two channels share their offsets
        at = [2 * i - 1 + a + offset[n, 2 * tap, i, j], 2 * j - 1 + b + offset[n, 2 * tap + 1, i, j]]
        value = map_coordinates(x[n, channel], np.array(at)[:, None], order=1, mode="grid-constant", cval=0.0)[0]
        expected[n, o, i, j] += weight[o, channel, a, b] * mask[n, tap, i, j] * value
    assert_close(result, expected)


def test_boxes_are_compared_as_in_torchvision():
    boxes, scores = genesis.tensor([[0.0, 0, 10, 1], [0, 0, 3, 1]]), genesis.tensor([0.9, 0.8])
    assert float(np.float32(3) / np.float32(10)) > 0.3  # the threshold is a double
    assert OPS.nms(boxes, scores, 0.3).tolist() == [0]
    assert OPS.nms(boxes, genesis.tensor([0.9, float("nan")]), 0.5).tolist() == [1, 0]  # NaN is the highest score
    assert OPS.nms((boxes * 1000).half(), scores.half(), 0.2).tolist() == [0]  # whose areas overflow 16 bits
    for wrong in (scores[:1], scores[:, None]):
        with pytest.raises(ValueError, match="want"):
            OPS.nms(boxes, wrong, 0.3)


def test_offsets_on_pixels_have_the_gradients_beyond_them():
    rng = np.random.default_rng(6)
    x, weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((1, 2, 7, 5), (3, 2, 3, 3), 3))
    shape = 1, 18, 7, 5
    sizes = (1, 1), (1, 1), (1, 1)
    for start in (np.zeros(shape, np.float32), rng.integers(-2, 3, shape).astype(np.float32)):
        given, result = deformed(x, weight, start, None, bias, *sizes, 1, 1)
        result.sum().backward()
        step = np.float32(2.0**-4)  # results are linear between pixels
        for at in zip(*(rng.integers(0, n, 12) for n in shape), strict=True):
            moved = start.copy()
            moved[at] += step
            rise = float((deformed(x, weight, moved, None, bias, *sizes, 1, 1)[1] - result).double().sum()) / step
            assert given[2].grad[at].item() == pytest.approx(rise, abs=2e-3)
