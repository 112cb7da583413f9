"""Compiled functions do what the functions do, whatever else changes: memory, properties, groups, lists, references."""

import collections
import functools
import operator
import os
import weakref

import numpy as np

import genesis
import genesis.nn.functional as F


def agrees(function, *arguments, calls=4):
    """Whether several calls of the compiled function give what as many of the function itself give."""
    compiled = genesis.compile(function)
    return [compiled(*arguments).tolist() for _ in range(calls)] == [function(*arguments).tolist() for _ in range(calls)]


def test_memory_that_numpy_sees_is_read_as_it_lies():
    x = genesis.from_numpy(np.arange(12.0).reshape(3, 4)[:, ::2])
    assert agrees(lambda x: x * 2 + x[1:].sum(), x)
    assert agrees(lambda: x.t().exp())


def test_memory_that_numpy_sees_is_written_by_every_call():
    array = np.ones(3, np.float32)
    part = genesis.from_numpy(array).detach()

    @genesis.compile
    def halve(x):
        x.mul_(0.5)

    for _ in range(3):
        halve(part)
    assert array.tolist() == [0.125] * 3


def test_nothing_is_replayed_under_eager():
    x, step = genesis.ones(3), genesis.compile(lambda x: x * 3)
    for _ in range(3):
        step(x)
    genesis.debug.reset_stats()
    with genesis.eager():
        assert step(x).tolist() == [3, 3, 3]
    assert genesis.debug.stats()["native_calls"] == 0


def results(function, steps):
    """What the function gives before and after each of the steps, which change something that it reads."""
    return [function(), function(), *[(step(), function())[1] for step in steps]]


def agree_along(make):
    """Whether a compiled function follows the changes that uncompiled code follows; `make(compile)` gives (function, steps)."""
    return results(*make(genesis.compile)) == results(*make(lambda function: function))


def test_a_property_that_is_replaced_is_seen():
    def make(compiler):
        class Owner:
            scale = property(lambda self: 2.0)

            @staticmethod
            def shift(x):
                return x + 1

        owner, x = Owner(), genesis.ones(2)
        function = compiler(lambda: Owner.shift(x * owner.scale))
        return lambda: function().tolist(), [
            lambda: setattr(Owner, "scale", property(lambda self: 5.0)),
            lambda: setattr(Owner, "shift", staticmethod(lambda x: -x)),
        ]

    assert agree_along(make)


def test_an_attribute_that_hides_another_is_seen():
    def make(compiler):
        class Owner:
            def __getattr__(self, name):
                if name != "scale":
                    raise AttributeError(name)
                return 2.0

            def shifted(self, x):
                return x + 1

        owner, x = Owner(), genesis.ones(2)
        function = compiler(lambda: owner.shifted(x * owner.scale))
        return lambda: function().tolist(), [
            lambda: setattr(owner, "scale", 3.0), lambda: setattr(owner, "shifted", lambda x: x * 100),
        ]

    assert agree_along(make)


def test_a_function_of_the_library_that_is_replaced_is_seen(monkeypatch):
    x, function = genesis.tensor([-1.0, 2.0]), genesis.compile(lambda x: F.relu(x))
    assert [function(x).tolist() for _ in range(2)] == [[0, 2]] * 2
    monkeypatch.setattr(F, "relu", lambda x: x * 100)
    assert function(x).tolist() == [-100, 200]


def test_functions_that_layers_call_may_be_replaced_and_put_back(monkeypatch):
    layers = [genesis.nn.ReLU(), genesis.nn.Linear(5, 5), genesis.nn.Conv1d(5, 5, 1), genesis.nn.ELU()]
    function, x = genesis.compile(lambda x: [layer(x).sum().item() for layer in layers]), genesis.ones(5, 5)
    before = [function(x) for _ in range(3)][-1]
    for k, name in enumerate(("relu", "linear", "conv1d", "elu")):
        plain = getattr(F, name)
        with monkeypatch.context() as patch:
            patch.setattr(F, name, lambda *arguments, plain=plain, **options: plain(*arguments, **options) * 2)
            expected = [value * 2 if k == j else value for j, value in enumerate(before)]
            assert [function(x) for _ in range(3)] == [expected] * 3
        assert function(x) == before


def trained(compiler, between):
    """Two parameters after steps of SGD, with a change before the third of them."""
    w, v = (genesis.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    optimizer = genesis.optim.SGD([w], lr=0.1)
    x = genesis.tensor([0.5, 0.25])

    def step():
        optimizer.zero_grad()
        (x * w * v).sum().backward()
        optimizer.step()

    step = compiler(step)
    for k in range(5):
        if k == 2:
            between(optimizer, w, v)
        step()
    return w.tolist(), v.tolist()


def test_groups_and_parameters_that_are_added_are_moved():
    for between in (
        lambda optimizer, w, v: optimizer.add_param_group({"params": [v], "lr": 0.5}),
        lambda optimizer, w, v: optimizer.param_groups[0]["params"].append(v),
    ):
        assert trained(genesis.compile, between) == trained(lambda function: function, between)


def test_gradients_put_by_hand_are_taken():
    w, v = (genesis.ones(1, requires_grad=True) for _ in range(2))
    optimizer = genesis.optim.SGD([w, v], lr=1.0)
    step = genesis.compile(optimizer.step)
    for gradient in (None, None, genesis.ones(1), None):
        w.grad, v.grad = genesis.ones(1), gradient
        step()
    assert (w.item(), v.item()) == (-3, 0)


def test_what_a_call_stores_is_a_number():
    class Owner:
        pass

    owner, kept = Owner(), []

    @genesis.compile(dynamic=True)
    def scaled(x, k):
        owner.last, kept[:] = k, [k * 2]
        return x * k

    for k in (2.0, 3.0):
        scaled(genesis.ones(1), k)
        assert (type(owner.last), owner.last, type(kept[0]), kept[0]) == (float, k, float, 2 * k)


def test_lists_that_are_returned_are_themselves():
    kept = [1.0]

    @genesis.compile(dynamic=True)
    def function(x):
        return kept, x

    assert all(function(genesis.ones(1))[0] is kept for _ in range(3))


def test_a_sequence_of_schedules_is_taken_back_by_check():
    def rates(compiler):
        w = genesis.ones(2, requires_grad=True)
        optimizer = genesis.optim.SGD([w], lr=0.1)
        first, second = (genesis.optim.lr_scheduler.ExponentialLR(optimizer, rate) for rate in (0.5, 0.9))
        schedule = genesis.optim.lr_scheduler.SequentialLR(optimizer, [first, second], [3])

        def step():
            optimizer.zero_grad()
            w.sum().backward()
            optimizer.step()
            schedule.step()

        step, seen = compiler(step), []
        for _ in range(6):
            step()
            seen.append(optimizer.param_groups[0]["lr"])
        return seen

    assert rates(genesis.compile(check=True)) == rates(lambda function: function)


def test_rows_that_are_written_are_those_of_the_call():
    """A view is written through its root, in which another view lies elsewhere."""
    base, x = genesis.zeros(4, 3), genesis.arange(12.0).reshape(4, 3)

    @genesis.compile
    def shift(row, by):
        row.add_(by)
        return row[1:]

    for k in range(4):
        assert shift(base[k], x[k]).tolist() == x[k, 1:].tolist()
    shift(base[:, 0], 10.0)
    shift(base[:, 2], 20.0)
    assert base.tolist() == [[10, 1, 22], [13, 4, 25], [16, 7, 28], [19, 10, 31]]


def test_what_leads_elsewhere_is_followed():
    def make(compiler):
        class Owner:
            scale = 2.0

            def scaled(self, x):
                return x * self.scale

        class Other(Owner):
            scale = 7.0

        owner, remembered, x = Owner(), Owner(), genesis.ones(2)
        chain, scale_of = collections.ChainMap({}, {"k": 1.0}), operator.attrgetter("scale")

        @functools.lru_cache
        def doubled(k):
            return k * remembered.scale

        function = compiler(lambda k: owner.scaled(x) * chain["k"] + scale_of(remembered) - doubled(k))
        return lambda: [function(k).tolist() for k in (1, 1, 2, 3)], [
            lambda: setattr(owner, "__class__", Other), lambda: chain.maps[1].update(k=3.0),
            lambda: setattr(owner, "scale", 4.0), lambda: setattr(remembered, "scale", 5.0), doubled.cache_clear,
        ]

    assert agree_along(make)


def test_a_weak_reference_is_followed_by_every_call():
    owner = collections.UserDict(k=2.0)
    weak = weakref.ref(owner)
    scaled = genesis.compile(lambda x: x * weak()["k"])
    assert [scaled(genesis.ones(1)).item() for _ in range(3)] == [2, 2, 2]
    owner["k"] = 5.0
    assert scaled(genesis.ones(1)).item() == 5


def test_the_environment_is_read_by_every_call(monkeypatch):
    shift = genesis.compile(lambda x: x + float(os.environ.get("GENESIS_TEST_SHIFT", "1")))
    assert [shift(genesis.zeros(1)).item() for _ in range(3)] == [1, 1, 1]
    monkeypatch.setenv("GENESIS_TEST_SHIFT", "5")
    assert shift(genesis.zeros(1)).item() == 5


def test_a_compiled_function_can_be_mapped_and_derived():
    cube = genesis.compile(lambda x: (x**3).sum())
    for k in range(3):
        x = genesis.arange(6.0).reshape(2, 3) + k
        assert genesis.func.vmap(cube)(x).tolist() == (x**3).sum(1).tolist()
        assert genesis.func.grad(cube)(x).tolist() == (3 * x**2).tolist()
