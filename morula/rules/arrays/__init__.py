"""The rules of NumPy's arrays and scalars.

types            the unions of types that rules dispatch on
traits           spaces, units and gradients of arrays and scalars
structural       cotangents that are zero where a branch was not taken
broadcasting     sums over broadcast axes, and their transposes
arithmetic       + - * / ** % and the ufuncs behind them
elementwise      the other ufuncs, where, clip, parts of complex numbers
reductions       sum, mean, prod, var, max, cumsum, …
products         matmul, dot, einsum, …
quantiles        median, quantile, percentile
indexing         x[i], take, sort, …
shapes           reshape, transpose, concatenate, …
construction     array, full, linspace, astype, float, …
attributes       T, real, imag
ufunc_methods    np.add.reduce and the like; ufuncs with keywords
sequences        all of these on lists, tuples and single numbers
constants        what has no derivative
inplace          x[i] = v, x += v, out=, sort, fill, …
memory           cotangents of arrays in memory that is written to
flat             x.flat, np.nditer
"""

from morula.rules.arrays import (
    arithmetic,
    attributes,
    broadcasting,
    constants,
    construction,
    elementwise,
    flat,
    freshness,
    indexing,
    inplace,
    memory,
    products,
    quantiles,
    reductions,
    sequences,
    shapes,
    structural,
    traits,
    types,
    ufunc_methods,
)

__all__ = [
    "arithmetic",
    "attributes",
    "broadcasting",
    "constants",
    "construction",
    "elementwise",
    "flat",
    "freshness",
    "indexing",
    "inplace",
    "memory",
    "products",
    "quantiles",
    "reductions",
    "sequences",
    "shapes",
    "structural",
    "traits",
    "types",
    "ufunc_methods",
]
