"""The unions of types that rules of arrays dispatch on.

`np.float64` is a `float` and `np.complex128` a `complex`, so that the rules of these serve them.
The operators on two numbers have their rules in rules/operators.py.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # what flows through rules is of any type; the types are there for dispatch
    Real = Any
    Scalar = Any
    Numeric = Any
    Array = Any
    Anything = Any
else:
    Real = int | float  # bool and np.float64 are subclasses
    Scalar = numbers.Number | np.bool_  # every number, of Python, of NumPy, of any package
    Numeric = np.ndarray | Scalar
    Array = np.ndarray
    Anything = object

NO_VALUE: Any = np._NoValue  # the default of NumPy's own keywords

__all__ = ["NO_VALUE", "Anything", "Array", "Numeric", "Real", "Scalar"]
