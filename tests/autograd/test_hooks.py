"""Hooks against torch's, by the same programs; and the walk that stops for them."""

import pytest
import torch

import genesis
from genesis.autograd.after_backward import queue_callback

BOTH = [genesis, torch]


def on_results(lib):
    """Hooks of a leaf and of results, that read, replace, and are removed."""
    log = []
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: log.append(("x", g.tolist())))
    y = x * 3
    y.register_hook(lambda g: log.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: log.append(("third", g.tolist())))
    z = y * y
    z.register_hook(lambda g: log.append(("z", g.tolist())))
    removed = z.register_hook(lambda g: log.append("never"))
    removed.remove()
    (z.sum() + y.sum()).backward()
    return log, x.grad.tolist()


def on_nodes(lib):
    """Hooks of nodes see what comes and what goes on."""
    log = []
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    w = lib.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    node = y.grad_fn
    node.register_prehook(lambda came: log.append(("came", [g.tolist() for g in came])))
    node.register_prehook(lambda came: (came[0] * 2,))
    node.register_hook(lambda passed, came: log.append([[g.tolist() for g in passed], [g.tolist() for g in came]]))
    node.register_hook(lambda passed, came: (passed[0] * 100, passed[1]))
    y.exp().log().sum().backward()
    return torch.tensor(x.grad.tolist()), torch.tensor(w.grad.tolist()), log


def on_accumulation(lib):
    """A leaf's accumulation: its hook before, and the one after, once per backward."""
    log = []
    x = lib.tensor([1.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: log.append(leaf.grad.tolist()))
    x.register_hook(lambda g: g + 1)
    for _ in range(2):
        (x * x + x).sum().backward()
    return log


def at_a_clone(lib):
    """A hook stays with the value that it was registered on, whatever is written over its tensor."""
    log = []
    x = lib.tensor([1.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: log.append(("before", g.tolist())))
    y.mul_(5)
    y.register_hook(lambda g: log.append(("after", g.tolist())))
    y.retain_grad()
    (y * 3).sum().backward()
    return log, y.grad.tolist(), x.grad.tolist()


def in_second_derivatives(lib):
    """With create_graph a hook's arithmetic is part of the derivation."""
    x = lib.tensor([2.0], requires_grad=True)
    y = x**3
    y.register_hook(lambda g: g * x)
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    return first.tolist(), second.tolist()


@pytest.mark.parametrize("program", [on_results, on_accumulation, at_a_clone, in_second_derivatives])
def test_hooks_see_what_torchs_see(program):
    ours, theirs = (program(lib) for lib in BOTH)
    assert ours == theirs


@pytest.mark.parametrize("first", ["plain", "custom"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("looks", [1, 2])
def test_hooks_of_values_that_a_look_has_dropped_are_asked_in_second_derivatives(looks, when, first):
    """They are computed again from what was saved; their gradients go on where the hooks are."""
    def gradients(lib):
        log = []

        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                log.append(gradient.tolist())
                return gradient * 2 * ctx.saved_tensors[0]

        def hook(gradients):
            log.append(gradients[0].tolist())
            return (gradients[0] * abs(gradients[0]),)

        w = lib.tensor([[0.5, -1.0], [1.5, 0.25]], dtype=lib.float64, requires_grad=True)
        x = (lib.tensor([[0.3, -0.7]], dtype=lib.float64) @ w).tanh()
        x = (x if first == "plain" else Square.apply(x)) * 2
        node = x.grad_fn
        if when == "before":
            node.register_prehook(hook)
            x.register_hook(lambda g: hook([g])[0])
        y = (x * 3 @ w).tanh()
        del x
        for _ in range(looks):
            y.sum().item()
            (y,) = lib.autograd.grad(y.sum(), w, create_graph=True)
        if when == "after":
            node.register_prehook(hook)
        y.pow(2).sum().backward()
        return [w.grad.tolist(), *log]

    for ours, theirs in zip(*map(gradients, BOTH), strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_hooks_of_nodes_see_what_torchs_see():
    for got, want in zip(on_nodes(genesis), on_nodes(torch), strict=True):
        torch.testing.assert_close(got, want) if isinstance(want, torch.Tensor) else None
    assert on_nodes(genesis)[2][0] == ("came", [[pytest.approx(1), pytest.approx(1)]])


def test_a_hook_may_look_at_anything():
    """Looking computes everything so far; the walk goes on from what was saved."""
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    w = genesis.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    h = (w @ x).tanh()
    h.register_hook(lambda g: print(f"{g} {h.detach()} {x.detach() * w.detach()}"))
    loss = (h * h).sum()
    loss.backward()
    at, bt = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    ((bt @ at).tanh() ** 2).sum().backward()
    torch.testing.assert_close(torch.tensor(x.grad.tolist()), at.grad)
    torch.testing.assert_close(torch.tensor(w.grad.tolist()), bt.grad)


def test_a_hook_as_a_context():
    x = genesis.ones(1, requires_grad=True)
    with x.register_hook(lambda g: g * 5):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [6]


def test_a_leaf_used_in_many_traces_is_asked_once():
    seen = []
    x = genesis.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.tolist()))
    a = (x * 2).sum()
    a.item()
    b = (x * 3).sum() + a
    b.item()
    (b + x.sum()).backward()
    assert seen == [[6, 6]]


def test_wrong_hooks_are_named():
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="wants a function, got int 3"):
        x.register_hook(3)
    with pytest.raises(RuntimeError, match="requires no gradient"):
        genesis.ones(2).register_hook(print)
    with pytest.raises(RuntimeError, match="wants a leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with x.register_hook(lambda g: g[:1]), pytest.raises(RuntimeError, match=r"shape \(2,\) back.*got .* shape \(1,\)"):
        x.sum().backward()
    assert x.grad is None
    for lib in (genesis, torch):
        leaf = lib.ones(2, requires_grad=True)
        leaf.register_post_accumulate_grad_hook(lambda leaf: leaf.grad * 2)
        with pytest.raises(RuntimeError, match="None"):
            leaf.sum().backward()
    node = (x * 2).grad_fn
    with node.register_hook(lambda passed, came: (1, 2, 3)):
        pass


def test_an_optimizer_step_in_a_hook():
    """The gradient can be used and dropped as soon as it is there."""
    w = genesis.ones(3, requires_grad=True)
    step = genesis.optim.SGD([w], lr=0.5)

    def update(leaf):
        step.step()
        leaf.grad = None

    w.register_post_accumulate_grad_hook(update)
    (w * 2).sum().backward()
    assert (w.tolist(), w.grad) == ([0, 0, 0], None)


def test_a_hook_on_a_thousand_values_stays_cheap():
    x = genesis.ones(1, requires_grad=True)
    y, seen = x, []
    for _ in range(300):
        y = y * 1.0
        y.register_hook(seen.append)
    y.sum().backward()
    assert len(seen) == 300 and x.grad.tolist() == [1]


@pytest.mark.parametrize("lib", BOTH)
def test_beside_the_way_to_the_inputs_nobody_is_asked(lib):
    log = []

    class Twice(lib.Function if lib is genesis else lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            log.append("Twice")
            return g * 2

    a, b = (lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    p, q = a * 2, Twice.apply(b * 1)
    p.register_hook(lambda g: log.append("p"))
    q.register_hook(lambda g: log.append("q"))
    z = p * q
    z.register_hook(lambda g: log.append("z"))
    for wanted, asked in ((a, ["z", "p"]), (b, ["z", "q", "Twice"]), (q, ["z", "q"])):
        log.clear()
        lib.autograd.grad(z.sum(), wanted, retain_graph=True)
        assert log == asked
    log.clear()
    z.sum().backward(inputs=[a])
    assert (log, b.grad) == (["z", "p"], None)


def after_a_write_that_is_not_recorded(lib):
    """Such a write changes the value, not its derivation: hooks and kept gradients see the uses before it too."""
    log = []
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    before = y * 3
    with lib.no_grad():
        y.mul_(10)
    y.register_hook(lambda g: log.append(g.tolist()))
    z = (before + y * 5).sum()
    (by_grad,) = lib.autograd.grad(z, y, retain_graph=True)
    y.retain_grad()
    z.backward()
    return log[-1], y.grad.tolist(), by_grad.tolist(), x.grad.tolist(), y.tolist()


def test_writes_that_are_not_recorded_keep_the_place_of_a_derivation():
    ours, theirs = (after_a_write_that_is_not_recorded(lib) for lib in BOTH)
    assert ours == theirs


def test_a_hook_of_several_gradients_runs_in_each_backward():
    found = []
    for lib in BOTH:
        log = []
        a, b = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
        hook = lib.autograd.graph.register_multi_grad_hook
        hook([a, b], lambda gs, log=log: log.append([None if g is None else g.tolist() for g in gs]))
        hook([a, b], lambda g, log=log: log.append(g.tolist()), mode="any")
        for loss in (a * 2, b * 3, a * a * b, a * 4):
            loss.sum().backward()
        found.append(sorted(map(str, log)))
    assert found[0] == found[1] and len(found[0]) == 8


def kept_by_hooks(lib):
    """What a hook has kept of a leaf's gradient is not what later gradients are added to."""
    kept, x, layer = [], lib.ones(2, requires_grad=True), lib.nn.Linear(2, 1)
    x.register_hook(kept.append)
    layer.bias.register_hook(lambda g: kept.append(g) or g)
    for times in (1, 2, 3):
        (layer(x * times).sum() * 0 + (x * times).sum() + (layer.bias * times).sum()).backward()
    lib.nn.utils.clip_grad_norm_([layer.bias], 0.5)
    return sorted(map(str, [g.tolist() for g in kept])), x.grad.tolist()


def within_each_other(lib):
    """A backward that a hook runs has its own gradients of a hook of several tensors; those of the outer one go on."""
    log, x, y = [], lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    left = [2.0, 3.0]

    def inner(g):
        with lib.enable_grad():
            for times in [left.pop()] if left else ():
                (x * y * times).sum().backward()

    x.register_hook(inner)
    lib.autograd.graph.register_multi_grad_hook([x, y], lambda gs: log.append([g.tolist() for g in gs]))
    (x * y).sum().backward()
    return log, x.grad.tolist(), y.grad.tolist()


@pytest.mark.parametrize("program", [kept_by_hooks, within_each_other])
def test_gradients_that_hooks_get(program):
    ours, theirs = map(program, BOTH)
    assert ours == theirs


def test_the_end_of_backward_is_not_that_of_one_within_it():
    log = []
    x = genesis.ones(2, requires_grad=True)

    def hook(gradient):
        queue_callback(lambda: log.append(x.grad.tolist()))
        with genesis.enable_grad():
            genesis.autograd.grad((x * 2).sum(), x)
            (genesis.ones(1, requires_grad=True) * 2).sum().backward()

    y = x * 3
    y.register_hook(hook)
    y.sum().backward()
    assert log == [[3.0, 3.0]]
    with pytest.raises(RuntimeError, match="no backward is running"):
        queue_callback(log.clear)


def test_gradients_are_kept_by_results_whoever_asks():
    for lib in BOTH:
        x = lib.ones(2, requires_grad=True)
        y = x * 2
        y.retain_grad()
        for wanted in (x, y):
            (found,) = lib.autograd.grad((y * 3).sum(), wanted, retain_graph=True)
            found.zero_()
        assert y.grad.tolist() == [6, 6] and x.grad is None


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("on_the_way", [False, True])
def test_gradients_are_kept_by_results_on_the_way_to_the_inputs(on_the_way, looks):
    def kept(lib):
        a, b = (lib.tensor([value], requires_grad=True) for value in (0.5, 2.0))
        x = a * 3
        x.retain_grad()
        y = x * b
        if looks:
            y.item()
        lib.autograd.grad(y, a if on_the_way else b, retain_graph=True)
        yield None if x.grad is None else x.grad.tolist()
        y.backward(inputs=[b], retain_graph=True)
        yield None if x.grad is None else x.grad.tolist()
        y.backward()
        yield x.grad.tolist()

    assert [*kept(genesis)] == [*kept(torch)]


@pytest.mark.parametrize(("answer", "error"), [
    ((1,), TypeError), ([1], TypeError), (3, TypeError), (True, TypeError), (genesis.ones(3), RuntimeError)])
def test_what_is_no_gradient_is_refused(answer, error):
    x = genesis.ones(2, requires_grad=True)
    y = x * 2
    for register in (x.register_hook, y.register_hook):
        with register(lambda g: answer), pytest.raises(error, match="wants a gradient of shape"):
            y.sum().backward(retain_graph=True)
    if not isinstance(answer, tuple):
        with y.grad_fn.register_prehook(lambda gs: answer), pytest.raises(TypeError, match="wants a tuple of 1"):
            y.sum().backward(retain_graph=True)
