"""The rules of numpy.linalg.

norms        norm, cond
matrices     solve, inv, det, slogdet, matrix_power, multi_dot, tensorsolve, tensorinv
factors      cholesky, qr
inverses     pinv, lstsq
spectral     eig, eigh, eigvals, eigvalsh, svd, svdvals
pushforwards forward rules of some
parts        what these share
"""

from morula.rules.linalg import factors, inverses, matrices, norms, parts, pushforwards, spectral

__all__ = ["factors", "inverses", "matrices", "norms", "parts", "pushforwards", "spectral"]
