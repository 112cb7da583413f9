"""Each distribution with some parameters, in both libraries."""

import numpy as np
import torch
import torch.distributions as theirs

import genesis
import genesis.distributions as ours
from tests.tolerances import to_numpy

_random = np.random.default_rng(0)


def real(*shape):
    return _random.normal(size=shape)


def positive(*shape):
    return _random.uniform(0.5, 3, shape)


def share(*shape):
    return _random.uniform(0.1, 0.9, shape)


def definite(n, *batch):
    a = real(*batch, n, n)
    return a @ np.swapaxes(a, -1, -2) + n * np.eye(n)


def lower(n, *batch):
    return np.linalg.cholesky(definite(n, *batch))


CASES: dict[str, list[dict]] = {
    "Bernoulli": [{"probs": share(3)}, {"logits": real(2, 3)}, {"probs": 0.3}],
    "Beta": [{"concentration1": positive(3), "concentration0": positive(2, 3)}, {"concentration1": 2.0, "concentration0": 1.5}],
    "Binomial": [{"total_count": 10, "probs": share(3)}, {"total_count": 4, "logits": real(2, 3)}],
    "Categorical": [{"probs": positive(4)}, {"logits": real(2, 4)}],
    "Cauchy": [{"loc": real(3), "scale": positive(2, 3)}],
    "Chi2": [{"df": positive(3) + 3}],
    "ContinuousBernoulli": [{"probs": share(3)}, {"logits": real(2, 3)}, {"probs": np.array([0.5, 0.4995, 0.2])}],
    "Dirichlet": [{"concentration": positive(3)}, {"concentration": positive(2, 3) + 1}],
    "Exponential": [{"rate": positive(3)}],
    "FisherSnedecor": [{"df1": positive(3) + 2, "df2": positive(2, 3) + 5}],
    "Gamma": [{"concentration": positive(3), "rate": positive(2, 3)}],
    "GeneralizedPareto": [
        {"loc": real(3), "scale": positive(3), "concentration": np.array([0.2, -0.3, 0.45])},
        {"loc": 0.0, "scale": 1.0, "concentration": 0.0},
    ],
    "Geometric": [{"probs": share(3)}, {"logits": real(3)}],
    "Gumbel": [{"loc": real(3), "scale": positive(2, 3)}],
    "HalfCauchy": [{"scale": positive(3)}],
    "HalfNormal": [{"scale": positive(3)}],
    "InverseGamma": [{"concentration": positive(3) + 3, "rate": positive(3)}],
    "Kumaraswamy": [{"concentration1": positive(3) + 0.6, "concentration0": positive(3) + 1}],
    "LKJCholesky": [{"dim": 3, "concentration": 1.5}, {"dim": 4, "concentration": positive(2)}],
    "Laplace": [{"loc": real(3), "scale": positive(3)}],
    "LogNormal": [{"loc": real(3), "scale": positive(3) / 3}],
    "LogisticNormal": [{"loc": real(3), "scale": positive(3)}],
    "LowRankMultivariateNormal": [
        {"loc": real(4), "cov_factor": real(4, 2), "cov_diag": positive(4)},
        {"loc": real(2, 3), "cov_factor": real(3, 1), "cov_diag": positive(3)},
    ],
    "Multinomial": [{"total_count": 6, "probs": positive(4)}, {"total_count": 3, "logits": real(2, 3)}],
    "MultivariateNormal": [
        {"loc": real(3), "covariance_matrix": definite(3)}, {"loc": real(2, 3), "scale_tril": lower(3)},
        {"loc": real(3), "precision_matrix": definite(3, 2)},
    ],
    "NegativeBinomial": [{"total_count": 5.0, "probs": share(3)}, {"total_count": positive(3), "logits": real(3)}],
    "Normal": [{"loc": real(3), "scale": positive(2, 3)}, {"loc": 0.0, "scale": 2.0}],
    "OneHotCategorical": [{"probs": positive(4)}, {"logits": real(2, 4)}],
    "OneHotCategoricalStraightThrough": [{"probs": positive(4)}],
    "Pareto": [{"scale": positive(3), "alpha": positive(3) + 2}],
    "Poisson": [{"rate": positive(3)}],
    "RelaxedBernoulli": [{"temperature": np.array(0.7), "probs": share(3)}, {"temperature": np.array(1.7), "logits": real(3)}],
    "RelaxedOneHotCategorical": [
        {"temperature": np.array(0.7), "probs": positive(3)}, {"temperature": np.array(0.7), "logits": real(2, 3)},
    ],
    "StudentT": [{"df": positive(3) + 2, "loc": real(3), "scale": positive(3)}],
    "Uniform": [{"low": real(3) - 3, "high": real(3) + 3}],
    "VonMises": [{"loc": real(3), "concentration": positive(3)}],
    "Weibull": [{"scale": positive(3), "concentration": positive(3) + 0.5}],
    "Wishart": [
        {"df": np.array([4.0, 5.0]), "covariance_matrix": definite(3)}, {"df": 4.5, "scale_tril": lower(2)},
        {"df": 6.0, "precision_matrix": definite(3)},
    ],
}
KEYS = [(name, number) for name, cases in CASES.items() for number in range(len(cases))]
# Where PyTorch computes less exactly: of I0 it has eight digits.
LOOSE = {"VonMises": 1e-7}


def both(name, parameters, dtype=np.float64):
    """The distribution of PyTorch and that of genesis."""
    def made(library, tensor):
        return getattr(library, name)(**{
            key: tensor(np.asarray(value, dtype)) if isinstance(value, np.ndarray) or (
                isinstance(value, float) and dtype is np.float64) else value
            for key, value in parameters.items()
        })

    return made(theirs, torch.tensor), made(ours, genesis.tensor)


def case(name, number, dtype=np.float64):
    return both(name, CASES[name][number], dtype)


def rounded(parameters):
    """The parameters with the digits of float32."""
    return {key: np.float64(np.float32(x)) if isinstance(x, float) else x.astype(np.float32).astype(np.float64)
            if isinstance(x, np.ndarray) else x for key, x in parameters.items()}


def same(what, wanted, found, tolerance=1e-10):
    """Values, shape and dtype of two results."""
    assert tuple(wanted.shape) == tuple(found.shape), what
    assert str(wanted.dtype).rpartition(".")[2] == str(found.dtype).rpartition(".")[2], what
    np.testing.assert_allclose(to_numpy(found), to_numpy(wanted), rtol=tolerance, atol=tolerance, err_msg=what)


def mean_of(samples):
    return to_numpy(samples).astype(np.float64).mean(0)
