"""The rules of scipy.linalg.

solvers       solve, inv, det, lstsq, Sylvester, Lyapunov, Riccati, …
factors       Cholesky, LU, LDL, QR, RQ, polar, Hessenberg
spectral      eigenvalues, singular values, Schur form
functions     expm, logm, sqrtm, …
structured    Toeplitz, circulant, banded, …
by_code       how some of them are declared
"""

from morula.rules.scipy.linalg import (
    by_code,
    factors,
    functions,
    solvers,
    spectral,
    structured,
)

__all__ = ["by_code", "factors", "functions", "solvers", "spectral", "structured"]
