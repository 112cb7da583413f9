"""Attention against torch's: values, weights and gradients, under masks of every kind."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.nn import functional as F
from tests.tolerances import assert_close

N, L, S, E, H = 2, 3, 5, 8, 2
RANDOM = np.random.default_rng(0)
CAUSAL = np.triu(np.ones((L, L), bool), 1)
PADDING = np.array([[False, False, False, True, True], [False, True, False, False, False]])


def pair(build, **settings):
    """The same module in genesis and torch, with the same random state, in float64."""
    ours, theirs = build(nn, **settings).to(genesis.float64), build(torch.nn, **settings).double()
    state = {k: RANDOM.normal(size=tuple(v.shape)) * 0.3 for k, v in theirs.state_dict().items()}
    theirs.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    ours.load_state_dict(state)
    return ours, theirs


def assert_same(ours, theirs, arrays, **options):
    """Results of a call and all gradients; arrays among the options become tensors too."""
    found = []
    for module, library in ((ours, genesis), (theirs, torch)):
        inputs = {id(a): library.tensor(a, requires_grad=True) for a in arrays}
        given = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        results = module(*[inputs[id(a)] for a in arrays], **given)
        results = [r for r in (results if isinstance(results, tuple) else (results,)) if r is not None]
        sum((r * library.arange(r.numel(), dtype=library.float64).reshape(r.shape).cos()).sum() for r in results).backward()
        gradients = [x.grad for x in inputs.values()] + [p.grad for _, p in sorted(module.named_parameters())]
        found.append([*results, *gradients])
    assert_close(*found, scale=100)


CALLS = {
    "plain": ({}, {}),
    "batch first": ({"batch_first": True}, {}),
    "without weights": ({}, {"need_weights": False}),
    "weights of every head": ({}, {"average_attn_weights": False}),
    "no bias": ({"bias": False}, {}),
    "one more key": ({"add_bias_kv": True, "add_zero_attn": True}, {"key_padding_mask": PADDING}),
    "other features": ({"kdim": 6, "vdim": 4}, {}),
    "padding": ({}, {"key_padding_mask": PADDING}),
    "padding, without weights": ({}, {"key_padding_mask": PADDING, "need_weights": False}),
    "mask": ({}, {"attn_mask": np.triu(np.ones((L, S), bool), 2)}),
    "numbers as mask": ({}, {"attn_mask": RANDOM.normal(size=(L, S)), "need_weights": False}),
    "a mask for each head": ({}, {"attn_mask": RANDOM.normal(size=(N * H, L, S)) > 1.5}),
    "both": ({}, {"attn_mask": np.triu(np.ones((L, S), bool), 3), "key_padding_mask": PADDING}),
}


@pytest.mark.parametrize("name", CALLS)
def test_multihead_attention_is_torchs(name):
    settings, options = CALLS[name]
    ours, theirs = pair(lambda m, **s: m.MultiheadAttention(E, H, **s), **settings)
    shapes = [(L, N, E), (S, N, settings.get("kdim", E)), (S, N, settings.get("vdim", E))]
    if settings.get("batch_first"):
        shapes = [(n, length, e) for length, n, e in shapes]
    assert_same(ours, theirs, [RANDOM.normal(size=s) for s in shapes], **options)


def test_attention_to_oneself_and_of_one_example():
    ours, theirs = pair(lambda m: m.MultiheadAttention(E, H))
    x = RANDOM.normal(size=(L, E))
    assert_same(ours, theirs, [x, x, x], attn_mask=CAUSAL)


def test_attention_starts_as_torchs():
    layer = nn.MultiheadAttention(64, 4)
    bound = (6 / (64 + 3 * 64)) ** 0.5
    assert 0.95 * bound < layer.in_proj_weight.abs().max().item() <= bound
    assert not layer.in_proj_bias.any() and not layer.out_proj.bias.any()
    assert [*layer.state_dict()] == [*torch.nn.MultiheadAttention(64, 4).state_dict()]


@pytest.mark.parametrize("settings", [{}, {"norm_first": True, "activation": "gelu"}, {"bias": False, "batch_first": True}])
@pytest.mark.parametrize("options", [{}, {"src_mask": CAUSAL}, {"src_key_padding_mask": PADDING[:, :L]}])
def test_an_encoder_layer_is_torchs(settings, options):
    ours, theirs = pair(lambda m: m.TransformerEncoderLayer(E, H, 12, 0.0, **settings))
    if settings.get("batch_first"):
        assert_same(ours, theirs, [RANDOM.normal(size=(N, L, E))], **options)
    else:
        assert_same(ours, theirs, [RANDOM.normal(size=(L, N, E))], **options)


def test_an_encoder_is_torchs():
    ours, theirs = pair(lambda m: m.TransformerEncoder(m.TransformerEncoderLayer(E, H, 12, 0.0), 2, m.LayerNorm(E), False))
    assert_same(ours, theirs, [RANDOM.normal(size=(L, N, E))], mask=CAUSAL, is_causal=True)
    assert ours.layers[0].linear1.weight is not ours.layers[1].linear1.weight


@pytest.mark.filterwarnings("ignore")
def test_what_an_encoder_has_at_padding_is_zero_where_torchs_is():
    aligned = np.arange(L) >= np.array([[L], [1]])
    ours, theirs = pair(lambda m: m.TransformerEncoder(
        m.TransformerEncoderLayer(E, H, 12, 0.0, batch_first=True), 2, m.LayerNorm(E)))
    x = RANDOM.normal(size=(N, L, E))

    def both(records=False, **masks):
        found = []
        for module, lib in ((ours, genesis), (theirs, torch)):
            with lib.set_grad_enabled(records):
                found.append(module.eval()(lib.tensor(x), **{name: lib.tensor(mask) for name, mask in masks.items()}).detach())
        assert_close(*[[y] for y in found], scale=100)
        return found[0]

    padded = both(src_key_padding_mask=aligned)
    assert (padded[1, 1] == ours.norm.bias).all() and both(True, src_key_padding_mask=aligned)[1, 1, 0] != padded[1, 1, 0]
    both(src_key_padding_mask=np.where(aligned, -np.inf, 0.0))
    both(src_key_padding_mask=aligned, mask=CAUSAL)
    both(src_key_padding_mask=aligned[:, ::-1].copy())
    ours.mask_check = theirs.mask_check = ours.use_nested_tensor = theirs.use_nested_tensor = False
    both(src_key_padding_mask=aligned)


@pytest.mark.parametrize(("queries", "keys"), [(70, 130), (130, 70), (300, 300)])
def test_what_a_causal_product_leaves_out_counts_in_no_derivative(queries, keys):
    """The same with a mask leaves nothing out. A penalty on gradients derives them once more."""
    arrays = [RANDOM.normal(size=(2, 3, n, 8)).astype(np.float32) for n in (queries, keys, keys)]
    mask = np.tril(np.ones((queries, keys), bool))
    found = []
    for how in ({"is_causal": True}, {"attn_mask": genesis.tensor(mask)}):
        inputs = [genesis.tensor(a, requires_grad=True) for a in arrays]
        y = F.scaled_dot_product_attention(*inputs, **how)
        gradients = genesis.autograd.grad((y**2).sum(), inputs, create_graph=True)
        sum((g**2).sum() for g in gradients).backward()
        found.append([x.numpy() for x in (y.detach(), *(g.detach() for g in gradients), *(x.grad for x in inputs))])
    for causal, masked in zip(*found, strict=True):
        np.testing.assert_allclose(causal, masked, rtol=1e-4, atol=1e-4 * np.abs(masked).max())


def test_a_query_that_sees_nothing_gets_zeros_and_sends_none():
    arrays = [RANDOM.normal(size=s) for s in ((L, E), (S, E), (S, E))]
    mask = np.ones((L, S), bool)
    mask[1] = False
    gradients = []
    for library, attend in ((genesis, F), (torch, torch.nn.functional)):
        q, k, v = (library.tensor(a, requires_grad=True) for a in arrays)
        y = attend.scaled_dot_product_attention(q, k, v, library.tensor(mask))
        (y**2).sum().backward()
        gradients.append([y, q.grad, k.grad, v.grad])
    assert_close(*gradients, scale=10)
    assert not gradients[0][0][1].any()


def test_dropout_zeroes_weights():
    genesis.manual_seed(0)
    q, k, v = genesis.zeros(1, 2, 400, 4), genesis.zeros(1, 2, 50, 4), genesis.eye(50).expand(1, 2, 50, 50)
    weights = F.scaled_dot_product_attention(q, k, v, dropout_p=0.25).numpy()
    np.testing.assert_allclose(np.unique(weights), [0, 0.02 / 0.75], rtol=1e-6)
    assert abs((weights == 0).mean() - 0.25) < 0.01
    again = F.scaled_dot_product_attention(q, k, v, dropout_p=0.25).numpy()
    assert (again != weights).any()


@pytest.mark.parametrize(("build", "message"), [
    (lambda q, k: F.scaled_dot_product_attention(q, k[..., :3], k), r"query \(2, 3, 8\), key \(2, 5, 3\)"),
    (lambda q, k: F.scaled_dot_product_attention(q, k, k, genesis.ones(3, 5), is_causal=True), "want no attn_mask beside it"),
    (lambda q, k: F.scaled_dot_product_attention(q, k, k, dropout_p=2.0), "dropout_p is a probability, got 2.0"),
    (lambda q, k: nn.MultiheadAttention(8, 3), "3 heads do not divide embed_dim 8"),
    (lambda q, k: nn.MultiheadAttention(8, 2)(q, k[0], k), r"want all with 3 axes, or 2"),
    (lambda q, k: nn.MultiheadAttention(8, 2)(q, q, q, is_causal=True), "is_causal wants the causal attn_mask"),
    (lambda q, k: nn.MultiheadAttention(8, 2)(q, q, q, attn_mask=genesis.ones(2, 3)), r"has shape \(2, 3\); want \(2, 2\)"),
    (lambda q, k: nn.TransformerEncoderLayer(8, 2, activation="tanh"), "activation must be 'relu', 'gelu' or a function"),
])
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build(genesis.ones(2, 3, 8), genesis.ones(2, 5, 8))


@pytest.mark.parametrize("lib", [genesis, torch])
def test_masks_of_integers_are_refused(lib):
    x, layer = lib.ones(2, 4, 8), lib.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    for masks in ({"src_key_padding_mask": lib.ones(2, 4, dtype=lib.uint8)}, {"src_mask": lib.ones(4, 4, dtype=lib.int64)}):
        with pytest.raises(AssertionError):
            layer(x, **masks)
    with pytest.raises(RuntimeError):
        lib.nn.functional.scaled_dot_product_attention(x, x, x, lib.ones(4, 4, dtype=lib.uint8))


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2)], ids=str)
@pytest.mark.parametrize("settings", [{}, {"is_causal": True}, {"mask": True}, {"dropout_p": 1e-30}], ids=str)
def test_results_lie_in_memory_as_queries_do_as_in_torch(order, settings):
    def run(lib):
        made = [lib.arange(336.0).reshape([(2, 3, 7, 8)[axis] for axis in order])] * 3
        q, k, v = ((x * 0.01 * (j + 1)).cos().requires_grad_() for j, x in enumerate(made))
        back = [order.index(axis) for axis in range(4)]
        given = {**settings, "attn_mask": lib.ones(7, 7)} if "mask" in settings else settings
        given = {name: value for name, value in given.items() if name != "mask"}
        y = lib.nn.functional.scaled_dot_product_attention(q.permute(back), (k * 2).permute(back), v.permute(back), **given)
        (y.transpose(1, 2).reshape(2, 7, 24) ** 2).sum().backward()
        return y, q.grad

    (ours, our_grad), (theirs, their_grad) = run(genesis), run(torch)
    assert ours.stride() == theirs.stride()
    assert_close(ours.detach(), theirs.detach().numpy())
    assert_close(our_grad, their_grad.numpy())


def test_merged_heads_may_be_viewed():
    projected = genesis.randn(2, 7, 96, requires_grad=True)
    q, k, v = (part.view(2, -1, 4, 8).transpose(1, 2) for part in projected.chunk(3, -1))
    y = genesis.nn.functional.scaled_dot_product_attention(q, k, v)
    assert y.transpose(1, 2).view(2, -1, 32).shape == (2, 7, 32)
