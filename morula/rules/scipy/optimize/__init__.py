"""The rules of scipy.optimize: what its solvers find is defined by an equation.

solvers   root, minimize, least_squares and the like
older     the functions of one method each: fmin_bfgs, brent, broyden1, …
linear    linear programs, linear least squares within bounds, isotonic regression
"""

from morula.rules.scipy.optimize import linear, older, solvers

__all__ = ["linear", "older", "solvers"]
