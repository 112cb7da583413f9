"""Optimizers of parameters of which a rank has a part: those that are known to go element by element, and no others."""

import inspect

import numpy as np
import pytest

import genesis
import genesis.distributed as dist
from genesis import nn, optim

KINDS = [kind for _, kind in inspect.getmembers(optim, inspect.isclass)
         if issubclass(kind, optim.Optimizer) and kind not in (optim.Optimizer, optim.LBFGS, optim.SparseAdam)]


def moved(kind, values, gradients, parts):
    """A matrix after two steps of an optimizer that has it in so many parts of its rows."""
    parameters = [genesis.tensor(part, requires_grad=True) for part in np.split(values, parts)]
    optimizer = kind(parameters, lr=0.1)
    for gradient in gradients:
        for parameter, part in zip(parameters, np.split(gradient, parts), strict=True):
            parameter.grad = genesis.tensor(part)
        optimizer.step()
    return np.concatenate([parameter.detach().numpy() for parameter in parameters])


@pytest.mark.parametrize("kind", KINDS)
def test_elementwise_are_those_that_move_parts_as_they_move_the_whole(kind):
    random = np.random.default_rng(0)
    values, *gradients = random.standard_normal((3, 4, 3)).astype(np.float32)
    whole, parts = (moved(kind, values, gradients, count) for count in (1, 2))
    assert (np.abs(whole - parts).max() <= 1e-6) == kind.is_elementwise


@pytest.fixture
def one_rank():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("one_rank")
@pytest.mark.parametrize("kind", [optim.Muon, optim.Adafactor, optim.LBFGS])
def test_others_refuse_parts(kind):
    rows = dist.fsdp.fully_shard(nn.Linear(3, 4, bias=False))
    plan = {"0": dist.tensor.parallel.ColwiseParallel()}
    columns = dist.tensor.parallel.parallelize_module(nn.Sequential(nn.Linear(3, 4, bias=False)), None, plan)
    for model in (rows, columns):
        with pytest.raises(ValueError, match=f"{kind.__name__} is not known to move each element by its own gradient alone"):
            kind(model.parameters())
        optim.AdamW(model.parameters())


@pytest.mark.usefixtures("one_rank")
def test_a_class_with_a_step_of_its_own_says_so_itself():
    class Halving(optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data.mul_(0.5)

    class Elementwise(Halving):
        is_elementwise = True

    parameters = [*dist.fsdp.fully_shard(nn.Linear(3, 4)).parameters()]
    with pytest.raises(ValueError, match=r"Halving is not known .* is_elementwise = True"):
        Halving(parameters)
    Elementwise(parameters)


@pytest.mark.usefixtures("one_rank")
@pytest.mark.parametrize("kind", [optim.Muon, optim.Adafactor])
def test_zero_has_whole_parameters(kind):
    weight = genesis.ones(4, 3, requires_grad=True)
    dist.optim.ZeroRedundancyOptimizer([weight], kind)
