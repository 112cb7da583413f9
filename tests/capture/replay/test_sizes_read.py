"""Compiled functions whose results have sizes that values decide: equal to NumPy's, and replayed where a size comes again."""

import numpy as np
import pytest

import genesis
from genesis.nn import functional as F
from genesis.runtime.instructions import are_possible

COUNTS = [np.array(values) for values in ([3, 0, 1, 3, 0], [1, 1, 0, 2, 0], [2, 2, 2, 0, 3])]
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)
CASES = {
    "bincount": (lambda x: genesis.bincount(x), np.bincount),
    "bincount, weighted": (lambda x: genesis.bincount(x, x * 0.1, 5), lambda x: np.bincount(x, (x * 0.1).astype("f4"), 5)),
    "one_hot": (lambda x: F.one_hot(x), lambda x: np.eye(x.max() + 1, dtype=int)[x]),
    "nonzero": (lambda x: genesis.nonzero(x), np.argwhere),
    "nonzero as a tuple": (lambda x: genesis.nonzero(x.reshape(1, 5), as_tuple=True), lambda x: np.nonzero(x.reshape(1, 5))),
    "argwhere": (lambda x: genesis.argwhere(x > 1), lambda x: np.argwhere(x > 1)),
    "unique": (lambda x: genesis.unique(x, return_inverse=True, return_counts=True),
               lambda x: np.unique(x, return_inverse=True, return_counts=True)),
    "unique_consecutive": (lambda x: genesis.unique_consecutive(x), lambda x: x[np.append(True, x[1:] != x[:-1])]),
    "masked_select": (lambda x: genesis.masked_select(x, x > 0), lambda x: x[x > 0]),
    "an index by a mask": (lambda x: x[x > 1] * 2, lambda x: x[x > 1] * 2),
    "masked_scatter": (lambda x: x.masked_scatter(x > 1, x * 10), lambda x: np.where(x > 1, x[np.cumsum(x > 1) - 1] * 10, x)),
    "repeat_interleave": (lambda x: genesis.arange(10.0).reshape(5, 2).repeat_interleave(x, 0),
                          lambda x: np.repeat(ROWS, x, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_numpys(name):
    function, reference = CASES[name]
    compiled = genesis.compile(function)
    for k in range(15):
        values = COUNTS[k % 3]
        found, wanted = compiled(genesis.tensor(values)), reference(values)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for one, other in pairs:
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)
            assert one.shape == other.shape
    assert not compiled.refusals and sum(entry.replays for entry in compiled.entries) >= 9
    if are_possible():
        assert all(entry.native is not None for entry in compiled.entries), [entry.refusal for entry in compiled.entries]


@pytest.mark.parametrize("function, message", [
    (lambda x: genesis.bincount(x), "bincount: wants ints of 0 or more"),
    (lambda x: genesis.ones(5).repeat_interleave(x), None),
])
def test_negative_counts_raise_in_replayed_functions(function, message):
    compiled = genesis.compile(function)
    for _ in range(6):
        compiled(genesis.tensor(COUNTS[0]))
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            compiled(genesis.tensor([1, -1, 0, 2, 0]))
    assert compiled(genesis.tensor(COUNTS[0])).tolist() == function(genesis.tensor(COUNTS[0])).tolist()


def test_gradients_go_through_an_index_by_a_mask():
    def picked(x):
        return (x[x > 0] ** 2).sum()

    compiled = genesis.compile(picked)
    for values in ([1.0, -1.0, 2.0], [1.0, 3.0, 2.0], [1.0, -1.0, 2.0]) * 2:
        x = genesis.tensor(values, requires_grad=True)
        compiled(x).backward()
        assert x.grad.tolist() == [2 * max(value, 0.0) for value in values]


def test_nothing_to_count_has_its_size():
    none = genesis.tensor([], dtype=genesis.int64)
    for function in (lambda x: genesis.bincount(x, minlength=2), lambda x: genesis.unique(x), lambda x: genesis.nonzero(x)):
        compiled = genesis.compile(function)
        assert [compiled(none).tolist() for _ in range(4)] == [function(none).tolist()] * 4


def test_a_compiled_step_through_a_scattered_mask_is_replayed():
    x, source = genesis.arange(4.0).requires_grad_(), genesis.tensor([5.0, 7.0, 9.0], requires_grad=True)
    mask = genesis.tensor([False, True, False, True])

    def compute():
        return genesis.autograd.grad((x * 2).masked_scatter(mask, source * source).square().sum(), [x, source])

    step = genesis.compile(compute)
    for _ in range(6):
        by_x, by_source = step()
    assert by_x.tolist() == [0, 0, 16, 0] and by_source.tolist() == [4 * 5.0**3, 4 * 7.0**3, 0]
    assert not step.refusals and step.entries[0].replays


def test_a_source_too_short_for_its_mask_is_told_of():
    for count in (1, 0):
        with pytest.raises(ValueError, match=f"^masked_scatter: source has {count} elements, fewer than the mask has"):
            genesis.zeros(2).masked_scatter(genesis.ones(2, dtype=genesis.bool), genesis.ones(count)).tolist()
    assert genesis.zeros(2).masked_scatter(genesis.zeros(2, dtype=genesis.bool), genesis.ones(0)).tolist() == [0, 0]
