"""Operations that the host computes, on a GPU: values, gradients and devices are what they are on the CPU."""

import numpy as np
import pytest
from scipy.special import eval_chebyt

import genesis
from genesis import special
from genesis.runtime.counters import stats
from genesis.tensor.handle import Tensor

THERE = genesis.device("cuda")
random = np.random.default_rng(0)


def values(*shape, low=0.5, high=2.5):
    return random.uniform(low, high, shape)


def positive_definite(n):
    a = random.normal(size=(2, n, n))
    return a @ a.swapaxes(-1, -2) + n * np.eye(n)


matrices, vectors = random.normal(size=(2, 3, 3)) + 3 * np.eye(3), values(2, 3)
linalg = genesis.linalg
# What is computed, of which arrays; all are differentiated by if results are floats.
CALLS = {
    "argsort": (lambda x: x.argsort(1), vectors), "sort": (lambda x: x.sort(1, descending=True), vectors),
    "topk": (lambda x: x.topk(2), vectors), "msort": (genesis.msort, vectors), "median": (lambda x: x.median(1), vectors),
    "nanmedian": (genesis.nanmedian, vectors), "kthvalue": (lambda x: x.kthvalue(2), vectors),
    "mode": (lambda x: genesis.mode(x), vectors), "quantile": (lambda x: genesis.quantile(x, 0.3), vectors),
    "nanquantile": (lambda x: genesis.nanquantile(x, 0.3, 1), vectors),
    "cumsum": (lambda x: x.cumsum(1), vectors), "cumprod": (lambda x: x.cumprod(1), vectors),
    "cummax": (lambda x: x.cummax(1), vectors), "cummin": (lambda x: x.cummin(0), vectors),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), vectors),
    "irfft": (lambda x: genesis.fft.irfft(genesis.fft.rfft(x.mT) * 2j, n=2), vectors),
    "fft": (lambda x: genesis.fft.fft(x.flip(0), norm="ortho").abs(), vectors),
    "scatter_reduce": (
        lambda x: x.scatter_reduce(1, genesis.tensor([[0, 1, 0], [2, 2, 0]], device=x.device), x * 2, "prod"), vectors),
    "searchsorted": (lambda x: genesis.searchsorted(x.sort(1).values, x), vectors),
    "bucketize": (lambda x: genesis.bucketize(x, genesis.tensor([1.0, 2.0], device=x.device, dtype=x.dtype)), vectors),
    "histc": (lambda x: genesis.histc(x, 4), vectors), "bincount": (lambda x: genesis.bincount(x.flatten().long()), vectors),
    "unique": (lambda x: genesis.unique(x.detach().round(), return_inverse=True, return_counts=True), vectors),
    "unique_consecutive": (lambda x: genesis.unique_consecutive(x.detach().round()), vectors),
    "nonzero": (lambda x: (x > 1).nonzero(), vectors), "masked_select": (lambda x: x.masked_select(x > 1), vectors),
    "where": (lambda x: genesis.where(x > 1), vectors), "boolean index": (lambda x: x[x > 1], vectors),
    "repeat_interleave": (lambda x: x.repeat_interleave(genesis.tensor([2, 1, 0], device=x.device), 1), vectors),
    "cov": (genesis.cov, vectors), "corrcoef": (genesis.corrcoef, vectors),
    "gcd": (lambda x: genesis.gcd((x * 8).long(), (x * 3).long()), vectors),
    "lcm": (lambda x: genesis.lcm((x * 8).long(), (x * 3).long()), vectors),
    "frexp": (genesis.frexp, vectors), "nextafter": (lambda x: genesis.nextafter(x.detach(), x.detach() * 2), vectors),
    # linalg
    "cholesky": (lambda a: linalg.cholesky(a), positive_definite(3)), "det": (linalg.det, matrices),
    "slogdet": (linalg.slogdet, matrices), "logdet": (lambda a: genesis.logdet(a @ a.mT), matrices),
    "inv": (linalg.inv, matrices), "pinv": (lambda a: linalg.pinv(a[:, :, :2]), matrices),
    "solve": (linalg.solve, matrices, values(2, 3, 2)),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], matrices, values(2, 3, 2)),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), matrices, values(2, 3, 2)),
    "qr": (linalg.qr, matrices), "eigh": (lambda a: linalg.eigh(a)[0], positive_definite(3)),
    "eigvalsh": (linalg.eigvalsh, positive_definite(3)), "svdvals": (linalg.svdvals, matrices),
    "svd": (lambda a: linalg.svd(a, full_matrices=False)[1], matrices), "cond": (linalg.cond, matrices),
    "matrix_exp": (linalg.matrix_exp, matrices / 4), "matrix_power": (lambda a: linalg.matrix_power(a, -2), matrices),
    "matrix_rank": (linalg.matrix_rank, matrices),
    "multi_dot": (
        lambda a, b: linalg.multi_dot([a[0], b[0], a[1]]), matrices, matrices),
    "tensorinv": (lambda a: linalg.tensorinv(a[0].reshape(3, 1, 3), 2), matrices),
    "tensorsolve": (lambda a, b: linalg.tensorsolve(a[0], b[0]), matrices, vectors),
    # special
    "lgamma": (genesis.lgamma, vectors), "mvlgamma": (lambda x: genesis.mvlgamma(x + 2, 2), vectors),
    "digamma": (genesis.digamma, vectors), "polygamma": (lambda x: genesis.polygamma(1, x), vectors),
    "erfinv": (lambda x: genesis.erfinv(x / 4), vectors), "ndtri": (lambda x: special.ndtri(x / 4), vectors),
    **{name: (getattr(special, name), vectors) for name in (
        "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "erfcx", "i0", "i0e", "i1", "i1e", "log_ndtr", "modified_bessel_i0",
        "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1", "entr", "ndtr")},
    "gammainc": (lambda x: special.gammainc(genesis.tensor(1.5, dtype=x.dtype, device=x.device), x), vectors),
    "gammaincc": (lambda x: special.gammaincc(genesis.tensor(1.5, dtype=x.dtype, device=x.device), x), vectors),
    "zeta": (lambda x: special.zeta(x.detach() + 1, genesis.tensor(2.0, dtype=x.dtype, device=x.device)), vectors),
}


def results_of(name, device):
    """The results of a call, as a flat list of tensors, and the gradients by its inputs of the sum of those that are floats."""
    call, *arrays = CALLS[name]
    inputs = [genesis.tensor(x, device=device, requires_grad=True) for x in arrays]
    found = call(*inputs)
    found = [found] if isinstance(found, Tensor) else [*found]
    floats = [x for x in found if x.requires_grad]
    gradients = []
    if floats:
        sum([(x * x).sum() for x in floats]).backward()
        gradients = [x.grad for x in inputs]
    return found, gradients


@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_lie_where_the_inputs_do_and_are_the_cpus(name):
    found, gradients = results_of(name, THERE)
    expected, others = results_of(name, "cpu")
    assert len(found) == len(expected) and len(gradients) == len(others)
    for ours, theirs in zip([*found, *gradients], [*expected, *others], strict=True):
        assert ours.device == THERE and ours.dtype is theirs.dtype
        np.testing.assert_allclose(
            ours.detach().cpu().numpy(), theirs.detach().numpy(), 1e-9, 1e-9, err_msg=name)


def test_a_matrix_that_has_no_inverse_is_told_of_at_its_line_and_loses_what_depends_on_it():
    x = genesis.zeros(2, 2, device=THERE)
    inverse, sound = linalg.inv(x), x + 1
    with pytest.raises(genesis.linalg.LinAlgError, match=r"test_host_operations\.py"):
        inverse.tolist()
    assert sound.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(RuntimeError, match="was lost"):
        inverse.tolist()


def test_what_the_host_computes_parts_a_program_into_graphs_and_says_so():
    @genesis.compile
    def step(x):
        return genesis.special.chebyshev_polynomial_t(x * 2 + 1, x + 1).square().sum(1)

    before = stats()
    for number in range(5):
        x = genesis.full((2, 3), float(number), device=THERE)
        expected = 3 * np.square([eval_chebyt(number + 1, 2.0 * number + 1)] * 2)
        np.testing.assert_allclose(step(x).cpu().numpy(), expected, 1e-5, 1e-5)
    after = stats()
    assert after["graphs_captured"] > before["graphs_captured"] and after["graphs_refused"] == before["graphs_refused"]
    explanation = genesis.debug.explain(step, x)
    assert not explanation.refusals and explanation.replays == 4
    (split,) = explanation.programs[0].cost.splits
    assert "chebyshev_polynomial_t (line" in split and "is computed by the host" in split and split in str(explanation)
