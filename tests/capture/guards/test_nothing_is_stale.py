"""Whatever a compiled function read - a global, a closure, an attribute, an argument - a later call reads anew."""

import collections
import dataclasses
import gc
import math
import random
import time
import types

import numpy as np
import pytest

import genesis
from genesis import nn

scale = 2.0
table = {"a": [1.0, 2.0], "b": 3.0}
tensor = genesis.ones(3)
helpers = types.ModuleType("helpers_of_a_test")
numbers = np.ones(3, np.float32)


class Settings:
    factor = 5.0

    def __init__(self):
        self.shift = 1.0
        self.inner = types.SimpleNamespace(depth=2)

    def total(self, x):
        return x * self.factor + self.shift


class Slotted:
    __slots__ = ("gain",)

    def __init__(self, gain):
        self.gain = gain


settings, slotted = Settings(), Slotted(2.0)


def agree(function, change, *arguments, entries=None):
    """The compiled function gives what the plain one gives, before and after `change`."""
    compiled = genesis.compile(function)
    for act in (lambda: None, lambda: None, change, lambda: None):
        act()
        got, want = compiled(*arguments), function(*arguments)
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    return compiled


@pytest.fixture(autouse=True)
def _restored():
    yield
    globals().update(scale=2.0, table={"a": [1.0, 2.0], "b": 3.0}, tensor=genesis.ones(3), settings=Settings(),
                     slotted=Slotted(2.0))


def set_global(name, value):
    return lambda: globals().__setitem__(name, value)


X = genesis.arange(3).float()
CASES = {
    "a global number": (lambda x: x * scale, set_global("scale", 7.0)),
    "a global number becomes an int": (lambda x: x.int() * scale, set_global("scale", 2)),
    "a global zero becomes negative": (lambda x: x / (x * 0 + scale), set_global("scale", -0.0)),
    "a global tensor": (lambda x: x + tensor, lambda: set_global("tensor", genesis.zeros(3))()),
    "a global tensor of another dtype": (lambda x: x + tensor, lambda: set_global("tensor", genesis.ones(3).double())()),
    "a global tensor in place": (lambda x: x + tensor, lambda: tensor.mul_(3)),
    "an item of a list in a dict": (lambda x: x * table["a"][1], lambda: table["a"].__setitem__(1, 9.0)),
    "a longer list": (lambda x: x * sum(table["a"]), lambda: table["a"].append(4.0)),
    "another item of a dict": (lambda x: x * table["b"], lambda: table.update(b=8.0)),
    "another dict": (lambda x: x * table["b"], set_global("table", {"b": 1.5})),
    "an attribute": (lambda x: settings.total(x), lambda: setattr(settings, "shift", 4.0)),
    "an attribute of a class": (lambda x: settings.total(x), lambda: setattr(Settings, "factor", 6.0)),
    "an attribute that hides that of a class": (lambda x: settings.total(x), lambda: setattr(settings, "factor", -6.0)),
    "an attribute of an attribute": (lambda x: x * settings.inner.depth, lambda: setattr(settings.inner, "depth", 9)),
    "an attribute by its name": (lambda x: x * getattr(settings, "shi" + "ft"), lambda: setattr(settings, "shift", 4.0)),
    "an attribute that was not there": (
        lambda x: x * getattr(settings, "extra", 1.0), lambda: setattr(settings, "extra", 4.0)),
    "an attribute in vars": (lambda x: x * vars(settings)["shift"], lambda: setattr(settings, "shift", 4.0)),
    "a slot": (lambda x: x * slotted.gain, lambda: setattr(slotted, "gain", 4.0)),
    "a method": (lambda x: settings.total(x), lambda: setattr(Settings, "total", lambda self, x: x - 1)),
    "a module's number": (lambda x: x * helpers.number, lambda: setattr(helpers, "number", 11.0)),
    "a module's function": (lambda x: helpers.act(x), lambda: setattr(helpers, "act", genesis.tanh)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_changes_outside_is_seen(name):
    function, change = CASES[name]
    total = Settings.total
    helpers.number, helpers.act = 3.0, genesis.sin
    try:
        compiled = agree(function, change, X)
    finally:
        Settings.factor, Settings.total = 5.0, total
    assert compiled.refusals == []
    assert sum(entry.replays for entry in compiled.entries) >= 2


def test_closures_and_defaults_are_seen():
    factor, weights = 2.0, [1.0]

    def inner(x, by=weights):
        return x * factor + by[0]

    def outer(x):
        return inner(x)

    def change():
        nonlocal factor
        factor = 3.0
        weights[0] = 8.0

    assert agree(outer, change, X).refusals == []


def make_scaler(by):
    def scaler(x):
        return x * by

    def set_by(value):
        nonlocal by
        by = value

    return scaler, set_by


def test_a_closure_that_the_collector_does_not_find_is_no_constant():
    def maker():
        k = 1.0

        def scaled(x):
            return x * k

        def rescale(value):
            nonlocal k
            k = value

        return scaled, rescale

    scaled, rescale = maker()
    mapped = genesis.func.vmap(scaled)  # which holds the function where no guard looks
    gc.freeze()
    try:
        agree(lambda x: mapped(x), lambda: rescale(5.0), X)
    finally:
        gc.unfreeze()


def test_what_is_printed_in_a_call_follows_the_settings():
    compiled = genesis.compile(lambda x: (x + 1, repr(x)))
    third = X / 3
    try:
        for precision in (4, 4, 4, 4, 2, 2):
            genesis.set_printoptions(precision=precision)
            assert compiled(third)[1] == repr(third)
    finally:
        genesis.set_printoptions(profile="default")


def test_a_closure_that_a_container_leads_to_is_seen():
    scaler, set_by = make_scaler(2.0)
    chosen = {"f": [scaler]}

    def f(x):
        return next_of(chosen)(x)

    def next_of(held):
        return held["f"][0]

    assert agree(f, lambda: set_by(5.0), X).refusals == []
    assert agree(f, lambda: chosen["f"].__setitem__(0, make_scaler(9.0)[0]), X).refusals == []


@dataclasses.dataclass
class Batch:
    x: object
    weight: float = 1.0


def test_arguments_are_trees_and_their_numbers_strings_and_nones_are_told_apart():
    def f(batch, how, extra=None, *, scale=1.0):
        y = batch.x * batch.weight if how == "weighted" else batch.x
        return (y if extra is None else y + extra[0]["e"]) * scale

    compiled = genesis.compile(f)
    calls = [
        ((Batch(X), "weighted"), {}), ((Batch(X), "plain"), {}), ((Batch(X, 3.0), "weighted"), {}),
        ((Batch(X), "weighted"), {}),
        ((Batch(X), "plain", [{"e": X}]), {}), ((Batch(X), "plain", [{"e": X + 1}]), {"scale": 2.0}),
        ((Batch(X.double()), "plain"), {}), ((Batch(X[:2]), "plain"), {}), ((Batch(X), "plain", [{"e": 4.0}]), {}),
    ]
    for _ in range(2):
        for args, kwargs in calls:
            np.testing.assert_array_equal(compiled(*args, **kwargs).numpy(), f(*args, **kwargs).numpy())


def test_what_python_makes_of_the_librarys_own_classes_is_not_the_users_code():
    layer, rates = genesis.nn.Linear(3, 3), collections.namedtuple("Rates", "first second")

    @dataclasses.dataclass
    class Scaled:
        by: float

        def __post_init__(self):
            self.by *= layer.scale

    def f(x):
        return layer(x) * rates(Scaled(2.0).by, 1).first

    layer.scale = 3.0
    compiled = genesis.compile(f)
    compiled(X)
    [entry] = compiled.entries
    assert not any("_tuple_new" in label for label in entry.labels) and any("scale" in label for label in entry.labels)
    layer.scale = 5.0
    np.testing.assert_array_equal(compiled(X).detach().numpy(), f(X).detach().numpy())


def test_numbers_of_arguments_that_feed_arithmetic_are_data():
    compiled = genesis.compile(lambda x, lr, n: x * lr + (1 - lr) / 2 + x ** 2 * n)
    for lr, n in [(0.1, 3), (0.2, 4), (0.3, 5), (1.0, 0), (-0.5, 1), (0.0, -1)]:
        np.testing.assert_allclose(compiled(X, lr, n).numpy(), X.numpy() * lr + (1 - lr) / 2 + X.numpy() ** 2 * n, rtol=1e-6)
    assert len(compiled.entries) == 2 and compiled.entries[0].replays == 4


LOOKS = {
    "a comparison": lambda x, n: x * (n if n < 3 else 3),
    "a truth": lambda x, n: x + (1 if n else 2),
    "a range": lambda x, n: sum([x] * int(n), x),
    "a format": lambda x, n: x * len(f"{n}"),
    "a key": lambda x, n: x * {2: 5.0}.get(n, 1.0),
    "a function of math": lambda x, n: x * math.sqrt(n),
    "a maximum": lambda x, n: x * max(n, 3),
    "its type": lambda x, n: x * (2 if type(n) is int else 3),
    "its class": lambda x, n: x * (2 if isinstance(n, int) else 3),
    "a static argument": lambda x, n: x.reshape(1, 3).expand(int(n) + 1, 3),
    "data": lambda x, n: x + genesis.tensor([n, n, 1]),
    "an exponent": lambda x, n: x ** n,
    "a shape": lambda x, n: genesis.zeros(n, 3) + x,
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_numbers_that_python_looks_at_are_compared(name, dynamic):
    compiled = genesis.compile(LOOKS[name], dynamic=dynamic)
    for n in (2, 3, 4, 2, 5, 4, 0):
        got, want = compiled(X, n), LOOKS[name](X, n)
        assert got.dtype is want.dtype
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    if "shape" not in name and "range" not in name and "static" not in name:
        for n in (2.0, 3.5):
            np.testing.assert_array_equal(compiled(X, n).numpy(), LOOKS[name](X, n).numpy())


class Layer(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(3, 3)
        self.gain = 2.0
        self.extra = None

    def forward(self, x):
        y = self.linear(x) * self.gain
        return y if self.extra is None else self.extra(y)


MODULES = {
    "a number": lambda m: setattr(m, "gain", 3.0),
    "a parameter replaced": lambda m: setattr(m.linear, "weight", nn.Parameter(genesis.ones(3, 3))),
    "a parameter removed": lambda m: setattr(m.linear, "bias", None),
    "a parameter in place": lambda m: m.linear.weight.data.mul_(2),
    "data replaced": lambda m: setattr(m.linear.weight, "data", genesis.ones(3, 3)),
    "a parameter that NumPy writes": lambda m: m.linear.weight.detach().numpy().fill(4.0),
    "a module put in": lambda m: setattr(m, "extra", nn.Tanh()),
    "a module replaced": lambda m: setattr(m, "linear", nn.Linear(3, 3, bias=False)),
    "forward of one object": lambda m: setattr(m, "forward", lambda x: x),
    "a state loaded": lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}),
    "another dtype": lambda m: m.double(),
    "frozen": lambda m: m.requires_grad_(False),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_change_are_seen(name):
    genesis.manual_seed(0)
    model = Layer()
    Layer.double = lambda self: self.to(genesis.float64)
    compiled = genesis.compile(model)
    for act in (lambda m: None, lambda m: None, MODULES[name], lambda m: None):
        act(model)
        x = X.to(model.linear.weight)
        got, want = compiled(x), model(x)
        np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
        assert got.requires_grad is want.requires_grad


SETTINGS = {
    "the window of a maximum": (nn.MaxPool2d(2), "kernel_size", 3),
    "the steps of a mean": (nn.AvgPool2d(2), "stride", 1),
    "the power of a norm": (nn.LPPool2d(2.0, 2), "norm_type", 3.0),
    "the parts of a mean": (nn.AdaptiveAvgPool2d(2), "output_size", 3),
    "the parts of a maximum": (nn.AdaptiveMaxPool2d(2), "output_size", (1, 3)),
    "the steps of a convolution": (nn.Conv2d(2, 3, 3), "stride", (2, 2)),
    "a slope": (nn.LeakyReLU(0.5), "negative_slope", 0.25),
    "an axis": (nn.Softmax(1), "dim", 2),
    "places around": (nn.ZeroPad2d(1), "padding", (1, 2, 0, 1)),
    "a size": (nn.Upsample((5, 5)), "size", (8, 9)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_layers_that_change_are_seen(name):
    layer, setting, other = SETTINGS[name]
    before, x = getattr(layer, setting), genesis.linspace(-1, 2, 72).reshape(1, 2, 6, 6)
    try:
        agree(lambda x: layer(x).detach(), lambda: setattr(layer, setting, other), x)
    finally:
        setattr(layer, setting, before)


def test_modes_are_seen():
    w = genesis.ones(3, 3, requires_grad=True)
    compiled = genesis.compile(lambda x: x @ w)
    x = genesis.ones(2, 3)
    for _ in range(2):
        assert compiled(x).requires_grad
        with genesis.no_grad():
            assert not compiled(x).requires_grad
        with genesis.autocast():
            assert compiled(x).dtype is genesis.bfloat16
        assert compiled(x).dtype is genesis.float32


IMPURE = {
    "random": lambda x: x * random.random(),
    "a method of random": lambda x: x * random.uniform(1, 2),
    "time": lambda x: x * (time.perf_counter() % 1),
    "numpy.random": lambda x: x * float(np.random.rand()),
    "a NumPy array": lambda x: x + numbers[0],
    "values of a NumPy array": lambda x: x + genesis.tensor(numbers),
}


@pytest.mark.parametrize("name", IMPURE)
def test_what_answers_otherwise_each_time_is_not_replayed(name):
    compiled = genesis.compile(IMPURE[name])
    results = []
    for i in range(4):
        numbers[:] = i
        results.append(tuple(compiled(X).tolist()))
    assert len(set(results)) == 4 and not compiled.entries and compiled.refusals


def test_a_call_that_counts_is_not_replayed():
    calls = []

    @genesis.compile
    def f(x):
        calls.append(1)
        return x * len(calls)

    assert [f(genesis.ones(())).item() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert not f.entries and "changes" in f.refusals[0].reason


def test_print_prints_each_time(capsys):
    @genesis.compile
    def f(x):
        print("called")
        return x + 1

    for _ in range(3):
        f(X)
    assert capsys.readouterr().out == "called\n" * 3


def test_a_random_state_outside_is_honoured():
    compiled = genesis.compile(lambda x: x + genesis.randn(3) + nn.functional.dropout(x, 0.5))
    for seed in (0, 1, 0, 7):
        genesis.manual_seed(seed)
        got = [compiled(X).tolist() for _ in range(3)]
        genesis.manual_seed(seed)
        assert got == [compiled.function(X).tolist() for _ in range(3)]
    assert len(compiled.entries) == 1 and compiled.entries[0].replays == 11


def test_an_iterator_outside_moves_on():
    rates = iter([1.0, 2.0, 3.0])
    compiled = genesis.compile(lambda x: x * next(rates))
    assert [compiled(genesis.ones(())).item() for _ in range(3)] == [1, 2, 3]
