"""Memory that processes share: what one writes the others read, as PyTorch's do."""

import multiprocessing
import pickle

import numpy as np
import pytest
import torch

import genesis
from tests.tensor.other_process import change, fill

LIBRARIES = {"genesis": genesis, "torch": torch}
PATIENCE = 600  # seconds: beside other work, a process that imports PyTorch begins after 40
context = multiprocessing.get_context("spawn")


def shared(name):
    """What two processes see of the same tensors."""
    lib = LIBRARIES[name]
    x = lib.arange(6.0).view(2, 3).share_memory_()
    bits = lib.arange(4).share_memory_()
    p = lib.nn.Parameter(lib.ones(2)).share_memory_()
    model = lib.nn.Linear(2, 1, bias=False)
    with lib.no_grad():
        model.weight.fill_(1.0)
    model.share_memory()
    kept = model.weight.view(-1)
    back, forth = context.Queue(), context.Queue()
    process = context.Process(target=change, args=(name, (x, x[:, 1:], bits, p), model, back, forth))
    process.start()
    *found, again = back.get(timeout=PATIENCE)
    seen = [t.tolist() for t in (x, bits, p, model.weight, kept, again)]
    x[0, 0] = 100.0
    forth.put(None)
    found.append(back.get(timeout=PATIENCE))
    again[1, 2] = -1.0
    process.join(PATIENCE)
    return found, seen, x.tolist(), process.exitcode


def test_processes_see_each_others_writes():
    found = shared("genesis")
    assert found == shared("torch")
    assert found[-1] == 0


def test_what_is_not_shared_comes_as_a_copy():
    x = genesis.zeros(2)
    process = context.Process(target=fill, args=(x,))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0 and x.tolist() == [0.0, 0.0]  # PyTorch shares what it sends


def test_values_and_views_stay_what_they_are():
    random = np.random.default_rng(0)
    for _ in range(20):
        values = random.integers(0, 9, (4, 5)).astype(np.float32)
        x = genesis.tensor(values)
        views, arrays = [x, x.T, x[1:, ::2], x.view(20)], [values, values.T, values[1:, ::2], values.reshape(20)]
        for number in random.permutation(8):
            if number == 0:
                views[random.integers(4)].share_memory_()
            one, other = views[number % 4], arrays[number % 4]
            one.mul_(float(number))
            other *= number
            two, wanted = views[(number + 1) % 4], arrays[(number + 1) % 4]
            two[0] = 3.0
            wanted[0] = 3.0
            for view, array in zip(views, arrays, strict=True):
                assert np.array_equal(view.numpy(), array)
        assert all(view.is_shared() for view in views)


def test_compiled_calls_and_gradients_read_what_is_there():
    w = genesis.nn.Parameter(genesis.ones(3)).share_memory_()
    step = genesis.compile(lambda x: (w * x).sum())
    outside = w.detach().numpy()
    for number in range(4):
        outside[:] = number  # as another process would
        w.grad = None
        loss = step(genesis.tensor([1.0, 2.0, 3.0]))
        loss.backward()
        assert loss.item() == 6 * number and w.grad.tolist() == [1.0, 2.0, 3.0]


def test_what_cannot_be_shared_says_so():
    w = genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="carries a gradient"):
        (w * 2).share_memory_()
    x = genesis.ones(2).share_memory_()
    copy = pickle.loads(pickle.dumps(x))
    assert not copy.is_shared() and copy.tolist() == [1.0, 1.0]
    assert x.untyped_storage().is_shared() and not genesis.ones(2).is_shared()
    assert genesis.zeros(0).share_memory_().is_shared()
