"""Results whose types samples do not show: such programs are compiled all the same."""

import numpy as np
import pytest

import morula

A = np.linspace(0.5, 3.0, 12).reshape(3, 4)
ORDER = np.array([2, 0, 1, 1])
PLACES = np.argsort(A * [3, 1, 2, 0.5], axis=1)
LABELS = np.array([0, 2, 2])

PROGRAMS = [
    lambda x: np.sum((A * x).reshape(2, 6) ** 2),
    lambda x: np.sum((A * x).reshape((A * x).size) ** 2),
    lambda x: np.sum((A * x).reshape(A.shape[0], 2, 2) ** 2),
    lambda x: np.sum(np.reshape(A * x, (2, -1), order="F")[0] ** 2),
    lambda x: np.sum(np.take(A * x, ORDER, axis=0) ** 2),
    lambda x: np.sum(np.take(A * x, [3, 3, 0]) ** 2),
    lambda x: np.sum((A * x).take([3, 1], 1) ** 2),
    lambda x: np.sum((A * x).take(np.array([[3, 1], [0, 0]]), axis=1)[:, 0] ** 2),
    lambda x: np.sum(np.take_along_axis(A * x, PLACES, axis=1) * A),
    lambda x: np.sum(np.insert(A @ x, 1, x[0]) ** 2),
    lambda x: np.sum(np.insert(A * x, 1, x[0], axis=1)[:, 1:] ** 2),
    lambda x: np.sum(np.delete(A @ x, 1) ** 2),
    lambda x: np.sum(np.delete(A * x, [1], axis=1) ** 2),
    lambda x: np.sum(np.pad(A * x, 1) ** 2),
    lambda x: np.sum(np.pad(A * x, ((1, 0), (0, 2)), mode="edge") ** 2),
    lambda x: np.sum(np.repeat(A * x, 2, axis=0) ** 2),
    lambda x: np.sum(np.bincount(LABELS, weights=A @ x) ** 2),
    lambda x: np.sum(np.bincount(LABELS, A @ x, 5) ** 2),
    lambda x: (A * x).item(7) * (A * x).item(1, 1),
    lambda x: np.sum((A * x) ** 2) / (A * x).size,
    lambda x: np.sum((A * x) ** 2) * (A * x).shape[1] / (A * x).ndim,
    lambda x: np.sum((A * x).real ** 2) + np.sum((A * x).imag),
    lambda x: np.sum((A * x * 1j).imag ** 2) + np.sum((A * x * 1j).real),
    lambda x: np.sum((A * x).T[1] ** 2) + np.sum((A * x).mT[0]),
    lambda x: np.sum(A * x).real ** 2,
    lambda x: float(np.sum(A * x)).real ** 2 + float(x[0]).imag,
    lambda x: np.sum(np.zeros((A * x).shape) + x),
    lambda x: np.sum(A * x) if (A * x).dtype.kind == "f" else np.sum(x),
]


@pytest.mark.parametrize("i", range(len(PROGRAMS)))
def test_gradients(i):
    f, x, h = PROGRAMS[i], np.array([0.4, 1.2, 0.7, 0.9]), 1e-6
    assert "call_from_program" not in str(morula.code_adjoint(f, x))
    value, (found,) = morula.withgradient(f, x)
    assert value == f(x)
    assert type(value) is type(f(x))
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-6)


def test_an_average_along_an_axis():
    def f(x, w):
        return np.sum(np.average(A * x, axis=1, weights=w) ** 2)

    x, w, h = np.array([0.4, 1.2, 0.7, 0.9]), np.array([1.0, 2.0, 0.5, 1.0]), 1e-6
    for i, found in enumerate(morula.gradient(f, x, w)):
        for e, entry in zip(np.eye(4), found, strict=True):
            up = f(*(v + h * e if k == i else v for k, v in enumerate((x, w))))
            down = f(*(v - h * e if k == i else v for k, v in enumerate((x, w))))
            assert entry == pytest.approx((up - down) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("correlate", [np.corrcoef, np.cov])
def test_covariances_of_arrays_of_many_shapes(correlate):
    """A program for all shapes took them for the number that they are of one variable."""

    def f(x):
        return np.sum(correlate(x) * np.arange(float(len(x) ** 2)).reshape(len(x), -1))

    for n in range(2, 9):
        x = np.random.default_rng(n).standard_normal((n, n + 1))
        v = np.cos(np.arange(float(x.size))).reshape(x.shape)
        steps = f(x + 1e-6 * v) - f(x - 1e-6 * v)
        for _ in range(2):
            np.testing.assert_allclose(np.vdot(morula.grad(f)(x), v), steps / 2e-6, rtol=1e-5)
