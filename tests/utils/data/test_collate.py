"""Collating: structures, types and dtypes as torch's."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
import torch.utils.data

import genesis
from genesis.utils.data import default_collate, default_convert
from tests.tolerances import to_numpy

Point = namedtuple("Point", "x y")


@dataclass
class Batch:
    inputs: object
    targets: object


def same(ours, theirs):
    """Equal structure, values and dtypes; a genesis tensor for each of torch's."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, genesis.Tensor)
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs), strict=True)
    elif isinstance(theirs, dict):
        assert type(ours) is type(theirs) and list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple | deque):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    else:
        assert type(ours) is type(theirs) and ours == theirs


SAMPLES = {
    "ints": [1, 2, 3], "bools": [True, False], "floats": [0.5, 1.5], "strings": ["a", "b"], "bytes": [b"a", b"b"],
    "arrays": [np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)], "scalars": [np.float32(1.5), np.float32(2)],
    "doubles": [np.arange(3.0), np.arange(3.0)], "tuples": [(1, 0.5, np.ones(2)), (2, 1.5, np.zeros(2))],
    "lists": [[1, 2], [3, 4]], "named": [Point(1, 2.0), Point(3, 4.0)],
    "dicts": [{"x": 1, "y": [1, 2]}, {"x": 2, "y": [3, 4]}], "ordered": [OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)],
    "defaults": [defaultdict(int, a=1), defaultdict(int, a=2)], "nested": [(Point(1, (2, 3)), {"z": 0.5})] * 3,
    "ranges": [range(2), range(3, 5)], "strings of numpy": [np.str_("a"), np.str_("b")], "queues": [deque([1, "a"])] * 2,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_batches_are_torchs(name):
    same(default_collate(SAMPLES[name]), torch.utils.data.default_collate(SAMPLES[name]))


@pytest.mark.parametrize("name", SAMPLES)
def test_single_samples_are_torchs(name):
    same(default_convert(SAMPLES[name][0]), torch.utils.data.default_convert(SAMPLES[name][0]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_tensors_are_stacked(dtype):
    rows = [[1, 0, 1], [0, 1, 1]]
    ours = default_collate([genesis.tensor(r, dtype=getattr(genesis, dtype)) for r in rows])
    same(ours, torch.tensor(rows, dtype=getattr(torch, dtype)))
    assert ours.is_leaf


def test_brain_floats_of_numpy_are_stacked():
    assert default_collate([np.ones(2, ml_dtypes.bfloat16)] * 2).dtype is genesis.bfloat16


def test_tensors_that_require_gradients_pass_them_on():
    x = genesis.ones(2, requires_grad=True)
    default_collate([x, x * 2]).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_dataclasses_keep_their_type():
    batch = default_collate([Batch(np.ones(2), 1), Batch(np.zeros(2), 2)])
    assert type(batch) is Batch and batch.inputs.tolist() == [[1, 1], [0, 0]] and batch.targets.tolist() == [1, 2]


def test_a_batch_is_a_copy():
    x = genesis.zeros(2)
    batch = default_collate([x, x])
    x.fill_(1)
    assert batch.tolist() == [[0, 0], [0, 0]]


def test_what_does_not_fit_says_so():
    with pytest.raises(ValueError, match=r"samples have shapes \(2,\) and \(3,\); make them equal"):
        default_collate([genesis.ones(2), genesis.ones(3)])
    with pytest.raises(ValueError, match=r"samples have \[1, 2\] parts; want as many in each"):
        default_collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="cannot put samples of type object into one batch; give the loader a collate_fn"):
        default_collate([object()])


def test_strings_of_tuples_are_a_tuple_and_those_of_dicts_a_list():
    for samples in ([(1, "a"), (2, "b")], [{"n": "a"}, {"n": "b"}], ["a", "b"], [([1, "a"],), ([2, "b"],)]):
        found, expected = default_collate(samples), torch.utils.data.default_collate(samples)
        assert repr(found) == repr(expected)
