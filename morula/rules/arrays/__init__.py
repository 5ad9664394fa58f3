"""The rules of NumPy's arrays and scalars.

types            the unions of types that rules dispatch on
traits           spaces, units and gradients of arrays and scalars
structural       cotangents that are zero where a branch was not taken
broadcasting     sums over broadcast axes, and their transposes
arithmetic       + - * / ** % and the ufuncs behind them
elementwise      the other ufuncs, where, clip, parts of complex numbers
reductions       sum, mean, prod, var, max, cumsum, …
products         matmul, dot, tensordot, …
einsum           einsum
quantiles        median, quantile, percentile
nan              nansum, nanmean, nanvar, …
moving           delete, insert, unique, block, choose, select, …
padding          pad, in all modes
matrix_class     np.matrix; masked arrays are kept apart
draws            random numbers with parameters, permutations
flat             the entries of x.flat
index_tricks     r_, c_, mgrid, ogrid
callbacks        vectorize, apply_along_axis, piecewise, …
statistics       cov, corrcoef, histogram
polynomials      polymul, vander, …
signals          convolve, interp, gradient, trapezoid, cross, …
bodies           how Python code tells the derivative of a function
indexing         x[i], take, sort, …
shapes           reshape, transpose, roll, repeat, …
joining          concatenate, stack, append, …
result_types     what is known of results, where samples do not show it
splits           split, array_split in compiled programs
construction     array, full, linspace, astype, float, …
attributes       T, real, imag
ufunc_methods    np.add.reduce and the like; ufuncs with keywords
sequences        all of these on lists, tuples and single numbers
constants        what has no derivative
inplace          x[i] = v, x += v, out=, sort, fill, …
memory           cotangents of arrays in memory that is written to
flat             x.flat, np.nditer
memoryviews      memoryview, frombuffer, np.ndarray(buffer=)
inplace          what is refused
pushforwards     forward rules, where transposition would be dear
written          how values are written down in a module with an adjoint
"""

from morula.rules.arrays import (
    arithmetic,
    attributes,
    bodies,
    broadcasting,
    callbacks,
    constants,
    construction,
    draws,
    einsum,
    elementwise,
    flat,
    freshness,
    index_tricks,
    indexing,
    inplace,
    joining,
    matrix_class,
    memory,
    memoryviews,
    moving,
    nan,
    padding,
    polynomials,
    products,
    pushforwards,
    quantiles,
    reductions,
    result_types,
    sequences,
    shapes,
    signals,
    splits,
    statistics,
    structural,
    traits,
    types,
    ufunc_methods,
    written,
)

__all__ = [
    "arithmetic",
    "attributes",
    "bodies",
    "broadcasting",
    "callbacks",
    "constants",
    "construction",
    "draws",
    "einsum",
    "elementwise",
    "flat",
    "freshness",
    "index_tricks",
    "indexing",
    "inplace",
    "joining",
    "matrix_class",
    "memory",
    "memoryviews",
    "moving",
    "nan",
    "padding",
    "polynomials",
    "products",
    "pushforwards",
    "quantiles",
    "reductions",
    "result_types",
    "sequences",
    "shapes",
    "signals",
    "splits",
    "statistics",
    "structural",
    "traits",
    "types",
    "ufunc_methods",
    "written",
]
