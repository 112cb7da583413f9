"""A parameter holds the memory of the tensor that it is made of, as PyTorch's does; so does what a parameter's data becomes."""

import pytest
import torch

import genesis

LIBRARIES = (torch, genesis)
VIEWS = {
    "whole": lambda a: a, "transposed": lambda a: a.t(), "columns": lambda a: a[:, 1:], "row": lambda a: a[1],
    "another's": lambda a: a.view(3, 2)[::2],
}


def base(lib, looked_at=True):
    a = lib.ones(2, 3) * lib.arange(3.0)
    if looked_at:
        a.tolist()
    return a


@pytest.mark.parametrize("looked_at", [True, False])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_writes_are_seen_on_both_sides(view, looked_at):
    found = []
    for lib in LIBRARIES:
        a = base(lib, looked_at)
        seen = a[:1]
        p = lib.nn.Parameter(view(a))
        steps = [tuple(p.stride()), p.storage_offset(), p.is_leaf, a.requires_grad, p.data_ptr() - a.data_ptr()]
        a.add_(1)
        steps.append(p.tolist())
        optimizer = lib.optim.SGD([p], lr=0.5)
        (p * p).sum().backward()
        optimizer.step()
        steps += [a.tolist(), seen.tolist(), p.grad.tolist()]
        seen.zero_()
        found.append([*steps, p.tolist()])
    assert found[1] == found[0]


def test_a_parameter_of_a_parameter_is_tied_to_it():
    found = []
    for lib in LIBRARIES:
        p = lib.nn.Parameter(base(lib))
        q = lib.nn.Parameter(p.t())
        with lib.no_grad():
            p.add_(1)
            q.mul_(2)
        (q.sum() * 3).backward()
        found.append([p.tolist(), q.tolist(), q.grad.tolist(), p.grad])
    assert found[1] == found[0]


def test_a_parameter_of_a_result_is_a_leaf_beside_it():
    found = []
    for lib in LIBRARIES:
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        p = lib.nn.Parameter(y)
        with lib.no_grad():
            p.add_(1)
        (y * y).sum().backward()
        found.append([p.is_leaf, p.tolist(), y.tolist(), x.grad.tolist(), p.grad])
    assert found[1] == found[0]


def test_a_buffer_shares_too():
    found = []
    for lib in LIBRARIES:
        a = base(lib)
        b = lib.nn.Buffer(a.t())
        b.add_(1)
        found.append([a.tolist(), tuple(b.stride())])
    assert found[1] == found[0]


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_converting_a_module_leaves_the_memory_to_the_others(view):
    found = []
    for lib in LIBRARIES:
        a, module = base(lib), lib.nn.Module()
        module.p = p = lib.nn.Parameter(view(a))
        seen = p.detach()
        module.float()
        a.add_(1)  # a conversion to what it is changes nothing
        module.double()
        a.zero_()
        found.append([module.p is p, str(p.dtype).split(".")[-1], p.tolist(), seen.tolist(), str(a.dtype).split(".")[-1]])
    assert found[1] == found[0]


def test_what_a_module_applies_may_turn_a_parameter():
    found = []
    for lib in LIBRARIES:
        module = lib.nn.Linear(2, 3, bias=False)
        with lib.no_grad():
            module.weight.copy_(base(lib).t())
        module._apply(lambda t: t.t())
        module(lib.ones(1, 3)).sum().backward()
        with lib.no_grad():
            module.weight[0] += 1
        found.append([tuple(module.weight.stride()), module.weight.tolist(), module.weight.grad.tolist()])
    assert found[1] == found[0]


def test_saved_by_backward_and_changed_through_the_other():
    for lib in LIBRARIES:
        a = base(lib)
        p = lib.nn.Parameter(a.t())
        y = (p * p).sum()
        a.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_a_compiled_step_trains_a_parameter_that_lies_in_another():
    a = base(genesis)
    p = genesis.nn.Parameter(a[:, 1:])
    optimizer = genesis.optim.SGD([p], lr=0.25)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        loss = (p * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(genesis.ones(2, 2)).item() for _ in range(4)]
    assert losses == [10, 2.5, 0.625, 0.15625]
    assert a.tolist() == [[0, 0.0625, 0.125]] * 2
