"""Arrays of objects that hold plain numbers, and what makes them of arrays of numbers and back."""

import numpy as np
import pytest

from morula import grad
from tests.modes import check_modes


def pair(v):
    return np.array([v, v * v], object)


def numbers(v):
    return np.array([v, v * v])


def entered(v):
    a = np.empty(2, object)
    a[0], a[1] = v, v * v
    return a[0] * a[1]


def filled(v):
    a = np.empty(2, object)
    a.fill(v)
    return a[0] * a[1]


def assigned(v):
    a = np.empty(2, object)
    a[:] = numbers(v)
    return a[0] * a[1]


def converted_after_a_write(v):
    a = np.zeros(2)
    a[0] = v
    return (a.astype(object) ** 3).astype(float).sum()


FUNCTIONS = {
    "astype": lambda v: (numbers(v).astype(object) ** 3).sum(),
    "astype and back": lambda v: (numbers(v).astype(object).astype(float) ** 3).sum(),
    "an entry": lambda v: numbers(v).astype(object)[1] ** 2,
    "np.array": lambda v: np.array(numbers(v), dtype=object).prod(),
    "np.asarray": lambda v: np.asarray(numbers(v), dtype=object).prod(),
    "np.concatenate": lambda v: np.prod(np.concatenate([pair(v), numbers(v)])),
    "np.stack": lambda v: np.prod(np.stack([pair(v), numbers(v)])),
    "np.where": lambda v: np.prod(np.where([True, False], pair(v), numbers(v))),
    "times a number": lambda v: (pair(v) * v).sum(),
    "times an array": lambda v: pair(v) @ numbers(v),
    "none among them": lambda v: np.array([v, None, v**3], object)[2],
    "arrays among them": lambda v: np.array([numbers(v), v * np.ones(3)], object)[0].prod(),
    "np.full": lambda v: np.full(3, v, dtype=object).prod(),
    "tolist": lambda v: sum(pair(v).tolist()) ** 2,
    "reshape": lambda v: pair(v).reshape(2, 1).T.ravel()[1] * v,
    "copy": lambda v: pair(v).copy()[1] * v,
    "cumsum": lambda v: np.cumsum(pair(v))[1] ** 2,
    "max": lambda v: np.max(pair(v)) * v,
    "sort": lambda v: np.sort(pair(v))[0] * v,
    "vectorize": lambda v: np.vectorize(lambda t: t * t, otypes=[object])(numbers(v)).sum(),
    "frompyfunc": lambda v: np.frompyfunc(lambda t: t * t, 1, 1)(numbers(v)).sum(),
    "entries written": entered,
    "fill": filled,
    "a slice written": assigned,
    "converted after a write": converted_after_a_write,
    "lists": lambda v: chosen(np.array([[v], [v, v * v]], object)),
    "tuples": lambda v: chosen(np.array([(v,), (v, v * v)], object)),
    "dicts": lambda v: chosen(np.array([{0: v}, {0: 2.0, 1: v * v}], object)),
    "arrays of different lengths": lambda v: chosen(arrays(v)),
    "products of such": lambda v: chosen(arrays(v) * arrays(v)),
}


def chosen(xs):
    return xs[1][1] * xs[0][0]


def arrays(v):
    return np.array([np.array([v]), np.array([v, v * v])], object)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_every_mode(name):
    f = FUNCTIONS[name]
    check_modes(f, 1.7)
    h = 1e-6
    second = (grad(f)(1.7 + h) - grad(f)(1.7 - h)) / (2 * h)
    assert grad(grad(f))(1.7) == pytest.approx(second, rel=1e-6, abs=1e-6)
