"""In-place changes are refused with a way out."""

import operator

import numpy as np
import pytest

from morula.core.extend import find_rrule

X = np.ones(3)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (operator.iadd, (X, 1.0)), (operator.imul, (X, X)), (operator.imatmul, (X, X)),
        (operator.setitem, (X, 0, 1.0)), (np.copyto, (X, X)), (np.ndarray.fill, (X, 0.0)),
        (np.ndarray.sort, (X,)), (np.ufunc.at, (np.add, X, [0], 1.0)),
        (operator.ior, (X > 0, X > 0)),
    ],
)  # fmt: skip
def test_refused(fn, args):
    with pytest.raises(NotImplementedError, match=r"in place(.|\n)*make a new"):
        find_rrule(fn, args).function(*args)
