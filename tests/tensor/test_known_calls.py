"""Calls that machine code records: as Python does, with the same effects on the trace."""

import gc
import sys

import numpy as np
import pytest

import genesis
from genesis.functions.methods import table
from genesis.runtime.devices import CPU
from genesis.runtime.instructions import are_possible
from genesis.runtime.kernel_cache import kernel_cache
from genesis.tensor import dispatch
from genesis.tensor.known_calls import calls as known_calls
from genesis.tensor.known_calls.native import native
from genesis.tracing.state import begun, thread_state
from genesis.tracing.trace import Trace
from tests.tolerances import assert_close

pytestmark = pytest.mark.skipif(not are_possible(), reason="this interpreter's objects are laid out otherwise")


class Marked(genesis.Tensor):
    pass


def _values(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def roots(x, y):
    return (x + y) * x - y


def one_tensor_twice(x, y):
    return (x * x) + (y + y)


def views(x, y):
    row, column = x[1], y.t()
    row += 1.0
    return row + column[0] + x


def views_of_pending_values(x, y):
    z = x * y
    row, other = z[0], z[1:].detach()
    first = row + x[0] + other.sum(0)
    z.tolist()
    return first + row + z[2] * x.t()[1]


def stale_views(x, y):
    row = x[1]
    before = row * 2.0
    x.add_(y)
    after = row * 2.0
    x[1] = 0.5
    return before + after + row


def numbers_and_settings(x, y):
    return genesis.clamp(x * 1.5 + 1 - 0.0, -0.5, 2).sum(1, True) + genesis.arange(3) + y.to(genesis.float64)


def numbers_at_the_edges(x, y):
    big = x.to(genesis.int64) + (1 << 40) - (1 << 62)
    z = genesis.nan_to_num(x * float("nan") + y / float("inf"), 2.5) * -0.0 + x * -1.5 - True
    threshold = genesis.nn.functional.threshold
    z = threshold(z, 0.0, -0.0) + threshold(y, -0.0, float("nan")).nan_to_num(0.0, -1.0)
    return z.clamp(-1e300, 1e30) ** 2 + big.to(genesis.float32) * 1e-12 + genesis.full((3,), -1.0)


def settings(x, y):
    z = genesis.einsum("ij,jk->ik", x, y) + genesis.zeros(3, 1) + x.sum((0, 1)) + y.mean(None, dtype=genesis.float64)
    return genesis.cat((x.sum(0, keepdim=True), genesis.roll(z, (1, 2), (0, 1)))).expand((4, 3)) + genesis.linspace(0, 1, 3)


def lists(x, y):
    return genesis.cat([x, y, x + 1.0]) + genesis.stack([x, y], 0).sum()


def lists_of_views_and_leaves(x, y):
    w = genesis.nn.Parameter(y.clone())
    row = x[1]
    z = genesis.stack([row, w[0], x[0] * 2.0, row]) + genesis.cat((w, x[:1]))
    x.add_(1.0)
    z.sum().backward()
    return genesis.cat([z.detach(), w.grad, genesis.stack((row, row))]) @ genesis.stack([x[0], x[1], row], 1)


def several_results(x, y):
    w = genesis.nn.Parameter(y.clone())
    values, indices = genesis.topk(x @ w, 2)
    low, high = genesis.aminmax(x)
    deviation, mean = genesis.std_mean(y, 0)
    (values.sum() + genesis.max(w, 1).values.sum()).backward()
    return values.detach() + indices * low + high, deviation + mean, genesis.linalg.qr(x)[0] @ w.grad


def keywords(x, y):
    z = genesis.add(x, other=y, alpha=0.5).addcmul(x, y, value=-1.5).addcdiv_(x, y.abs() + 1.0, value=2)
    return genesis.clamp(z, max=y.abs()).sum(dim=0, keepdim=True) + genesis.var(z, 1, correction=0)


def leaves(x, y):
    w = y.detach().clone().requires_grad_()
    (x * w).sum().backward()
    with genesis.no_grad():
        w -= w.grad * 0.1
    return (w * x + w).detach() + w.grad


def leaves_again(x, y):
    w, v = y.detach().clone().requires_grad_(), genesis.nn.Parameter(y * 0.5)
    z = (w * x + w * w) @ v + v
    with genesis.no_grad():
        z = z.detach() + w * v + v
    return z * x


def leaves_after_backward(x, y):
    w = genesis.nn.Parameter(y.clone())
    (x * w).sum().backward()
    again = (w * w).sum() + w.grad.sum()
    again.backward(retain_graph=True)
    again.backward()
    return w.grad * 2.0 + w.detach()


def leaves_in_modes(x, y):
    w = genesis.nn.Parameter(y.clone())
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        z = (x @ w).float()
    with genesis.inference_mode():
        z = z.detach() + w * x
    return z.clone() + w.detach()


def leaves_that_are_views(x, y):
    w = genesis.nn.Parameter(y.clone())
    rows = w.detach()[1:].requires_grad_()
    (w[0] * x[0] + (rows * x[1:]).sum(0)).sum().backward()
    w.data = w.data * 2.0
    w.data.add_(1.0)
    return (w * x).detach() + w.grad[0] + rows.grad.sum(0)


def results_with_gradients(x, y):
    w = genesis.nn.Parameter(y.clone())
    z = w * x
    z.tolist()
    later = z * x + z.detach() * w
    later.sum().backward()
    return w.grad + later.detach()


def former_results(x, y):
    z = x + y
    z.tolist()
    return z + x


def memory_that_numpy_sees(x, y):
    seen = x.numpy()
    before = x + y
    seen[0] = 7.0
    after = x + y
    del seen
    return before + after * x


def subclasses(x, y):
    marked = x.as_subclass(Marked)
    return genesis.Tensor.detach(marked + y) * x


def written(x, y):
    x = x + 0.0
    x.add_(y).mul_(y)
    return x


PROGRAMS = [
    roots, one_tensor_twice, views, views_of_pending_values, stale_views, numbers_and_settings, numbers_at_the_edges,
    settings, keywords, lists, lists_of_views_and_leaves, several_results, leaves, leaves_again, leaves_after_backward,
    leaves_in_modes, leaves_that_are_views, results_with_gradients, former_results, memory_that_numpy_sees, subclasses, written,
]


def _by_machine_code():
    return dispatch.known._loaded()


def _run(program, call):
    """The result, and what the trace has recorded at its end, after two runs."""
    before, dispatch.known.call = dispatch.known.call, call
    try:
        for _ in range(2):  # a known path has its steps
            genesis.synchronize()
            result = program(genesis.tensor(_values((3, 3))), genesis.tensor(_values((3, 3), 1)))
            trace = thread_state.traces[CPU.name]
            recorded = [line[-1] for line in trace.lines], [*trace.input_at], trace.versions, trace.weight, len(trace.nodes)
            entered = sorted(trace.entered.values(), key=str), [*trace.variables]
            values = [one.numpy() for one in (result if isinstance(result, tuple) else (result,))]
    finally:
        dispatch.known.call = before
    return values, (*recorded, entered)


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_machine_code_records_what_python_records(program):
    expected, recorded = _run(program, dispatch.known.by_python)
    result, natively = _run(program, _by_machine_code())
    for one, other in zip(result, expected, strict=True):
        assert_close(one, other)
    assert natively == recorded


def test_machine_code_opens_the_traces_that_python_opens(monkeypatch):
    monkeypatch.setattr(thread_state, "multi_device", False)  # of earlier tests

    def opened(call):
        monkeypatch.setattr(dispatch.known, "call", call)
        genesis.synchronize()
        genesis.zeros(3)
        return thread_state.trace

    for _ in range(2):
        by_python, natively = opened(dispatch.known.by_python), opened(_by_machine_code())
    assert natively.reference() is natively and natively.reference in begun and thread_state.traces[CPU.name] is natively
    for name in set(Trace.__slots__) - {"__weakref__", "reference", "arrays", "lines", "number", "closed", "done", "backward",
                                        "input_at", "entered", "written"}:  # what its end has set
        assert getattr(natively, name) == getattr(by_python, name), name
    bare = Trace()
    for name in set(Trace.__slots__) - {"__weakref__", "reference", "arrays", "lines", "nodes", "step", "weight"}:
        mine, theirs = getattr(natively, name), getattr(bare, name)
        assert type(mine) is type(theirs) and mine == theirs, name
    assert len({id(getattr(trace, name)) for trace in (natively, bare) for name in ("nodes", "lines", "changed")}) == 6


def test_a_result_is_numpys():
    x, y = _values((3, 3)), _values((3, 3), 1)
    (result,), _ = _run(roots, _by_machine_code())
    assert_close(result, (x + y) * x - y)


def test_errors_of_tokens_are_raised_and_the_next_call_works(monkeypatch):
    monkeypatch.setattr(dispatch.known, "call", _by_machine_code())
    x = genesis.tensor(_values((3,)))
    with pytest.raises(OverflowError, match="does not fit into int64"):
        x + (1 << 70)
    with pytest.raises(AttributeError, match="_array"):
        genesis.add(x, object.__new__(genesis.Tensor))
    assert_close((x + x).numpy(), 2 * _values((3,)))


def test_calls_keep_no_references(monkeypatch):
    monkeypatch.setattr(dispatch.known, "call", _by_machine_code())
    x, y = genesis.tensor(_values((3,))), genesis.tensor(_values((3,), 1))
    w = genesis.nn.Parameter(genesis.tensor(_values((3,), 2)))

    def calls():
        for _ in range(50):
            (x + y[1:2] * 1.5 + genesis.stack([x, y])).tolist()
            (x * w + w * y).sum().backward()
            w.grad = None
            genesis.synchronize()
            with pytest.raises(OverflowError):
                genesis.add(x, y, alpha=1 << 70)

    def counts():
        gc.collect()
        arrays = [tensor._array for tensor in (x, y, w)]
        return [sys.getrefcount(one) for one in (x, y, w, *arrays, x._array.memory, x._array.memory.buffer)]

    calls()
    before = counts()
    calls()
    assert counts() == before


def test_parameters_enter_without_python(monkeypatch):
    asked = []

    def token(trace, operation, position, argument):
        asked.append(argument)
        return known(trace, operation, position, argument)

    continued, known, *ended = dispatch.known.others
    monkeypatch.setattr(dispatch.known, "call", native("genesis_call", dispatch.known.by_python, continued, token, *ended))
    x, w = genesis.tensor(_values((3,))), genesis.nn.Parameter(genesis.tensor(_values((3,), 2)))

    def calls():
        genesis.synchronize()
        asked.clear()
        w.grad = None
        (x * w + w).sum().backward()
        with genesis.no_grad():
            (w * x).tolist()
        return [*asked]

    calls()
    assert w.grad is not None and calls() == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_numbers_between_floats_are_not_checked_again(monkeypatch, dtype):
    in_python = []

    def continued(*arguments):
        in_python.append(arguments)
        return known(*arguments)

    known, *others = dispatch.known.others
    monkeypatch.setattr(dispatch.known, "call", native("genesis_call", dispatch.known.by_python, continued, *others))
    x = genesis.tensor(_values((3,)), dtype=getattr(genesis, dtype))
    for _ in range(2):
        genesis.synchronize()
        in_python.clear()
        (x + x - 1.5).sub(x).tolist()
    assert in_python == []


def test_a_call_does_without_machine_code_that_does_not_compile(monkeypatch):
    def fails(*functions):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(known_calls, "native", fails)
    calls = known_calls.KnownCalls("genesis_call", dispatch.known.by_python)
    monkeypatch.setattr(table, "known", calls)
    x = genesis.tensor(_values((3,)))
    for _ in range(known_calls.OFTEN + 2):
        y = x + x
    assert_close(y.numpy(), 2 * _values((3,)))
    assert calls.call == calls.by_python


def test_the_machine_code_is_no_kernel_of_a_program(monkeypatch):
    monkeypatch.setattr(kernel_cache, "_addresses", {})
    genesis.debug.reset_stats()
    assert _by_machine_code() is not None
    stats = genesis.debug.stats()
    assert kernel_cache._addresses and stats["kernels_loaded"] == stats["kernels_compiled"] == 0


def test_no_key_is_seen_with_empty_places(monkeypatch):
    monkeypatch.setattr(dispatch.known, "call", _by_machine_code())
    seen = []

    class Looking:
        @property
        def __class__(self):
            seen.append(gc.get_objects())  # as a profiler of memory does in its own thread
            return Looking

    x = genesis.tensor(_values((3,)))
    with pytest.raises(TypeError, match="Looking"):
        genesis.where(x > 0, Looking(), x)
    assert seen
    assert_close((x + x).numpy(), 2 * _values((3,)))
