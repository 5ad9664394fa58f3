"""np.matrix: products by *, shapes that are kept; masked arrays are never served by rules of arrays."""

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


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x * MASKED),
        lambda x: (MASKED * x).sum(),
        lambda x: np.ma.array(x, mask=[0, 1, 0]).sum(),
        lambda x: np.mean(np.ma.masked_greater(x, 1.0)),
    ],
)
def test_masked_arrays_are_right_or_refused(f, path):
    x = np.array([1.0, 2.0, 0.5])
    try:
        found = gradient(f, x)[0]
    except NotImplementedError:
        return
    steps = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(found, steps, atol=1e-6)


def test_items_and_sums_in_forward_mode():
    a = np.arange(4.0).reshape(2, 2)
    assert jvp(lambda a: np.matrix(a).sum(), (a,), (a,)) == (6.0, 6.0)
    assert jvp(lambda a: np.matrix(a)[1, 0] * 2.0, (a,), (a,)) == (4.0, 4.0)
    assert gradient(lambda a: np.matrix(a).sum(), a)[0].tolist() == [[1.0, 1.0], [1.0, 1.0]]
