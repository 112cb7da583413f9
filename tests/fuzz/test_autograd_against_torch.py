"""Random programs of everything that has a word to say in backward, line by line as in torch.

Custom Functions, hooks, checkpoints, writes in place, views, looks at values, several backwards and derivatives of
derivatives: what hooks see and what gradients become is torch's, and where torch says that a value was changed, so do we.
"""

import contextlib
import os

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import genesis
import genesis.utils.checkpoint
from tests.fuzz.test_gradients_against_torch import RELATIVE


def functions(lib):
    """Custom Functions of a library: they save an argument, a result, several things; one changes its argument."""
    base = genesis.Function if lib is genesis else torch.autograd.Function

    class Square(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    class Sigmoid(base):
        @staticmethod
        def forward(ctx, x):
            y = x.sigmoid()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y * (1 - y)

    class Both(base):
        @staticmethod
        def forward(ctx, x, y):
            product, sine = x * y, x.sin()
            ctx.save_for_backward(x, y)
            return product, sine

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y + h * x.cos(), g * x

    class Double(base):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Square, Sigmoid, Both, Double


FUNCTIONS = {lib: functions(lib) for lib in (genesis, torch)}
UNARY = {
    "sin": lambda lib, x: x.sin(),
    "tanh": lambda lib, x: x.tanh(),
    "exp": lambda lib, x: x.tanh().exp(),
    "sigmoid": lambda lib, x: lib.sigmoid(x),
    "sqrt": lambda lib, x: (x * x + 1).sqrt(),
    "halve": lambda lib, x: x * 0.5,
    "cube": lambda lib, x: x**3 * 0.1,
    "relu": lambda lib, x: x.relu(),
    "mean": lambda lib, x: x.mean(0, keepdim=True) + x,
    "row": lambda lib, x: x[0] + x,
    "clone": lambda lib, x: x.clone(),
    "detach": lambda lib, x: x.detach(),
    "detach half": lambda lib, x: x.detach() * x,
    "transpose": lambda lib, x: x.transpose(0, 1),
    "Square": lambda lib, x: FUNCTIONS[lib][0].apply(x) * 0.5,
    "Sigmoid": lambda lib, x: FUNCTIONS[lib][1].apply(x),
    "Double": lambda lib, x: FUNCTIONS[lib][3].apply(x * 1),
    "Double itself": lambda lib, x: FUNCTIONS[lib][3].apply(x),
}
BINARY = {
    "add": lambda lib, x, y: x + y,
    "mul": lambda lib, x, y: x * y * 0.5,
    "div": lambda lib, x, y: x / (y * y + 1),
    "matmul": lambda lib, x, y: x @ y * 0.5,
    "where": lambda lib, x, y: lib.where(x > 0.1, x, y),
    "cat": lambda lib, x, y: lib.cat([x[:1], y[1:]]),
    "product": lambda lib, x, y: FUNCTIONS[lib][2].apply(x, y)[0] * 0.5,
    "sine": lambda lib, x, y: FUNCTIONS[lib][2].apply(x, y)[1],
    "product and sine": lambda lib, x, y: sum(FUNCTIONS[lib][2].apply(x, y)) * 0.5,
}
VIEWS = [
    lambda x: x, lambda x: x[0], lambda x: x[:, 1],
    lambda x: x.view(-1)[1:3], lambda x: x.transpose(0, 1), lambda x: x.detach(),
]
WRITES = {
    "mul_": lambda x, y: x.mul_(y),
    "add_": lambda x, y: x.add_(y),
    "double": lambda x, y: x.mul_(0.5),
    "copy_": lambda x, y: x.copy_(y),
    "sin_": lambda x, y: x.sin_(),
    "zero_": lambda x, y: x.zero_(),
    "set": lambda x, y: x.__setitem__(0, y.sum()),
    "mask": lambda x, y: x.__setitem__(x.detach() > 0.1, 0.5),
}
HOOKS = ["read", "replace", "scale", "look around"]


class Run:
    """One library's walk through a program; `log` is all that was seen."""

    def __init__(self, lib, leaves):
        self.lib = lib
        self.leaves = [lib.tensor(x, dtype=lib.float64, requires_grad=True) for x in leaves]
        self.pool = [x * 1 for x in self.leaves]
        self.written = False
        self.kept, self.log, self.hooked, self.bare, self.named = [], [], set(), set(), []

    def at(self, place):
        return self.pool[-1 - place % len(self.pool)]

    def take(self, step):
        kind, name, x, y, way = step
        getattr(self, kind)(name, self.at(x), self.at(y), way)
        if not np.all(np.abs(self.see(self.pool[-1]) if self.lib is torch else 0) < 1e3):
            raise ValueError("too large")

    def mark(self, x, marked):
        self.named.append(x)  # as long as it lives, no other has its id
        marked.add(id(x))

    @staticmethod
    def see(x):
        return None if x is None else np.array(x.detach().tolist())

    def compute(self, name, x, y, way):
        make = UNARY.get(name) or BINARY[name]
        if name == "Double itself" and self.kept:
            return
        way = 2 if name in ("transpose", "Double itself") else way
        arguments = [x] if name in UNARY else [x, y]
        if way == 0:
            run = torch.utils.checkpoint.checkpoint if self.lib is torch else genesis.utils.checkpoint.checkpoint
            result = run(lambda *a: make(self.lib, *a).sin(), *arguments, use_reentrant=False)
        elif way == 1:
            with self.lib.no_grad():
                result = make(self.lib, *arguments)
        else:
            result = make(self.lib, *arguments)
        self.pool.append(result)

    def write(self, name, x, y, way):
        if name == "set" and way % len(VIEWS) == 5:  # refused: a view of a detached tensor has no derivation of its own
            return
        if self.kept:  # of which value torch retains the gradient then depends on what looks at the tensor next
            return
        if way > len(VIEWS) or way % len(VIEWS) == 5:  # then it is no place of its own in torch
            self.mark(x, self.bare)
        with self.lib.no_grad() if way > len(VIEWS) else contextlib.nullcontext():
            if name in ("zero_", "copy_"):  # what is written over as a whole depends on nothing any more
                x, y = x[0], y[0]
            view = VIEWS[way % len(VIEWS)] if x.ndim == 2 else VIEWS[0]
            WRITES[name](view(x), view(y) * 1)
        self.written = True

    def hook(self, name, x, y, way):
        place = len(self.log)

        def hook(g):
            if name != "scale":
                self.log.append((place, self.see(g)))
            if name == "look around":
                self.log.append(self.see(y.detach() * 2))
            return {"read": None, "replace": g * 0.5, "scale": g * x.detach(), "look around": None}[name]

        if x.requires_grad and id(x) not in self.bare:
            x.register_hook(hook)
            self.mark(x, self.hooked)

    def retain(self, name, x, y, way):
        if x.requires_grad and not x.is_leaf and id(x) not in self.bare:
            x.retain_grad()
            self.kept.append(x)

    def look(self, name, x, y, way):
        self.log.append(self.see(x))

    def drop(self, name, x, y, way):
        if len(self.pool) > 3:
            self.pool.pop(0)

    def backward(self, name, x, y, way):
        if x.requires_grad:
            (x * 0.5).sum().backward(retain_graph=way > 0)
            if way % 2:
                self.gradients()

    def derivative(self, name, x, y, way):
        leaves = self.leaves if self.written or way % 2 else self.leaves[:1]
        wanted = [t for t in (*leaves, y) if t.requires_grad and id(t) not in self.hooked | self.bare]
        if x.requires_grad and wanted and not self.kept:
            for g in self.lib.autograd.grad(
                x.sum(), wanted, create_graph=way > 2, retain_graph=True, allow_unused=True
            ):
                if way % 2:
                    self.log.append(self.see(g))
                if g is not None and way > 2:
                    self.pool.append(g.clone())  # torch's may be one place, expanded

    def gradients(self):
        self.log += [self.see(x.grad) for x in (*self.leaves, *self.kept)]

    def finish(self):
        total = sum([(x * 0.5).sum() for x in self.pool[-3:]])
        if total.requires_grad:
            total.backward()
        self.gradients()
        self.log += [self.see(x) for x in self.pool]


def outcome(lib, leaves, steps):
    """What was seen; and whether a changed value ended it."""
    run = Run(lib, leaves)
    try:
        for step in steps:
            run.take(step)
        run.finish()
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        return run.log, str(error)
    return run.log, None


def drawn_step(number, one_of):
    kind = one_of(["compute"] * 6 + ["write"] * 2 + ["hook"] * 2 + ["retain", "look", "drop", "backward", "derivative"])
    names = {"compute": [*UNARY, *BINARY], "write": [*WRITES], "hook": HOOKS}.get(kind, [""])
    return kind, one_of(names), number(0, 3), number(0, 3), number(0, 11)


def program(data, length):
    """Leaves, and steps that torch takes."""

    def number(low, high):
        return data.draw(st.integers(low, high))

    random = np.random.default_rng(number(0, 99))
    leaves = [random.standard_normal((2, 2)) for _ in range(2)]
    steps = []
    for _ in range(length):
        steps.append(drawn_step(number, lambda options: options[number(0, len(options) - 1)]))
        try:
            outcome(torch, leaves, steps)
        except (RuntimeError, ValueError):
            steps.pop()
    return leaves, steps


def agree(ours, theirs, steps):
    assert (ours[1] is None) == (theirs[1] is None), f"{steps}\nours: {ours[1]}\ntheirs: {theirs[1]}"
    if theirs[1] is None:
        assert len(ours[0]) == len(theirs[0]), f"{steps}\n{ours[0]}\n{theirs[0]}"
    for have, want in zip(ours[0], theirs[0], strict=False):
        if isinstance(want, tuple):
            assert have[0] == want[0], steps
            have, want = have[1], want[1]
        have, want = (np.zeros((2, 2)) if x is None else x for x in (have, want))
        np.testing.assert_allclose(have, want, RELATIVE, RELATIVE * max(1.0, np.abs(want).max()), err_msg=str(steps))


EXAMPLES = int(os.environ.get("GENESIS_FUZZ", "0"))


@settings(
    max_examples=EXAMPLES or 14, deadline=None, derandomize=not EXAMPLES, database=None,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate, *([Phase.shrink] if EXAMPLES else [])],
)
@given(st.data(), st.integers(1, 12))
@pytest.mark.filterwarnings("ignore")
def test_programs_are_torchs_line_by_line(data, length):
    leaves, steps = program(data, length)
    agree(outcome(genesis, leaves, steps), outcome(torch, leaves, steps), steps)
