"""The unions of types that rules of arrays dispatch on.

`np.float64` is a `float` and `np.complex128` a `complex`, so that the rules of these serve them.
The operators on two numbers have their rules in rules/operators.py.
"""

from __future__ import annotations

import numbers

import numpy as np

Real = int | float  # bool and np.float64 are subclasses
Scalar = numbers.Number | np.bool_  # every number, of Python, of NumPy, of any package
Numeric = np.ndarray | Scalar

NO_VALUE = np._NoValue  # the default of NumPy's own keywords
