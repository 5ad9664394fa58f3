"""SciPy's functions of lists: as of arrays, and as the lists were at the call."""

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from morula import grad
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

S = sparse.csr_array([[2.0, 0.3], [0.1, 1.5]])
PLACES = ([0, 1], [1, 0])


def squares(y):
    return np.sum(np.asarray(y) ** 2)


READS = {
    "csr rows": lambda xs: squares(sparse.csr_array([xs, [1.0, 2.0]]) @ [1.0, 2.0]),
    "csr entries": lambda xs: squares(sparse.csr_array((xs, [1, 0], [0, 1, 2])).toarray()),
    "coo": lambda xs: squares(sparse.coo_array((xs, PLACES), shape=(2, 2)).toarray()),
    "dia": lambda xs: squares(sparse.dia_array(([xs], [0]), shape=(2, 2)).toarray()),
    "diags": lambda xs: squares(sparse.diags_array([xs], offsets=[0]).toarray()),
    "product": lambda xs: squares(S @ xs),
    "product from the left": lambda xs: squares(xs @ S),
    "dot": lambda xs: squares(S.dot(xs)),
    "multiply": lambda xs: squares(S.multiply(xs).toarray()),
    "cg": lambda xs: squares(sparse_linalg.cg(S @ S.T, xs, rtol=1e-12)[0]),
    "gmres": lambda xs: squares(sparse_linalg.gmres(S, xs, rtol=1e-12)[0]),
    "spsolve": lambda xs: squares(sparse_linalg.spsolve(S, xs)),
    "block_diag": lambda xs: squares(linalg.block_diag(xs, [1.0])),
    "circulant": lambda xs: squares(linalg.circulant(xs)),
    "hankel": lambda xs: squares(linalg.hankel(xs)),
    "leslie": lambda xs: squares(linalg.leslie(xs, [0.4])),
    "fiedler": lambda xs: squares(linalg.fiedler(xs)),
    "solve_toeplitz": lambda xs: squares(linalg.solve_toeplitz(xs, [1.0, 2.0])),
    "solve_toeplitz, both": lambda xs: squares(linalg.solve_toeplitz((xs, xs), [1.0, 2.0])),
    "matmul_toeplitz": lambda xs: squares(linalg.matmul_toeplitz(xs, [1.0, 2.0])),
    "outer": lambda xs: squares(np.subtract.outer(xs, [1.0, 2.0])),
    "delete": lambda xs: squares(np.delete(xs, 1)),
    "compress": lambda xs: squares(np.compress([True, False], xs)),
    "array_split": lambda xs: squares(np.array_split(xs, 2)[0]),
}


@pytest.mark.parametrize("read", READS)
def test_lists_that_change_after_the_call(read):
    def unchanged(x):
        return READS[read]([x, 3.0 * x]) * 1.0

    def cleared(x):
        xs = [x, 3.0 * x]
        y = READS[read](xs)
        xs.clear()
        return y * 1.0

    def overwritten(x):
        xs = [x, 3.0 * x]
        y = READS[read](xs)
        xs.append(3.0)
        xs[0] = 5.0
        return y * 1.0

    expected = pytest.approx(grad(unchanged)(0.7))
    check_gradient(unchanged, 0.7, order=1)
    assert grad(cleared)(0.7) == grad(overwritten)(0.7) == expected
    with by_the_general_path():
        assert grad(cleared)(0.7) == grad(overwritten)(0.7) == expected
