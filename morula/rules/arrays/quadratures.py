"""Points and weights of numpy.polynomial, which are constant; loaded when that is first met.

Tests: tests/coverage/test_page.py
"""

from __future__ import annotations

from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from morula.core.extend import non_differentiable

non_differentiable(
    chebyshev.chebgauss, chebyshev.chebpts1, chebyshev.chebpts2, legendre.leggauss,
    hermite.hermgauss, hermite_e.hermegauss, laguerre.laggauss,
)  # fmt: skip
