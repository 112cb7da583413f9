"""Attention with scores and masks of the user's, attention as a function of its parameters, and gradients of convolutions."""

import numpy as np
import pytest
import torch
from torch.nn.attention import flex_attention as theirs

import genesis
from genesis.nn import flex_attention as ours
from genesis.nn import functional as F

RANDOM = np.random.default_rng(0)
QUERY, KEY, VALUE = (RANDOM.normal(size=(2, 4, 6, 8)).astype(np.float32) for _ in range(3))
SLOPES = np.float32([0.5, 0.25, 0.125, 1.0])
DOCUMENTS = np.array([0, 0, 1, 1, 1, 2])


def dense(lib, q, k, v, score_mod, mask_mod, scale=None):
    """The definition, in float64 of torch's: scores and masks by four loops of `vmap`'s indices, broadcast."""
    q, k, v = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, k, v))
    at = [torch.arange(n).reshape([n if a == b else 1 for b in range(4)]) for a, n in enumerate((*q.shape[:3], k.shape[2]))]
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if score_mod is None else score_mod(torch, scores, *at)
    if mask_mod is not None:
        scores = torch.where(mask_mod(torch, *at), scores, -float("inf"))
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    return q, k, v, weights @ v, torch.logsumexp(scores, -1)


SCORES = {
    "none": None,
    "alibi": lambda lib, s, b, h, q, k: s + lib.tensor(SLOPES).to(s.dtype)[h] * (k - q),
    "capped": lambda lib, s, b, h, q, k: 3 * lib.tanh(s / 3),
    "causal": lambda lib, s, b, h, q, k: lib.where(q >= k, s, -float("inf")),
}
MASKS = {
    "none": None,
    "window": lambda lib, b, h, q, k: (q >= k) & (q - k < 2),
    "documents": lambda lib, b, h, q, k: lib.tensor(DOCUMENTS)[q] == lib.tensor(DOCUMENTS)[k],
    "some rows see nothing": lambda lib, b, h, q, k: q > k,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_scores_and_masks(score, mask):
    score_mod, mask_mod = SCORES[score], MASKS[mask]
    *leaves, want, lse = dense(torch, QUERY, KEY, VALUE, score_mod, mask_mod)
    q, k, v = (genesis.tensor(x, requires_grad=True) for x in (QUERY, KEY, VALUE))
    own = None if score_mod is None else lambda *given: score_mod(genesis, *given)
    block_mask = None if mask_mod is None else ours.create_block_mask(
        lambda *given: mask_mod(genesis, *given), None, None, 6, 6, BLOCK_SIZE=2)
    have = ours.flex_attention(q, k, v, own, block_mask)
    np.testing.assert_allclose(have.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    _, aux = ours.flex_attention(q, k, v, own, block_mask, return_aux=ours.AuxRequest(lse=True))
    np.testing.assert_allclose(aux.lse.detach().numpy(), lse.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert aux.max_scores is None
    have.square().sum().backward()
    if mask != "some rows see nothing":  # the definition's gradients are NaN there
        want.square().sum().backward()
        for a, b in zip((q, k, v), leaves, strict=True):
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-4)
    else:
        assert all(bool(t.grad.isfinite().all()) for t in (q, k, v))


@pytest.mark.parametrize("mask", [mask for mask in MASKS if mask != "none"])
def test_blocks_are_torchs(mask):
    mod = MASKS[mask]
    have = ours.create_block_mask(lambda b, h, q, k: mod(genesis, b, h, q, k), 1, 2, 6, 6, BLOCK_SIZE=2)
    want = theirs.create_block_mask(lambda b, h, q, k: mod(torch, b, h, q, k), 1, 2, 6, 6, device="cpu", BLOCK_SIZE=2)
    for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
        assert getattr(have, name).tolist() == getattr(want, name).tolist(), name
    assert have.to_dense().tolist() == want.to_dense().tolist() and abs(have.sparsity() - want.sparsity()) < 1e-6
    assert have.shape == want.shape and have[:, 1].shape[:2] == want[:, 1].shape[:2]
    if mask != "documents":  # torch counts blocks that are cut off there
        assert have._adjust(4, 4).kv_num_blocks.tolist() == want._adjust(4, 4).kv_num_blocks.tolist()
    with pytest.raises(RuntimeError, match="part"):
        ours.flex_attention(*[genesis.tensor(x)[:1, :1] for x in (QUERY, KEY, VALUE)], block_mask=have[:, :1])


def test_blocks_that_are_given():
    causal = ours.create_block_mask(lambda b, h, q, k: q >= k, None, None, 6, 6, BLOCK_SIZE=2)
    tables = causal.kv_num_blocks, causal.kv_indices, causal.full_kv_num_blocks, causal.full_kv_indices
    again = ours.BlockMask.from_kv_blocks(*tables, 2, lambda b, h, q, k: q >= k)
    q, k, v = (genesis.tensor(x) for x in (QUERY, KEY, VALUE))
    want = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(ours.flex_attention(q, k, v, block_mask=again).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_heads_that_share_keys_and_compiled_calls():
    q, k, v = genesis.tensor(QUERY), genesis.tensor(KEY[:, :2]), genesis.tensor(VALUE[:, :2])

    @genesis.compile
    def attend(q, k, v):
        return ours.flex_attention(q, k, v, lambda s, b, h, i, j: s * 0.5, scale=1.0, enable_gqa=True)

    want = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), scale=0.5)
    for _ in range(3):
        np.testing.assert_allclose(attend(q, k, v).numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="heads"):
        ours.flex_attention(q, k, v)
    with pytest.raises(ValueError, match="block_mask"):
        ours.flex_attention(q, q, q, block_mask=ours.create_block_mask(ours.noop_mask, None, None, 3, 3))
    with pytest.raises(NotImplementedError):
        ours.flex_attention(q[0], k[0], v[0])


# ---- attention as a function ----
@pytest.mark.parametrize("settings", [
    {}, {"bias": False, "add_zero_attn": True}, {"add_bias_kv": True}, {"kdim": 6, "vdim": 10},
])
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_of_several_heads(settings, need_weights):
    layer = torch.nn.MultiheadAttention(8, 2, **settings)
    q, k, v = (RANDOM.normal(size=(n, 3, e)).astype(np.float32) for n, e in (
        (4, 8), (5, settings.get("kdim", 8)), (5, settings.get("vdim", 8))))
    padding, mask = RANDOM.random((3, 5)) < 0.3, np.float32(RANDOM.normal(size=(4, 5)))
    padding[:, 0] = False

    def given(lib):
        parameters = {name: lib.tensor(p.detach().numpy()) for name, p in layer.named_parameters()}
        args = [lib.tensor(q), lib.tensor(k), lib.tensor(v), 8, 2]
        args += [parameters.get(name) for name in ("in_proj_weight", "in_proj_bias", "bias_k", "bias_v")]
        args += [settings.get("add_zero_attn", False), 0.0, parameters["out_proj.weight"], parameters.get("out_proj.bias")]
        separate = {f"{x}_proj_weight": parameters.get(f"{x}_proj_weight") for x in "qkv"}
        return args, {"key_padding_mask": lib.tensor(padding), "attn_mask": lib.tensor(mask), "need_weights": need_weights,
                      "use_separate_proj_weight": "kdim" in settings, **separate}

    found = []
    for lib in (genesis, torch):
        args, keywords = given(lib)
        if lib is torch:  # its two masks must be of one kind
            keywords["key_padding_mask"] = torch.zeros(3, 5).masked_fill(keywords["key_padding_mask"], -float("inf"))
        found.append(lib.nn.functional.multi_head_attention_forward(*args, **keywords))
    (output, weights), (want, wanted) = found
    np.testing.assert_allclose(output.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
    assert (weights is None) == (wanted is None)
    if weights is not None:
        np.testing.assert_allclose(weights.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="want 9"):
        F.multi_head_attention_forward(*[*args_of(genesis, given)[:3], 9, *args_of(genesis, given)[4:]])


def args_of(lib, given):
    return given(lib)[0]


# ---- convolutions ----
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_gradients_of_convolutions(axes):
    x, w = RANDOM.normal(size=(2, 4, *[6] * axes)), RANDOM.normal(size=(6, 2, *[3] * axes))
    settings = (2, 1, 1, 2)
    seed = RANDOM.normal(size=getattr(torch.nn.functional, f"conv{axes}d")(
        torch.tensor(x), torch.tensor(w), None, *settings).shape)
    for name, args in ((f"conv{axes}d_input", lambda lib: (x.shape, lib.tensor(w))),
                       (f"conv{axes}d_weight", lambda lib: (lib.tensor(x), w.shape))):
        have, want = (getattr(lib.nn.grad, name)(*args(lib), lib.tensor(seed), *settings) for lib in (genesis, torch))
        np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-6, atol=1e-9)


def test_convolution_over_time_first():
    x, w, b = (np.float32(RANDOM.normal(size=shape)) for shape in ((5, 2, 3), (3, 3, 4), (4,)))
    have, want = (lib.nn.functional.conv_tbc(*[lib.tensor(t) for t in (x, w, b)], 1) for lib in (genesis, torch))
    np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("a, b, offs", [
    ((3, 4, 5), (3, 5, 2), None), ((7, 5), (3, 5, 2), [2, 2, 7]), ((3, 4, 5), (5, 6), [1, 3, 6]), ((4, 7), (7, 2), [2, 5, 7]),
])
def test_products_of_groups(a, b, offs):
    x, y = RANDOM.normal(size=a), RANDOM.normal(size=b)
    have = F.grouped_mm(genesis.tensor(x), genesis.tensor(y), offs=None if offs is None else genesis.tensor(offs)).numpy()
    if offs is None:
        return np.testing.assert_allclose(have, x @ y)
    for group, (start, end) in enumerate(zip([0, *offs], offs, strict=False)):
        if len(a) == len(b):
            part, want = have[group], x[:, start:end] @ y[start:end]
        elif len(a) == 2:
            part, want = have[start:end], x[start:end] @ y[group]
        else:
            part, want = have[:, start:end], x[group] @ y[:, start:end]
        np.testing.assert_allclose(part, want)
    with pytest.raises(ValueError, match="offs"):
        F.grouped_mm(genesis.tensor(x), genesis.tensor(y))
