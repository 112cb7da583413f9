"""Training loops whose user now and then keeps, looks at or changes something: a compiled step leaves what a plain one does."""

import copy
import gc
import math
import pickle
import random
import threading

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.capture.replay import settling
from genesis.nn import functional as F
from genesis.runtime.memory import memory_stats, reset_peak
from tests.capture.replay.test_memory_taken_over import ALIASES

SHAPES = {"small": (5, 6, 4), "large": (40, 600, 9), "mixed": (130, 150, 3)}


class Classifier(nn.Module):
    """Rows of a table, a hidden layer, scores: an index out of range can stop its step."""

    def __init__(self, words, width, classes):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, classes)

    def forward(self, words):
        return self.out(self.hidden(self.table(words)).tanh())


class Session:
    """A model, its optimizer, two ways to take a step, and all that its user has kept."""

    def __init__(self, wrap, shape, seed, kind):
        genesis.manual_seed(seed)
        self.random = random.Random(seed)
        self.shape = SHAPES[shape]
        self.model = Classifier(*self.shape)
        self.optimizer = kind(self.model)
        self.kept, self.seen, self.graphs = [], [], []
        model, optimizer = self.model, self.optimizer

        def step(words, classes):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(words), classes)
            loss.backward()
            optimizer.step()
            return loss.detach()

        def adding(words, classes):  # to the gradients that are there
            loss = F.cross_entropy(model(words), classes)
            loss.backward()
            optimizer.step()
            return loss, model.out.weight.grad

        self.plain = step
        self.step, self.adding = wrap(step), wrap(adding)

    @property
    def parameter(self):
        return self.random.choice([*self.model.parameters()])

    def batch(self, rows=None, beyond=0):
        words, _, classes = self.shape
        rows = rows or self.random.choice([4, 4, 4, 7])
        numbers = np.random.default_rng(self.random.randrange(1 << 30))
        at = genesis.tensor(numbers.integers(0, words, rows) + beyond * words)
        return at, genesis.tensor(numbers.integers(0, classes, rows))

    def look(self):
        """Note the values of all that there is."""
        tensors = [t for p in self.model.parameters() for t in (p, p.grad, *self.optimizer.state[p].values())]
        for held in [*tensors, *self.kept]:
            if isinstance(held, genesis.Tensor):
                held = held.detach().numpy()
            self.seen.append(np.array(np.nan if held is None else held))


def old_graph(s):
    s.graphs.append((s.parameter * s.parameter.sum()).sum())


def backward_of_an_old_graph(s):
    if s.graphs:
        try:
            s.graphs.pop(0).backward()
        except RuntimeError as problem:
            s.seen.append(np.array("changed" in str(problem) or "in place" in str(problem)))


def gradient_by_hand(s):
    p = s.parameter
    p.grad = s.random.choice([genesis.ones_like, genesis.zeros_like])(p)


def transposed_gradient(s):
    s.model.hidden.weight.grad = genesis.arange(s.shape[1] ** 2).float().reshape(s.shape[1], s.shape[1]).t() * 1e-6


def scaled_gradient(s):
    p = s.parameter
    if p.grad is not None:
        p.grad.mul_(0.5)
        p.grad.requires_grad_(s.random.random() < 0.1)


def index_out_of_range(s):
    with pytest.raises(IndexError):
        s.step(*s.batch(4, beyond=1)).item()


def loaded(s):
    s.model.load_state_dict({k: v.clone() * 0.99 for k, v in s.model.state_dict().items()})


def of_another_thread(s):
    thread = threading.Thread(target=lambda: s.kept.append(s.step(*s.batch(4))))
    thread.start()
    thread.join()


ACTIONS = {
    "gradient": lambda s: s.kept.append(s.parameter.grad),
    "part of a gradient": lambda s: s.kept.append(None if (g := s.parameter.grad) is None else g[1:]),
    "array of a gradient": lambda s: s.kept.append(None if (g := s.parameter.grad) is None else g.detach().numpy()),
    "detached": lambda s: s.kept.append(s.parameter.detach()),
    "array": lambda s: s.kept.append(s.parameter.detach().numpy()),
    "array for a moment": lambda s: s.parameter.detach().numpy(),
    "data": lambda s: s.kept.append(s.parameter.data),
    "view": lambda s: s.kept.append(s.parameter.detach().reshape(-1)[1:]),
    "pending": lambda s: s.kept.append(s.parameter.detach() * 1.5),
    "moment": lambda s: s.kept.append([*s.optimizer.state[s.parameter].values()][1]),
    "copy": lambda s: s.kept.extend(copy.deepcopy(s.model).parameters()),
    "pickled": lambda s: s.kept.append(pickle.loads(pickle.dumps(s.parameter.detach()))),
    "let go": lambda s: s.kept.clear(),
    "graph": old_graph,
    "backward of an old graph": backward_of_an_old_graph,
    "other rate": lambda s: s.optimizer.param_groups[0].update(lr=s.random.choice([0.1, 0.01, 0.003])),
    "zero_grad": lambda s: s.optimizer.zero_grad(s.random.random() < 0.5),
    "gradient by hand": gradient_by_hand,
    "transposed gradient": transposed_gradient,
    "scaled gradient": scaled_gradient,
    "plain step": lambda s: s.kept.append(s.plain(*s.batch())),
    "adding step": lambda s: s.kept.append(s.random.choice(s.adding(*s.batch(4)))),
    "out of range": index_out_of_range,
    "loaded": loaded,
    "data replaced": lambda s: setattr(s.model.out.bias, "data", s.model.out.bias.detach() * 0.9),
    "data written": lambda s: s.parameter.data.mul_(0.9),
    "rebound": lambda s: setattr(s.model.out, "bias", s.model.out.bias),
    "frozen": lambda s: s.model.out.bias.requires_grad_(s.random.random() < 0.5),
    "hook": lambda s: s.model.out.bias.requires_grad and s.model.out.bias.register_hook(lambda g: g * 0.5).remove(),
    "another thread": of_another_thread,
    "collected": lambda s: gc.collect(),
}
OPTIMIZERS = {
    "Adam": lambda model: optim.Adam(model.parameters(), lr=0.01),
    "SGD": lambda model: optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
}


def trained(wrap, shape, seed, kind, steps=30):
    session = Session(wrap, shape, seed, OPTIMIZERS[kind])
    names = []
    for _ in range(steps):
        loss = session.step(*session.batch())
        if session.random.random() < 0.3:
            session.kept.append(loss)
        while session.random.random() < 0.45:
            names.append(session.random.choice([*ACTIONS]))
            ACTIONS[names[-1]](session)
        if session.random.random() < 0.25:
            session.look()
    session.look()
    return session, names


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(2))
def test_a_users_loop_leaves_what_it_leaves_uncompiled(shape, seed, kind):
    compiled, names = trained(genesis.compile, shape, seed, kind)
    usual, _ = trained(lambda function: function, shape, seed, kind)
    assert sum(entry.replays for entry in compiled.step.entries) > 0
    assert len(compiled.seen) == len(usual.seen)
    for got, want in zip(compiled.seen, usual.seen, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=f"after {names}")


@pytest.mark.parametrize("name", ALIASES)
def test_what_was_kept_of_a_parameter_is_what_plain_steps_leave_of_it(name):
    def run(wrap):
        session, seen = Session(wrap, "large", 1, OPTIMIZERS["Adam"]), []
        for _ in range(3):
            session.step(*session.batch(4))
        for _ in range(3):
            weight = session.model.hidden.weight
            alias = ALIASES[name](weight, session.optimizer)
            session.step(*session.batch(4))
            seen.append(np.array(alias.detach().numpy() if isinstance(alias, genesis.Tensor) else alias))
            del alias
            session.step(*session.batch(4))
        session.look()
        return session, [*seen, *session.seen]

    (compiled, got), (_, wanted) = run(genesis.compile), run(lambda function: function)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert sum(entry.replays for entry in compiled.step.entries) > 0


def places_of(session):
    """Where each weight, its gradient and its moments lie."""
    return [
        t._array.memory.buffer.ptr for p in session.model.parameters() if p.ndim == 2
        for t in (p, p.grad, *session.optimizer.state[p].values()) if isinstance(t, genesis.Tensor)]


def test_what_nobody_else_holds_stays_where_it_is():
    session = Session(genesis.compile, "large", 0, OPTIMIZERS["Adam"])
    for _ in range(2):
        session.step(*session.batch(4))
    where = places_of(session)
    for _ in range(3):
        session.step(*session.batch(4))
        assert places_of(session) == where
    kept = session.model.hidden.weight.detach()
    values = kept.clone()
    session.step(*session.batch(4))
    moved = [a != b for a, b in zip(places_of(session), where, strict=True)]
    assert sum(moved) == 1
    assert not bool((session.model.hidden.weight == values).all())


def test_nothing_large_is_held_by_what_replays():
    session = Session(genesis.compile, "large", 0, OPTIMIZERS["SGD"])
    gc.collect()
    for _ in range(3):
        session.step(*session.batch(4))
    before, size = memory_stats().held, 4 * session.shape[1] ** 2
    session.optimizer.zero_grad()
    assert before - memory_stats().held >= size
    reset_peak()
    session.step(*session.batch(4))
    assert memory_stats().peak - before < size


def test_two_functions_that_train_one_model_take_no_more_memory_than_one():
    session = Session(genesis.compile, "large", 0, OPTIMIZERS["Adam"])
    other = genesis.compile(session.plain)
    for _ in range(2):
        session.step(*session.batch(4)), other(*session.batch(7))
    gc.collect()
    held = memory_stats().held
    reset_peak()
    for _ in range(3):
        session.step(*session.batch(4)), other(*session.batch(7))
    assert memory_stats().peak - held < 4 * session.shape[1] ** 2
    assert other.entries[0].replays > 2


@pytest.mark.parametrize("size", [3, 50_000])
def test_results_of_calls_that_are_both_held_lie_apart(size):
    @genesis.compile
    def twice(x):
        return x * 2, x + 1

    held = [twice(genesis.full((size,), float(k))) for k in range(6)]
    for k, (doubled, more) in enumerate(held):
        assert (doubled[0].item(), doubled[-1].item(), more[0].item(), more[-1].item()) == (2 * k, 2 * k, k + 1, k + 1)


@pytest.fixture(params=["short", "long"])
def held(request, monkeypatch):
    """Programs hold the interpreter, or other threads run beside them."""
    monkeypatch.setattr(settling, "HOLDING", {"short": math.inf, "long": -1.0}[request.param])
    monkeypatch.setattr(settling, "LONGEST", math.inf)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_that_fails_has_changed_nothing_that_it_would_write_over(shape, held):
    session = Session(genesis.compile, shape, 0, OPTIMIZERS["Adam"])
    for _ in range(3):
        session.step(*session.batch(4))
    before = [t.detach().tolist() for p in session.model.parameters() for t in (p, *session.optimizer.state[p].values())
              if isinstance(t, genesis.Tensor)]
    [entry] = session.step.entries
    replays = entry.replays
    index_out_of_range(session)
    after = [t.detach().tolist() for p in session.model.parameters() for t in (p, *session.optimizer.state[p].values())
             if isinstance(t, genesis.Tensor)]
    assert before == after and entry.replays == replays
    native = entry.native.replays
    for _ in range(3):
        session.step(*session.batch(4))
    assert entry.native.replays == native + 3 and entry.replays == replays + 3
    wanted = Session(lambda function: function, shape, 0, OPTIMIZERS["Adam"])
    for beyond in (0, 0, 0, 1, 0, 0, 0):
        index_out_of_range(wanted) if beyond else wanted.step(*wanted.batch(4))
    session.look(), wanted.look()
    for got, want in zip(session.seen, wanted.seen, strict=True):
        np.testing.assert_array_equal(got, want)


def test_threads_that_look_while_another_trains_see_a_step_or_none(held):
    model = nn.Module()
    model.register_buffer("weight", genesis.zeros(300_000))
    model.register_buffer("few", genesis.zeros(100))
    model.parameter = nn.Parameter(genesis.zeros(300_000))
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @genesis.compile
    def step(x):
        model.weight.add_(x), model.few.add_(1)
        optimizer.zero_grad()
        ((model.parameter - 1) ** 2 * x).sum().backward()
        optimizer.step()

    one, seen, ended = genesis.ones(300_000), [], threading.Event()
    for _ in range(4):
        step(one)

    def look():
        while not ended.is_set():
            for tensor in (model.weight, model.few, model.parameter, model.parameter.grad):
                if tensor is not None:
                    seen.append({*np.unique(tensor.detach().clone().numpy())})
            seen.append({*np.unique((model.weight - model.few[0] * 0).numpy())})

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(200):
        step(one)
    ended.set()
    thread.join()
    assert seen and all(len(values) == 1 for values in seen)
    assert model.weight[0].item() == model.few[0].item() == 204 and step.entries[0].native.replays > 100
