"""Rows that a mask ends are those of NumPy, whatever lies behind the mask's last lane."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu.masked_tail import masked_tail
from genesis.execution.flush import flush
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.lower.stages import parts
from genesis.nn.functional import scaled_dot_product_attention
from genesis.tracing.state import current_trace

SIZES = [(1, 1), (3, 16), (40, 65), (70, 70), (33, 200), (200, 33), (130, 130)]


@pytest.fixture(autouse=True)
def nothing_is_pending() -> None:
    flush(current_trace())


def weights(scores: genesis.Tensor) -> genesis.Tensor:
    """The weights of causal attention that has these scores: softmax of the lower triangle's rows."""
    keys = genesis.eye(scores.shape[-1])
    return scaled_dot_product_attention(scores, keys, keys, is_causal=True, scale=1.0)


def reference(scores: np.ndarray) -> np.ndarray:
    rows, columns = scores.shape
    masked = np.where(np.arange(columns) <= np.arange(rows)[:, None], scores.astype(np.float64), -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(masked - masked.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("size", SIZES)
def test_weights_and_gradients_of_masked_rows(size: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    scores, g = (random.normal(size=size).astype(np.float32) for _ in range(2))
    x = genesis.tensor(scores, requires_grad=True)
    got, want = weights(x), reference(scores)
    got.backward(genesis.tensor(g))
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(x.grad.numpy(), want * (g - (want * g).sum(-1, keepdims=True)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_in_a_row_is_none_in_its_masked_lanes(value: float) -> None:
    scores = np.random.default_rng(1).normal(size=(150, 150)).astype(np.float32)
    scores[20, 3] = scores[140, 139] = value
    got = weights(genesis.tensor(scores)).numpy()
    assert np.isnan(got[[20, 140]]).all()
    others = np.delete(np.arange(150), [20, 140])
    np.testing.assert_allclose(got[others], reference(scores)[others], rtol=2e-6, atol=1e-7)


def test_scores_far_below_the_largest_are_zeros_or_subnormal() -> None:
    scores = np.zeros((80, 80), np.float32)
    scores[:, 1:] = np.linspace(-300, -80, 79)
    np.testing.assert_allclose(weights(genesis.tensor(scores)).numpy(), reference(scores), rtol=2e-6, atol=2e-45)


def tails() -> list[bool]:
    """For each kernel of the pending program that computes exponentials, whether its rows have a tail."""
    calls = [part for stage in plan_for(current_trace()).lowered.schedule.stages for call in stage for part in parts(call)]
    return [masked_tail(call.kernel) is not None for call in calls
            if isinstance(call, KernelCall) and any(i.name == "exp" for i in call.kernel.instructions)]


def test_causal_attention_has_tails() -> None:
    got = weights(genesis.tensor(np.ones((80, 80), np.float32)))
    assert tails() == [True]
    assert got.shape == (80, 80)


def test_rows_without_a_mask_have_none() -> None:
    got = genesis.tensor(np.ones((80, 80), np.float32)).softmax(-1)
    assert tails() == [False]
    assert got.shape == (80, 80)
