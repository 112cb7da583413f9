"""Random differentiable programs, run by genesis and by torch in float64: gradients agree, however a program is flushed."""

import os
from dataclasses import dataclass, field

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import genesis

RELATIVE = 1e-9  # of the largest element

UNARY = {
    "tanh": lambda m, x: m.tanh(x),
    "sigmoid": lambda m, x: m.sigmoid(x),
    "sin": lambda m, x: m.sin(x),
    "exp": lambda m, x: m.exp(x * 0.25),
    "log": lambda m, x: m.log(x * x + 1.5),
    "sqrt": lambda m, x: m.sqrt(x * x + 0.5),
    "relu": lambda m, x: m.relu(x),
    "reciprocal": lambda m, x: 1 / (x * x + 1),
    "scale": lambda m, x: 0.5 * x - 1,
    "negative": lambda m, x: -x,
    "square": lambda m, x: x * x,
    "cube": lambda m, x: x**3 / 8,
    "clone": lambda m, x: x.clone(),
    "sum": lambda m, x: x.sum(),
    "mean": lambda m, x: x.mean(-1),
    "row sums": lambda m, x: x.sum(0, keepdim=True),
    "max": lambda m, x: x.amax(-1),
    "logsumexp": lambda m, x: m.logsumexp(x, -1),
    "softmax": lambda m, x: m.softmax(x, -1),
    "transpose": lambda m, x: x.transpose(0, 1),
    "flatten": lambda m, x: x.reshape(-1),
    "rows": lambda m, x: x[1:],
    "column": lambda m, x: x[:, 0],
    "steps": lambda m, x: x[::2],
    "flip": lambda m, x: x.flip(0),
    "unsqueeze": lambda m, x: x.unsqueeze(0),
    "expand": lambda m, x: x.expand(2, *x.shape),
    "gather": lambda m, x: x[m.tensor([0, 1, 0])],
    "square product": lambda m, x: x @ x.transpose(-1, -2),
}
BINARY = {
    "add": lambda m, x, y: x + y,
    "sub": lambda m, x, y: x - y,
    "mul": lambda m, x, y: x * y,
    "div": lambda m, x, y: x / (y * y + 1),
    "maximum": lambda m, x, y: m.maximum(x, y),
    "where": lambda m, x, y: m.where(x > 0.1, x, y),
    "matmul": lambda m, x, y: x @ y,
    "matmul transposed": lambda m, x, y: x @ y.transpose(0, 1),
    "cat": lambda m, x, y: m.cat([x, y], 0),
}
SHAPES = [(2, 3), (3, 3), (3, 2), (3,), (1, 3), (2, 1), (4, 3, 2), ()]


@dataclass
class Both:
    """One value in torch and in genesis."""

    theirs: torch.Tensor
    ours: genesis.Tensor = field(repr=False)  # to show it would flush it

    def apply(self, function, *others):
        """`function` of this value and others, or None where torch refuses or the result is unwieldy."""
        try:
            theirs = function(torch, self.theirs, *(o.theirs for o in others))
        except (RuntimeError, IndexError):
            return None
        if not 0 < theirs.numel() < 500 or not theirs.detach().abs().max() < 1e3:
            return None
        return Both(theirs, function(genesis, self.ours, *(o.ours for o in others)))


def equal(ours, theirs, what):
    assert (ours is None) == (theirs is None), f"{what}: {ours}, want {theirs}"
    if theirs is not None:
        want = theirs.detach().numpy()
        have = ours.detach().numpy()
        assert have.shape == want.shape and have.dtype == want.dtype, what
        largest = max(1.0, np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(have, want, RELATIVE, RELATIVE * largest, err_msg=what)


class Program:
    """Leaves, what is made of them, and a record that a failure shows."""

    def __init__(self, data):
        self.data = data
        self.random = np.random.default_rng(self.number(0, 99))
        self.leaves = [self.leaf() for _ in range(self.number(1, 3))]
        self.pool = list(self.leaves)
        self.looks = self.number(0, 1)  # whether values are looked at now and then

    def number(self, low, high):
        return self.data.draw(st.integers(low, high))

    def one_of(self, options):
        return options[self.number(0, len(options) - 1)]

    def leaf(self):
        values = self.random.standard_normal(self.one_of(SHAPES))
        ours = genesis.tensor(values.tolist(), dtype=genesis.float64).reshape(values.shape)
        return Both(torch.tensor(values, requires_grad=True), ours.requires_grad_())

    def grow(self, steps):
        for _ in range(steps):
            x, y = (self.pool[-1 - self.number(0, min(len(self.pool) - 1, 3))] for _ in range(2))
            name = self.one_of([*UNARY, *BINARY])
            made = x.apply(UNARY[name]) if name in UNARY else x.apply(BINARY[name], y)
            if made is not None:
                self.pool.append(made)
                self.look()

    def look(self):
        if self.looks and not self.number(0, 3):
            seen = self.one_of(self.pool)
            equal(seen.ours, seen.theirs, "value")

    def loss(self):
        """A number of which the newest value and perhaps another one are parts."""
        total = self.pool[-1].apply(lambda m, x: (x * x).sum() * 0.5)
        other = self.one_of(self.pool)
        return total if not self.number(0, 1) or total is None else total.apply(lambda m, t, x: t + x.sum(), other) or total

    def check(self):
        for k, leaf in enumerate(self.leaves):
            equal(leaf.ours.grad, leaf.theirs.grad, f"gradient of leaf {k}")


# GENESIS_FUZZ=5000 runs that many programs of each kind, new ones each time.
EXAMPLES = int(os.environ.get("GENESIS_FUZZ", "0"))
PROGRAMS = settings(
    max_examples=EXAMPLES or 10, deadline=None, derandomize=not EXAMPLES, database=None,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate, *([Phase.shrink] if EXAMPLES else [])],
)


def backward(loss, **options):
    if loss is not None and loss.theirs.requires_grad:
        loss.theirs.backward(**options)
        loss.ours.backward(**options)


@PROGRAMS
@given(st.data(), st.integers(1, 10))
def test_gradients_are_torchs(data, steps):
    program = Program(data)
    program.grow(steps)
    backward(program.loss())
    program.check()


@PROGRAMS
@given(st.data(), st.integers(1, 6))
def test_two_losses_share_a_trunk(data, steps):
    """Each runs its own backward; gradients are added, with or without a look between."""
    program = Program(data)
    program.grow(steps)
    trunk = program.pool[-1]
    first = program.loss()
    program.pool = [*program.leaves, trunk]
    program.grow(steps)
    second = program.loss()
    backward(first, retain_graph=True)
    program.look()
    if program.number(0, 1):
        program.check()
    backward(second)
    program.check()


@PROGRAMS
@given(st.data(), st.integers(1, 8))
def test_a_graph_that_is_retained_gives_its_gradients_again(data, steps):
    program = Program(data)
    program.grow(steps)
    loss = program.loss()
    backward(loss, retain_graph=True)
    program.look()
    backward(loss, retain_graph=True)
    program.check()
    backward(loss)
    program.check()


@PROGRAMS
@given(st.data(), st.integers(1, 5), st.integers(2, 3))
def test_gradients_accumulate_over_graphs(data, steps, rounds):
    program = Program(data)
    for _ in range(rounds):
        program.pool = list(program.leaves)
        program.grow(steps)
        backward(program.loss())
        program.look()
    program.check()


@PROGRAMS
@given(st.data(), st.integers(1, 6))
def test_gradients_of_intermediate_values_are_torchs(data, steps):
    program = Program(data)
    program.grow(steps)
    kept = [b for b in program.pool if b.theirs.requires_grad and not b.theirs.is_leaf]
    for both in kept:
        both.theirs.retain_grad()
        both.ours.retain_grad()
    program.look()
    backward(program.loss())
    program.check()
    for k, both in enumerate(kept):
        equal(both.ours.grad, both.theirs.grad, f"gradient of value {k}")


@PROGRAMS
@given(st.data(), st.integers(1, 4))
def test_gradients_of_gradients_are_torchs(data, steps):
    program = Program(data)
    program.grow(steps)
    loss = program.loss()
    if loss is None or not loss.theirs.requires_grad:
        return
    theirs = torch.autograd.grad(loss.theirs, [b.theirs for b in program.leaves], create_graph=True, allow_unused=True)
    ours = genesis.autograd.grad(loss.ours, [b.ours for b in program.leaves], create_graph=True, allow_unused=True)
    program.look()
    norms = [Both((t * t).sum(), (o * o).sum()) for t, o in zip(theirs, ours, strict=True) if t is not None]
    for norm in norms:
        backward(norm, retain_graph=True)
    program.check()
