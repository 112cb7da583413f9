"""Functions that PyTorch's layers are made of, by their bare arguments: what they give is what they give there."""

import numpy as np
import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up

RANDOM = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def given(lib, tree):
    if isinstance(tree, np.ndarray):
        return lib.tensor(tree)
    return type(tree)(given(lib, part) for part in tree) if isinstance(tree, list | tuple) else tree


def agree(name: str, *arguments, **keywords) -> None:
    found = []
    for lib, function in ((genesis, look_up("torch", name)), (torch, getattr(torch, name))):
        with torch.no_grad():
            result = function(*given(lib, arguments), **{key: given(lib, value) for key, value in keywords.items()})
        found.append(result if isinstance(result, tuple) else (result,))
    for have, want in zip(*found, strict=True):
        assert tuple(have.shape) == tuple(want.shape)
        np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, arguments", [
    ("affine_grid_generator", (values(2, 2, 3), [2, 3, 4, 5], False)),
    ("grid_sampler", (values(1, 2, 4, 4), values(1, 3, 3, 2).clip(-1, 1), 0, 1, True)),
    ("convolution", (values(1, 2, 5, 5), values(3, 2, 3, 3), values(3), [2], [1], [1], False, [0], 1)),
    ("convolution", (values(1, 2, 5), values(2, 3, 3), None, [2], [1], [1], True, [1], 1)),
    ("conv_tbc", (values(6, 2, 3), values(3, 3, 4), values(4), 1)),
    ("max_pool1d_with_indices", (values(1, 2, 6), 2)), ("native_channel_shuffle", (values(1, 4, 2, 2), 2)),
    *[("norm_except_dim", (values(*shape), 2, dim)) for shape, dim in (((3, 4, 2), 1), ((3, 4, 2), -1), ((3,), 0))],
    ("embedding_renorm_", (values(5, 3), np.array([[1, 2], [2, 4]]), 0.5, 2.0)),
    ("batch_norm_update_stats", (values(4, 3, 2), values(3), abs(values(3)), 0.1)),
    ("feature_dropout", (values(2, 3, 4), 0.5, False)), ("hash_tensor", (values(3, 2), 1)),
])
def test_values_are_torchs(name, arguments):
    agree(name, *arguments)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments_are_reduced_as_torch_reduces_them(reduce):
    agree("segment_reduce", values(6, 2), reduce, lengths=np.array([2, 0, 4]))
    agree("segment_reduce", values(2, 6, 2), reduce, lengths=np.array([[2, 1, 3], [3, 0, 3]]), axis=1)
    agree("segment_reduce", values(6, 2), reduce, lengths=np.array([2, 0, 4]), initial=2.0)
    agree("segment_reduce", values(6, 2), reduce, offsets=np.array([0, 2, 2, 6]))
    with pytest.raises(ValueError, match="add up to 3; want 6"):
        look_up("torch", "segment_reduce")(genesis.ones(6), reduce, lengths=genesis.tensor([1, 2]))


@pytest.mark.parametrize(("both_ways", "bias"), [(True, True), (False, False)])
@pytest.mark.parametrize("name", ["gru", "lstm", "rnn_tanh", "rnn_relu"])
def test_recurrent_networks_take_lists_of_parameters(name, both_ways, bias, by_references):
    layer = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}.get(name, torch.nn.RNN)
    parameters = [p.detach().numpy() for p in layer(3, 4, 2, bias=bias, bidirectional=both_ways).parameters()]
    state = values(2 + 2 * both_ways, 2, 4)
    state = (state, values(*state.shape)) if name == "lstm" else state
    before = genesis.get_rng_state()
    agree(name, values(5, 2, 3), state, parameters, bias, 2, 0.0, False, both_ways, False)
    agree(name, values(7, 3), np.array([2, 2, 2, 1]), state, parameters, bias, 2, 0.0, False, both_ways)
    assert genesis.get_rng_state() == before


def test_a_projected_lstm_takes_a_list_of_parameters():
    parameters = [p.detach().numpy() for p in torch.nn.LSTM(3, 4, 1, proj_size=2).parameters()]
    agree("lstm", values(5, 2, 3), (values(1, 2, 2), values(1, 2, 4)), parameters, True, 1, 0.0, False, False, False)


def test_statistics_of_parts_of_a_batch_are_those_of_the_whole():
    """What `SyncBatchNorm` computes by: PyTorch has these for GPUs alone."""
    def of(name):
        return look_up("torch", name)

    x, weight, bias = (genesis.tensor(v) for v in (values(6, 3, 2), values(3), values(3)))
    x.requires_grad_()
    parts = [x.detach()[:2], x.detach()[2:]]
    sums = [of("batch_norm_stats")(part, 1e-5) for part in parts]
    counts = genesis.tensor([4.0, 8.0])
    running = [genesis.zeros(3), genesis.ones(3)]
    mean, invstd = of("batch_norm_gather_stats_with_counts")(
        parts[0], *[genesis.stack(s) for s in zip(*sums, strict=True)], *running, 0.1, 1e-5, counts)
    expected = [genesis.zeros(3), genesis.ones(3)]
    whole = genesis.nn.functional.batch_norm(x, *expected, weight, bias, True, 0.1, 1e-5)
    made = genesis.cat([of("batch_norm_elemt")(part, weight, bias, mean, invstd, 1e-5) for part in parts])
    along = genesis.tensor(values(6, 3, 2))
    (whole * along).sum().backward()
    np.testing.assert_allclose(made.numpy(), whole.detach().numpy(), atol=1e-5)
    for have, want in zip(running, expected, strict=True):
        np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-4)
    slopes = [along[:2], along[2:]]
    reduced = [of("batch_norm_backward_reduce")(g, part, mean, invstd, weight, True, True, True)
               for g, part in zip(slopes, parts, strict=True)]
    totals = [reduced[0][n] + reduced[1][n] for n in (0, 1)]
    gradient = genesis.cat([of("batch_norm_backward_elemt")(g, part, mean, invstd, weight, *totals, counts)
                            for g, part in zip(slopes, parts, strict=True)])
    np.testing.assert_allclose(gradient.numpy(), x.grad.numpy(), atol=1e-5)


def test_zeros_at_random_and_their_mask():
    genesis.manual_seed(0)
    result, kept = look_up("torch", "native_dropout")(genesis.ones(1000), 0.25, True)
    assert ((result != 0) == kept).all() and 700 < kept.sum().item() < 800
    assert sorted(set(result.tolist())) == [0.0, pytest.approx(4 / 3)]
    channels = look_up("torch", "feature_dropout_")(genesis.ones(50, 4, 3), 0.5, True)
    assert (channels == channels[..., :1]).all() and 0 < (channels == 0).sum().item() < 600


def test_versions_compare_by_their_numbers():
    kind = look_up("torch.torch_version", "TorchVersion")
    mine, theirs = kind("2.10.1+cpu"), torch.torch_version.TorchVersion("2.10.1+cpu")
    for other in ("2.9", "2.10.1", "2.11", (2, 10), (3,)):
        assert [mine < other, mine >= other, mine == other] == [theirs < other, theirs >= other, theirs == other]


def test_futures_bring_results_and_errors():
    of = look_up
    future, late = of("torch.futures", "Future")(), of("torch.futures", "Future")()
    doubled, failed = future.then(lambda done: done.wait() * 2), late.then(lambda done: 1 / done.wait())
    both = of("torch.futures", "collect_all")([future, late])
    future.set_result(3)
    assert doubled.wait() == 6 and not both.done()
    late.set_result(0)
    assert both.done() and of("torch.futures", "wait_all")([future, late]) == [3, 0]
    theirs = torch.futures.Future()
    theirs_failed = theirs.then(lambda done: 1 / done.wait())
    theirs.set_result(0)
    for ended, of_callback in ((late, failed), (theirs, theirs_failed)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
            of_callback.wait()
        with pytest.raises(RuntimeError):
            ended.set_result(1)


def test_a_file_is_a_tensor(tmp_path):
    path = tmp_path / "numbers"
    shared = look_up("torch", "from_file")(path, True, 4)
    shared.copy_(genesis.arange(4.0)).tolist()
    assert np.fromfile(path, np.float32).tolist() == [0, 1, 2, 3]
    own = look_up("torch", "from_file")(path, False, 2)
    own.fill_(9).tolist()
    assert np.fromfile(path, np.float32).tolist() == torch.from_file(str(path), False, 4).tolist() == [0, 1, 2, 3]
