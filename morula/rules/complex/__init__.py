"""Derivatives of complex functions.

The rules themselves follow one convention everywhere, z̄ = ∂l/∂x + i ∂l/∂y of a real l, and stand
with the functions that they are for.

wirtinger     the two derivatives of a function that need not be holomorphic
"""

from morula.rules.complex.wirtinger import wirtinger

__all__ = ["wirtinger"]
