"""S2-8, S2-9, C20 and C26: what the article on OneFlow promises of GradManager."""

import gc

import numpy as np

import genesis
import genesis.oneflow as of
from tests.contract.test_oneflow_document import square


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


def test_c20_release_drops_what_accumulation_alone_keeps():
    x = leaf(1.0)
    manager = genesis.GradManager()
    manager.attach([x])
    for expected in (2, 4):
        (x * 2).sum().backward()
        assert x.grad.tolist() == [expected]
    manager.release()
    assert x.grad is None


def test_c26_keep_empty_grad():
    for keep in (True, False):
        x, unused = leaf(1.0), leaf(2.0)
        manager = genesis.GradManager(keep_empty_grad=keep)
        manager.attach([x, unused])
        with manager:
            manager.backward((x * 2).sum())
        assert unused.grad is None if keep else unused.grad.tolist() == [0]


def test_s2_8_release_gives_back_the_gradients_and_what_was_saved():
    x = of.Tensor(np.ones(1 << 20, np.float32))
    manager = of.GradManager()
    manager.attach([x])
    y = square()()(x).exp()
    y.tolist()
    x.grad = genesis.ones(1 << 20)
    x.grad.tolist()
    gc.collect()
    before = genesis.debug.memory().held
    manager.release()
    manager.release()
    gc.collect()
    assert x.grad is None and before - genesis.debug.memory().held >= 1 << 22


def test_s2_9_keep_empty_grad_decides_on_parameters_without_a_gradient():
    for keep, expected in ((True, None), (False, [0, 0])):
        used, unused = of.Tensor([1.0, 2.0]), of.Tensor([3.0, 4.0])
        manager = of.GradManager(keep_empty_grad=keep)
        assert manager.keep_empty_grad is keep
        manager.attach([used, unused])
        with manager:
            manager.backward((used * 2).sum())
        assert used.grad.tolist() == [2, 2]
        assert (unused.grad if unused.grad is None else unused.grad.tolist()) == expected
