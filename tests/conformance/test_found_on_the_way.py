"""What PyTorch's databases showed to be wrong in silence, beside torch."""

import pickle

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close


def both(function, *values):
    """`function(library, tensors)` of both libraries, the tensors of float64."""
    return [function(library, *[library.tensor(v, dtype=library.float64, requires_grad=True) for v in values])
            for library in (genesis, torch)]


@pytest.mark.parametrize("change", [
    lambda x, mask: x.masked_fill_(mask, 1.0),
    lambda x, mask: x.masked_scatter_(mask, genesis.ones(9)),
])
def test_writing_by_a_mask_keeps_the_shape(change):
    x = genesis.zeros(3)
    with pytest.raises(ValueError, match=r"result has shape \(3, 3\), which does not fit (in place )?into \(3,\)"):
        change(x, genesis.ones(3, 3, dtype=genesis.bool))
    assert x.shape == (3,) and x.tolist() == [0, 0, 0]


def test_an_empty_batch_leaves_statistics_alone():
    norm = genesis.nn.BatchNorm1d(3)
    assert norm(genesis.zeros(0, 3)).shape == (0, 3)
    assert (norm.running_mean.tolist(), norm.running_var.tolist()) == ([0, 0, 0], [1, 1, 1])


def test_weights_of_classes_must_be_as_many():
    with pytest.raises(ValueError, match=r"weight has shape \(1,\); want \(3,\), one for each class"):
        genesis.nn.functional.cross_entropy(genesis.zeros(2, 3), genesis.tensor([0, 1]), genesis.ones(1))


def test_cosine_similarity_broadcasts():
    ours, theirs = both(lambda library, a, b: library.nn.functional.cosine_similarity(a, b, dim=0),
                        [[1.0, 2.0], [3.0, 4.0]], [[2.0]])
    assert_close(ours, theirs)


def test_logcumsumexp_is_derived_twice():
    def second(library, x):
        y = library.logcumsumexp(x, 0)
        (slope,) = library.autograd.grad((y * y).sum(), x, create_graph=True)
        return library.autograd.grad((slope * slope).sum(), x)[0]

    ours, theirs = both(second, [0.5, -1.0, 300.0, 2.0, -400.0])
    assert_close(ours, theirs)


def test_logcumsumexp_moves_along_a_tangent():
    x, along = [0.5, -1.0, 2.0], [1.0, -2.0, 0.5]
    ours, theirs = [library.func.jvp(lambda t, library=library: library.logcumsumexp(t, 0), (library.tensor(x),),
                                     (library.tensor(along),))[1] for library in (genesis, torch)]
    assert_close(ours, theirs)


def test_positions_do_not_move_along_a_tangent():
    (values, places), (change, still) = genesis.func.jvp(
        lambda x: tuple(x.sort()), (genesis.tensor([3.0, 1.0]),), (genesis.tensor([10.0, 20.0]),))
    assert (values.tolist(), places.tolist()) == ([1, 3], [1, 0])
    assert (change.tolist(), still.tolist()) == ([20, 10], [0, 0])


def test_movedim_refuses_axes_that_are_not_there():
    with pytest.raises(IndexError):
        genesis.zeros(2, 3).movedim(0, 5)
    with pytest.raises(ValueError, match="each of them once"):
        genesis.zeros(2, 3).movedim((0, 0), (0, 1))


def test_nextafter_moves_with_its_input():
    def slopes(library, x, y):
        library.nextafter(x, y).sum().backward()
        return x.grad

    ours, theirs = both(slopes, [1.0, 2.0], [1.0, 3.0])
    assert_close(ours, theirs)


def test_a_cycle_resumes_in_an_optimizer_without_its_momenta():
    rates = []
    for library in (genesis, torch):
        optimizer = library.optim.SGD([library.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
        optimizer.param_groups[0].update(initial_lr=0.1, max_lr=1.0)
        schedule = library.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.0, step_size_up=4, last_epoch=2)
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates += [optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]]
    assert rates[:8] == pytest.approx(rates[8:])


def test_optimizers_refuse_a_bare_tensor():
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
        genesis.optim.SGD(genesis.ones(1, requires_grad=True))


def test_layers_of_the_transformer_pickle():
    layer = genesis.nn.TransformerEncoderLayer(4, 2, 8)
    again = pickle.loads(pickle.dumps(layer))
    assert again.activation is layer.activation
    assert [*again.state_dict()] == [*layer.state_dict()]


@pytest.mark.parametrize("name", ["elu", "celu"])
@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), -1.0, 0.5])
def test_exponential_units_of_any_alpha_are_torchs(name, alpha):
    numbers = [-1.0, 0.0, 1.0, float("inf"), -float("inf"), float("nan")]
    with genesis.eager():
        got = getattr(genesis.nn.functional, name)(genesis.tensor(numbers), alpha)
    want = getattr(torch.nn.functional, name)(torch.tensor(numbers), alpha)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


def test_celu_refuses_an_alpha_of_zero():
    for library in (genesis, torch):
        with pytest.raises(RuntimeError, match="alpha"):
            library.nn.functional.celu(library.ones(1), 0.0)
