"""The rules of numpy.linalg.

norms        norm
matrices     solve, inv, det, slogdet, cholesky, matrix_power
"""

from morula.rules.linalg import matrices, norms

__all__ = ["matrices", "norms"]
