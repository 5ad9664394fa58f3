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
"""

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
    "waves",
]
