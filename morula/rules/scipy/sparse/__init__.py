"""The rules of scipy.sparse and scipy.sparse.linalg.

spaces        the space of a sparse array: its own pattern
arithmetic    construction, conversion, operators, methods
functions     Kronecker products, exponential, largest entries
solvers       equations, by the implicit function
"""

from morula.rules.scipy.sparse import arithmetic, functions, solvers, spaces

__all__ = ["arithmetic", "functions", "solvers", "spaces"]
