"""Elements of tensors in memory are set at once: as PyTorch sets them, for all who see the tensor."""

import random
import sys

import numpy as np
import pytest
import torch

import genesis
from tests.robustness.interrupts import Moments

INDICES = [
    0, -1, (1, 2), (slice(1, None), 0), slice(None, None, 2), ..., (..., -1), (0, slice(0, 0)), (slice(None), slice(1, 3)), 7,
    (0, 0, 0), [0, 2], (None, 0), np.int64(1), True,
]
VALUES = [5, -1.5, True, 300, float("nan"), 1 + 2j]
DTYPES = ["float32", "int64", "uint8", "bool", "bfloat16", "complex64"]


def outcome(library, dtype, start, change):
    x = start(library, getattr(library, dtype))
    genesis.synchronize()
    try:
        change(library, x)
        return x.to(library.complex64).tolist()
    except (RuntimeError, ValueError, TypeError, IndexError):
        return "refused"


STARTS = {
    "zeros": lambda library, dtype: library.zeros(3, 4, dtype=dtype),
    "full": lambda library, dtype: library.full((3, 4), 1, dtype=dtype),
    "memory": lambda library, dtype: library.arange(12).reshape(3, 4).to(dtype).clone(),
    "columns": lambda library, dtype: library.arange(12).to(dtype).clone().reshape(4, 3).t(),
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_set_as_pytorch_sets_them(start, dtype):
    for index in INDICES:
        for value in VALUES if index == 0 else VALUES[:2]:
            ours, theirs = (
                outcome(library, dtype, STARTS[start], lambda library, x, i=index, v=value: x.__setitem__(i, v))
                for library in (genesis, torch))
            assert str(ours) == str(theirs), (index, value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_written_and_index_as_in_pytorch(dtype):
    def changes(library):
        own = getattr(library, dtype)
        yield 0, library.ones(4, dtype=own).clone()
        yield (slice(None), 1), library.tensor([1, 0, 1]).to(own)
        yield 1, library.tensor([[1, 0, 1, 0]]).to(own)  # leading axes of one element are dropped
        yield 1, library.ones(3).to(own)  # does not fit
        yield 2, library.ones(4, dtype=library.float64)
        yield library.tensor([0, 2]), library.zeros(4).to(own)
        yield library.tensor([0, 0, -1]), 1
        yield library.tensor([True, False, True]), library.ones(2, 4).to(own)
        yield library.tensor([True, False]), 1

    for at, _ in enumerate(changes(torch)):
        ours, theirs = (
            outcome(library, dtype, STARTS["memory"], lambda library, x, k=at: x.__setitem__(*computed([*changes(library)][k])))
            for library in (genesis, torch))
        assert str(ours) == str(theirs), at


@pytest.mark.filterwarnings("error")
def test_numbers_that_numpy_converts_otherwise_are_set_as_by_kernels():
    for dtype, value in (("uint8", 300), ("int64", float("nan")), ("float32", 2**63), ("float32", 10**400), ("float32", 1e39)):
        with pytest.raises((ValueError, OverflowError), match=r"overflow|does not fit"):
            genesis.ones(3, dtype=getattr(genesis, dtype))[0] = value
    x = genesis.zeros(3, dtype=genesis.uint8)
    x[0] = -1
    x.fill_(-2)
    x[1] = -3  # over a constant that NumPy has no such number for
    assert x.tolist() == [254, 253, 254]
    with pytest.raises(ValueError, match="broadcast"):
        genesis.zeros(3)[genesis.tensor([True, False, True])] = genesis.ones(2, 2).clone()


def computed(pair):
    genesis.synchronize()
    return pair


def test_views_and_what_was_computed_before():
    for library in (genesis, torch):
        x = library.zeros(3, 4)
        row, before, detached = x[1], x + 1, x.detach()
        x[1, 2] = 5
        row[0] = 7
        assert row.tolist() == [7.0, 0.0, 5.0, 0.0] == x[1].tolist() == detached[1].tolist()
        assert before.tolist() == [[1.0] * 4] * 3
        copy = x.clone()
        x[...] = 0
        assert copy[1].tolist() == [7.0, 0.0, 5.0, 0.0] and row.sum().item() == 0


def test_memory_that_numpy_shares():
    x = computed(genesis.zeros(4))
    shared = x.numpy()
    x[1] = 3
    address = x.data_ptr()
    x[2] = 4
    assert shared.tolist() == [0, 3, 4, 0] and x.data_ptr() == address
    array = np.zeros(3)
    genesis.from_numpy(array)[0] = 2
    assert array.tolist() == [2, 0, 0]


def test_what_backward_needs_may_not_be_changed():
    for library in (genesis, torch):
        x, w = library.zeros(3).clone(), library.ones(3, requires_grad=True)
        loss = (x * w).sum()
        loss.item()
        x[0] = 1
        with pytest.raises(RuntimeError, match=r"modified.*") as problem:
            loss.backward()
        assert library is torch or f"index_put (at {__file__}:" in str(problem.value)
        loss = (x * w).sum()
        loss.backward()
        assert w.grad.tolist() == [1.0, 0.0, 0.0] and x._version > 0


def test_gradients_flow_through_what_is_written():
    for library in (genesis, torch):
        x, w = library.zeros(3), library.tensor([2.0], requires_grad=True)
        x[0] = 1
        x[1:2] = w * 3
        (x * x).sum().backward()
        assert w.grad.tolist() == [36.0]
        leaf = library.zeros(3, requires_grad=True)
        with pytest.raises(RuntimeError):
            leaf[0] = 1


def test_a_recorded_call_sees_and_makes_such_writes():
    table = genesis.zeros(4)

    @genesis.compile
    def step(x):
        table[0] = 2
        return (table * x).sum()

    for number in range(4):
        table[1] = number
        assert step(genesis.ones(4)).item() == 2 + number


def test_other_elements_need_no_new_program():
    choose = random.Random(0)

    def padded():
        x, mask = genesis.full((8, 9), -1), genesis.zeros(8, 9, dtype=genesis.bool)
        for row in range(8):
            length = choose.randrange(1, 10)
            x[row, :length] = genesis.tensor([choose.randrange(5) for _ in range(length)])
            mask[row, :length] = True
        return (x * mask).sum().item()

    padded()
    built = genesis.debug.stats()["plans_built"]
    for _ in range(5):
        padded()
    assert genesis.debug.stats()["plans_built"] == built


@pytest.mark.parametrize("shape", [(8, 9), (60, 700)])
def test_other_elements_of_what_is_pending_need_no_new_program(shape):
    weights, built, choose = [library.ones(shape).requires_grad_() for library in (genesis, torch)], [], random.Random(1)
    starts = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def masked(library, weight, rows, columns):
        x = (library.from_numpy(starts) - 3) / 2
        x[rows, columns] = -1.0
        x[rows] = x[rows] * library.ones(shape[1])
        loss = (weight * x).tanh().sum()
        loss.backward()
        gradient, weight.grad = weight.grad, None
        return loss.item(), gradient.tolist()

    for _ in range(12):
        first, second = choose.randrange(5), choose.randrange(4)
        chosen = slice(first, first + choose.randrange(1, 4)), slice(second, second + choose.randrange(1, 5))
        ours, theirs = (masked(library, weight, *chosen) for library, weight in zip((genesis, torch), weights, strict=True))
        assert ours[0] == pytest.approx(theirs[0], rel=1e-4) and np.allclose(ours[1], theirs[1], atol=1e-5)
        built.append(genesis.debug.stats()["plans_built"])
    assert built[-1] - built[7] <= 5  # of the read part's sizes


def test_unrolled_loops_stay_one_program():
    def filled():
        x = genesis.ones(200, 100) * 3
        for row in range(6):
            x[row, row : row + 3] = float(row)
        return x.sum().item()

    filled()
    built = genesis.debug.stats()["plans_built"]
    for _ in range(6):
        filled()
    assert genesis.debug.stats()["plans_built"] == built


def test_a_large_tensor_is_written_where_it_is():
    table, row = computed(genesis.zeros(1000, 100)), computed(genesis.arange(100.0).clone())
    rows = computed(row.expand(2, 100).clone())
    table[0, 0] = 0.5  # from now on it has no other owner
    address, built = table._array.memory.pointer, genesis.debug.stats()["plans_built"]
    want = np.zeros((1000, 100), np.float32)
    want[0, 0] = 0.5
    for at in range(40):
        table[at * 7] = row
        table[at, 3:5] = at
        table[genesis.tensor([at, -at - 1])] = rows if at == 0 else 2.0
        want[at * 7], want[at, 3:5], want[[at, -at - 1]] = np.arange(100), at, np.arange(100) if at == 0 else 2
    assert genesis.debug.stats()["plans_built"] - built <= 1 and table._array.memory.pointer == address
    np.testing.assert_array_equal(table.numpy(), want)


def test_additions_here_and_there_are_one_program():
    choose, built = random.Random(2), []
    ours, theirs = computed(genesis.zeros(300, 300)), torch.zeros(300, 300)
    counts = [computed(genesis.zeros(5, 5, dtype=genesis.int64)), torch.zeros(5, 5, dtype=torch.int64)]
    for _ in range(40):
        i, j = choose.randrange(300), choose.randrange(-300, 300)
        for table, count in ((ours, counts[0]), (theirs, counts[1])):
            table[i, j] += 0.5 * (1 + table[j].max() - table[i, j])
            table[i, 2:4] *= 3
            table[i].add_(1)
            count[i % 5, j % 5] += 1
        built.append(genesis.debug.stats()["plans_built"])
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    assert counts[0].tolist() == counts[1].tolist() and built[-1] == built[10]
    assert counts[0]._version == counts[1]._version == 80


def test_rows_of_a_large_tensor_are_read_where_they_are():
    table, built = computed(genesis.zeros(300, 300)), []
    table[0] = 1.0
    for at in range(12):
        table[at] += 2
        built.append(genesis.debug.stats()["plans_built"])
    assert table[:13, 5].tolist() == [3.0, *[2.0] * 11, 0.0] and built[-1] == built[0]


def owners(library):
    """Who sees the memory of `x`, or values from before: (x, what has to follow, what has to stay)."""
    def base():
        x = library.arange(100_000.0).clone()
        return computed(x)

    x = base()
    yield x, [], [computed(x * 1)]
    x = base()
    pending = x * 2
    yield x, [], [pending]
    x = base()
    yield x, [x[:10], x.detach(), x.view(100, 1000)[0], x.data], [x.clone(), x[:10].clone()]
    x = base()
    pending = x[5:9]
    yield x, [pending], [pending + 1]
    x = base()
    kept = computed(x[:50].clone())
    yield x, [], [kept, kept[3:]]


@pytest.mark.parametrize("change", ["set", "add", "fill", "many"])
def test_whoever_else_sees_the_memory(change):
    def changed(x):
        if change == "set":
            x[7] = -1
        elif change == "add":
            x[5:8] += 2
        elif change == "fill":
            x[2:90].fill_(4)
        else:
            x[[7, 9]] = 3

    for (x, follow, stay), (y, followed, stayed) in zip(owners(genesis), owners(torch), strict=True):
        for _ in range(2):
            changed(x)
            changed(y)
            for ours, theirs in zip([x, *follow, *stay], [y, *followed, *stayed], strict=True):
                assert ours.tolist() == theirs.tolist()


def test_what_a_program_or_backward_reads_is_not_written_over():
    for library in (genesis, torch):
        x, w = computed(library.arange(50_000.0).clone()), library.full((50_000,), 2.0, requires_grad=True)
        loss = (x * w).sum()
        loss.item()
        x[3] += 1
        with pytest.raises(RuntimeError, match="modified"):
            loss.backward()
        leaf = library.zeros(50_000, requires_grad=True)
        with pytest.raises(RuntimeError):
            leaf[2] += 1
        with pytest.raises(RuntimeError):
            leaf[2] = leaf[2]
        with library.no_grad():
            leaf[2] += 1
            leaf[3] = 5
        assert leaf[1:4].tolist() == [0, 1, 5] and leaf.requires_grad


@pytest.mark.parametrize("shape", [(4, 3), (300, 300)])
@pytest.mark.parametrize("change", [lambda x, row: x.__setitem__((1, 2), 5), lambda x, row: row.fill_(5)])
def test_what_a_signal_handler_writes_in_between_stays(monkeypatch, change, shape):
    fills = sys.modules["genesis.functions.methods.writing"]._fills
    monkeypatch.setattr(fills, "call", fills.by_python)  # no handler runs within machine code
    within = "written_at_once", "writable_memory", "is_sole_owner", "numpy", "assign", "overwrite"
    moment, moments = 0, Moments()
    while moments.count >= moment:
        moment += 1
        x = computed(genesis.zeros(shape))
        x[3] = 1
        row = x[1]
        moments = Moments(moment, within, handler=lambda x=x: x.__setitem__(0, 9))
        moments.during(lambda x=x, row=row: change(x, row))
        if moments.count == moment:
            assert x[0].tolist() == [9] * shape[1] and x[1, 2].item() == row[2].item() == 5, moments.where
    assert moment > 5


@pytest.mark.parametrize("write", [
    lambda library, x: x.zero_(), lambda library, x: x.fill_(2.5), lambda library, x: x[1].copy_(x[0]),
    lambda library, x: x.copy_(library.arange(3.0)), lambda library, x: x.t().copy_(x.t().flip(0).clone()),
])
def test_filling_and_copying_leave_what_others_have(write):
    seen = []
    for library in (genesis, torch):
        x, w = computed(library.arange(6.0).reshape(2, 3).clone()), library.ones(2, 3, requires_grad=True)
        row, former, pending, kept = x[1], x.clone(), x + 1, (x * w).sum()
        write(library, x)
        seen.append([each.tolist() for each in (x, row, former, pending, kept)])
        with pytest.raises(RuntimeError):
            kept.backward()
        lent = x.numpy()
        write(library, x)
        assert lent.tolist() == x.tolist() == [*map(list, zip(*x.t().tolist(), strict=True))]
    assert seen[0] == seen[1]


def test_a_write_that_fails_changes_nothing():
    table = computed(genesis.zeros(400, 400))
    table[0] = 1.0
    for index, value in ((400, 1.0), ((0, 401), 2.0), (0, genesis.ones(3)), (genesis.tensor([3, 900]), 1.0)):
        with pytest.raises((IndexError, ValueError)):
            table[index] = value
            table.sum().item()
    indices = computed(genesis.tensor([0, 900]))
    with pytest.raises(IndexError):
        table[5].copy_(table[indices].sum(0))
        table.sum().item()
    assert table.sum().item() == 400


@pytest.mark.parametrize("number", [(1 << 60) + (1 << 36) + 1, (1 << 54) + (1 << 30) + 1, -(1 << 60) - (1 << 36) - 1])
def test_large_integers_are_rounded_once(number):
    """To the nearer neighbour, which rounding to float64 first would miss."""
    x = genesis.zeros(3)
    x.tolist()
    x.fill_(number)
    x[0] = number
    near = np.float32(number)
    nearest = min((np.nextafter(near, np.float32(end)) for end in (-np.inf, 0, np.inf)), key=lambda one: abs(int(one) - number))
    assert x.numpy().tolist() == [nearest] * 3
