"""Replays with inputs that nobody needs, with gradients that are returned, and with views of arguments."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim
from genesis.execution.flush import flush_all

SIZES = [1, 100, 5_000, 20_000, 70_000, 300_000]  # elements: from bytes to MiB, on both sides of what a run keeps


def values(found):
    """Tensors, and lists of them, as bytes: results are the same to the bit."""
    if isinstance(found, genesis.Tensor):
        return found.shape, found.requires_grad, found.detach().numpy(force=True).tobytes()
    return [values(item) for item in found] if isinstance(found, list | tuple) else found


def alone(function):
    """The function in programs of its own, as a compiled one is: the bits of a sum depend on what is fused with it."""
    def called(*arguments):
        flush_all()
        result = function(*arguments)
        flush_all()
        return result

    return called


def agree(make, calls=5, kept=0):
    """Whether calls of the compiled function give what the function gives; it is replayed. Results of `kept` calls live on.

    `make()` gives the function, the arguments of call k, and the tensors to look at after each call.
    """
    def run(wrap):
        genesis.manual_seed(0)
        function, arguments, held = make()
        wrapped, seen, results = wrap(function), [], []
        for k in range(calls):
            given = arguments(k)
            results.append(wrapped(*given))
            del results[: max(0, len(results) - 1 - kept)]
            tensors = [t for t in (*given, *held) if isinstance(t, genesis.Tensor)]
            seen.append((values(results), values(tensors), values([t.grad for t in tensors if t.is_leaf])))
        return wrapped, seen

    (compiled, got), (_, want) = run(genesis.compile), run(alone)
    assert got == want
    assert compiled.refusals == [] and sum(entry.replays for entry in compiled.entries) >= calls - 2


UNUSED = {
    "thrown away": lambda unused: unused * 2, "summed": lambda unused: (unused * 2).sum(),
    "read of": lambda unused: unused[1:] + 1, "in a chain": lambda unused: (unused * 0.5).exp().mean(),
}


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("what", UNUSED)
@pytest.mark.parametrize("size", SIZES)
def test_held_tensors_that_nobody_needs_shift_no_donation(size, what, place):
    def make():
        unused, state, weight, moment = (genesis.rand(size) for _ in range(4))

        def step(k):
            for position in range(4):
                if position == place:
                    UNUSED[what](unused)
                if position == 0:
                    new = (state * k).exp().sin()
                if position == 1:
                    moment.mul_(0.5).add_(new)
                if position == 2:
                    out = weight * new + moment
                    weight.copy_(new)
            return out, new

        return step, lambda k: (0.25 + k % 2,), [unused, state, weight, moment]

    agree(make)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("unused_size", [1, 300, 100_000])
@pytest.mark.parametrize("size", [10, 20_000, 100_000])
def test_arguments_that_nobody_needs_shift_no_donation(size, unused_size, order):
    def make():
        weight, moment = genesis.rand(size), genesis.rand(size)

        def step(*given):
            x, y, mask = (given[order.index(k)] for k in range(3))
            (mask * 2).sum()
            moment.mul_(0.9).add_(x)
            (mask + 1).exp()
            weight.sub_(moment * y)
            return weight * 2, moment * 3

        sizes = [size, size, unused_size]
        return step, lambda k: [genesis.rand(sizes[n]) + k for n in order], [weight, moment]

    agree(make)


@pytest.mark.parametrize("n", [4, 70, 300])
@pytest.mark.parametrize("make_optimizer", [optim.Adam, lambda p, lr: optim.SGD(p, lr, momentum=0.9)])
def test_a_training_step_with_a_metric_that_nobody_looks_at(n, make_optimizer):
    def make():
        weight, log = nn.Parameter(genesis.rand(n, n)), genesis.rand(n, n)
        optimizer = make_optimizer([weight], lr=0.1)

        def step(x, mask):
            (log * mask).mean()
            optimizer.zero_grad()
            (mask * 2).sum()
            loss = ((x @ weight) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        state = [tensor for held in optimizer.state.values() for tensor in held.values() if isinstance(tensor, genesis.Tensor)]
        return step, lambda k: (genesis.rand(n, n), genesis.rand(n, n)), [weight, log, *state]

    agree(make)


def of_a_leaf_of_its_own(w, x):
    x = x.detach().requires_grad_()
    (x * x).sum().backward()
    return x.grad


def of_two_leaves(w, x):
    leaf, other = x.detach().requires_grad_(), (x * 2).detach().requires_grad_()
    (leaf * other.exp()).sum().backward()
    return leaf.grad, other.grad * 2


def of_a_leaf_and_a_parameter(w, x):
    w.grad = None
    leaf = x.clone().requires_grad_()
    (leaf * w * w).sum().backward()
    return leaf.grad


def both(w, x):
    w.grad = None
    leaf = x.clone().requires_grad_()
    (leaf * w * w).sum().backward()
    return leaf.grad, w.grad, [leaf.grad]


def new_of_a_parameter(w, x):
    w.grad = None
    (w * x).sum().backward()
    return w.grad


def view_of_new(w, x):
    w.grad = None
    (w * w * x).sum().backward()
    return w.grad[: len(x) // 2 + 1], w.grad.sum()


def detached(w, x):
    w.grad = None
    (w * w * x).sum().backward()
    return w.grad.detach()


def twice(w, x):
    leaf = x.detach().requires_grad_()
    (leaf * leaf).sum().backward()
    (leaf * leaf * leaf).sum().backward()
    return leaf.grad


def computed_with(w, x):
    w.grad = None
    (w * w * x).sum().backward()
    return w.grad * 2, w.grad.square().sum()


def accumulated(w, x):
    (w * w * x).sum().backward()
    return (w.grad * 1).sum()


def accumulated_itself(w, x):
    (w * w * x).sum().backward()
    return w.grad, w.grad[1:]


def former(w, x):
    return (w.grad * x).sum(), w.grad


def by_function(w, x):
    leaf = x.detach().requires_grad_()
    (gradient,) = genesis.autograd.grad((leaf * leaf * w).sum(), [leaf])
    return gradient


GRADIENTS = [of_a_leaf_of_its_own, of_two_leaves, of_a_leaf_and_a_parameter, both, new_of_a_parameter, view_of_new, detached,
             twice, computed_with, accumulated, accumulated_itself, former, by_function]


@pytest.mark.parametrize("kept", [0, 3])
@pytest.mark.parametrize("size", [3, 5_000, 300_000])
@pytest.mark.parametrize("function", GRADIENTS)
def test_gradients_that_are_returned_or_kept(function, size, kept):
    def make():
        w = genesis.rand(size).requires_grad_()
        if function in (accumulated, accumulated_itself, former):
            (w * 2).sum().backward()
        return lambda x: function(w, x), lambda k: (genesis.rand(size),), [w]

    agree(make, kept=kept)


VIEWS = {
    "part": lambda a: a[1:], "two": lambda a: (a[1:], a[:2]), "nested": lambda a: a[1:][:2],
    "turned": lambda a: a.reshape(2, -1).t(), "detached": lambda a: a.detach(), "data": lambda a: a.data,
    "with a sum": lambda a: (a[1:], a.sum()), "of a write": lambda a: (a.add_(1), a[1:])[1],
    "before a write": lambda a: (a[1:], a.mul_(2))[0], "read too": lambda a: (a[1:], a[1:] * 2),
}


@pytest.mark.parametrize("size", [6, 100_000])
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_arguments_that_are_pending_or_realized(name, size):
    def make():
        kept = genesis.rand(size)

        def given(k):
            x = genesis.rand(size)
            if k % 3 == 1:
                x.add_(k)  # pending
            if k % 3 == 2:
                x = kept * k  # a pending result
            return (x,)

        return VIEWS[name], given, [kept]

    agree(make, 8)
    agree(make, 8, kept=3)


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_a_held_tensor_that_is_pending_or_realized(name):
    def make():
        held, owner = genesis.rand(6), nn.Module()
        owner.register_buffer("held", held)

        def given(k):
            if k % 2:
                held.mul_(1.5)
            return (k % 2,)

        return lambda k: VIEWS[name](owner.held), given, [held]

    agree(make, 8)


def test_a_view_that_is_returned_is_of_the_argument():
    tail = genesis.compile(lambda a: a[1:])
    for k in range(4):
        x = genesis.zeros(3)
        if k % 2:
            x.add_(1)
        view = tail(x)
        view.add_(5)
        x.mul_(2)
        assert (x.tolist(), view.tolist()) == (([0, 10, 10], [10, 10]) if k % 2 == 0 else ([2, 12, 12], [12, 12]))


def test_a_view_of_a_pending_argument_that_requires_a_gradient():
    def run(wrap):
        tail, seen = wrap(lambda a: a.detach()[1:]), []
        for k in range(4):
            w = genesis.ones(3, requires_grad=True)
            x = w * (k + 1)
            seen.append(tail(x).tolist())
            x.sum().backward()
            seen.append(w.grad.tolist())
        return seen

    assert run(genesis.compile) == run(lambda function: function)


@pytest.mark.parametrize("size", [3, 300_000])
@pytest.mark.parametrize("turned", [False, True])
def test_what_backward_is_to_read_is_not_what_numpy_writes_later(size, turned):
    def run(wrap):
        w, seen = genesis.ones(2, size, requires_grad=True), []
        scaled = wrap(lambda x: (w * x).sum())
        for k in range(8):
            array = np.full((size, 2) if turned else (2, size), k + 1.0, np.float32)
            x = genesis.from_numpy(array) if k % 4 > 1 else genesis.tensor(array)
            w.grad = None
            result = scaled(x.t() if turned else x)
            seen.append(result.item())
            if size == 3:  # more is not copied, so that a backward reads what is there
                array[:] = 100
            result.backward()
            seen.append(values(w.grad))
        return seen

    assert run(genesis.compile) == run(lambda function: function)


def test_a_lost_argument_of_which_a_view_is_returned():
    tail, x = genesis.compile(lambda a: a[1:]), genesis.rand(4)
    tail(x)
    lost = x[genesis.tensor([0, 1, 9])] * 2
    with pytest.raises((IndexError, RuntimeError), match=r"9|lost"):
        tail(lost).tolist()
    np.testing.assert_array_equal(tail(x).numpy(), x.numpy()[1:])


@pytest.mark.parametrize("gradient", ["held.reshape(-1)", "held[:3].detach()", "a[:3]", "None"])
def test_a_call_that_computes_nothing_sets_gradients(gradient):
    w, held = genesis.ones(3, requires_grad=True), genesis.arange(3.0)

    def step(a):
        w.grad = eval_gradient(a)
        return a

    eval_gradient = eval(f"lambda a: {gradient}", {"held": held})
    found = []
    for run in (step, genesis.compile(step)):
        for k in range(4):
            w.grad = genesis.full((3,), 7.0)
            run(genesis.full((4,), float(k)))
            found.append(None if w.grad is None else w.grad.tolist())
    assert found[:4] == found[4:]


def dropped(w):
    w.grad = None


def replaced(w):
    w.grad = None
    (w * 3).sum().backward()


@pytest.mark.parametrize("view", [lambda grad: grad, lambda grad: grad.unsqueeze(0), lambda grad: (grad, grad[1:])])
@pytest.mark.parametrize("replaces", [dropped, replaced])
def test_a_gradient_that_is_returned_is_that_of_before_the_call_replaced_it(view, replaces):
    def run(wrap):
        w = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)

        @wrap
        def f(x):
            grad = w.grad
            (w * x).sum().backward()  # accumulates in it
            before = view(grad)
            replaces(w)
            return before

        found = []
        for k in range(4):
            w.grad = None
            (w * (k + 1)).sum().backward()
            before = f(genesis.full((3,), 2.0 + k))
            before = before if isinstance(before, tuple) else (before,)
            found.append(([part.tolist() for part in before], None if w.grad is None else w.grad.tolist()))
        return found, f

    (got, f), (want, _) = run(genesis.compile), run(lambda f: f)
    assert got == want and f.entries and f.entries[0].replays == 3, (f.refusals, f.entries)


def test_a_view_of_a_storage_that_a_tensor_has_left_is_returned_as_that():
    def moved(library, x):
        whole = x * 1
        part = whole[1:]
        whole.data = x * 2  # the tensor has another storage from here on
        whole.add_(1)
        return whole, part

    want = [found.tolist() for found in moved(torch, torch.ones(3))]
    f = genesis.compile(lambda x: moved(genesis, x))
    assert [[found.tolist() for found in f(genesis.ones(3))] for _ in range(4)] == [want] * 4
    assert f.entries[0].replays == 3
