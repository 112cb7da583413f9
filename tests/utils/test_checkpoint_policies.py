"""What a checkpoint keeps all the same, and what it is asked by."""

import numpy as np
import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up
from genesis.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

X, W = np.random.RandomState(0).randn(2, 4, 4).astype(np.float32)


def gradients(lib, **options):
    x, w = lib.tensor(X, requires_grad=True), lib.tensor(W, requires_grad=True)

    def function(x):
        return ((x @ w).tanh() @ w).sigmoid().sum()

    run = checkpoint if lib is genesis else torch.utils.checkpoint.checkpoint
    (run(function, x, use_reentrant=False, **options) if options else function(x)).backward()
    return [x.grad.numpy(), w.grad.numpy()]


@pytest.mark.parametrize("kept", [[genesis.matmul], [genesis.tanh, genesis.sigmoid], []])
def test_gradients_are_the_same_whatever_is_kept(kept):
    found = gradients(genesis, context_fn=lambda: create_selective_checkpoint_contexts(kept))
    for have, want in zip(found, gradients(torch), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_a_policy_sees_both_runs():
    asked = []

    def policy(context, function, *args, **kwargs):
        asked.append((context.is_recompute, function))
        return CheckpointPolicy.MUST_SAVE if function is genesis.matmul else CheckpointPolicy.PREFER_RECOMPUTE

    gradients(genesis, context_fn=lambda: create_selective_checkpoint_contexts(policy))
    functions = [genesis.matmul, genesis.tanh, genesis.matmul, genesis.sigmoid, genesis.sum]
    assert asked == [(again, f) for again in (False, True) for f in functions]


def test_what_is_kept_is_not_computed_again():
    """The kept value is what backward reads: a write to it shows in the gradient of what follows."""
    x = genesis.tensor([0.5], requires_grad=True)
    contexts = create_selective_checkpoint_contexts([genesis.exp])
    y = checkpoint(lambda x: x.exp().square().sum(), x, context_fn=lambda: contexts)
    (kept,) = contexts[0]._kept[genesis.exp][0]
    kept.fill_(10.0)
    y.backward()
    assert x.grad.item() == pytest.approx(2 * 10 * np.exp(0.5))


def test_contexts_of_ones_own_are_entered_in_both_runs():
    entered = []

    class Counted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *problem):
            pass

    gradients(genesis, context_fn=lambda: (Counted("first"), Counted("second")))
    assert entered == ["first", "second"]


def test_names_around_checkpoints():
    of = lambda name: look_up("torch.utils.checkpoint", name)  # noqa: E731
    x = genesis.tensor(X, requires_grad=True)
    of("CheckpointFunction").apply(lambda x: x.exp().sum(), True, x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X), rtol=1e-5)
    alone, three = of("detach_variable")((x * 2, 3))
    assert alone.is_leaf and alone.requires_grad and three == 3
    with pytest.warns(UserWarning, match="None of the inputs"):
        of("check_backward_validity")([genesis.ones(2)])
    assert of("get_device_states")(x) == ([], [])
    with of("set_checkpoint_early_stop")(False):
        pass
