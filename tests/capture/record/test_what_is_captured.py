"""Whatever a compiled function may meet: memory it shares, hooks, checkpoints, nested calls, names that change."""

import gc
import time
import weakref

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn import functional as F
from genesis.utils.checkpoint import checkpoint


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a.detach()), np.asarray(b.detach()))


# ---- memory ----


def test_outputs_of_two_calls_share_no_storage():
    compiled = genesis.compile(lambda x: (x + 1, [x * 2, genesis.zeros(2)]))
    x = genesis.ones(2)
    results = [compiled(x) for _ in range(5)]
    for result in results:
        result[0].add_(1)
        result[1][1].add_(5)
        result[1][0].numpy()[0] = 9
    assert [r[0].tolist() for r in results] == [[3.0, 3.0]] * 5
    assert [r[1][0].tolist() for r in results] == [[9.0, 2.0]] * 5
    assert [r[1][1].tolist() for r in results] == [[5.0, 5.0]] * 5
    assert compiled(x)[0].tolist() == [2.0, 2.0] and compiled.entries[0].replays == 5


def test_what_the_collector_calls_is_not_the_functions():
    def callback(phase, info):
        time.perf_counter()

    gc.callbacks.append(callback)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        double = genesis.compile(lambda x: [x * 2 for _ in range(20)])
        double(genesis.ones(2))
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*before)
    assert not double.refusals


def test_random_numbers_may_be_none():
    draw = genesis.compile(lambda x: x + genesis.rand(0, 2))
    assert [draw(genesis.ones(2)).shape for _ in range(3)] == [(0, 2)] * 3


@pytest.mark.parametrize("size", [4, 1 << 20])
def test_large_results_alone_are_replayed_too(size):
    double = genesis.compile(lambda x: x * 2)
    x = genesis.arange(size, dtype=genesis.float32)
    for y in [double(x) for _ in range(3)]:
        assert np.array_equal(y.numpy(), 2 * x.numpy())
    assert double.entries[0].replays == 2


def test_outputs_may_be_arguments_and_views():
    w = genesis.arange(6).float()

    @genesis.compile
    def f(x):
        y = x + 1
        return x, x.view(3, 2), y, y.t(), y[0], w, w[:2], x.detach()

    for _ in range(3):
        x = genesis.arange(6).float().view(2, 3)
        a, b, y, yt, y0, v, v2, d = f(x)
        assert a is x and v is w
        b[0, 0] = 70
        y[0, 1] = 50
        v2.add_(1)
        d[1, 1] = -1
        assert x.tolist() == [[70.0, 1.0, 2.0], [3.0, -1.0, 5.0]]
        assert yt[1, 0].item() == y0[1].item() == 50
        w.sub_(genesis.tensor([1.0, 1, 0, 0, 0, 0]))
    assert f.refusals == [] and f.entries[0].replays == 2


def test_arguments_that_are_written_to():
    @genesis.compile
    def f(x, y):
        x.add_(y)
        y[0] = 7
        return x.sum()

    def g(x, y):
        x.add_(y)
        y[0] = 7
        return x.sum()

    def runs(f):
        whole = genesis.arange(4).float()
        results = []
        for x, y in [(genesis.ones(2), genesis.ones(2)), (genesis.zeros(2), genesis.ones(2)), (whole[:2], whole[2:]),
                     (whole[:2], genesis.ones(2)), (whole[1:3], whole[:2])]:
            results.append((f(x, y).item(), x.tolist(), y.tolist(), whole.tolist()))
        one = genesis.ones(2)
        return [*results, f(one, one).item(), one.tolist()]

    assert runs(f) == runs(g)
    assert runs(f) == runs(g)


def test_slices_of_one_batch_are_one_entry():
    compiled = genesis.compile(lambda x: (x * 2).sum(1))
    data = genesis.arange(24).float().view(8, 3)
    for i in range(0, 8, 2):
        same(compiled(data[i : i + 2]), (data[i : i + 2] * 2).sum(1))
    same(compiled(data.t()[:3, 1:3]), (data.t()[:3, 1:3] * 2).sum(1))
    assert compiled.entries[-1].replays == 3


def test_memory_shared_with_numpy_is_read_and_written_at_the_call():
    values = np.ones(3, np.float32)
    x = genesis.from_numpy(values)
    compiled = genesis.compile(lambda x: x * 2)
    for i in range(4):
        values[:] = i
        y = compiled(x)
        values[:] = -1
        assert y.tolist() == [2.0 * i] * 3
    state = genesis.zeros(3)
    count = genesis.compile(lambda: state.add_(1).sum())
    for i in range(5):
        if i == 2:
            seen = state.numpy()
        assert count().item() == 3 * (i + 1)
    assert seen.tolist() == [5.0] * 3


def test_pending_arguments_are_computed_first():
    compiled = genesis.compile(lambda x: x + 1)
    for _ in range(3):
        x = genesis.ones(2) * 3
        assert compiled(x).tolist() == [4.0, 4.0] and x.tolist() == [3.0, 3.0]


def test_arguments_and_results_are_let_go():
    compiled = genesis.compile(lambda x: (x * 2, x.sum()))
    held = []
    for _ in range(3):
        x = genesis.ones(50, 50)
        result = compiled(x)
        held += [weakref.ref(x), weakref.ref(result[0])]
        del x, result
        gc.collect()
    assert [ref() for ref in held] == [None] * 6


# ---- what runs inside ----


def test_compiled_functions_inside_are_part_of_the_program():
    inner = genesis.compile(lambda x: x * 2)
    outer = genesis.compile(lambda x: inner(x) + inner(x + 1))
    for _ in range(3):
        assert outer(genesis.ones(2)).tolist() == [6.0, 6.0]
    assert not inner.entries and outer.entries[0].replays == 2 and len(outer.entries[0].programs) == 1


class Doubled(genesis.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * x * 20


WITHIN = {
    "a custom Function": lambda w, x: Doubled.apply(w * x).sum(),
    "checkpoint": lambda w, x: checkpoint(lambda a: F.dropout(a.tanh(), 0.3) * 2, w * x).sum(),
    "autocast": lambda w, x: autocasted(w, x),
    "no_grad": lambda w, x: (w * x).sum() + ungraded(w).sum(),
    "func.grad": lambda w, x: (w * genesis.func.grad(lambda a: (a ** 3).sum())(x)).sum(),
    "func.vmap": lambda w, x: genesis.func.vmap(lambda a, b: a * b)(w, x).sum(),
    "attention": lambda w, x: F.scaled_dot_product_attention(
        w.view(1, 3, 1), x.view(1, 3, 1), x.view(1, 3, 1), dropout_p=0.5).sum(),
    "fork_rng": lambda w, x: (w * x * drawn_aside() * genesis.rand(3)).sum(),
}


def drawn_aside():
    with genesis.random.fork_rng():
        return genesis.rand(5).sum()


def autocasted(w, x):
    with genesis.autocast():
        return (w.view(1, 3) @ x.view(3, 1)).sum().float()


@genesis.no_grad()
def ungraded(w):
    return w * 3


@pytest.mark.parametrize("name", WITHIN)
def test_a_step_with(name):
    gc.unfreeze()  # guards ask the collector for the function that `no_grad` wraps

    def run(wrap):
        w = genesis.tensor([0.5, -1.0, 2.0], requires_grad=True)

        def step(x):
            w.grad = None
            loss = WITHIN[name](w, x)
            loss.backward()
            with genesis.no_grad():
                w.sub_(w.grad * 0.1)
            return loss

        step = wrap(step)
        genesis.manual_seed(11)
        return [step(genesis.arange(3).float() + i).item() for i in range(4)], w.tolist(), w.grad.tolist(), step

    got, want = run(genesis.compile), run(lambda f: f)
    for a, b in zip(got[:3], want[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    assert got[3].refusals == [] and got[3].entries[0].replays >= 2


def test_hooks_are_seen_to():
    w = genesis.ones(2, requires_grad=True)
    factor = [2.0]

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad * 1

    compiled = genesis.compile(step)
    x = genesis.tensor([1.0, 3.0])
    assert [compiled(x).tolist() for _ in range(2)] == [[1.0, 3.0]] * 2
    handle = w.register_hook(lambda g: g * factor[0])
    assert [compiled(x).tolist() for _ in range(3)] == [[2.0, 6.0]] * 3
    factor[0] = 5.0
    assert [compiled(x).tolist() for _ in range(3)] == [[5.0, 15.0]] * 3
    handle.remove()
    assert [compiled(x).tolist() for _ in range(2)] == [[1.0, 3.0]] * 2
    assert sum(entry.replays for entry in compiled.entries) >= 4


def test_functions_made_inside_may_hold_what_was_computed_inside():
    def f(x):
        y = x * 2

        def g(z):
            return z * y

        return [g(x) for _ in range(2)], (lambda: y + 1)()

    compiled = genesis.compile(f)
    for i in range(3):
        (a, b), c = compiled(genesis.ones(2) * i)
        assert a.tolist() == b.tolist() == [2.0 * i * i] * 2 and c.tolist() == [2.0 * i + 1] * 2
    assert compiled.refusals == [] and compiled.entries[0].replays == 2


def test_names_that_stand_for_a_new_tensor_each_time_are_slots():
    batch = genesis.ones(2)
    mask = genesis.ones(2)

    @genesis.compile
    def f(x):
        return x * batch + mask

    for i in range(4):
        batch = genesis.ones(2) * i
        assert f(genesis.ones(2)).tolist() == [i + 1.0] * 2
    batch = mask
    assert f(genesis.ones(2)).tolist() == [2.0] * 2
    mask = genesis.zeros(2)
    assert f(mask).tolist() == [0.0] * 2
    assert f.entries[-1].replays == 3


def test_methods_partials_and_callable_objects():
    class Scaler:
        by = 2.0

        @genesis.compile
        def scaled(self, x):
            return x * self.by

        def __call__(self, x):
            return x * self.by

    first, second = Scaler(), Scaler()
    second.by = 3.0
    called = genesis.compile(first)
    for _ in range(3):
        assert (first.scaled(genesis.ones(())).item(), second.scaled(genesis.ones(())).item()) == (2.0, 3.0)
        assert called(genesis.ones(())).item() == 2.0
    first.by = 7.0
    assert called(genesis.ones(())).item() == first.scaled(genesis.ones(())).item() == 7.0


def test_a_compiled_module_is_the_module():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = genesis.compile(model)
    assert isinstance(compiled, nn.Sequential) and repr(compiled) == repr(model) and len(compiled) == 2
    assert [*compiled.state_dict()] == [*model.state_dict()] and compiled[0] is model[0]
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in model.parameters()]
    compiled.eval()
    assert not model.training and not model[1].training
    whole = nn.Sequential(compiled, nn.ReLU())
    assert [*whole.state_dict()] == ["0.0.weight", "0.0.bias"]
    for _ in range(2):
        same(whole(genesis.ones(1, 2)), model(genesis.ones(1, 2)).relu())


def test_a_container_that_is_returned_in_two_places_is_one_in_every_call():
    def pair(x):
        part = [x * 2]
        return {"first": part, "second": part}

    compiled, x = genesis.compile(pair), genesis.ones(2)
    results = [compiled(x) for _ in range(4)]
    assert all(found["first"] is found["second"] for found in results)
    assert compiled.entries[0].replays == 3 and not compiled.refusals


def test_the_layout_of_a_tensor_is_returned_by_replays():
    compiled = genesis.compile(lambda x: (x.layout, x + 1))
    for _ in range(3):
        layout, result = compiled(genesis.ones(2))
        assert layout is genesis.strided and result.tolist() == [2.0, 2.0]
    assert compiled.entries[0].replays == 2
