"""In-place operations: what they return, refuse and do to gradients."""

import pytest
import torch

import genesis
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import CPU
from genesis.tracing.state import thread_state
from tests.ops.samples import is_elementwise
from tests.tolerances import assert_close

ROWS = [name for name, row in OPERATIONS.items() if row.in_place and row.method and is_elementwise(name)]
ALIASES = {alias: row.name for row in OPERATIONS.values() if row.in_place for alias in row.aliases if "." not in alias}


@pytest.mark.parametrize("name", ROWS)
def test_in_place_is_torchs(name):
    integral = name.startswith("bitwise")
    values = [[3, 5, 4], [1, 2, 3]] if integral else [[0.5, 0.75, 0.25], [0.5, 1.5, 0.75]]
    count = len(OPERATIONS[name].operands)
    x, *others = (genesis.tensor(v) for v in values[:count])
    t, *their_others = (torch.tensor(v) for v in values[:count])
    assert getattr(x, name + "_")(*others) is x
    getattr(t, name + "_")(*their_others)
    assert_close(x, t, name)


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_their_rows(alias):
    values = [0.5, 0.75, 0.25]
    others = [[0.5, 0.25, 0.75]] if len(OPERATIONS[ALIASES[alias]].operands) > 1 else []
    x, *mine = map(genesis.tensor, [values, *others])
    t, *theirs = map(torch.tensor, [values, *others])
    assert_close(getattr(genesis, alias)(x, *mine), getattr(torch, alias)(t, *theirs), alias)
    assert_close(getattr(x, alias + "_")(*mine), getattr(t, alias + "_")(*theirs), alias)


def test_operators_change_the_object_itself():
    x = y = genesis.tensor([1.0, 2.0])
    x += 1
    x *= 3
    x -= 2
    x /= 2
    x **= 2
    assert x is y
    assert y.tolist() == [4.0, 12.25]


def test_alpha_scales_what_is_added():
    assert genesis.zeros(2).add_(genesis.ones(2), alpha=3).tolist() == [3, 3]
    assert genesis.zeros(2).sub_(1, alpha=3).tolist() == [-3, -3]


def test_the_dtype_stays():
    x = genesis.ones(2, dtype=genesis.float16)
    x += genesis.ones(2, dtype=genesis.float64)
    assert x.dtype is genesis.float16
    with pytest.raises(TypeError, match=r"add_: a float32 result cannot be cast in place to int64"):
        genesis.arange(2).add_(0.5)


def test_the_shape_stays():
    with pytest.raises(ValueError, match=r"add_: the result has shape \(2, 3\)"):
        genesis.zeros(3).add_(genesis.zeros(2, 3))


def test_a_leaf_that_requires_grad_refuses():
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1
    with genesis.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 2]
    assert x.is_leaf and x.requires_grad


def test_data_changes_values_and_leaves_the_derivation():
    x = genesis.ones(2, requires_grad=True)
    y = x * 3
    x.data.mul_(5)
    y.sum().backward()
    assert (x.tolist(), x.grad.tolist()) == ([5, 5], [3, 3])
    x.data = genesis.zeros(2)
    assert x.tolist() == [0, 0]
    assert x.requires_grad


@pytest.mark.parametrize("lib", [genesis, torch])
def test_data_on_both_sides_of_an_assignment(lib):
    """The idiom of optimizers by hand, twice over; then a part of its own storage."""
    x = lib.full((2, 2), 3.0, requires_grad=True)
    for _ in range(2):
        x.data -= 0.5
    with lib.no_grad():
        x.mul_(2)
    assert x.tolist() == [[4, 4], [4, 4]] and x.is_leaf
    x.data = x.data[0]
    x.data += 1
    x.data[0] = 9
    (x * x).sum().backward()
    assert (x.tolist(), x.grad.tolist()) == ([9, 5], [18, 10])


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_result_whose_data_are_assigned_keeps_its_derivation(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.data = lib.tensor([5.0, 7.0])
    part = y[0]
    part.data += 1
    (y * lib.tensor([1.0, 10.0])).sum().backward(retain_graph=True)
    part.backward()
    assert (y.tolist(), part.item(), x.grad.tolist()) == ([6, 7], 6, [4, 20])


@pytest.mark.parametrize("lib", [genesis, torch])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_views_stay_on_the_storage_that_an_assignment_of_data_leaves(lib, requires_grad):
    x = lib.ones(4, requires_grad=requires_grad)
    whole = x * 1.5
    part = whole[1:]
    last = part[2:]
    part.data = part.detach() * 2
    part.add_(1)
    whole.data = whole.detach() * 3
    whole.mul_(2)
    assert (whole.tolist(), part.tolist(), last.tolist()) == ([9, 9, 9, 9], [4, 4, 4], [1.5])


@pytest.mark.parametrize("lib", [genesis, torch])
@pytest.mark.parametrize("turn", [lambda y: y.t_(), lambda y: y.unsqueeze_(0)])
def test_a_result_that_is_turned_without_gradients_keeps_its_derivation(lib, turn):
    x = lib.ones(2, 2, requires_grad=True)
    y = x * 2
    with lib.no_grad():
        turn(y)
    assert y.requires_grad and not y.is_leaf
    (y * 3).sum().backward()
    assert x.grad.tolist() == [[6, 6], [6, 6]]


def test_gradients_of_writes():
    x, t = genesis.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    for a in (x, t):
        y = a * 2
        y.mul_(3)
        y[0] = a[1] ** 2
        y.add_(a)
        y.sum().backward()
    assert x.grad.tolist() == t.grad.tolist()


def test_a_constant_becomes_part_of_the_graph_when_written_to():
    x = genesis.ones(2, requires_grad=True)
    y = genesis.zeros(2)
    y += x * 3
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_manual_gradient_descent_keeps_the_parameter():
    w = genesis.tensor([1.0], requires_grad=True)
    for _ in range(3):
        (w * w).sum().backward()
        with genesis.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
    assert w.tolist() == [0.125]
    assert w.is_leaf


def test_masked_writes():
    x = genesis.arange(4.0)
    x.masked_fill_(x > 1, -1)
    assert x.tolist() == [0, 1, -1, -1]
    assert x.masked_fill(x < 0, 9).tolist() == [0, 1, 9, 9]


def test_random_fills_draw_anew():
    genesis.manual_seed(3)
    x = genesis.empty(1000).uniform_(2, 4)
    y = genesis.empty(1000).normal_(5, 0.1)
    assert x.min().item() >= 2 and x.max().item() < 4
    assert y.mean().item() == pytest.approx(5, abs=0.02)
    assert not bool((x == genesis.empty(1000).uniform_(2, 4)).all())


@pytest.mark.parametrize("write", ["x[0] = 5", "x.data[0] = 1", "x.detach()[0] = 1", "b.data[0] = 1", "b.add_(1)", "b.mul_(2)"])
@pytest.mark.parametrize("part", ["x", "x[::2]"])
def test_a_detached_tensor_that_took_a_gradient_keeps_it_when_its_storage_is_written(write, part):
    found = []
    for lib in (genesis, torch):
        x = lib.ones(6)
        b = eval(part).detach()
        w = lib.full(b.shape, 3.0, requires_grad=True)
        b.copy_(w)
        exec(write)
        (b * 2).sum().backward()
        found.append((b.requires_grad, b.tolist(), x.tolist(), w.grad.tolist()))
    assert found[0] == found[1]


WRITES_THROUGH_VIEWS = {
    "of a detached tensor": lambda lib, x, w: x.detach()[0].mul_(w[0]),
    "of .data": lambda lib, x, w: x.data[1].copy_(w),
    "of .data, over its gradient": lambda lib, x, w: x.data.mul_(w)[0].zero_(),
    "of a turned detached tensor": lambda lib, x, w: x.t().detach()[:, 1].add_(w),
    "of a part": lambda lib, x, w: x[1:].detach()[0, :2].mul_(w[:2]),
    "of a view of it": lambda lib, x, w: x.detach().view(-1)[2:].view(2, 2)[0].sub_(w[:2]),
}


@pytest.mark.parametrize("name", WRITES_THROUGH_VIEWS)
@pytest.mark.parametrize("is_given", [False, True])
def test_a_write_through_a_view_of_a_detached_tensor_changes_that_ones_derivation(name, is_given):
    found = []
    for lib in (genesis, torch):
        w, x = lib.tensor([2.0, 3.0, 4.0], requires_grad=True), lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        x = x * 1 if is_given else x
        part = WRITES_THROUGH_VIEWS[name](lib, x, w)
        whole = part._detached_root if lib is genesis else part._base
        (whole * whole).sum().backward()
        x.mul_(2)
        found.append((whole.requires_grad, x.requires_grad, w.grad.tolist(), x.tolist(), whole.tolist(), part.tolist()))
    assert found[0] == found[1]


def test_backward_refuses_what_was_written_through_such_a_view():
    for lib in (genesis, torch):
        w, d = lib.ones(3, requires_grad=True), lib.ones(3).detach()
        loss = (d * w).sum()
        d[:1].mul_(w[:1])
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        leaf = lib.ones(3).detach().requires_grad_()
        with pytest.raises(RuntimeError, match="a view of a leaf"):
            leaf[0].mul_(2)


OVERWRITTEN = {
    "fill": lambda lib, y: y.fill_(2), "zero": lambda lib, y: y.zero_(), "copy": lambda lib, y: y.copy_(lib.zeros(3)),
    "all": lambda lib, y: y.__setitem__(slice(None), 5.0), "drawn": lambda lib, y: y.normal_(),
    "a view of a part": lambda lib, y: y[:2].zero_(), "compared": lambda lib, y: y.eq_(2),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_what_is_overwritten_gets_zeros_for_a_gradient_as_in_torch(name):
    found = []
    for lib in (genesis, torch):
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        OVERWRITTEN[name](lib, y)
        assert y.requires_grad
        (y * y).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_write_that_is_refused_has_changed_nothing_that_backward_reads(lib):
    weight = lib.ones(1, requires_grad=True)
    spread = lib.ones(2, 1).expand(2, 3)
    total = (weight * spread).sum()
    with pytest.raises(RuntimeError):
        spread.add_(1)
    total.backward()
    assert weight.grad.tolist() == [6]


def test_a_write_to_a_whole_view_is_its_own_call_alone():
    weight = genesis.ones(2, requires_grad=True)
    genesis.synchronize()
    weight.data.mul_(3.0).add_(weight.detach(), alpha=0.5)
    lines = thread_state.traces[CPU.name].lines
    assert [key[0].name for *_, key in lines] == ["mul", "add"]
    assert weight.tolist() == [4.5, 4.5]
    assert weight.is_leaf and weight.requires_grad


@pytest.mark.parametrize("view", ["detach", "data"])
def test_whole_views_see_each_others_writes(view):
    def written(lib):
        w = lib.tensor([1.0, 2.0], requires_grad=True)
        one, two = (w.detach(), w.detach()) if view == "detach" else (w.data, w.data)
        one.mul_(2)
        two.add_(one)
        w.data[0] = 7
        one -= two.flip(0)
        (w * w).sum().backward()
        return [one.tolist(), two.tolist(), w.tolist(), w.grad.tolist()]

    assert written(genesis) == written(torch)
