"""A saved value that was changed in place: backward raises where torch does, and nowhere else."""

from contextlib import nullcontext

import pytest
import torch

import genesis


def leaf(lib):
    return lib.tensor([1.0, 2.0], requires_grad=True)


def result_of_exp(lib, x):
    y = x.exp()
    z = y * 1
    y.add_(1)
    return z.sum() + y.sum()


def operand_of_mul(lib, x):
    w = lib.ones(2)
    y = x * w
    w.mul_(2)
    return y.sum()


def through_a_view(lib, x):
    w = lib.ones(2, 2)
    y = x * w[0]
    w[1] = 5.0
    return y.sum()


def through_the_base(lib, x):
    w = lib.ones(2, 2)
    row = w[0]
    y = x * w
    row.fill_(3)
    return y.sum()


def through_what_a_call_reads(lib, x):
    w = lib.ones(2, 2)
    y = w.t().unsqueeze(0)[0] @ x
    w.zero_()
    return y.sum()


def through_detach(lib, x):
    y = x.exp()
    z = y * y
    y.detach().zero_()
    return z.sum()


def a_parameter_step(lib, x):
    y = (x * x).sum()
    with lib.no_grad():
        x -= 0.1
    return y


def after_a_look(lib, x):
    w = lib.ones(2)
    y = (x * w).sum()
    y.item()
    w.add_(1)
    return y


def index_assignment(lib, x):
    w = lib.zeros(3)
    y = w[:2] * x
    w[2] = 1.0
    return y.sum()


def looked_at_with_its_root(lib, x):
    root = x * 2
    half = root[:1]
    half.tolist()
    y = half * half
    root.add_(1)
    return y.sum()


def looked_at_after_its_root(lib, x):
    root = x.exp()
    root.tolist()
    turned = root.view(2, 1).t()
    turned.tolist()
    y = turned.log()
    y.tolist()
    with lib.no_grad():
        root[:1].zero_()
    return y.sum()


def a_sibling_is_written(lib, x):
    first, second = (root := x * 2)[:1], root.expand(2, 2)
    second.tolist()
    y = second * x
    first.mul_(3)
    return y.sum()


RAISING = [result_of_exp, operand_of_mul, through_a_view, through_the_base, through_what_a_call_reads, through_detach,
           a_parameter_step, after_a_look, index_assignment, looked_at_with_its_root, looked_at_after_its_root,
           a_sibling_is_written]


def its_own_operand(lib, x):
    h = x * 2
    h.mul_(x)
    return h.sum()


def activation_in_place(lib, x):
    h = x * 2
    h.relu_()
    return (h * 1).sum()


def a_norm_activated_in_place(lib, x):
    norms = lib.nn.functional
    h = x * lib.tensor([[1.0, 2.0], [-3.0, 1.0], [0.5, 0.1]])
    total = 0
    for y in (norms.layer_norm(h, (2,)), norms.batch_norm(h, None, None, training=True), norms.instance_norm(h[None])):
        total = total + (norms.leaky_relu(y, 0.1, inplace=True) * h).sum()
    return total


def a_value_nobody_reads(lib, x):
    h = x * 2
    y = h + 1
    h.mul_(3)
    return (y + h).sum()


def through_data(lib, x):
    y = x.exp()
    z = y + 0
    y.data.zero_()
    return z.sum() + 0 * y.sum()


def a_sum_in_a_loop(lib, x):
    total = lib.zeros(2)
    for i in range(3):
        total += x * i
    return total.sum()


def chained_assignments(lib, x):
    y = lib.zeros(2, 2)
    y[0] = x * 2
    y[1] = y[0] + 1
    y[0] *= x
    return y.sum()


def after_a_clone(lib, x):
    y = x.exp()
    z = y.clone()
    z.add_(1)
    return (y * z).sum()


def a_step_between(lib, x):
    (x * x).sum().backward()
    with lib.no_grad():
        x -= 0.1 * x.grad
    x.grad = None
    return (x * x).sum()


def looked_at_between(lib, x):
    h = x * 2
    h.sin_()
    h.tolist()
    return h.sum()


def a_quotient(lib, x):
    h = x / lib.full((2,), 3.0)
    k = 2 / (x + 1)
    h.add_(1)
    k.mul_(x)
    return (h + k).sum()


def a_view_nobody_has_written(lib, x):
    root = x * 2
    half = root[1:]
    half.tolist()
    y = half * half
    (root + 1).zero_()
    root[:1].tolist()
    return y.sum() + half.exp().sum()


def copies_of_operands(lib, x):
    w = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    copies = [w.flip(0), w.rot90(), w.roll(1), w.repeat(1, 1), w.tile(1, 1), w.diag(), w.t().reshape(4)[:2],
              w.t().flatten()[1:3], w.narrow_copy(0, 0, 2), w.flip(0)[1:].squeeze(0), lib.stack([w])]
    y = sum((copy * x).sum() for copy in copies)
    w.add_(1)
    return y


SILENT = [copies_of_operands, a_view_nobody_has_written, its_own_operand, looked_at_between, a_quotient, activation_in_place,
          a_norm_activated_in_place, a_value_nobody_reads, a_sum_in_a_loop, chained_assignments, after_a_clone, a_step_between,
          through_data]


@pytest.mark.parametrize("program", RAISING)
def test_it_raises_where_torch_does(program):
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program(torch, leaf(torch)).backward()
    x = leaf(genesis)
    with pytest.raises(genesis.autograd.ChangedError, match="modified by an inplace operation"):
        program(genesis, x).backward()


@pytest.mark.parametrize("program", SILENT)
def test_it_does_not_where_torch_does_not(program):
    x, t = leaf(genesis), leaf(torch)
    program(genesis, x).backward()
    program(torch, t).backward()
    if program is not through_data:  # there torch computes with what was written, unseen
        torch.testing.assert_close(torch.tensor(x.grad.tolist()), t.grad)


def test_both_lines_and_both_operations_are_named():
    x = leaf(genesis)
    y = x.exp()
    z = y * 1
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"ExpBackward \(at .*checks.py:\d+\).*, add \(at .*checks.py:\d+\)"):
        (z + y).sum().backward()


@pytest.mark.parametrize("parts", [lambda x: x.split(1), lambda x: x.chunk(2), lambda x: x.unbind(0)])
def test_a_part_of_several_can_be_written_to(parts):
    with pytest.raises(RuntimeError, match="returns multiple views"):
        parts(leaf(torch) * 2)[0].mul_(3)
    x = leaf(genesis)
    y = x * 2
    parts(y)[0].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6, 2]


def test_what_a_custom_function_saved():
    class Square(genesis.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * x * w

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return 2 * x * w * grad, None

    w = genesis.ones(2)
    y = Square.apply(leaf(genesis), w).sum()
    w.zero_()
    with pytest.raises(genesis.autograd.ChangedError, match="SquareBackward"):
        y.backward()


def writing(view):
    """A function that writes, through `view` of it, to what the derivation of its result reads through another."""
    def make(lib):
        base, w = lib.tensor([0.0, 1.0, 2.0, 3.0]), leaf(lib)
        half = base[1:3]

        def f(a):
            y = w * a
            with lib.no_grad():
                view(base).add_(1)
            return y

        return f, half

    return make


@pytest.mark.parametrize("calls", [1, 2, 4])
@pytest.mark.parametrize("view", [lambda b: b, lambda b: b[1:], lambda b: b[1:3].detach(), lambda b: b[1:3][1:].unsqueeze(0)])
def test_every_call_of_a_function_that_writes_to_what_backward_reads(view, calls):
    ways = [(torch, None, nullcontext), (genesis, None, nullcontext), (genesis, None, genesis.eager),
            (genesis, genesis.compile, nullcontext)]
    for lib, wrap, mode in ways:
        with mode():
            f, half = writing(view)(lib)
            f = f if wrap is None else wrap(f)
            for _ in range(calls):
                y = f(half.detach())
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                y.sum().backward()


@pytest.mark.parametrize("later", [0, 1, 3])
def test_later_calls_write_to_what_the_first_call_saved(later):
    found = []
    for lib, wrap in ((torch, None), (genesis, None), (genesis, genesis.compile)):
        w, x = leaf(lib), lib.ones(2)

        def f(b, w=w):
            b.mul_(2)
            return w * b

        f = f if wrap is None else wrap(f)
        first, *_ = [f(x) for _ in range(1 + later)]
        try:
            first.sum().backward()
            found.append(w.grad.tolist())
        except RuntimeError as error:
            found.append("modified by an inplace" in str(error))
    assert found == [found[0]] * 3


def added_to_a_view(y, x):
    y[1:] += 1
    return y


def multiplied(y, x):
    y.mul_(x)
    return y


def written_in_a_later_program(y, x):
    x.add_(x.sum().item() * 0)
    y.add_(1)
    return y


def unread_by_its_derivation(y, x):
    (y + 1).mul_(2)
    return y.add(1).mul_(2)


@pytest.mark.parametrize("write", [added_to_a_view, multiplied, written_in_a_later_program, unread_by_its_derivation])
@pytest.mark.parametrize("before", [lambda lib, p: p.relu(), lambda lib, p: p.exp(), lambda lib, p: p + 1])
def test_every_call_of_a_function_that_writes_to_what_it_computed(write, before):
    found = []
    for lib, wrap in ((torch, None), (genesis, None), (genesis, genesis.compile)):
        w, x = leaf(lib), lib.ones(2)

        def f(x, w=w, lib=lib):
            return write(before(lib, w * x), x)

        f = f if wrap is None else wrap(f)
        found.append([])
        for _ in range(4):
            w.grad = None
            try:
                f(x).sum().backward()
                found[-1].append([round(value, 4) for value in w.grad.tolist()])
            except RuntimeError as error:
                found[-1].append("modified by an inplace" in str(error))
    assert found == [found[0]] * 3


@pytest.mark.parametrize("looked_at", [False, True], ids=["pending", "computed"])
@pytest.mark.parametrize("wrap", [lambda f: f, genesis.compile], ids=["called", "compiled"])
def test_a_view_that_is_an_argument_and_was_computed_apart_from_its_root(wrap, looked_at):
    def run(lib, wrap):
        x, found = leaf(lib), []
        f = wrap(lambda view: (view * x).sum())
        for written in (True, False, True, True):
            root = lib.tensor([1.0, 2.0, 3.0]) * 2
            view = root[:2]
            if looked_at:
                view.tolist()
            y = f(view)
            if written:
                root.add_(1)
            try:
                y.backward()
                found.append(x.grad.tolist())
            except RuntimeError as error:
                found.append("modified by an inplace" in str(error))
        return found, f

    found, f = run(genesis, wrap)
    assert found == run(torch, lambda f: f)[0] and (wrap is not genesis.compile or sum(e.replays for e in f.entries) >= 2)


@pytest.mark.parametrize("mode", [nullcontext, genesis.eager], ids=["recorded", "eager"])
def test_a_gradient_of_a_gradient_reads_a_parameter_that_was_changed_since(mode):
    with mode():
        w = leaf(genesis)
        gradient = genesis.autograd.grad((w * w * w).sum(), [w], create_graph=True)[0]
        with genesis.no_grad():
            w.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace"):  # as torch raises
            gradient.sum().backward()
