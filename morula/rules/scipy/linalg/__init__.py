"""The rules of scipy.linalg.

solvers       solve, inv, det, lstsq, Sylvester, Lyapunov, Riccati, …
factors       Cholesky, LU, LDL, QR, RQ, polar, Hessenberg
spectral      eigenvalues, singular values, Schur form
functions     expm, logm, sqrtm, …
structured    Toeplitz, circulant, banded, …
by_code       how some of them are declared
"""

from scipy import linalg

from morula.core.extend import new_containers
from morula.rules.scipy.linalg import (
    by_code,
    factors,
    functions,
    solvers,
    spectral,
    structured,
)

__all__ = ["by_code", "factors", "functions", "solvers", "spectral", "structured"]

# Of stacks of matrices these give lists.
new_containers(
    linalg.cho_factor, linalg.eig, linalg.eig_banded, linalg.eigh, linalg.eigh_tridiagonal,
    linalg.expm_frechet, linalg.hessenberg, linalg.ldl, linalg.lstsq, linalg.lu_factor,
    linalg.matrix_balance, linalg.orthogonal_procrustes, linalg.pinv, linalg.pinvh, linalg.polar,
    linalg.qr, linalg.qr_multiply, linalg.qz, linalg.rq, linalg.schur, linalg.svd,
)  # fmt: skip
