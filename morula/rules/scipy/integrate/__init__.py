"""The rules of scipy.integrate.

nodes         points and weights of quadratures
quad          integrals of functions: quad, nquad, quad_vec, …
equations     ordinary differential equations: odeint, solve_ivp by LSODA
"""

from morula.rules.scipy.integrate import equations, nodes, quad

__all__ = ["equations", "nodes", "quad"]
