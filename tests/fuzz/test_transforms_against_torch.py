"""Random functions of expressions, views and writes in place: gradients, Hessians and products with Jacobians are torch's."""

import functools
import os

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import genesis
from tests.fuzz.test_gradients_against_torch import BINARY, SHAPES, UNARY, equal

VIEWS = {
    "rows": lambda x: x[1:],
    "element": lambda x: x[0],
    "column": lambda x: x[:, 0],
    "steps": lambda x: x[..., ::2],
    "transpose": lambda x: x.transpose(0, 1),
    "flatten": lambda x: x.view(-1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "whole": lambda x: x,
}
WRITES = {
    "mul_": lambda x, y: x.mul_(y),
    "add_": lambda x, y: x.add_(y),
    "set": lambda x, y: x.__setitem__(..., y * 2),
    "zero_": lambda x, y: x.zero_(),
    "sin_": lambda x, y: x.sin_(),
    "set first": lambda x, y: x.__setitem__(0, y.sum()),
    "add to itself": lambda x, y: x.add_(x * y),
}
SMALL = [shape for shape in SHAPES if np.prod(shape) <= 6]
EXAMPLES = int(os.environ.get("GENESIS_FUZZ", "0"))
FUNCTIONS = settings(
    max_examples=EXAMPLES or 14, deadline=None, derandomize=not EXAMPLES, database=None,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate, *([Phase.shrink] if EXAMPLES else [])],
)


class Function:
    """A list of steps that either library can walk; a step that torch refuses is not taken."""

    def __init__(self, data, steps, looks=True):
        self.data, self.looks = data, looks
        random = np.random.default_rng(self.number(0, 99))
        self.inputs = [random.standard_normal(self.one_of(SMALL)) for _ in range(self.number(1, 2))]
        self.steps = []
        for _ in range(steps):
            self.steps.append(self.step())
            try:
                value = self(torch, *[torch.tensor(x, requires_grad=True) for x in self.inputs])
                value.backward()
                if not torch.isfinite(value) or abs(value.item()) > 1e4:
                    raise ValueError
            except (RuntimeError, IndexError, ValueError):
                self.steps.pop()

    def number(self, low, high):
        return self.data.draw(st.integers(low, high))

    def one_of(self, options):
        return options[self.number(0, len(options) - 1)]

    def step(self):
        at, other = self.number(1, 4), self.number(1, 4)
        if self.number(0, 2):
            return self.one_of([*UNARY, *BINARY]), at, other, self.number(0, 3) == 0
        return (self.one_of([*VIEWS]), self.one_of([*WRITES]), self.number(0, 1)), at, other, self.number(0, 3) == 0

    def __call__(self, library, *inputs):
        pool = [x * 1 for x in inputs]
        for name, at, other, look in self.steps:
            x, y = pool[-min(at, len(pool))], pool[-min(other, len(pool))]
            if isinstance(name, tuple):
                view, write, apart = name
                x = x.clone() if apart else x
                WRITES[write](VIEWS[view](x), y)
                pool.append(x)
            else:
                pool.append(UNARY[name](library, x) if name in UNARY else BINARY[name](library, x, y))
            if look and self.looks and library is genesis:
                pool[-1].detach().tolist()
        return sum(((x * 0.5).tanh() * x).sum() for x in pool[-3:])


def both(data, steps, ours, theirs):
    """What each library makes of one random function, called with the function and its inputs."""
    function = Function(data, steps)
    return [
        take(functools.partial(function, library), *[library.tensor(x) for x in function.inputs])
        for take, library in ((ours, genesis), (theirs, torch))
    ]


def agree(ours, theirs, what):
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            agree(a, b, what)
    else:
        equal(ours, theirs, what)


@FUNCTIONS
@given(st.data(), st.integers(1, 8))
def test_gradients(data, steps):
    agree(*both(
        data, steps, lambda f, *x: genesis.func.grad(f, argnums=tuple(range(len(x))))(*x),
        lambda f, *x: torch.autograd.functional.jacobian(f, x),
    ), "gradient")


@FUNCTIONS
@given(st.data(), st.integers(1, 5))
def test_hessians(data, steps):
    agree(*both(
        data, steps, lambda f, *x: genesis.func.hessian(f, argnums=tuple(range(len(x))))(*x),
        lambda f, *x: torch.autograd.functional.hessian(f, x),
    ), "Hessian")


@pytest.mark.usefixtures("by_references")
@FUNCTIONS
@given(st.data(), st.integers(1, 8))
def test_products_with_jacobians_of_gradients(data, steps):
    """Forward over reverse: the change of the gradient along a direction is a product with the Hessian."""
    agree(*both(
        data, steps, lambda f, *x: genesis.func.jvp(genesis.func.grad(f, argnums=tuple(range(len(x)))), x, x),
        lambda f, *x: (torch.autograd.functional.jacobian(f, x), torch.autograd.functional.hvp(f, x, x)[1]),
    ), "gradient and its change")


@pytest.mark.usefixtures("by_references")
@FUNCTIONS
@given(st.data(), st.integers(1, 6))
def test_maps_of_gradients(data, steps):
    """Gradients for three examples at once, of the first input or of all, are those that torch takes one by one."""
    function = Function(data, steps, looks=False)
    places, random = tuple(range(len(function.inputs))), np.random.default_rng(7)
    examples = [[x * random.uniform(0.5, 1.0, x.shape) for x in function.inputs] for _ in range(3)]
    try:
        each = [torch.autograd.functional.jacobian(functools.partial(function, torch), tensors(torch, x)) for x in examples]
    except (RuntimeError, IndexError):
        return
    mapped = genesis.func.vmap(genesis.func.grad(functools.partial(function, genesis), argnums=places))
    ours = mapped(*tensors(genesis, [np.stack(many) for many in zip(*examples, strict=True)]))
    agree(ours, tuple(torch.stack(many) for many in zip(*each, strict=True)), "gradients of examples")


def tensors(library, arrays):
    return tuple([library.tensor(x) for x in arrays])
