"""The rules of scipy.interpolate.

polynomials   piecewise polynomials: PPoly, BPoly, NdPPoly and what is made of them
bsplines      B-splines in one and in several dimensions, their fits in Python
fitpack       splines of FITPACK: values, slopes, integrals, roots
fits          curves that FITPACK fits to data
surfaces      surfaces that FITPACK fits to data
grids         data on regular grids
scattered     data at scattered points: triangulations, nearest neighbours
radial        radial basis functions
rational      poles and roots of rational interpolation
routines      where the installed SciPy has the routines that all these are for
roots         roots as functions of what they are the roots of
"""

from morula.rules.scipy.interpolate import (
    bsplines,
    fitpack,
    fits,
    grids,
    polynomials,
    radial,
    rational,
    roots,
    scattered,
    surfaces,
)

__all__ = [
    "bsplines", "fitpack", "fits", "grids", "polynomials", "radial", "rational", "roots",
    "scattered", "surfaces",
]  # fmt: skip
