"""Replays by instructions do what replays by Python do, and leave to these what they do not know."""

import dataclasses
import functools
import gc
import math
import threading
import weakref

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.capture.replay import settling
from genesis.execution import result_pool
from genesis.nn import functional as F
from genesis.runtime import rng
from genesis.runtime.instructions import MISSED, are_possible
from tests.robustness.interrupts import interrupt, moments_of

pytestmark = pytest.mark.skipif(not are_possible(), reason="another interpreter than CPython of 64 bits")

X = genesis.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
WEIGHT = genesis.tensor(np.linspace(0, 1, 20, dtype=np.float32).reshape(4, 5))


def ready(tensor):
    """`tensor`, computed: instructions leave what is pending to Python."""
    tensor.tolist()
    return tensor


def settled(function, *arguments):
    """The compiled function after the replays that it takes to find its instructions."""
    compiled = genesis.compile(function)
    for _ in range(6):
        compiled(*arguments)
    [entry] = compiled.entries
    assert entry.native is not None
    return compiled, entry.native


def test_a_slow_first_replay_is_no_verdict(monkeypatch):
    compiled = genesis.compile(lambda x: x * 2 if x.sum().item() < 1e9 else x)
    monkeypatch.setattr(settling, "LONGEST", -1.0)  # as on a busy machine
    for _ in range(6):
        compiled(X)
    [entry] = compiled.entries
    assert entry.native is None and "ms" in entry.refusal
    monkeypatch.setattr(settling, "LONGEST", math.inf)
    for _ in range(6):
        compiled(X)
    assert entry.native is not None


FUNCTIONS = {
    "elementwise": (lambda x: x.exp() * 2 + 1, X),
    "a product with a held tensor": (lambda x: F.softmax(x @ WEIGHT, -1), X),
    "an argument read through a view": (lambda x: x.t() * 2, X),
    "two results": (lambda x: (x.sum(0), [x * 3, x.amax()]), X),
    "an argument given back": (lambda x, scale: (x * 2, scale), X, 5),
    "an integer of an index": (lambda x: x.argmax(1), X),
    "a result detached": (lambda x: (x * 2).exp().detach(), X),
    "more than memory keeps": (lambda x: x.expand(500, 3, 4).exp() + 1, X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_function_and_stay(name):
    function, *arguments = FUNCTIONS[name]
    compiled, native = settled(function, *arguments)
    before = native.replays
    kept = [compiled(ready(arguments[0] + k), *arguments[1:]) for k in range(5)]
    assert native.replays == before + 5
    for k, found in enumerate(kept):
        wanted = function(arguments[0] + k, *arguments[1:])
        for one, other in zip(genesis.pytree.leaves_of(found), genesis.pytree.leaves_of(wanted), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_results_stay_whichever_of_them_are_kept():
    random = np.random.default_rng(0)
    compiled, native = settled(lambda x: (x.exp(), x.sum(0)), X)
    before, kept = native.replays, {}
    for step in range(60):
        kept[int(random.integers(4))] = step, compiled(ready(X + step / 16))
        if random.integers(3) == 0:
            kept.pop(int(random.integers(4)), None)
        for at, (y, total) in kept.values():
            x = X.numpy() + np.float32(at / 16)
            np.testing.assert_allclose(y.numpy(), np.exp(x), rtol=1e-6)
            np.testing.assert_allclose(total.numpy(), x.sum(0), rtol=1e-6)
    assert native.replays == before + 60


def test_a_detached_result_shares_the_memory_of_its_root():
    def function(x):
        y = x * 2
        return y, [y.detach(), y]

    compiled, native = settled(function, X)
    before, earlier = native.replays, compiled(X)
    root, (view, again) = compiled(X)
    assert native.replays == before + 2 and again is root and not view.requires_grad
    view.mul_(5)
    root[0] = 0
    np.testing.assert_array_equal(root.numpy()[1:], X.numpy()[1:] * 10)
    np.testing.assert_array_equal(view.numpy(), root.numpy())
    for other in (earlier, compiled(X)):
        np.testing.assert_array_equal(other[0].numpy(), X.numpy() * 2)
        np.testing.assert_array_equal(other[1][0].numpy(), X.numpy() * 2)


def test_views_that_are_kept_keep_what_they_show():
    compiled, _ = settled(lambda x: ((x + 1) * 2).exp().detach(), X)
    inputs = [ready(X * k) for k in range(7)]
    kept = [compiled(x) for x in inputs]
    for x, view in zip(inputs, kept, strict=True):
        np.testing.assert_allclose(view.numpy(), np.exp((x.numpy() + 1) * 2), rtol=1e-6)


def test_views_that_show_conjugates_show_what_is_written_to_their_root():
    compiled, native = settled(lambda x: ((y := x * 2), y.conj(), y.real), z := genesis.tensor(np.array([1 + 2j, 3 - 1j])))
    before, (root, conjugate, real) = native.replays, compiled(z)
    root.mul_(1j)
    wanted = np.array([1 + 2j, 3 - 1j]) * 2j
    assert native.replays == before + 1
    np.testing.assert_array_equal(conjugate.tolist(), wanted.conj())
    np.testing.assert_array_equal(real.numpy(), wanted.real)


def test_a_step_that_returns_its_loss_detached():
    def trained(compile):
        genesis.manual_seed(0)
        layer = nn.Linear(4, 2)
        optimizer = optim.SGD(layer.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        function = genesis.compile(step) if compile else step
        return [function(X).item() for _ in range(9)], function

    losses, compiled = trained(True)
    assert compiled.entries[0].native.replays > 0
    np.testing.assert_allclose(losses, trained(False)[0], rtol=1e-6)


def test_numbers_are_read_anew():
    compiled = genesis.compile(lambda x, a, n: x * a + n, dynamic=True)
    for k in range(8):
        got = compiled(X, 0.5 + k, 2 + k)
        np.testing.assert_allclose(got.numpy(), X.numpy() * np.float32(0.5 + k) + 2 + k, rtol=1e-6)
    assert sum(entry.native.replays for entry in compiled.entries if entry.native) >= 4


@pytest.mark.parametrize("change", [
    lambda: genesis.no_grad(), lambda: genesis.eager(), lambda: genesis.autocast("cpu", dtype=genesis.bfloat16)])
def test_modes_that_change_are_seen(change):
    compiled, native = settled(lambda x: x @ WEIGHT, X)
    before, wanted = native.replays, (X @ WEIGHT).numpy()
    with change():
        assert native.function((X,), {}) is MISSED
        np.testing.assert_allclose(compiled(X).float().numpy(), wanted, rtol=2e-2)
    assert native.replays == before


@pytest.mark.parametrize("device", ["cpu", "cpu:1"])
def test_pending_arguments_are_computed_first(device):
    genesis.ones(1, device=device).tolist()  # a second device may be known
    compiled, native = settled(lambda x, scale: x.exp() * scale, X, ready(X * 2))
    before = native.replays
    for k in range(3):
        got = compiled(X + k, X * 2)
        np.testing.assert_allclose(got.numpy(), np.exp(X.numpy() + k) * X.numpy() * 2, rtol=1e-6)
    assert native.replays == before + 3
    with pytest.raises(IndexError):
        compiled(X[genesis.tensor([0, 9, 1])], X)


def test_other_arguments_are_other_calls():
    compiled, native = settled(lambda x: x * 2, X)
    others = [X.double(), X[:2], X.t(), genesis.ones(3, 4, requires_grad=True), genesis.ones(12).reshape(3, 4)[:, ::2]]
    for other in others:
        assert compiled(other).tolist() == (other * 2).tolist()
    for arguments, names in [((), {}), ((X, X), {}), ((X,), {"x": X}), (([X],), {}), ((3.0,), {})]:
        assert native.function(arguments, names) is MISSED


def test_a_global_that_changes_is_seen():
    names = {"scale": 2.0}
    exec("def scaled(x): return x * scale", names)
    compiled, native = settled(names["scaled"], X)
    names["scale"] = 3.0
    assert native.function((X,), {}) is MISSED and compiled(X).tolist() == (X * 3).tolist()


def test_an_index_out_of_range_raises_as_in_a_call():
    rows = genesis.tensor([0, 2])
    compiled, _ = settled(lambda table, rows: table[rows], X, rows)
    with pytest.raises(IndexError):
        compiled(X, genesis.tensor([0, 3])).tolist()
    assert compiled(X, rows).tolist() == X[rows].tolist()


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1), "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: optim.Adam(p, lr=0.01)}


def trained(optimizer, wrap, disturb=lambda step, model, optimizer: None, width=6, clip=None):
    genesis.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Dropout(0.3), nn.Linear(width, 5))
    stepping = OPTIMIZERS[optimizer](model.parameters())

    @wrap
    def step(x):
        stepping.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        stepping.step()
        return loss

    losses = []
    for k in range(12):
        disturb(k, model, stepping)
        losses.append(step(ready(X * (k + 1))).item())
    return losses, [p.tolist() for p in model.parameters()], [p.grad.tolist() for p in model.parameters()], step


DISTURBANCES = {
    "nothing": lambda k, model, optimizer: None,
    "rate": lambda k, model, optimizer: optimizer.param_groups[0].update(lr=0.01 * (k + 1)),
    "written": lambda k, model, optimizer: model[0].weight.data.mul_(0.5) if k == 8 else None,
    "gradients kept": lambda k, model, optimizer: vars(optimizer).setdefault("kept", []).append(model[3].weight.grad),
    "weights kept": lambda k, model, optimizer: vars(optimizer).setdefault("kept", []).append(model[3].weight.detach()),
    "frozen": lambda k, model, optimizer: model[0].bias.requires_grad_(k != 9),
}


@pytest.mark.parametrize("disturbance", DISTURBANCES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_training_step_is_that_of_uncompiled_code_to_the_bit(optimizer, disturbance):
    got = trained(optimizer, genesis.compile, DISTURBANCES[disturbance])
    want = trained(optimizer, lambda step: step, DISTURBANCES[disturbance])
    assert got[:3] == want[:3]
    assert any(entry.native is not None and entry.native.replays for entry in got[3].entries)


def test_gradients_that_a_step_writes_over_are_those_of_uncompiled_code():
    got = trained("adam", genesis.compile, clip=0.01)
    want = trained("adam", lambda step: step, clip=0.01)
    assert got[:3] == want[:3]
    assert any(entry.native is not None and entry.native.replays for entry in got[3].entries)


LARGE = 6000  # weights above 64 KB


@pytest.mark.parametrize("disturbance", ["nothing", "rate", "written", "gradients kept", "weights kept", "frozen"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_step_of_large_tensors_is_that_of_uncompiled_code_to_the_bit(optimizer, disturbance, monkeypatch):
    monkeypatch.setattr(result_pool, "REPLAYED_TOGETHER", 0)  # they are written over each other
    kept = [[], []]

    def disturb(k, model, optimizer):
        DISTURBANCES[disturbance](k, model, optimizer)
        if vars(optimizer).get("kept"):
            kept[-1] = vars(optimizer)["kept"]

    got = trained(optimizer, genesis.compile, disturb, LARGE)
    kept_by_replays, kept[-1] = kept[-1], []
    want = trained(optimizer, lambda step: step, disturb, LARGE)
    assert got[:3] == want[:3]
    assert [t.tolist() for t in kept_by_replays if t is not None] == [t.tolist() for t in kept[-1] if t is not None]
    assert any(entry.native is not None and entry.native.replays for entry in got[3].entries)


def test_large_tensors_that_nobody_else_has_are_written_over_in_place():
    weight = nn.Parameter(genesis.ones(200, 200))
    optimizer = optim.Adam([weight], lr=0.1)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        (x @ weight).square().mean().backward()
        optimizer.step()

    def places():
        moments = [value for value in optimizer.state[weight].values() if isinstance(value, genesis.Tensor)]
        return [t._array.memory.pointer for t in (weight, weight.grad, *moments)]

    x = ready(genesis.ones(3, 200))
    for _ in range(8):
        step(x)
    native, before = step.entries[0].native, places()
    replays = native.replays
    for _ in range(4):
        step(x)
    assert native.replays == replays + 4 and places() == before
    kept, gradient = weight.detach(), weight.grad
    held, held_gradient = kept.tolist(), gradient.tolist()
    for _ in range(4):
        step(x)
    assert native.replays >= replays + 7 and gradient.tolist() == held_gradient  # memory that was read goes by Python once
    assert kept.tolist() == weight.tolist() != held  # a view shows what is written
    later = (weight * weight).sum()
    later.item()
    step(x)
    with pytest.raises(RuntimeError, match="modified by an in"):
        later.backward()


def test_a_backward_that_would_read_what_a_replay_wrote_over_raises():
    weight = nn.Parameter(genesis.ones(4))
    optimizer = optim.SGD([weight], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    compiled = genesis.compile(step)
    for _ in range(6):
        compiled(X[0])
    assert compiled.entries[0].native is not None
    later = (weight * weight).sum()
    later.item()
    compiled(X[0])
    with pytest.raises(RuntimeError, match="modified by an in"):
        later.backward()


def classifier():
    """A compiled step of labels, settled; its weight, optimizer and a backward that is still to read the weight."""
    weight = nn.Parameter(genesis.ones(5, 4))
    optimizer = optim.Adam([weight], lr=0.1)

    @genesis.compile
    def step(x, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(x @ weight.t(), labels)
        loss.backward()
        optimizer.step()
        return loss

    labels = genesis.tensor([0, 4, 2])
    for _ in range(6):
        step(X, labels)
    assert step.entries[0].native is not None
    later = (weight * weight).sum()
    later.item()
    return functools.partial(step, X), labels, weight, optimizer, later


def values(weight, optimizer):
    """What a step changes."""
    return [repr(weight), *[repr(value) for value in optimizer.state[weight].values()]]


def test_a_label_out_of_range_leaves_a_step_not_taken():
    step, labels, weight, optimizer, later = classifier()
    before = values(weight, optimizer)
    gradient, wrong = weight.grad, genesis.tensor([0, 5, 2])
    assert step.func.entries[0].native.function((X, wrong), {}) is MISSED
    assert values(weight, optimizer) == before and weight.grad is gradient
    with pytest.raises(IndexError):
        step(wrong).item()
    assert values(weight, optimizer) == before
    later.backward()  # nothing has been written over
    weight.grad = None
    replays = step.func.entries[0].native.replays
    assert [np.isfinite(step(labels).item()) for _ in range(3)] == [True] * 3
    assert step.func.entries[0].native.replays > replays


def test_an_interrupted_step_tells_no_backward_that_it_has_written():
    step, labels, *_ = classifier()
    moments = moments_of(lambda: step(labels))
    before = classifier()[2].tolist()  # of another one: instructions leave tensors that NumPy sees to Python
    for moment in range(1, moments + 1):
        step, labels, weight, optimizer, later = classifier()
        where = interrupt(lambda step=step, labels=labels: step(labels), moment)
        has_written = weight.tolist() != before
        if has_written:
            with pytest.raises(RuntimeError, match="modified by an in"):
                later.backward()
        else:
            later.backward()
        assert optimizer.state[weight]["step"] == 6 + has_written, where


def test_a_finalizer_that_calls_the_function_comes_between():
    compiled, native = settled(lambda x: x * 2, X)

    class Ends:
        pass

    seen = []
    for k in range(50):
        cycle = Ends()
        cycle.itself, _ = cycle, weakref.finalize(cycle, lambda k=k: seen.append(compiled(X + k).tolist()))
        del cycle
        kept = [compiled(X) for _ in range(3)]
        gc.collect()
        assert all(one.tolist() == (X * 2).tolist() for one in kept)
    assert seen == [((X + k) * 2).tolist() for k in range(50)] and native.replays > 100


def test_threads_replay_one_function():
    compiled, _ = settled(lambda x: x.exp() + 1, X)
    wrong = []

    def work(k):
        mine = ready(X + k)
        wanted = (mine.exp() + 1).tolist()
        for _ in range(300):
            if compiled(mine).tolist() != wanted:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_replays_are_counted():
    compiled, _ = settled(lambda x: x * 2, X)
    [entry] = compiled.entries
    before = genesis.debug.stats()
    replays = entry.replays
    for _ in range(3):
        compiled(X)
    after = genesis.debug.stats()
    assert entry.replays == replays + 3
    assert {name: after[name] - before[name] for name in ("flushes", "plan_hits", "native_calls", "plans_built")} == {
        "flushes": 3, "plan_hits": 3, "native_calls": 3, "plans_built": 0}


def test_random_numbers_of_instructions_are_the_streams():
    def draws(x):
        return genesis.rand(3), genesis.randn(2) + x

    compiled, one = genesis.compile(draws), genesis.ones(2)
    genesis.manual_seed(5)
    want = [draws(one) for _ in range(5)]
    after = genesis.get_rng_state()
    genesis.manual_seed(5)
    for found, expected in zip([compiled(one) for _ in range(5)], want, strict=True):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert genesis.get_rng_state() == after
    assert compiled.entries[0].native.replays


def test_a_replay_that_fails_or_misses_has_drawn_once_or_not_at_all():
    compiled, table = genesis.compile(lambda table, places: table[places] + genesis.rand(2)), genesis.zeros(3)
    for _ in range(4):
        compiled(table, genesis.tensor([0, 1]))
    before = genesis.get_rng_state()
    with pytest.raises(IndexError):
        compiled(table, genesis.tensor([0, 3])).tolist()
    assert genesis.get_rng_state() == (before[0], before[1] + 2)  # those of the call of the function
    genesis.set_rng_state(before)
    rng.default_generator.words[rng.CHANGING] = 1  # as if another thread were drawing: Python waits its turn
    compiled(table, genesis.tensor([0, 1]))
    rng.default_generator.words[rng.CHANGING] = 0
    assert genesis.get_rng_state() == (before[0], before[1] + 2)


def test_dicts_dataclasses_and_arguments_are_returned_by_instructions():
    @dataclasses.dataclass
    class Pair:
        first: genesis.Tensor
        rest: dict

    weight = genesis.ones(3)

    @genesis.compile
    def compiled(x):
        return {"sum": x + weight, 3: (x, weight)}, Pair(x * 2, {"none": None, "negative": -x})

    for number in range(5):
        x = genesis.full(3, float(number))
        found, pair = compiled(x)
        assert [*found] == ["sum", 3] and found[3][0] is x and found[3][1] is weight
        assert found["sum"].tolist() == [number + 1] * 3
        assert type(pair) is Pair and pair.first.tolist() == [2 * number] * 3
        assert [*pair.rest] == ["none", "negative"] and pair.rest["negative"].tolist() == [-number] * 3
    assert compiled.entries[0].native.replays == 3
