"""One call in many spellings: arguments by position or by name, defaults given or not."""

import numpy as np
import pytest

from morula import gradient, rrule
from morula.testing import check_gradient

X = np.array([[1.0, 2.0], [3.0, 5.0]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.take(x, [0, 1], 1),
        lambda x: np.take(x, [0, 1], axis=1),
        lambda x: np.take(a=x, indices=[0, 1], axis=1),
        lambda x: np.take(indices=[0, 1], axis=1, a=x),
        lambda x: np.take(x, [0, 1], 1, None),
        lambda x: np.take(x, [0, 1], 1, None, "raise"),
        lambda x: np.take(x, [0, 1], 1, out=None),
        lambda x: x.take([0, 1], axis=1, out=None, mode="raise"),
        lambda x: np.ndarray.take(x, [0, 1], 1, None),
    ],
)
def test_spellings_of_take(f, path):
    assert gradient(lambda x: (f(x) ** 2).sum(), X)[0].tolist() == (2 * X).tolist()


def test_a_default_that_is_a_number_has_its_gradient():
    found = gradient(lambda s: np.sum(np.ones(2), axis=None, dtype=None, out=None, initial=s), 0)
    assert found == (1.0,)


def test_rules_of_functions_in_python_serve_names_too():
    def twice(a, b):
        return a + b

    @rrule(twice)
    def _(a: float, b: float):
        return twice(a, b), lambda ȳ: (10 * ȳ, 20 * ȳ)

    assert gradient(lambda a, b: twice(b=b, a=a), 1.0, 2.0) == (10.0, 20.0)


def test_methods_of_ufuncs_with_none_for_out():
    check_gradient(lambda x: np.power.reduceat(x, [0, 1], 0, out=None).sum(), X)
