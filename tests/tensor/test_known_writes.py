"""Writes that machine code makes: as Python makes them, and in programs of writes, views and looks as PyTorch's."""

import contextlib
import gc
import math
import random
import sys

import numpy as np
import pytest
import torch

import genesis
from genesis.runtime.instructions import are_possible
from genesis.tensor import dispatch
from genesis.tensor.in_memory import number_for
from genesis.tensor.known_calls.native import native
from genesis.tensor.writes_in_memory import combined
from genesis.tracing.trace import Change

writing, indexing = (sys.modules[f"genesis.functions.{name}"] for name in ("methods.writing", "indexing"))
pytestmark = pytest.mark.skipif(not are_possible(), reason="this interpreter's objects are laid out otherwise")


class Marked(genesis.Tensor):
    pass


@pytest.fixture
def by_python():
    """The tensors that machine code has left to Python."""
    return []


@pytest.fixture
def by_machine_code(monkeypatch, by_python):
    def noting(function):
        def noted(tensor, *given):
            by_python.append(tensor)
            return function(tensor, *given)

        return noted

    for calls in (writing._fills, indexing._sets, combined):
        monkeypatch.setattr(calls, "call", native("genesis_write", noting(calls.by_python), *calls.others))
    monkeypatch.setattr(dispatch.known, "call", dispatch.known._loaded())


def _own(dtype=genesis.float32):
    x = genesis.arange(12).reshape(3, 4).to(dtype) + genesis.tensor(0, dtype=dtype)
    x.tolist()
    x.zero_()  # into memory of its own
    return x


def test_memory_of_one_tensor_is_filled_by_machine_code(by_machine_code, by_python):
    x, values = _own(), genesis.arange(12.0)
    values.tolist()
    by_python.clear()
    assert x.fill_(2.5) is x and x[0].zero_() is not x
    x[1:].fill_(7)
    x.view(-1).copy_(values)
    assert not by_python and x.tolist() == np.arange(12.0).reshape(3, 4).tolist()


def _lent(x):
    return x, x.numpy()


SEEN = {
    "a view": lambda x: (x, x[0]), "NumPy": _lent, "a pending value": lambda x: (x, x + 1), "backward": lambda x: (
        x, (genesis.ones(3, 4, requires_grad=True) * x).sum()),
    "detached": lambda x: (x.detach(), x), "data": lambda x: (x.data, x), "a leaf": lambda x: (x.requires_grad_(),),
    "a subclass": lambda x: (x.as_subclass(Marked),), "a stale view": lambda x: (x[1], x.add_(1)),
    "a part of itself": lambda x: (x[:, ::2], x), "repeated": lambda x: (x[0].expand(3, 4), x),
    "inference": lambda x: (x, None),
}
VALUES = {
    "zero": 0, "a float": 2.5, "below zero": -0.0, "an int": 3, "large": 1 << 40, "beyond": 1 << 70,
    "true": True, "nan": math.nan, "infinite": math.inf, "complex": 1j, "much": 1e300,
    "tensor": genesis.tensor(4.0), "NumPy's": np.float32(5),
}


def _written(fill, dtype, seen, value):
    x = _own(dtype)
    try:
        target, *others = SEEN[seen](x)
        before = x._version
        made = fill(target, VALUES[value])
        kept = [t.tolist() for t in others if t is not None and t is not x]
        return made is target, x._version - before, target.tolist(), x.detach().tolist(), kept, target.requires_grad
    except (ValueError, RuntimeError, TypeError, OverflowError) as problem:
        return type(problem), str(problem), x.detach().tolist()


def _filled_by_python(tensor, number):
    return writing._filled(tensor, ..., number, None)


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool", "uint8", "float16", "complex64"])
def test_writes_of_numbers_are_pythons(by_machine_code, dtype, seen):
    for value in VALUES:
        by_code, by_hand = (
            str(_written(fill, getattr(genesis, dtype), seen, value)) for fill in (genesis.Tensor.fill_, _filled_by_python))
        assert by_code == by_hand, value


DRAWS = {
    "uniform": lambda x: x.uniform_(), "of a range": lambda x: x.uniform_(-2, 3.5), "normal": lambda x: x.normal_(),
    "scaled": lambda x: x.normal_(0.25, 0.02), "constant": lambda x: x.normal_(3, 0), "bernoulli": lambda x: x.bernoulli_(0.3),
}


@pytest.mark.parametrize("value", [(), (1.0, 2.0), ("normal", 1.0, 0.0, 0.0, 1.0)])
def test_a_tuple_is_no_value_to_fill_with(by_machine_code, value):
    x = _own()
    with pytest.raises(TypeError, match="fill_: value must be a number"):
        x.fill_(value)
    assert x.tolist() == [[0.0] * 4] * 3


def test_few_sizes_of_draws_are_counted(monkeypatch):
    monkeypatch.setattr(writing, "_MOST", 4)
    programs = writing._DrawPrograms()
    for count in range(100):
        assert programs["uniform", genesis.float32, count] is None
    assert len(programs.asked) <= 4 and not programs


def _drawn(draw, target, seed=5):
    genesis.manual_seed(seed)
    draw(target)
    return genesis.get_rng_state(), target.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 5), (1,), (), (130, 100)])
def test_draws_into_memory_of_one_tensor_are_those_of_a_program(by_machine_code, by_python, shape, dtype):
    x, seen = (genesis.zeros(shape, dtype=getattr(genesis, dtype)) for _ in range(2))
    seen.tolist()
    shown = seen.numpy()
    for draw in DRAWS.values():
        for _ in range(writing._OFTEN):
            x.tolist(), draw(x)
        x.tolist()
        x.zero_()  # into memory of its own
        by_python.clear()
        at_once = _drawn(draw, x)
        assert not by_python
        assert _drawn(draw, seen) == at_once and shown.tolist() == at_once[1] and by_python


def test_draws_into_memory_of_a_program_give_the_tensor_its_own(by_machine_code, by_python):
    def after(times):
        x = genesis.zeros(3, 4) + 1
        x.tolist()
        for _ in range(times):
            x.uniform_()
            before = x.tolist()
        return x, before

    for _ in range(writing._OFTEN):
        after(1)
    genesis.manual_seed(5)
    x, before = after(3)
    other = x + 1
    by_python.clear()
    x.uniform_()
    assert len(by_python) == 1 and x._version == 4 and other.tolist() == (np.float32(before) + np.float32(1)).tolist()
    genesis.manual_seed(5)
    assert before == [genesis.rand(3, 4).tolist() for _ in range(3)][-1]


@pytest.mark.parametrize("seen", SEEN)
def test_draws_reach_all_that_see_the_memory(by_machine_code, seen):
    for draw in DRAWS.values():
        for _ in range(writing._OFTEN):
            _, drawn = _drawn(draw, _own())
        target, *others = SEEN[seen](_own())
        genesis.manual_seed(5)
        if seen in ("a leaf", "repeated"):
            with pytest.raises(RuntimeError):
                draw(target)
            continue
        draw(target)
        kept = [t.tolist() for t in others if t is not None]
        if target.shape == (3, 4):
            assert target.tolist() == drawn
        assert target._version > 0 and (seen != "NumPy" or kept == [drawn])


def test_draws_of_examples_recordings_and_eager_code_are_not_made_at_once(by_machine_code, by_python):
    x = _own()
    for _ in range(writing._OFTEN):
        x.uniform_().tolist()
    with pytest.raises(RuntimeError, match="randomness"):
        genesis.vmap(lambda one: one + x.uniform_())(genesis.zeros(2))
    compiled = genesis.compile(lambda: x.uniform_())
    genesis.manual_seed(3)
    replays = [compiled().tolist() for _ in range(4)]
    genesis.manual_seed(3)
    assert [x.uniform_().tolist() for _ in range(4)] == replays
    genesis.manual_seed(3)
    genesis.debug.reset_stats()
    with genesis.eager():
        np.testing.assert_allclose(x.uniform_().tolist(), replays[0], rtol=1e-6)
    assert genesis.debug.stats()["native_calls"] == 0
    own = genesis.Generator(9)
    assert x.uniform_(generator=own).tolist() == genesis.zeros(3, 4).uniform_(generator=genesis.Generator(9)).tolist()


class _Program:
    """One program of random writes, views and looks, in one of the libraries."""

    def __init__(self, library, seed):
        self.library, self.seed = library, seed
        values = np.random.default_rng(seed)
        self.tensors = [library.tensor(values.standard_normal((4, 4)).astype(np.float32)) for _ in range(3)]
        self.leaf = library.tensor(values.standard_normal((4, 4)).astype(np.float32), requires_grad=True)
        if seed % 3:
            self.leaf = library.nn.Parameter(self.leaf.detach())
        self.arrays, self.losses, self.seen = [], [], []

    def step(self, number):
        choose = random.Random(f"{self.seed} {number}")
        kind, number = choose.randrange(24), choose.choice([0, 1, -1, 0.5, 2.0, -0.0])
        x, y = choose.choice(self.tensors), choose.choice(self.tensors)
        y = y if choose.random() < 0.5 and x.is_contiguous() and y.is_contiguous() else y.clone()  # overlaps are refused there
        place, slot = choose.randrange(4), choose.randrange(len(self.tensors))
        if kind < 4:
            (x.zero_, lambda: x.fill_(number), lambda: x.copy_(y), lambda: x.normal_(0, 0))[kind]()
        elif kind < 10:
            (x.neg_, lambda: x.add_(y), lambda: x.mul_(0.5), lambda: x.add_(y, alpha=number), lambda: x.clamp_(-1, 1),
             x.tanh_)[kind - 4]()
        elif kind < 14:
            shape = x.shape
            self.tensors[slot] = (x.t(), x.view(-1).view(shape) if x.is_contiguous() else x, x.detach(), x[:])[kind - 10]
        elif kind == 14:
            x[place].fill_(number)
        elif kind == 15:
            x[:, place].add_(y[place])
        elif kind == 16:
            x[place] = y[place] * 2
        elif kind == 17:
            self.tensors[slot] = x * y + number
        elif kind == 18:
            self.seen.append(x.detach().tolist())
        elif kind == 19 and self.seed % 2:  # beside backward, such memory has another rule: docs/differences.md
            self.arrays = [x.detach().numpy()]
        elif kind == 20 and self.arrays:
            self.arrays[0][place] = number
        elif kind == 21 and not self.seed % 2:
            self.losses.append((self.leaf * x).sum())
        elif kind == 22 and self.losses:
            self.losses.pop().backward()
        else:
            with self.library.no_grad():
                self.leaf.sub_(x, alpha=0.25)

    def result(self, steps):
        for step in range(steps):
            with contextlib.suppress(RuntimeError):
                self.seen.append(step)
                self.step(step)
                self.seen.pop()  # it raised, where it stays
        gradient = self.leaf.grad
        versions = [x._version for x in (*self.tensors, self.leaf)]
        values = [x.detach().tolist() for x in (*self.tensors, self.leaf)]
        return [self.seen, versions, values, None if gradient is None else gradient.tolist()]


def _assert_programs_agree(seeds, steps=30):
    for seed in seeds:
        ours, theirs = (_Program(library, seed).result(steps) for library in (genesis, torch))
        assert ours[1] == theirs[1], seed
        np.testing.assert_allclose(*[_flat(result) for result in (ours, theirs)], rtol=1e-4, atol=1e-5, err_msg=str(seed))


def _flat(tree):
    if isinstance(tree, list):
        return [leaf for branch in tree for leaf in _flat(branch)]
    return [math.nan if tree is None else tree]


def test_random_programs_of_writes_are_pytorchs(by_machine_code):
    _assert_programs_agree(range(40))


def test_writes_leave_no_object_behind(by_machine_code):
    x, y = _own(), _own()
    for _ in range(5):
        counts = [sys.getrefcount(thing) for thing in (x, y, x._array, x._array.memory, None)]
        for k in range(300):
            x.fill_(k % 3 + 1000.5), x.copy_(y), x[1].zero_()
        assert [sys.getrefcount(thing) for thing in (x, y, x._array, x._array.memory)] == counts[:4]
    for _ in range(6):  # the buffers of the plans' pools have their last changes
        for _ in range(600):
            x.add_(y).mul_(0.5)
        genesis.synchronize()
        gc.collect()
        counts.append(sum(type(thing) is Change for thing in gc.get_objects()))
    assert counts[-1] == counts[-2]


def test_what_a_handler_does_while_a_number_is_looked_up_comes_before_the_write(monkeypatch):
    x, seen = _own().fill_(2), []

    def interrupted(value, dtype):
        seen.append(x + 1)
        if value == 3:
            raise KeyboardInterrupt
        return number_for(value, dtype)

    index_for, _, run = writing._fills.others
    monkeypatch.setattr(writing._fills, "call", native("genesis_write", writing._filled, index_for, interrupted, run))
    x.fill_(100)
    assert seen[0].tolist() == [[3.0] * 4] * 3 and x.tolist() == [[100.0] * 4] * 3
    with pytest.raises(KeyboardInterrupt):
        x.fill_(3)
    assert x.tolist() == [[100.0] * 4] * 3


INDICES = (1,), (3,), (1, 2), (1, 4), (slice(1, 3),), (slice(None), 2), (..., -1), (...,), ([0, 2],), (2, [1, 1]), (0, 0, 0)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_elements_are_set_and_combined_as_by_pytorch(by_machine_code, index, dtype):
    def written(library):
        kind, problems = getattr(library, dtype), []
        x, row, one = (library.tensor(data).to(kind) for data in ([[1] * 4] * 3, [0, 1, 2, 3], 0))
        parts = [library.tensor(part) if isinstance(part, list) else part for part in index]
        at = tuple(parts) if len(parts) > 1 else parts[0]
        for value in (0, 1, 7, row, row[1:3], x[0].clone(), x[:, :1].clone(), one, row.view(1, 1, 4)):
            x.tolist()
            try:
                x[at] = value
                x[at] += value
            except (IndexError, RuntimeError, ValueError) as problem:
                problems.append(isinstance(problem, IndexError))
        return x.tolist(), problems

    assert written(genesis) == written(torch)


def test_elements_rows_and_slices_are_written_without_python(by_machine_code, by_python):
    x, row, at = _own(), genesis.arange(4.0), genesis.tensor([0, 2])
    assert (row.tolist(), at.tolist()) and x.tolist()
    by_python.clear()
    for index, value in ((1, row), ((0, 2), 5), (slice(1, 3), row), (at, 2.5), (..., 4), ((slice(None), 1), -1.0)):
        x[index] = value
    assert not by_python and x.tolist() == [[4.0, -1.0, 4.0, 4.0]] * 3


class Writing:
    """Garbage for the collector, whose finalizer writes to tensors."""

    def __init__(self, write):
        self.write, self.cycle = write, self

    def __del__(self):
        self.write()


@pytest.mark.parametrize("threshold", [1, 3, 7])
def test_finalizers_may_write_while_a_tensor_takes_a_result(by_machine_code, threshold):
    x, y, chosen = _own(), _own(), random.Random(threshold)
    part, before = x[1], gc.get_threshold()
    writes = [lambda: (x.add_(1), part.tolist()), lambda: (part.add_(1), x.tolist()), x.tolist, lambda: (x.fill_(5), part + 1)]
    gc.set_threshold(threshold, 1, 1)
    try:
        for k in range(300):
            Writing(chosen.choice(writes)), Writing(x.tolist)
            chosen.choice([x.neg_, lambda: x.add_(y), lambda: x.fill_(k % 7), lambda: x.copy_(y), part.zero_])()  # noqa: B023
            gc.disable()  # nothing is written between the two looks
            assert x.tolist()[1] == part.tolist()
            gc.enable()
    finally:
        gc.enable()
        gc.set_threshold(*before)


def test_normal_and_uniform_numbers_are_of_floating_dtypes():
    for draw in (lambda: genesis.normal(0, 1, (2,), dtype=genesis.int64), genesis.ones(2, dtype=genesis.int64).normal_,
                 genesis.ones(2, dtype=genesis.bool).uniform_):
        with pytest.raises(TypeError, match="floating"):
            draw()


def test_a_failing_flush_takes_back_what_machine_code_gave_a_tensor(by_machine_code):
    x, index = _own().fill_(1), genesis.tensor([0, 9])
    x.add_(genesis.ones(4).index_select(0, index).sum())
    with pytest.raises(IndexError):
        x.tolist()
    assert x.tolist() == [[1.0] * 4] * 3
