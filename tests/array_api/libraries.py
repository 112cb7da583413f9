"""SciPy, scikit-learn and einops on tensors: each call gives a tensor, with the values that it has for NumPy's arrays.

A program of its own, for SciPy reads SCIPY_ARRAY_API when it is imported.
"""

import warnings

import einops.array_api
import numpy as np
import scipy.integrate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, naive_bayes, preprocessing
from sklearn.metrics import pairwise

import genesis

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((40, 4)), rng.standard_normal((40, 4))
POSITIVE = abs(X) + 0.1
TARGETS, LABELS = X @ [1.0, 2.0, 3.0, 4.0], (X[:, 0] > 0).astype(np.int64)
stats, special = scipy.stats, scipy.special

CALLS = {
    **{f"stats.{name}": (getattr(stats, name), X) for name in (
        "zscore", "skew", "kurtosis", "sem", "moment", "variation", "describe", "tmean", "tvar", "tmin", "tmax", "tstd",
        "kstat")},
    **{f"stats.{name}": (getattr(stats, name), POSITIVE) for name in (
        "gmean", "hmean", "entropy", "gzscore", "circmean", "circstd")},
    "stats.ttest_ind": (lambda x, y: stats.ttest_ind(x, y).statistic, X, Y),
    "stats.pearsonr": (lambda x, y: stats.pearsonr(x, y).statistic, TARGETS, X[:, 0].copy()),
    "stats.normaltest": (lambda x: stats.normaltest(x).pvalue, X),
    **{f"special.{name}": (getattr(special, name), POSITIVE) for name in (
        "logsumexp", "softmax", "log_softmax", "gammaln", "erf", "erfc", "expit", "entr", "log_ndtr", "i0", "i1e", "digamma")},
    "special.xlogy": (special.xlogy, POSITIVE, POSITIVE),
    "signal.detrend": (scipy.signal.detrend, X), "integrate.trapezoid": (scipy.integrate.trapezoid, X),
    "ndimage.gaussian_filter": (lambda x: scipy.ndimage.gaussian_filter(x, 1.0), X),
    **{f"preprocessing.{name}": (getattr(preprocessing, name)().fit_transform, X) for name in (
        "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer")},
    "PCA": (lambda x: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x)), X),
    "Ridge": (lambda x, y: linear_model.Ridge(solver="svd").fit(x, y).predict(x), X, TARGETS),
    "LinearDiscriminantAnalysis": (
        lambda x, y: discriminant_analysis.LinearDiscriminantAnalysis().fit(x, y).predict(x), X, LABELS),
    "GaussianNB": (lambda x, y: naive_bayes.GaussianNB().fit(x, y).predict(x), X, LABELS),
    "confusion_matrix": (metrics.confusion_matrix, LABELS, 1 - LABELS),
    **{f"pairwise.{name}": (getattr(pairwise, name), POSITIVE, Y**2) for name in (
        "cosine_similarity", "euclidean_distances", "rbf_kernel", "polynomial_kernel", "chi2_kernel")},
    "einops.rearrange": (lambda x: einops.array_api.rearrange(x, "(a b) c -> b (c a)", a=8), X),
    "einops.reduce": (lambda x: einops.array_api.reduce(x, "(a b) c -> a c", "mean", a=8), X),
    "einops.repeat": (lambda x: einops.array_api.repeat(x, "a c -> a (c r)", r=3), X),
}
SCORES = ("mean_squared_error", "mean_absolute_error", "r2_score", "max_error")


def compared(result, expected):
    if isinstance(expected, tuple):
        for mine, other in zip(result, expected, strict=True):
            compared(mine, other)
        return
    if isinstance(expected, np.ndarray | np.generic):
        assert isinstance(result, genesis.Tensor), type(result)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6, atol=1e-9)


if __name__ == "__main__":
    sklearn.set_config(array_api_dispatch=True)
    warnings.simplefilter("ignore")
    for name, (function, *arrays) in CALLS.items():
        try:
            compared(function(*[genesis.tensor(x) for x in arrays]), function(*arrays))
        except Exception as problem:
            print(f"{name}: {type(problem).__name__} {problem}")
    for name in SCORES:
        score = getattr(metrics, name)
        if abs(score(genesis.tensor(TARGETS), genesis.tensor(TARGETS + 0.5)) - score(TARGETS, TARGETS + 0.5)) > 1e-9:
            print(name)
    print(len(CALLS) + len(SCORES), "calls")
