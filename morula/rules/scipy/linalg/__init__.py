"""The rules of scipy.linalg.

solvers       solve, inv, det, lstsq, Sylvester, Lyapunov, Riccati, …
factors       Cholesky, LU, LDL, QR, RQ, polar, Hessenberg
spectral      eigenvalues, singular values, Schur form
functions     expm, logm, sqrtm, …
structured    Toeplitz, circulant, banded, …
pushforwards  forward rules of solvers and Cholesky's factor
routines      BLAS and LAPACK by their names
stacks        of operands, where a rule tells of one
by_code       how some of them are declared
"""

from scipy import linalg

from morula.core.extend import new_containers, partial_functions, stands_in, type_stable
from morula.rules.arrays.freshness import with_units
from morula.rules.arrays.sequences import takes_array_likes
from morula.rules.scipy.linalg import (
    by_code,
    factors,
    functions,
    pushforwards,
    routines,
    solvers,
    spectral,
    structured,
)

__all__ = [
    "by_code",
    "factors",
    "functions",
    "pushforwards",
    "routines",
    "solvers",
    "spectral",
    "structured",
]

takes_array_likes(
    (0,), linalg.inv, linalg.det, linalg.pinv, linalg.pinvh, linalg.cholesky,
    linalg.cho_factor, linalg.cholesky_banded, linalg.lu, linalg.lu_factor, linalg.ldl, linalg.qr,
    linalg.rq, linalg.polar, linalg.hessenberg, linalg.matrix_balance, linalg.svd, linalg.svdvals,
    linalg.schur, linalg.eig_banded, linalg.eigvals_banded, linalg.expm, linalg.logm, linalg.sqrtm,
    linalg.cosm, linalg.sinm, linalg.tanm, linalg.coshm, linalg.sinhm, linalg.tanhm, linalg.signm,
    linalg.funm, linalg.fractional_matrix_power,
)  # fmt: skip
takes_array_likes(
    (0, 1), linalg.solve, linalg.solve_triangular, linalg.lstsq, linalg.qr_multiply, linalg.qz,
    linalg.solve_continuous_lyapunov, linalg.solve_discrete_lyapunov, linalg.solveh_banded,
    linalg.toeplitz, linalg.expm_frechet,
    linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals, linalg.eigh_tridiagonal,
    linalg.eigvalsh_tridiagonal,
)  # fmt: skip
takes_array_likes(
    (1,), linalg.cho_solve, linalg.lu_solve, linalg.cho_solve_banded, linalg.solve_toeplitz,
    linalg.matmul_toeplitz,
)  # fmt: skip
takes_array_likes((1, 2), linalg.solve_banded)
takes_array_likes((0, 1, 2), linalg.solve_sylvester)
takes_array_likes(
    (0, 1, 2, 3, 4, 5), linalg.solve_continuous_are, linalg.solve_discrete_are
)  # fmt: skip

# Of stacks of matrices these give lists.
new_containers(
    linalg.cho_factor, linalg.eig, linalg.eig_banded, linalg.eigh, linalg.eigh_tridiagonal,
    linalg.expm_frechet, linalg.hessenberg, linalg.ldl, linalg.lstsq, linalg.lu_factor,
    linalg.matrix_balance, linalg.orthogonal_procrustes, linalg.pinv, linalg.pinvh, linalg.polar,
    linalg.qr, linalg.qr_multiply, linalg.qz, linalg.rq, linalg.schur, linalg.svd,
)  # fmt: skip

# The types of the arguments decide those of the results, but for functions that may turn complex.
# lu_solve is none of them: pivots of a sample would lead it out of the memory of its matrix.
STABLE = (
    linalg.solve, linalg.inv, linalg.det, linalg.cholesky, linalg.cho_factor, linalg.cho_solve,
    linalg.solve_triangular, linalg.lu, linalg.lu_factor, linalg.qr, linalg.eigh,
    linalg.eigvalsh, linalg.svd, linalg.svdvals, linalg.expm, linalg.norm, linalg.pinv, linalg.pinvh,
    linalg.block_diag, linalg.toeplitz, linalg.circulant, linalg.solve_banded, linalg.solve_toeplitz,
    linalg.solve_sylvester, linalg.solve_continuous_lyapunov, linalg.solve_discrete_lyapunov,
)  # fmt: skip
type_stable(*STABLE)
partial_functions(
    linalg.solve, linalg.inv, linalg.cholesky, linalg.cho_factor, linalg.solve_triangular,
    linalg.solve_banded, linalg.solve_toeplitz,
    of_arrays=True,
)  # fmt: skip
stands_in(*STABLE)(with_units)
