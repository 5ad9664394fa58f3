"""np.matrix: products by *, shapes that are kept."""

import numpy as np
import pytest

from morula import gradient, jvp
from morula.testing import check_gradient

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")
A = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0], [1.5, 0.2, -0.7]])
M = np.matrix(np.arange(9.0).reshape(3, 3) / 5)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: (np.matrix(a) * np.matrix(a)).sum(),
        lambda a: (np.matrix(a) * M * 2.0)[0, 1],
        lambda a: (M * a).sum(),
        lambda a: (a * M).sum(),
        lambda a: (a @ M).sum() + (M - a).sum() + np.sum(M + a * 2),
        lambda a: np.sum(np.multiply(M, a)),
        lambda a: np.sum(np.sin(np.matrix(a)) * M),
        lambda a: (np.matrix(a).sum(axis=0) * M).sum(),
        lambda a: (np.matrix(a).mean(1).T * M)[0, 2],
        lambda a: (np.matrix(a) ** 2).max(),
        lambda a: np.matrix(a).std(),
        lambda a: np.matrix(a)[1].A1 @ np.ones(3),
        lambda a: (np.matrix(a).T * np.matrix(a[0]).T).sum(),
        lambda a: np.asarray(np.bmat([[a, M], [M, a]]))[3, 3],
        lambda a: np.linalg.det(np.matrix(a)),
        lambda a: np.matrix(a).I.sum(),
    ],
)
def test_matrices(f, path):
    check_gradient(f, A)


def test_a_matrix_as_argument(path):
    found = gradient(lambda m: (m * m).sum(), M)[0]
    expected = np.ones((3, 3)) @ M.A.T + M.A.T @ np.ones((3, 3))
    np.testing.assert_allclose(found, expected)


W = np.cos(np.arange(9.0)).reshape(3, 3)
OF_A_MATRIX = [
    lambda m: np.sum(W * np.asarray(np.transpose(m, [1, 0]))),
    lambda m: np.sum(W * np.asarray(np.insert(m, 1, m[0], 0))[:3]),
    lambda m: np.sum(W * np.asarray(np.moveaxis(m, 0, 1))),
    lambda m: np.sum(np.asarray(np.trapezoid(m)) * W[0]),
    lambda m: np.sum(np.asarray(np.where(m > 0.4, m, 2 * m)) * W),
    lambda m: np.sum(np.asarray(np.where(m > 0.4, W, m)) * W),
    lambda m: np.sum(np.asarray(m.dot(m)) * W),
    lambda m: sum(m)[0, 1],
    lambda m: [row for row in m][2][0, 1],
    lambda m: np.sum(np.asarray(np.kron(m, m))[2:5, 1:4] * W),
    lambda m: np.sum(np.linalg.svd(m + M)[1] * W[0]),
    lambda m: np.sum(np.asarray(np.tile(m, 2))[:, 1:4] * W),
    lambda m: np.sum(np.asarray(2 * m - m.mean(0)) * W),
    lambda m: np.asarray(np.quantile(m, 0.3, axis=0)).ravel() @ W[1],
    lambda m: np.sum(np.asarray(np.gradient(m)[1]) * W),
    lambda m: np.sum(np.asarray(np.gradient(m, axis=0)) * W),
    lambda m: np.sum(np.abs(np.asarray(np.fft.fft(m, axis=0))) * W),
    lambda m: np.sum(np.abs(np.asarray(np.fft.rfft2(m))) * W[:, :2]),
    lambda m: np.sum(np.asarray(np.fft.irfft(m, 3)) * W),
    lambda m: np.sum(np.asarray(abs(m)) * W),
    lambda m: np.sum(np.asarray(np.modf(m + W / 9)[0]) * W),
    lambda m: np.sum(np.asarray(np.frexp(m + W / 9)[0]) * W),
    lambda m: np.sum(np.asarray(divmod(m + W / 9, 0.7)[1] + np.divmod(m + W / 9, M + 1)[1]) * W),
    lambda m: max((m + W / 9).flat) * sum(m.flat),
]


@pytest.mark.parametrize("f", OF_A_MATRIX)
def test_tangents_and_gradients_of_a_matrix(f, path):
    m = np.matrix(A)
    v = np.matrix(W)
    (slope,) = gradient(f, m)
    steps = f(m + 1e-6 * v) - f(m - 1e-6 * v)
    np.testing.assert_allclose(np.vdot(slope, W), steps / 2e-6, rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (m,), (v,))[1], np.vdot(slope, W))


@pytest.mark.parametrize("f", [lambda m: np.roll(m, 1)[0, 1], lambda m: np.median(m)])
def test_what_numpy_computes_of_a_matrix_in_another_way_is_refused(f):
    with pytest.raises(NotImplementedError, match=r"of a matrix .* np\.asarray"):
        gradient(f, M)


def test_items_and_sums_in_forward_mode():
    a = np.arange(4.0).reshape(2, 2)
    assert jvp(lambda a: np.matrix(a).sum(), (a,), (a,)) == (6.0, 6.0)
    assert jvp(lambda a: np.matrix(a)[1, 0] * 2.0, (a,), (a,)) == (4.0, 4.0)
    assert gradient(lambda a: np.matrix(a).sum(), a)[0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_columns_that_are_written_to_in_forward_mode():
    def f(x):
        m = np.matrix([[1.0, 2.0], [3.0, 4.0]])
        m[:, 1] = np.matrix([[x], [x * x]])
        return (m * m).sum()

    h = 1e-6
    assert jvp(f, (1.3,), (1.0,))[1] == pytest.approx((f(1.3 + h) - f(1.3 - h)) / (2 * h))
