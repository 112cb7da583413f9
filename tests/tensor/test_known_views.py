"""Views that machine code makes: as Python makes them, of the same roots."""

import gc
import random
import sys

import numpy as np
import pytest

import genesis
from genesis.runtime.instructions import are_possible
from genesis.tensor.known_calls.native import native

views = sys.modules["genesis.tensor.views"]
pytestmark = pytest.mark.skipif(not are_possible(), reason="this interpreter's objects are laid out otherwise")


class Marked(genesis.Tensor):
    pass


@pytest.fixture
def by_machine_code(monkeypatch):
    found = views.known_views._loaded()
    monkeypatch.setattr(views.known_views, "call", found)
    return found


def _stale(x):
    part = x[1]
    x.add_(1)
    return part


SOURCES = {
    "a root": lambda x: x, "a view": lambda x: x[0], "a view of a view": lambda x: x.permute(2, 0, 1)[1], "stale": _stale,
    "pending": lambda x: x * 2, "a view of pending": lambda x: (x * 2)[0],
    "detached": lambda x: x.detach(), "data": lambda x: x.data,
    "a leaf": lambda x: x.requires_grad_(), "derived": lambda x: x.requires_grad_() * 2,
    "a subclass": lambda x: x.as_subclass(Marked),
    "NumPy's": lambda x: genesis.from_numpy(np.arange(24.0).reshape(2, 3, 4)), "expanded": lambda x: x[:, :1].expand(2, 3, 4),
    "conjugated": lambda x: genesis.complex(x, x).conj(), "imaginary": lambda x: genesis.complex(x, x).imag,
    "no elements": lambda x: x[:, :0], "strided": lambda x: x[:, ::2], "lent": lambda x: (x.numpy(), x)[1],
}
VIEWS = {
    "select": ("select", 0, 1), "last": ("subscript", (-1,)), "slices": ("subscript", ((None, None, None), (1, None, 2))),
    "new axis": ("subscript", (None, 0)), "flat": ("view", -1), "turned": ("transpose", 0, 1), "beyond": ("select", 0, 7),
    "no axis": ("select", 9, 0), "flat or a copy": ("reshape", -1),
}


def _made(call, source, name):
    x = genesis.arange(24.0).reshape(2, 3, 4) + 0
    x.tolist()
    tensor = SOURCES[source](x)
    try:
        view = call(tensor, VIEWS[name][0], VIEWS[name][1:])
    except (ValueError, IndexError, RuntimeError) as problem:
        return type(problem), str(problem)
    root, memory = view._base, view._array.memory
    state = [view._layout, view._requires_grad, view._detached, view._versions is tensor._versions, view._element_map,
             type(view), view.dtype, view.shape, view.is_leaf,
             root is not None and (root is tensor, root is tensor._base, root._changes - view._seen),
             memory is not None and (memory.strides, memory.layout, memory.pointer - memory.buffer.ptr),
             root is not None and view._storage is root._storage, view._array.trace is None, view._array.index == -1]
    before = view.detach().tolist()
    if root is not None and not x.requires_grad:
        x.mul_(3)  # seen by views of it, and by no other tensor
    return [*state, before, view.detach().tolist()]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", VIEWS)
def test_machine_code_makes_what_python_makes(by_machine_code, source, name):
    assert _made(by_machine_code, source, name) == _made(views._viewed, source, name)


def test_chains_of_views_and_writes_are_numpys(by_machine_code):
    for seed in range(60):
        rng = random.Random(seed)
        values = np.arange(60, dtype=np.float32).reshape(3, 4, 5).copy()
        ours, theirs = [genesis.tensor(values)], [values]
        for _ in range(12):
            at, kind = rng.randrange(len(ours)), rng.randrange(5)
            x, y = ours[at], theirs[at]
            if kind == 0 and x.ndim:
                i = rng.randrange(x.shape[0])
                ours.append(x[i])
                theirs.append(y[i, ...])
            elif kind == 1 and x.ndim > 1:
                ours.append(x.transpose(0, -1))
                theirs.append(y.swapaxes(0, -1))
            elif kind == 2 and x.ndim:
                ours.append(x[..., ::2])
                theirs.append(y[..., ::2])
            elif kind == 3:
                x.mul_(2)
                y *= 2
            else:
                x[...] = seed
                y[...] = seed
        for x, y in zip(ours, theirs, strict=True):
            assert x.tolist() == y.tolist(), seed


def test_views_keep_no_references(by_machine_code):
    x = genesis.tensor(np.arange(12.0).reshape(3, 4))

    def make():
        for _ in range(50):
            x[1][2], x.t()[0], x.unbind(0), x.view(-1), x[:, None]
            for wrong in (lambda: x[7], lambda: x.view(5), lambda: x.select(3, 0)):
                with pytest.raises((ValueError, IndexError)):
                    wrong()

    def counts():
        gc.collect()
        return [sys.getrefcount(one) for one in (x, x._array, x._array.memory, x._array.memory.buffer, x._storage)]

    make()
    before = counts()
    make()
    assert counts() == before


def test_an_interrupt_within_a_layout_rule_is_raised(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    x = genesis.tensor([1.0, 2.0])
    found = native("genesis_view", views.known_views.by_python, interrupted)
    with pytest.raises(KeyboardInterrupt):
        found(x, "select", (0, 1))
    assert x[1].item() == 2.0
