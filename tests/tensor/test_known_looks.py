"""Looks at values that machine code makes: what Python reads, after the same flushes."""

import gc
import sys

import numpy as np
import pytest

import genesis
from genesis.execution.flush import OFTEN
from genesis.functions.methods import conversion
from genesis.runtime.instructions import are_possible
from genesis.tracing.state import thread_state

pytestmark = pytest.mark.skipif(not are_possible(), reason="this interpreter's objects are laid out otherwise")


class Marked(genesis.Tensor):
    pass


@pytest.fixture
def look(monkeypatch):
    found = conversion._looks._loaded()
    monkeypatch.setattr(conversion._looks, "call", found)
    return found


def _whole(dtype=genesis.float32):
    return genesis.arange(24).reshape(2, 3, 4).to(dtype)


def _of_numpy():
    return genesis.from_numpy(np.arange(6.0).reshape(2, 3))


def _stale_view():
    x = genesis.arange(6.0)
    view = x[2:5]
    x.mul_(3)
    return view


TENSORS = {
    **{str(dtype): lambda dtype=dtype: _whole(dtype) for dtype in (
        genesis.float32, genesis.float64, genesis.int64, genesis.int32, genesis.int16, genesis.uint8, genesis.bool,
        genesis.float16, genesis.complex64)},
    "0-d": lambda: genesis.tensor(2.5), "one element": lambda: genesis.full((1, 1), -3), "-0.0": lambda: genesis.tensor([-0.0]),
    "no rows": lambda: genesis.zeros(0, 3), "empty rows": lambda: genesis.zeros(3, 0), "nothing": lambda: genesis.zeros(0),
    "view": lambda: _whole()[1], "column": lambda: _whole()[:, 1], "transposed": lambda: _whole()[0].t(),
    "expanded": lambda: genesis.arange(3).expand(2, 3), "stale view": _stale_view, "from NumPy": _of_numpy,
    "pending": lambda: _whole() * 2, "view of pending": lambda: (_whole() * 2)[1, 1:],
    "leaf": lambda: genesis.ones(2, requires_grad=True), "derived": lambda: genesis.ones(2, requires_grad=True) * 2,
    "subclass": lambda: _whole().as_subclass(Marked), "extremes": lambda: genesis.tensor([-(1 << 63), (1 << 63) - 1]),
    "conjugate": lambda: genesis.tensor([1 + 2j]).conj(), "imaginary": lambda: genesis.tensor([1 + 2j, 3 - 4j]).imag,
    "nan": lambda: genesis.tensor([float("inf"), -float("inf")]), "small integers": lambda: _whole(genesis.int32) * -1,
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_look_reads_what_python_reads(look, name):
    x = TENSORS[name]()
    got, expected = look(x, False), conversion._looked_at(TENSORS[name](), False)
    assert str(got) == str(expected) and got == expected  # -0.0, and True beside 1
    assert str(got) == str(x.detach().resolve_conj().numpy().tolist())
    if x.numel() == 1:
        assert str(x.item()) == str(conversion._looked_at(x, True)) == str(x.detach().resolve_conj().numpy().item())
    else:
        with pytest.raises(ValueError, match="want exactly one element"):
            x.item()


def test_a_known_plan_is_flushed_by_instructions(look):
    x = genesis.tensor(np.arange(3.0))
    genesis.synchronize()
    for k in range(2 * OFTEN):
        y = x * 1.5 + float(k)
        trace = y._array.trace
        assert y.tolist() == [k, k + 1.5, k + 3.0] and trace.done and trace not in thread_state.traces.values()


def test_looks_keep_no_references(look):
    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    one = genesis.tensor([5])

    def looks():
        for _ in range(50):
            x.tolist(), x[1].tolist(), x.t().tolist(), one.item(), bool(one), float(one), (x + 1).tolist()
            with pytest.raises(ValueError, match="one element"):
                x.item()

    def counts():
        gc.collect()
        return [sys.getrefcount(one) for one in (x, x._array, x._array.memory, x._array.memory.buffer, None, one._array.memory)]

    looks()
    before = counts()
    looks()
    assert [after - former for after, former in zip(counts(), before, strict=True) if abs(after - former) > 20] == []


def test_observed_flushes_and_lost_values_are_pythons(look):
    x, rows = genesis.tensor([1.0, 2.0]), genesis.tensor([5])
    for _ in range(2 * OFTEN):
        (x * 2).tolist()
    seen = []
    genesis.debug.on_flush.append(lambda trace, plan: seen.append(plan))
    try:
        (x * 2).tolist()
    finally:
        genesis.debug.on_flush.pop()
    assert len(seen) == 1
    lost = x[rows]
    with pytest.raises(IndexError):
        lost.tolist()
    with pytest.raises(RuntimeError, match="lost"):
        lost.tolist()


def test_a_look_within_a_recorded_call_reads_its_own_value(look):
    @genesis.compile
    def f(x):
        return x * x.sum().item()

    x = genesis.tensor([1.0, 2.0])
    for _ in range(3):
        assert f(x).tolist() == [3.0, 6.0]
    x[0] = 2.0
    assert f(x).tolist() == [8.0, 8.0]


def test_a_mode_sees_looks(look):
    from genesis.tensor.call_modes import FunctionMode

    class Mode(FunctionMode):
        sees_methods = True

        def intercept(self, function, args, kwargs):
            seen.append(function.__name__)
            return function(*args, **kwargs)

    seen = []
    with Mode():
        genesis.tensor([1.0]).tolist(), genesis.tensor([1.0]).item()
    assert seen[-3:].count("tolist") == seen[-3:].count("item") == 1
