"""What becomes of arguments under autocast, row by row: PyTorch's lists, its results on the CPU, and values."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import genesis
from genesis.nn import functional as F
from genesis.ops import OPERATIONS
from tests.ops.checks import run
from tests.ops.samples import samples_of
from tests.tolerances import assert_close, to_torch

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
LISTS = {"LOWER_PRECISION_FP": "low", "FP32": "float32", "FP32_SET_OPT_DTYPE": "float32", "PROMOTE": "widest"}
# Rows whose policy PyTorch's lists do not name, and why.
OURS = {
    "index_put": None,  # it converts its values to its input's dtype as it is, and writes in place with that
    "square": "float32",  # there a power
    "log1pexp": "float32",  # there softplus
    "cross_entropy": "float32",  # there made of log_softmax and nll_loss
    "gaussian_nll_loss": "float32",  # there made of logarithms
    "recurrent": "low",  # as its cells
    "einsum": "low",  # there made of batched products
    "cat": "widest", "stack": "widest",  # on its list for the CPU
}


def theirs():
    """The policies of PyTorch's lists for accelerators."""
    text = HEADER.read_text(encoding="utf-8").split("AT_FORALL_LOWER_PRECISION_FP(_)")[1]
    text = "#define AT_FORALL_LOWER_PRECISION_FP(_)" + text
    found = {}
    for name, body in re.findall(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)+.*)", text):
        for operation in re.findall(r"_\((\w+)", body) if name in LISTS else ():
            found[operation] = LISTS[name]
    return found


def test_rows_have_the_policies_of_pytorchs_lists():
    known = theirs()
    assert len(known) > 90
    for name, row in OPERATIONS.items():
        assert row.autocast == OURS.get(name, known.get(name)), f"{name}: composite(.., autocast={known.get(name)!r})"


X, W = np.random.default_rng(0).normal(size=(2, 6, 6)).astype(np.float32)
LABELS = np.array([0, 5, 2, 1, 3, 3])
CALLS = {  # where its lists for the CPU and for accelerators agree
    "matmul": (lambda m, f, x, w: x @ w, (X, W)),
    "linear": (lambda m, f, x, w: f.linear(x, w, w[0]), (X, W)),
    "mse_loss": (lambda m, f, x, w: f.mse_loss(x, w), (X, W)),
    "l1_loss": (lambda m, f, x, w: f.l1_loss(x, w), (X, W)),
    "nll_loss": (lambda m, f, x, y: f.nll_loss(x, y), (X, LABELS)),
    "prod": (lambda m, f, x: x.prod(), (X,)),
    "cat": (lambda m, f, x, w: m.cat([x, w]), (X, W)),
    "stack": (lambda m, f, x, w: m.stack([x, w], 1), (X, W)),
    "add": (lambda m, f, x, w: x + w, (X, W)),
    "mul": (lambda m, f, x: x * 2, (X,)),
    "relu": (lambda m, f, x: m.relu(x), (X,)),
    "mean": (lambda m, f, x: x.mean(), (X,)),
    "where": (lambda m, f, x, w: m.where(x > 0, x, w), (X, W)),
}


@pytest.mark.parametrize("given", [genesis.float32, genesis.bfloat16, genesis.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_pytorchs(name, given):
    function, arrays = CALLS[name]
    arrays = [a.astype(given.numpy) if a.dtype.kind == "f" else a for a in arrays]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        want = function(torch, torch.nn.functional, *map(to_torch, arrays))
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        got = function(genesis, F, *map(genesis.tensor, arrays))
    assert_close(got, want, name, scale=2)


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("low", [genesis.bfloat16, genesis.float16], ids=lambda d: d.name)
@pytest.mark.parametrize("name", [name for name, row in OPERATIONS.items() if row.autocast in ("low", "float32")])
def test_arguments_are_taken_in_the_dtype_of_the_policy(name, low):
    given, taken = (genesis.float32, low) if OPERATIONS[name].autocast == "low" else (low, genesis.float32)

    def tensors(dtype):
        return lambda a: genesis.tensor(a).to(low).to(dtype) if a.dtype.kind == "f" else genesis.tensor(a)

    for sample in samples_of(name, genesis.float32):
        with genesis.autocast(low):
            got = run(name, sample, tensors(given), genesis)
        if not isinstance(got, genesis.Tensor) or got._base is None:  # a view of an argument keeps its dtype, as in PyTorch
            assert_close(got, run(name, sample, tensors(taken), genesis), name)


def test_16_bit_sums_do_not_stop_at_the_precision_of_their_terms():
    ones = genesis.ones(1, 4096, dtype=genesis.bfloat16)
    assert (ones @ ones.T).item() == 4096 and ones.sum().item() == 4096
    places = genesis.zeros(4096, dtype=genesis.int64)
    assert genesis.zeros(1, dtype=genesis.bfloat16).scatter_add(0, places, ones[0]).item() == 4096
    assert genesis.zeros(1, dtype=genesis.bfloat16).index_add(0, places, ones[0]).item() == 4096


def test_mixed_16_bit_types_meet_in_float32():
    half, brain = genesis.ones(2, dtype=genesis.float16), genesis.ones(2, dtype=genesis.bfloat16)
    with genesis.autocast():
        assert genesis.cat([half, half]).dtype is genesis.float16
        assert genesis.cat([half, brain]).dtype is genesis.float32
        assert brain.scatter_add(0, genesis.tensor([0, 1]), genesis.ones(2)).tolist() == [2, 2]


def test_16_bit_activations_meet_float32_weights():
    x, w = genesis.ones(2, 3, dtype=genesis.bfloat16), genesis.ones(3, 4)
    with pytest.raises(TypeError, match="dtypes differ: bfloat16 and float32"):
        x @ w
    with genesis.autocast():
        assert (x @ w).dtype is genesis.bfloat16


def test_a_dtype_that_is_asked_for_is_given():
    x = genesis.ones(3, dtype=genesis.bfloat16)
    with genesis.autocast():
        assert x.sum(dtype=genesis.bfloat16).dtype is genesis.bfloat16
        assert x.softmax(0, dtype=genesis.float64).dtype is genesis.float64


def test_in_place_operations_keep_the_dtype():
    x, w = genesis.full((3, 3), 2.0, dtype=genesis.bfloat16), genesis.ones(3, 3)
    with genesis.autocast(genesis.float16):
        x.exp_()
        w += w @ w
        x[0] = w[0]
        x.scatter_add_(0, genesis.zeros((1, 3), dtype=genesis.int64), w)
    assert x.dtype is genesis.bfloat16 and w.dtype is genesis.float32
    assert x[0].tolist() == [8, 8, 8] and w[0].tolist() == [4, 4, 4]


def test_parameters_get_gradients_of_their_own_dtype():
    x, w = genesis.tensor(X), genesis.tensor(W, requires_grad=True)
    with genesis.autocast():
        loss = (x @ w).softmax(-1)[:, 0].sum()
    loss.backward()
    want = to_torch(W, True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (to_torch(X) @ want).float().softmax(-1)[:, 0].sum().backward()
    assert w.grad.dtype is genesis.float32
    np.testing.assert_allclose(w.grad.numpy(), want.grad.numpy(), rtol=0.05, atol=0.01)


def test_backward_within_a_context_is_the_same_as_after_it():
    def gradient(inside):
        w = genesis.tensor(W, requires_grad=True)
        with genesis.autocast():
            loss = (genesis.tensor(X) @ w).exp().sum() + (w @ w).mean()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        return w.grad

    assert gradient(True).tolist() == gradient(False).tolist()


def test_second_derivatives_pass_through_casts():
    x = genesis.tensor([[0.5, 0.25]], requires_grad=True)
    with genesis.autocast(genesis.float16):
        y = (x @ genesis.tensor([[2.0], [4.0]])).pow(3).sum()
    (first,) = genesis.autograd.grad(y, x, create_graph=True)
    (second,) = genesis.autograd.grad(first.sum(), x)
    assert first.tolist() == [[24, 48]]  # 3 s^2 (2, 4) at s = 2
    assert second.tolist() == [[144, 288]]  # 6 s (2 + 4) (2, 4)


