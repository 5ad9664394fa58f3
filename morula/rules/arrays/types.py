"""The unions of types that rules of arrays dispatch on.

`np.float64` is a `float` and `np.complex128` a `complex`, so that the rules of these serve them.
The operators on two numbers have their rules in rules/operators.py.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from morula.rules.numbers import Anything, Real, Scalar

if TYPE_CHECKING:  # what flows through rules is of any type; the types are there for dispatch
    Numeric = Any
    Array = Any
else:
    Numeric = np.ndarray | Scalar
    Array = np.ndarray

Sequence = list | tuple | deque  # what NumPy makes an array of

NO_VALUE: Any = np._NoValue  # the default of NumPy's own keywords

__all__ = ["NO_VALUE", "Anything", "Array", "Numeric", "Real", "Scalar", "Sequence"]
