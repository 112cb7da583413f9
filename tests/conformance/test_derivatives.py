"""What the derivatives of PyTorch's operator database showed to be wrong, beside torch or what is known."""

import math

import numpy as np
import pytest
import torch

import genesis
from tests.conformance.test_found_on_the_way import both
from tests.tolerances import assert_close


def gradient(function):
    def found(library, *values):
        return library.autograd.grad(function(library, *values).sum(), values)

    return found


def second(function):
    """The gradients of a weighted sum of the first ones."""
    def found(library, x):
        y = function(library, x).reshape(-1)
        (slope,) = library.autograd.grad((y * (library.arange(len(y)) + 1)).sum(), x, create_graph=True)
        slope = slope.reshape(-1)
        return library.autograd.grad((slope * (library.arange(len(slope)) + 1) ** 2).sum(), x)

    return found


def agree(function, *values):
    for ours, theirs in zip(*both(function, *values), strict=True):
        assert_close(ours, theirs)


def test_index_fill_counts_a_position_once():
    def filled(library, x, value):
        return library.index_fill(x, 0, library.tensor([0, 0, 2]), value)

    agree(gradient(filled), [1.0, 2.0, 3.0], 5.0)


def test_as_strided_of_a_view_leads_on_to_the_views_elements():
    def again(library, x):
        return (x * 2)[1:4].as_strided((2, 2), (1, 2), 0) ** 2

    agree(gradient(again), [1.0, 2.0, 3.0, 4.0, 5.0])


def test_as_strided_scatter_goes_by_the_storage():
    for part, offset in ((slice(1, 4), 0), (slice(1, 4), 2), (slice(1, 4), None), (slice(0, 6, 2), 0), (slice(0, 6, 2), 1)):
        ours, theirs = [library.as_strided_scatter(library.arange(6.0)[part], library.ones(2) * 9, (2,), (1,), offset)
                        for library in (genesis, torch)]
        assert ours.tolist() == theirs.tolist()
    with pytest.raises(ValueError, match="do not lie over each other"):
        genesis.as_strided_scatter(genesis.ones(1).expand(3), genesis.ones(1), (1,), (1,))


def test_statistics_of_native_norms_have_gradients_where_torchs_have():
    found = []
    for library in (genesis, torch):
        x = library.ones(2, 3, requires_grad=True)
        found.append([[y.requires_grad for y in results] for results in (
            library.native_layer_norm(x, (3,), None, None, 0.1),
            library.native_group_norm(x.unsqueeze(-1), None, None, 2, 3, 1, 3, 0.1),
            library.native_batch_norm(x, None, None, None, None, True, 0.1, 0.1),
        )])
    assert found[0] == found[1]


@pytest.mark.parametrize("order", [0.5, -0.5, -2.0, 1.5])
def test_norms_have_slope_zero_at_zero(order):
    agree(gradient(lambda library, x: library.linalg.vector_norm(x, order)), [0.0, 0.0, 0.0])
    agree(gradient(lambda library, x: library.linalg.vector_norm(x, order)), [0.0, 2.0, -1.0])


@pytest.mark.parametrize("values", [[2.0, 3.0, 0.5], [0.0, 2.0, 3.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
def test_scattered_products_are_derived_twice_at_zeros(values):
    def scattered(library, x):
        ones, index = library.ones(1, dtype=library.float64), library.zeros(3, dtype=library.int64)
        return library.scatter_reduce(ones, 0, index, x, "prod")

    def product(library, x):
        return x.prod(0, keepdim=True)

    x = genesis.tensor(values, dtype=genesis.float64, requires_grad=True)
    y = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    assert_close(second(scattered)(genesis, x)[0], second(product)(torch, y)[0])


def test_sinc_is_curved_at_zero():
    (curve,) = second(lambda library, x: library.sinc(x))(genesis, genesis.zeros(1, dtype=genesis.float64, requires_grad=True))
    assert curve.item() == pytest.approx(-(math.pi**2) / 3)
    ours, theirs = both(gradient(lambda library, x: library.sinc(x)), [0.0, float("inf"), 0.5])
    assert_close(ours[0], theirs[0])


def test_second_derivatives_of_large_exponentials_keep_their_digits():
    a = np.random.default_rng(0).uniform(-1, 1, (5, 5)) * 9

    def squared(library, x):
        return library.linalg.matrix_exp(x) ** 2

    ours, theirs = [second(squared)(library, library.tensor(a, requires_grad=True))[0].detach().numpy()
                    for library in (genesis, torch)]
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(theirs).max()


def test_entr_falls_without_end_at_zero():
    agree(gradient(lambda library, x: library.special.entr(x)), [0.0, -1.0, 0.5, float("inf"), float("nan")])


def test_the_variance_of_nothing_does_not_move():
    x = genesis.zeros(0)
    value, change = genesis.func.jvp(lambda t: t.var(), (x,), (x,))
    assert math.isnan(value.item()) and change.item() == 0


def test_covariances_take_the_dtype_of_observations_and_weights():
    x = genesis.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=genesis.float16)
    assert genesis.cov(x, aweights=genesis.ones(2)).dtype is genesis.float32
    assert genesis.cov(x, fweights=genesis.ones(2, dtype=genesis.int64)).dtype is genesis.float16


@pytest.mark.parametrize("eager", [False, True])
def test_negative_powers_of_integers(eager):
    def powers(library):
        return [(base ** library.tensor([-3, -2, 0, 3])).tolist() for base in (2, -1, 1, -2)]

    if eager:
        with genesis.eager():
            assert powers(genesis) == powers(torch)
    else:
        assert powers(genesis) == powers(torch)


def test_numbers_beside_products_of_integers_are_truncated():
    for library in (genesis, torch):
        a = library.ones(2, 2, dtype=library.uint8)
        assert library.addmm(a, a, a, alpha=1.6, beta=2.6).tolist() == [[4, 4], [4, 4]]
    with pytest.raises(TypeError, match="want integers"):
        genesis.addr(genesis.ones(2, 2, dtype=genesis.int64), genesis.arange(2), genesis.arange(2), alpha=1.5)


def test_least_squares_give_residuals_as_their_driver_does():
    a, b = np.random.default_rng(0).standard_normal((2, 4, 3))
    for driver in ("gels", "gelsy", "gelsd", "gelss", None):
        ours, theirs = [library.linalg.lstsq(library.tensor(a), library.tensor(b), driver=driver)
                        for library in (genesis, torch)]
        assert ours.residuals.shape == theirs.residuals.shape
    ours = genesis.linalg.lstsq(genesis.tensor(a, requires_grad=True), genesis.tensor(b), driver="gelsd")
    assert not ours.singular_values.requires_grad


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(8, 5), (5, 9), (3, 3)])
def test_images_of_bytes_are_resampled_and_rounded(size, corners):
    image = np.random.default_rng(1).integers(0, 256, (1, 2, 5, 7)).astype("uint8")
    for mode in ("bilinear", "bicubic"):
        ours, theirs = [library.nn.functional.interpolate(library.tensor(image), size, mode=mode, align_corners=corners)
                        for library in (genesis, torch)]
        assert ours.dtype is genesis.uint8
        assert (ours.numpy() == theirs.numpy()).all()


def test_images_of_bytes_at_scales_and_as_means_have_torchs_rounding():
    rng = np.random.default_rng(0)
    with genesis.eager():
        for number in range(40):
            image = rng.integers(0, 256, (1, 3, *rng.integers(1, 18, 2))).astype("uint8")
            how = {"mode": ("bilinear", "bicubic")[number % 2], "antialias": number % 4 > 1}
            how |= {"scale_factor": (2.5, 1.7)} if number % 3 == 1 else {"size": tuple(rng.integers(2, 26, 2).tolist())}
            ours, theirs = [library.nn.functional.interpolate(library.tensor(image), **how) for library in (genesis, torch)]
            assert (ours.numpy() == theirs.numpy()).all(), how


def test_results_of_small_integers_take_the_dtype_of_torchs():
    small = [200, 100]
    for ours, theirs in (
        [library.unravel_index(library.tensor(small, dtype=library.uint8), (40, 40))[0] for library in (genesis, torch)],
        [library.masked.cumsum(library.tensor(small, dtype=library.uint8), 0) for library in (genesis, torch)],
        [library.masked.logsumexp(library.tensor(small, dtype=library.uint8), 0) for library in (genesis, torch)],
        [library.tensor(True).sum_to_size(()) for library in (genesis, torch)],
    ):
        assert ours.tolist() == theirs.tolist()
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")


@pytest.mark.parametrize("count", [
    lambda library, x: library.mode(x, 0).values, lambda library, x: library.histc(x, 3),
    lambda library, x: library.histc(x, 3, 0, 2),
    lambda library, x: library.take(x, x[1].long()), lambda library, x: library.hash_tensor(x, 0),
    lambda library, x: library.nonzero_static(x, size=2), lambda library, x: library.linspace(x[0], x[1], 3),
    lambda library, x: library.unravel_index(x.long(), (2, 2))[0],
])
def test_counts_of_a_known_size_are_made_for_all_examples_at_once(count):
    rows = [[0.0, 1.0, 1.0, 2.0], [3.0, 0.0, 0.0, 3.0]]
    found = genesis.vmap(lambda x: count(genesis, x))(genesis.tensor(rows))
    assert found.tolist() == [count(torch, torch.tensor(row)).tolist() for row in rows]


def test_histograms_of_a_batch_and_their_edges():
    rows = genesis.tensor([[0.0, 1.0, 1.0, 2.0], [3.0, 0.0, 0.0, 3.0]])
    counts, edges = genesis.vmap(lambda x: tuple(genesis.histogram(x, 2, weight=x)))(rows)
    assert (counts.tolist(), edges.tolist()) == ([[0, 4], [0, 6]], [[0, 1, 2], [0, 1.5, 3]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_16_bits_is_as_near_to_float64_as_torchs(dtype, causal):
    given = [torch.from_numpy(x).to(getattr(torch, dtype)) for x in np.random.default_rng(0).standard_normal((3, 2, 4, 64, 32))]
    attend = torch.nn.functional.scaled_dot_product_attention
    want = attend(*[x.double() for x in given], is_causal=causal)
    theirs = (attend(*given, is_causal=causal).double() - want).abs().mean().item()
    own = [genesis.tensor(x.float().numpy()).to(getattr(genesis, dtype)) for x in given]
    ours = genesis.nn.functional.scaled_dot_product_attention(*own, is_causal=causal)
    assert (ours.double() - genesis.tensor(want.numpy())).abs().mean().item() < 1.5 * theirs


def test_windows_of_16_bits_are_summed_before_they_are_rounded():
    x, weight = [torch.from_numpy(a).to(torch.bfloat16) * 9 for a in np.random.default_rng(0).standard_normal((2, 3, 3, 6, 6))]
    want = torch.nn.functional.conv_transpose2d(x.double(), weight.double())
    own = [genesis.tensor(a.float().numpy()).to(genesis.bfloat16) for a in (x, weight)]
    found = genesis.nn.functional.conv_transpose2d(*own).double().numpy()
    np.testing.assert_allclose(found, want.numpy(), rtol=2**-8, atol=1e-3)


@pytest.mark.parametrize("tolerances", [
    {"rtol": [0.5, 1e-9, 0.2]}, {"atol": [0.5, 1e-9, 0.0]}, {"atol": [0.5, 1e-9, 0.2], "rtol": [0.1, 0.2, 0.3]}, {"atol": 0.0},
    {"atol": 0.3, "rtol": 0.2},
])
def test_each_matrix_may_have_its_tolerance(tolerances):
    a = np.random.default_rng(0).standard_normal((3, 3, 3)) * [[[1]], [[1e-3]], [[1]]]
    a[2] = np.diag([1, 1e-3, 1e-9])
    found = []
    for library in (genesis, torch):
        given = {name: library.tensor(v, dtype=library.float64) if isinstance(v, list) else v for name, v in tolerances.items()}
        x = library.tensor(a)
        found.append((library.linalg.matrix_rank(x, **given), library.linalg.pinv(x, **given)))
    assert found[0][0].tolist() == found[1][0].tolist()
    assert_close(found[0][1], found[1][1])


def test_sigmoids_of_complex_numbers_without_kernels():
    with genesis.eager():
        ours = genesis.sigmoid(genesis.tensor([1 + 2j, -0.5j]))
    assert_close(ours, torch.sigmoid(torch.tensor([1 + 2j, -0.5j])))
