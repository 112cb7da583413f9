"""Settings of PyTorch's functions that decide on a result have their effect, or are refused: none is dropped."""

import inspect
import warnings

import numpy as np
import pytest
import torch
import torch.ao.quantization
import torch.utils.checkpoint

import genesis
from genesis.as_torch.finder import look_up

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 10


def named(lib, path):
    home, _, name = f"torch.{path}".rpartition(".")
    return look_up(home, name) if lib is genesis else eval(f"{home}.{name}", {"torch": torch})


def both(run):
    ours, theirs = run(genesis), run(torch)
    assert tuple(ours.shape) == tuple(theirs.shape) and str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_the_axis_of_softmax_follows_from_the_number_of_axes(name):
    for x in (X, X[0], X[0, 0], X[None]):
        both(lambda lib, x=x: getattr(lib.nn.functional, name)(lib.tensor(x)))
    layer = {"softmax": "Softmax", "log_softmax": "LogSoftmax", "softmin": "Softmin"}[name]
    both(lambda lib: getattr(lib.nn, layer)()(lib.tensor(X)))
    assert repr(getattr(genesis.nn, layer)()) == repr(getattr(torch.nn, layer)())


def test_lazy_instance_norm_is_affine_and_tracks_statistics():
    def made(lib):
        layer = lib.nn.LazyInstanceNorm1d(1e-4)
        layer(lib.tensor(X))
        return layer

    ours, theirs = made(genesis), made(torch)
    assert list(ours.state_dict()) == list(theirs.state_dict()) and repr(ours) == repr(theirs)
    assert not genesis.nn.LazyInstanceNorm2d(affine=False).affine


A, B = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
SIGNS = np.array([1.0, -1.0, 1.0], np.float32)


@pytest.mark.parametrize(("name", "arguments"), [
    ("embedding", (B, np.array([1, 0]))), ("batch_norm", (X, SIGNS, A[:, 0], B[:, 0], abs(B[:, 1]), False, 0.1, 1e-5, True)),
    ("instance_norm", (X, SIGNS, SIGNS, None, None, True, 0.1, 1e-5, False)), ("layer_norm", (X, (4,), None, None, 1e-5, True)),
    ("group_norm", (X, 3, SIGNS, None, 1e-5, True)), *[case for kind in (0, 1, 2) for case in (
        ("kl_div", (A, abs(B), kind)), ("cosine_embedding_loss", (A, B, SIGNS, 0.1, kind)),
        ("binary_cross_entropy_with_logits", (A, abs(B), None, SIGNS[:1] * 2, kind)),
        ("hinge_embedding_loss", (A[:, 0], SIGNS, 1.0, kind)), ("margin_ranking_loss", (A[:, 0], B[:, 0], SIGNS, 0.1, kind)),
        ("poisson_nll_loss", (A, abs(B), True, False, 1e-8, kind)),
        ("triplet_margin_loss", (A, B, A * B, 1.0, 2, 1e-6, False, kind)),
    )]])
def test_functions_of_torch_itself_have_its_order_of_arguments(name, arguments):
    both(lambda lib: named(lib, name)(*[lib.tensor(x) if isinstance(x, np.ndarray) else x for x in arguments]))


def test_windows_and_ranges_take_all_settings():
    for name, given in (("range", (1, 4, 1.5)), ("hamming_window", (6, False, 0.6, 0.3))):
        both(lambda lib, name=name, given=given: named(lib, name)(*given, dtype=lib.float64, requires_grad=True).detach())
        assert named(genesis, name)(*given, requires_grad=True).is_leaf
    both(lambda lib: named(lib, "stft")(
        lib.arange(64.0), 16, 4, 8, lib.ones(8), False, return_complex=True, align_to_window=True).abs())
    both(lambda lib: named(lib, "DoubleTensor")(size=(2, 3)) * 0)
    with pytest.raises(RuntimeError, match="want cpu"):
        named(genesis, "FloatTensor")(2, device="cuda")


def test_positional_settings_of_grad():
    def gradient(lib, *rest):
        x, y = lib.ones(2, requires_grad=True), lib.full((2,), float("inf"), requires_grad=True)
        return lib.autograd.grad(x * x, (x, y), lib.eye(2) if rest[1] else lib.ones(2), None, False, True, *rest)

    for rest in ((True, True, False), (None, False, True)):
        ours, theirs = gradient(genesis, *rest), gradient(torch, *rest)
        assert [None if g is None else g.tolist() for g in ours] == [None if g is None else g.tolist() for g in theirs]
    assert [*inspect.signature(genesis.autograd.grad).parameters] == [*inspect.signature(torch.autograd.grad).parameters]


REFUSED = [
    lambda lib: lib.repeat_interleave(lib.tensor([1, 2, 3]), lib.tensor([1, 2, 3]), output_size=7),
    lambda lib: lib.repeat_interleave(lib.tensor([1, 2, 3]), 2, output_size=7),
    lambda lib: lib.stft(lib.arange(64.0), 16, return_complex=True, align_to_window=True),
    lambda lib: lib.norm(lib.eye(3).to_sparse(), keepdim=True),
    lambda lib: named(lib, "segment_reduce")(lib.arange(6.0), "sum", indices=lib.tensor([0, 0, 1, 1, 2, 2])),
    lambda lib: lib.eye(2).to_sparse(layout="sparse_csr"), lambda lib: lib.fft.fftfreq(2, layout="strided"),
    lambda lib: lib.sparse_compressed_tensor([0, 1], [0], [1.0], layout="sparse_csr"),
    lambda lib: named(lib, "compile")(abs, recompilelimit=3),
    lambda lib: named(lib, "utils.checkpoint.checkpoint_sequential")([abs], 1, lib.ones(1), preserve_rng=True),
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_torch_refuses_is_refused(call):
    for lib in (genesis, torch):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            call(lib)


PAIRS = [
    lambda lib: (lib.tensor([1 + 2j]), lib.tensor([1 + 3j])), lambda lib: (lib.tensor([2**60]), lib.tensor([2**60 + 1])),
    lambda lib: (1 + 2j, 1 + 3j), lambda lib: (lib.tensor([1 + 2j]), lib.tensor([1 + 2j])), lambda lib: (None, None),
    lambda lib: (None, 1), lambda lib: ("a", "a"), lambda lib: (lib.tensor(1.0), 1.0),
    lambda lib: (lib.eye(2).to_sparse(), lib.eye(2)), lambda lib: (lib.eye(2).to_sparse(), lib.eye(2).to_sparse()),
    lambda lib: (lib.eye(2).to_sparse(), 2 * lib.eye(2).to_sparse()), lambda lib: (lib.nn.Parameter(lib.ones(2)), lib.ones(2)),
    lambda lib: (lib.tensor([True]), lib.tensor([False])),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("settings", [{}, {"check_layout": False}, {"allow_subclasses": False}])
def test_assert_close_finds_what_torch_finds(pair, settings):
    def found(lib):
        try:
            return lib.testing.assert_close(*pair(lib), **settings)
        except (AssertionError, TypeError) as problem:
            return type(problem)

    assert found(genesis) is found(torch)


def test_tensors_that_are_to_be_sparse_in_a_dense_layout_stay_dense():
    both(lambda lib: lib.eye(2).to_sparse(layout=named(lib, "strided")))


def test_settings_of_tools_have_an_effect_or_are_refused(tmp_path):
    def observer(lib):
        kind = named(lib, "ao.quantization.PlaceholderObserver")
        made = kind(lib.float16, "name", lib.float16, 0, 3)
        return made.is_dynamic, made.quant_min, made.quant_max, made.qscheme, made.custom_op

    with warnings.catch_warnings(action="ignore"):
        ours, theirs = observer(genesis), observer(torch)
    assert ours[:3] + ours[4:] == theirs[:3] + theirs[4:] and ours[3] is genesis.ao.quantization.per_tensor_affine
    for name, settings in (("jit.save", {"_extra_files": {"a": "b"}}), ("jit.load", {"_extra_files": {"a": ""}})):
        with pytest.raises(ValueError, match="_extra_files has a"):
            named(genesis, name)(*([genesis.nn.Linear(1, 1)] if name == "jit.save" else []), tmp_path / "x", **settings)
    with pytest.raises(ValueError, match="custom_mapping"):
        named(genesis, "utils.flop_counter.FlopCounterMode")(custom_mapping={genesis.sin: len})
    with genesis.profiler.profile() as profile:
        (genesis.ones(3) + 1).tolist()
    assert profile.key_averages().table(header="all").startswith("all\n")


@pytest.mark.parametrize(("name", "arguments"), [
    ("eye", (2,)), ("linspace", (0, 1, 3)), ("logspace", (0, 1, 3)), ("tril_indices", (2, 3)), ("triu_indices", (2, 3)),
    ("empty_strided", ((2,), (1,))), ("empty_permuted", ((2, 3), (1, 0))), ("randperm", (1,))])
def test_whatever_makes_tensors_takes_the_settings_of_factories(name, arguments):
    for lib in (genesis, torch):
        made = getattr(lib, name)(*arguments, layout=named(lib, "strided"), pin_memory=False)
        assert made.is_contiguous() or name == "empty_permuted"
        with pytest.raises((TypeError, RuntimeError)):
            getattr(lib, name)(*arguments, layout="strided")
    assert genesis.randperm(3, dtype=genesis.float32, requires_grad=True).is_leaf
