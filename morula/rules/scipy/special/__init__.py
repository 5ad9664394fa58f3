"""The rules of scipy.special.

families           how they are declared
elementary         logarithms, entropies, Box and Cox, losses
error_functions    error functions, normal distribution, logistic function
gammas             gamma, digamma, zeta, beta, binomials
incomplete         incomplete gamma and beta functions, in all arguments
distributions      distribution functions and their inverses
bessel             Bessel, Airy, Kelvin, Struve functions
elliptic           elliptic integrals and functions
polynomials        orthogonal polynomials, hypergeometric and Legendre functions
integrals          exponential integrals, Lambert's function, Kolmogorov's statistics
waves              Mathieu, parabolic cylinder, spheroidal functions
softmax            logsumexp, softmax
statistics         what scipy.stats calls by private names
"""

import numpy as np
from scipy import special

from morula.core.extend import find_rrule
from morula.rules.arrays.sequences import (
    take_two_sequences,
    takes_array_likes,
    takes_sequences,
)
from morula.rules.scipy.special import (
    bessel,
    distributions,
    elementary,
    elliptic,
    error_functions,
    families,
    gammas,
    incomplete,
    integrals,
    polynomials,
    softmax,
    statistics,
    waves,
)

__all__ = [
    "bessel",
    "distributions",
    "elementary",
    "elliptic",
    "error_functions",
    "families",
    "gammas",
    "incomplete",
    "integrals",
    "polynomials",
    "softmax",
    "statistics",
    "waves",
]


def _of_sequences():
    """Functions of one and two arguments take lists and tuples."""
    number = np.ones(1)
    for name in dir(special):
        fn = getattr(special, name)
        if not isinstance(fn, np.ufunc) or find_rrule(fn, (number,) * fn.nin) is None:
            continue
        if fn.nin == 1:
            takes_sequences(fn)
        elif fn.nin == 2:
            take_two_sequences(fn)


_of_sequences()
takes_array_likes((0,), special.multigammaln, special.lambertw, special.factorial)
takes_array_likes(
    (0, 1), special.zeta, special.polygamma, special.spherical_jn, special.spherical_yn,
    special.spherical_in, special.spherical_kn, special.jvp, special.yvp, special.ivp, special.kvp,
    special.h1vp, special.h2vp, special.comb, special.perm, special.diric,
)  # fmt: skip
