"""The unions of types that rules of arrays dispatch on.

`np.float64` is a `float` and `np.complex128` a `complex`, so that the rules of these serve them;
`Small` are the other scalar types of NumPy. No two of the unions of one signature overlap: an
overlap would be an ambiguity for plum.
"""

from __future__ import annotations

import numpy as np

Small = (
    np.float32
    | np.float16
    | np.longdouble
    | np.complex64
    | np.clongdouble
    | np.integer
    | np.bool_
)
Scalar = float | int | complex | Small
Real = float | int
Array = np.ndarray
Numeric = np.ndarray | Scalar

NO_VALUE = np._NoValue  # the default of NumPy's own keywords

__all__ = ["NO_VALUE", "Array", "Numeric", "Real", "Scalar", "Small"]
