"""Which arguments, held tensors and gradients share storage is guarded: each call gives what uncompiled code gives."""

import itertools

import numpy as np
import pytest

import genesis
from genesis import nn


def values(found):
    """Tensors, and lists of them, as bytes: results are the same to the bit."""
    if isinstance(found, genesis.Tensor):
        return found.shape, found.detach().numpy(force=True).tobytes()
    return [values(item) for item in found] if isinstance(found, list | tuple) else found


def agree(make, calls):
    """Whether the compiled function gives in each call what the function itself gives; its entries are returned.

    `make()` gives a function, a dict of patterns (name -> arguments of a call, made anew) and the tensors to look at.
    """
    def run(wrap):
        genesis.manual_seed(0)
        function, patterns, held = make()
        wrapped, seen = wrap(function), []
        for name in calls:
            arguments = patterns[name]()
            result = wrapped(*arguments)
            bases = [a if a._base is None else a._base for a in arguments]
            seen.append((name, values(result), values(bases), values(held), values([tensor.grad for tensor in held])))
        return wrapped, seen

    (compiled, got), (_, want) = run(genesis.compile), run(lambda function: function)
    assert got == want
    return compiled.entries


def orders(names, repeated=3):
    """Each pattern several times, after each other one: what is recorded with one is not replayed for another."""
    return [[name for name in order for _ in range(repeated)] + list(order) * 2 for order in itertools.permutations(names, 2)]


def written_view(a, b):
    a.mul_(2)
    return b.sum() + a


def both_written(a, b):
    a.mul_(2)
    b.add_(3)
    return a * 1, b * b


def read_after_write(a, b):
    b.add_(a.sum())
    return a + 1, b[1:], a.exp()


def only_read(a, b):
    return a.sum() * b, b[1:], a[:2]


def returned(a, b):
    return a, b, a[1:], b.detach()


def identity(a, b):
    return a * (2 if a is b else 3) + b.sum()


SIZE = 6


def two_arguments(function, size=SIZE):
    def make():
        def one():
            return genesis.rand(size)

        def parts(a, b):
            x = one()
            return x[a], x[b]

        def same():
            x = one()
            return x, x

        def same_view():
            x = one()[1:]
            return x, x

        def swapped():
            x = one()
            return x, x[: size // 2]

        def of_a_view():
            x = one()[1:]
            return x[:2], x

        def pending():
            x = one() + 1
            return x[:3], x

        half = size // 2
        patterns = {
            "apart": lambda: (one(), one()), "same": same, "same view": same_view, "swapped": swapped, "of a view": of_a_view,
            "pending": pending, "whole": lambda: parts(slice(0, half), slice(0, size)),
            "lower and upper": lambda: parts(slice(0, half), slice(half, size)),
            "overlapping": lambda: parts(slice(0, half), slice(1, half + 1)),
            "equal views": lambda: parts(slice(0, half), slice(0, half)),
            "view and another": lambda: (one()[:half], one()), "views apart": lambda: (one()[:half], one()[half:]),
        }
        return function, patterns, []

    return make


NAMES = [*two_arguments(None)()[1]]


@pytest.mark.parametrize("function", [written_view, both_written, read_after_write, only_read, returned, identity])
def test_two_arguments_share_storage_or_do_not(function):
    agree(two_arguments(function), [name for name in NAMES for _ in range(3)] + NAMES[::-1] + NAMES[::2] + NAMES[1::2])


@pytest.mark.parametrize("names", orders(["view and another", "whole", "of a view"]) + orders(["apart", "same"]) + orders(
    ["views apart", "overlapping", "equal views", "same view"]))
def test_patterns_that_change_between_calls(names):
    entries = agree(two_arguments(both_written), names)
    assert sum(entry.replays for entry in entries) >= 2


def test_a_large_argument_shares_storage_or_does_not():
    for names in orders(["view and another", "whole", "views apart", "overlapping"], 2):
        agree(two_arguments(both_written, 40_000), names)


def test_a_pattern_is_replayed_by_the_entry_that_was_recorded_with_it():
    entries = agree(two_arguments(written_view), ["whole", "view and another"] * 5)
    assert sorted(entry.replays for entry in entries) == [4, 4]


def test_what_differs_is_explained():
    compiled = genesis.compile(written_view)
    x = genesis.ones(6)
    compiled(x[:3], x)
    compiled(x[:3], genesis.ones(6))
    assert compiled.missed == "which tensors share storage"


def with_held(kind, held_is_view, function):
    """A function of one argument and of a tensor that it holds in a way of its own."""
    def make():
        base, other = genesis.zeros(8), genesis.ones(8)
        held = base[2:6] if held_is_view else base
        module = nn.Module()
        module.register_buffer("held", held)
        table = {"held": held}

        def closure(a):
            return function(a, held)

        def attribute(a):
            return function(a, module.held)

        def item(a):
            return function(a, table["held"])

        patterns = {
            "apart": lambda: (genesis.rand(4),), "part of another": lambda: (other[0:4],), "part": lambda: (base[0:4],),
            "equal part": lambda: (base[2:6],), "itself": lambda: (held,), "the base": lambda: (base,),
        }
        return {"closure": closure, "attribute": attribute, "item": item}[kind], patterns, [base, other, held]

    return make


def adds(a, h):
    a.add_(1)
    h.add_(10)
    return a * 1


def reads_held(a, h):
    a.add_(1)
    return h * 2


def writes_held(a, h):
    h.add_(1)
    return a * 2, a[1:]


@pytest.mark.parametrize("function", [adds, reads_held, writes_held])
@pytest.mark.parametrize("held_is_view", [True, False])
@pytest.mark.parametrize("kind", ["closure", "attribute", "item"])
def test_an_argument_shares_storage_with_what_is_held_or_does_not(kind, held_is_view, function):
    names = ["apart", "part of another", "part", "equal part", "itself", "the base"]
    for order in (names, names[::-1], names[2:] + names[:2]):
        agree(with_held(kind, held_is_view, function), [name for name in order for _ in range(3)] + order[::-1])


def test_two_held_views_of_what_is_given():
    def make():
        base = genesis.zeros(8)
        first, second = base[:4], base[2:6]

        def function(a):
            first.add_(1)
            second.mul_(2)
            a.add_(second.sum())
            return first + second, a * 1

        patterns = {"apart": lambda: (genesis.rand(4),), "base": lambda: (base,), "part": lambda: (base[1:5],)}
        return function, patterns, [base]

    for names in orders(["apart", "base", "part"]):
        agree(make, names)


def gradients(kind):
    """A function that reads a gradient, which is or is not an argument or a part of one."""
    def make():
        w = genesis.ones(4, requires_grad=True)
        v = genesis.ones(4, requires_grad=True)

        def reads(x):
            w.grad.mul_(2)
            return x + w.grad

        def accumulates(x):
            (w * x).sum().backward()
            return x * 1

        def both(x):
            w.grad.add_(1)
            v.grad.add_(x)
            return w.grad * v.grad

        def given(gradient, x, other=None):
            w.grad, v.grad = gradient, gradient.clone() if other is None else other
            return (x,)

        def apart():
            return given(genesis.rand(4), genesis.rand(4))

        def argument():
            x = genesis.rand(4)
            return given(x, x)

        def part():
            x = genesis.rand(8)
            return given(x[2:6], x[:4])

        def of_base():
            x = genesis.rand(4)
            return given(x[:], x)

        def one_for_both():
            g = genesis.rand(4)
            return given(g, genesis.rand(4), g)

        def parts_of_one():
            g = genesis.rand(8)
            return given(g[:4], genesis.rand(4), g[2:6])

        def the_parameter():
            return given(genesis.rand(4), w.detach())

        patterns = {"apart": apart, "argument": argument, "part": part, "of base": of_base, "one for both": one_for_both,
                    "parts of one": parts_of_one, "the parameter": the_parameter}
        return {"reads": reads, "accumulates": accumulates, "both": both}[kind], patterns, [w, v]

    return make


@pytest.mark.parametrize("kind", ["reads", "accumulates", "both"])
def test_a_gradient_shares_storage_with_an_argument_or_does_not(kind):
    names = ["apart", "argument", "part", "of base", "one for both", "parts of one", "the parameter"]
    for order in (names, names[::-1], names[3:] + names[:3]):
        agree(gradients(kind), [name for name in order for _ in range(3)] + order[::-1])


def test_two_parameters_with_one_gradient_are_cleared():
    def run(wrap):
        w, v = (genesis.ones(3, requires_grad=True) for _ in range(2))
        optimizer = genesis.optim.SGD([w, v], lr=0.5)

        def step(x):
            optimizer.zero_grad()
            (w * x + v).sum().backward()
            optimizer.step()

        wrapped = wrap(step)
        for k in range(5):
            w.grad = v.grad = genesis.ones(3)
            wrapped(genesis.full((3,), float(k)))
        return values([w, v, w.grad, v.grad])

    assert run(genesis.compile) == run(lambda function: function)


def test_data_that_was_replaced_is_another_storage():
    def make():
        p, first, second = genesis.ones(4, requires_grad=True), genesis.zeros(4), genesis.zeros(4)

        def function(x):
            with genesis.no_grad():
                p.add_(1)
            return x * 2

        def given(storage, x):
            p.data = storage
            return (x,)

        patterns = {
            "its own": lambda: given(first, genesis.ones(4)), "argument": lambda: given(first, first),
            "another": lambda: given(second, first), "both": lambda: given(second, second),
        }
        return function, patterns, [first, second, p]

    for names in orders(["its own", "argument", "another", "both"]):
        agree(make, names)


def test_arrays_of_numpy_that_share_memory():
    def run(wrap):
        array = np.zeros(6, np.float32)

        def function(a, b):
            a.add_(1)
            return b * 2

        wrapped, seen = wrap(function), []
        for _ in range(3):
            for a, b in ((genesis.zeros(3), genesis.zeros(6)), (genesis.from_numpy(array[:3]), genesis.from_numpy(array))):
                seen.append((values(wrapped(a, b)), values([a, b]), array.tolist()))
        return seen

    assert run(genesis.compile) == run(lambda function: function)


def test_a_held_view_that_is_stale_when_a_call_is_recorded_stays_the_one_that_is_held():
    def run(wrap):
        base = genesis.tensor([1.0, -2.0])
        view = base[1:]

        def step(a, b):
            part = b[::2]
            part.add_(1)
            return part, view

        step, seen = wrap(step), []
        step(base[::2], base)
        step(genesis.ones(1), base)
        for _ in range(3):
            other = genesis.tensor([5.0, 7.0])
            seen.append([x.tolist() for x in (*step(genesis.ones(1), other), base, other)])
        return seen

    assert run(genesis.compile) == run(lambda function: function)


@pytest.mark.parametrize("order", [(0, 1), (0, 0, 1, 1), (0, 0, 0, 1, 2, 2, 1, 0)])
def test_a_gradient_that_shows_the_memory_of_an_argument(order):
    def run(wrap):
        w, held = nn.Parameter(genesis.ones(3)), [genesis.arange(6.0) * 10**k for k in range(3)]

        @wrap
        def f(b):
            (w * w.detach()).sum().backward()  # adds to what the gradient shows
            w.grad = b.reshape(-1)

        seen = []
        for k in order * 3:
            f(held[k][1:4])
            seen.append([t.tolist() for t in (*held, w.grad)])
        return seen, f

    (got, f), (want, _) = run(genesis.compile), run(lambda f: f)
    assert got == want and sum(entry.replays for entry in f.entries) >= 2
