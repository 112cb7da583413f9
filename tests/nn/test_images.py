"""Networks of images against torch's: windows, convolutions, pooling and batch norm, trained for some steps."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.nn import functional as F
from tests.tolerances import assert_close


def network(m):
    return m.Sequential(
        m.Conv2d(3, 6, 3, padding=1, bias=False), m.BatchNorm2d(6), m.ReLU(), m.MaxPool2d(2),
        m.Conv2d(6, 8, 3, stride=2, padding=1),
        m.GroupNorm(2, 8), m.ReLU(), m.ConvTranspose2d(8, 4, 2, stride=2), m.BatchNorm2d(4, momentum=None), m.AvgPool2d(2),
        m.Flatten(), m.Linear(16, 5),
    )


def test_a_network_trains_as_torchs_and_takes_its_state():
    ours, theirs = network(nn).to(genesis.float64), network(torch.nn).double()
    ours.load_state_dict(theirs.state_dict())
    random = np.random.default_rng(0)
    images, labels = random.normal(size=(6, 3, 8, 8)), np.array([0, 1, 2, 3, 4, 0])
    optimizer, reference = genesis.optim.SGD(ours.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for number in range(4):
        for model, library, schedule in ((ours, genesis, optimizer), (theirs, torch, reference)):
            schedule.zero_grad()
            loss = library.nn.functional.cross_entropy(model(library.tensor(images + number)), library.tensor(labels))
            loss.backward()
            schedule.step()
    state = ours.state_dict()
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(state[name].numpy(), value.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)
    theirs.load_state_dict({name: torch.tensor(value.numpy()) for name, value in state.items()})
    evaluated = ours.eval()(genesis.tensor(images)), theirs.eval()(torch.tensor(images))
    assert_close(*evaluated, scale=100)


def test_a_step_with_batch_norm_is_one_program_and_reads_nothing():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, momentum=None), nn.Flatten(), nn.Linear(8, 2))
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
    x = genesis.ones(3, 1, 4, 4)
    with genesis.debug.Recording() as recording:
        for _ in range(4):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
    assert [flushed.runs for flushed in recording.programs] == [4]
    assert model[1].num_batches_tracked.item() == 4


def test_statistics_wait_like_everything_else():
    layer = nn.BatchNorm1d(2)
    layer(genesis.ones(3, 2))
    assert layer.running_mean._array.memory is None
    assert layer.running_mean.tolist() == pytest.approx([0.1, 0.1]) and not layer.running_mean.requires_grad


def test_statistics_begin_anew():
    layer = nn.BatchNorm1d(2)
    layer(genesis.ones(3, 2))
    layer.reset_running_stats()
    assert [b.tolist() for b in layer.buffers()] == [[0, 0], [1, 1], 0]


# ---- windows ----


def test_windows_share_storage_and_are_not_written_to():
    x = genesis.arange(5.0)
    windows = x.unfold(0, 3, 1)
    x[2] = 10.0
    assert windows.tolist() == [[0, 1, 10], [1, 10, 3], [10, 3, 4]]
    with pytest.raises(RuntimeError, match="several elements of the tensor share one place"):
        windows += 1
    apart = x.unfold(0, 2, 3)
    apart += 1
    assert x.tolist() == [1, 2, 10, 4, 5]


@pytest.mark.parametrize(("size", "step", "hop"), [
    (3, 1, 1), (5, 2, 1), (5, 2, 3), (4, 3, 1), (2, 5, 1), (12, 3, 1), (11, 4, 1), (12, 3, 2), (9, 6, 3)])
def test_gradients_of_windows_of_windows_are_sums(size, step, hop):
    values = np.random.default_rng(0).normal(size=(4, 23))

    def pulled(library):
        x = library.tensor(values, requires_grad=True)
        y = x.unfold(1, size, step)[..., ::hop].unfold(1, 3, 2)
        (y**2 * library.arange(y.numel(), dtype=library.float64).reshape(y.shape)).sum().backward()
        return x.grad

    assert_close(pulled(genesis), pulled(torch), scale=10)


def test_columns_are_torchs_and_come_back():
    values = np.random.default_rng(0).normal(size=(2, 3, 6, 5))
    settings = {"kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
    columns = F.unfold(genesis.tensor(values), **settings)
    assert_close(columns, torch.nn.functional.unfold(torch.tensor(values), **settings))
    back = torch.nn.functional.fold(torch.tensor(columns.numpy()), (6, 5), **settings)
    assert_close(F.fold(columns, (6, 5), **settings), back)


def test_ties_send_their_gradient_to_the_first():
    x = genesis.zeros(1, 4, 4, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad[0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(("size", "settings"), [
    ((2, 3, 12, 34), {"kernel_size": 2}), ((2, 2, 6, 16), {"kernel_size": (2, 3)}),
    ((1, 2, 9, 37), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 2, 30, 33), {"kernel_size": (16, 11), "stride": 7})], ids=str)
def test_ties_within_windows_send_their_gradient_where_torch_does(size, settings):
    """In windows of up to 176 elements, whose positions 8 bits do not hold, behind a ReLU with its own ties."""
    random = np.random.default_rng(0)
    values = random.integers(-3, 3, size).astype(np.float32)

    def pulled(library):
        x = library.tensor(values, requires_grad=True)
        y = library.nn.functional.max_pool2d(library.relu(x - 1), **settings)
        (y * library.arange(y.numel(), dtype=library.float32).reshape(y.shape)).sum().backward()
        return x.grad

    assert_close(pulled(genesis), pulled(torch), scale=10)


def test_infinities_and_nans_pool_as_torchs():
    values = np.array([[np.nan, 1, 2, 3], [-np.inf, -np.inf, np.inf, 0]])
    calls = {"max_pool1d": (2,), "avg_pool1d": (2,), "adaptive_avg_pool1d": (3,), "adaptive_max_pool1d": (3,)}
    for name, arguments in calls.items():
        ours = getattr(F, name)(genesis.tensor(values), *arguments)
        assert_close(ours, getattr(torch.nn.functional, name)(torch.tensor(values), *arguments), name)


def test_an_output_size_picks_the_output_padding():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert layer(genesis.ones(1, 1, 3, 3), output_size=(8, 7)).shape == (1, 1, 8, 7)
    with pytest.raises(ValueError, match=r"output_size \(9, 7\) is not possible; want \(7, 7\)"):
        layer(genesis.ones(1, 1, 3, 3), output_size=(9, 7))


X, W = genesis.ones(1, 2, 5, 5), genesis.ones(3, 2, 3, 3)


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda: F.conv2d(X, W[:, :1]), ValueError, r"input \(1, 2, 5, 5\) does not fit weight \(3, 1, 3, 3\) in 1 groups; want 1"),
    (lambda: F.conv2d(X, W.double()), TypeError, "dtypes differ: float32 and float64"),
    (lambda: F.conv2d(X[0, 0], W), ValueError, r"input \(5, 5\) and weight \(3, 2, 3, 3\); want 3 or 4 axes, and 4"),
    (lambda: F.conv2d(X, W, genesis.ones(2)), ValueError, r"bias has shape \(2,\); want \(3,\)"),
    (lambda: F.conv2d(X, W, dilation=3), ValueError, "conv2d: a window that spans 7 does not fit into the padded extent 5"),
    (lambda: F.conv2d(X, W, stride=0), ValueError, "stride is 0; want an integer of 1 or more"),
    (lambda: F.conv2d(X, W, stride=2, padding="same"), ValueError, "'same' wants a stride of 1"),
    (lambda: F.conv2d(X, W, padding="full"), ValueError, "padding must be integers, 'same' or 'valid', got 'full'"),
    (lambda: F.conv_transpose2d(X, W.transpose(0, 1), output_padding=1), ValueError, "output_padding"),
    (lambda: F.max_pool2d(X, 2, padding=2), ValueError, "padding .2, 2. is more than half of kernel_size"),
    (lambda: F.max_pool2d(X, 7), ValueError, "a window that spans 7 does not fit"),
    (lambda: F.avg_pool2d(X, 2, divisor_override=0), ValueError, "divisor_override must not be 0"),
    (lambda: F.adaptive_avg_pool2d(X, (1, 2, 3)), ValueError, "output_size is"),
    (lambda: F.pad(X, (1, 2, 3)), ValueError, "are 3 paddings; want two for each of at most 4 axes"),
    (lambda: F.pad(X, (5, 5), "reflect"), ValueError, "5. elements along axis 3 of extent 5; want 4 at most"),
    (lambda: F.pad(X, (1, 1), "mirror"), ValueError, "mode must be 'constant', 'reflect'"),
    (lambda: F.fold(genesis.ones(1, 8, 3), (3, 3), 2), ValueError, r"want \(.., c \* 4, 4\) for output_size \(3, 3\)"),
    (lambda: genesis.ones(3).unfold(0, 4, 1), ValueError, "size 4, step 1; want 0 <= size <= 3"),
    (lambda: nn.BatchNorm2d(2)(X[0]), ValueError, "BatchNorm2d: input must have 4 axes"),
    (lambda: nn.BatchNorm1d(2)(X[:, :, 0, 0]), ValueError, "wants more than one value for each channel when training"),
    (lambda: nn.BatchNorm2d(3).eval()(X), ValueError, "running statistics have shapes"),
    (lambda: nn.GroupNorm(2, 3), ValueError, "2 groups do not divide 3 channels"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "2 groups; want a divisor of 3 and 4 channels"),
])
def test_what_does_not_fit_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()
