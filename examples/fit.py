"""Robust regression on the diabetes data of scikit-learn: maximum likelihood, errors from the Hessian.

The progression of the disease of 442 patients, by ten measurements; the residuals are Student's t,
so that a few odd patients do not decide. Parameters are a dict, derivatives are Morula's, the
optimiser is SciPy's.

    python examples/fit.py [fit.png]

prints slopes and errors, and plots them. It needs scikit-learn and matplotlib, the extra "examples".
"""

import sys

import numpy as np
from scipy.special import gammaln
from sklearn.datasets import load_diabetes

from morula import hessian, ravel
from morula.interop.scipy import minimize

DATA = load_diabetes()
X = DATA.data / DATA.data.std(axis=0)
Y = (DATA.target - DATA.target.mean()) / DATA.target.std()


def negative_log_likelihood(params):
    scale, freedom = np.exp(params["log_scale"]), 1 + np.exp(params["log_freedom"])
    r = (Y - X @ params["slopes"] - params["offset"]) / scale
    density = (
        gammaln((freedom + 1) / 2)
        - gammaln(freedom / 2)
        - 0.5 * np.log(np.pi * freedom)
        - np.log(scale)
        - (freedom + 1) / 2 * np.log1p(r**2 / freedom)
    )
    return -np.sum(density)


def fit(method="BFGS"):
    start = {"slopes": np.zeros(10), "offset": 0.0, "log_scale": 0.0, "log_freedom": 2.0}
    found = minimize(negative_log_likelihood, start, method=method)
    vector, unravel = ravel(found.params)
    information = hessian(lambda v: negative_log_likelihood(unravel(v)), vector)
    errors = unravel(np.sqrt(np.diag(np.linalg.inv(information))))
    return found, errors


def plot(found, errors, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    params = found.params
    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.errorbar(range(10), params["slopes"], 2 * errors["slopes"], fmt="o", capsize=3)
    left.axhline(0, color="grey", lw=0.5)
    left.set_xticks(range(10), DATA.feature_names)
    left.set_title("slopes, two standard errors")
    right.plot(X @ params["slopes"] + params["offset"], Y, ".", ms=3)
    right.axline((0, 0), slope=1, color="grey", lw=0.5)
    right.set(xlabel="predicted", ylabel="measured", title="progression, standardised")
    pyplot.savefig(path, dpi=120)


if __name__ == "__main__":
    found, errors = fit()
    print(f"-log likelihood {found.fun:.3f} after {found.nfev} evaluations")
    for name, value, error in zip(
        DATA.feature_names, found.params["slopes"], errors["slopes"], strict=True
    ):
        print(f"{name:>4} {value:+.3f} ± {error:.3f}")
    plot(found, errors, sys.argv[1] if len(sys.argv) > 1 else "fit.png")
