"""Structures as vectors and back."""

import pickle
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from morula import Tangent, grad, gradient, ravel, value_and_grad
from morula.testing import check_gradient

Line = namedtuple("Line", "slope intercept")


@dataclass
class Layer:
    w: np.ndarray
    b: float
    name: str = "layer"
    active: bool = True


@dataclass(frozen=True)
class Network:
    layers: list = field(default_factory=list)


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@pytest.mark.parametrize(
    ("params", "vector"),
    [
        (2.0, [2.0]),
        ((1.0, 2), [1.0, 2.0]),
        ([np.array([[1.0, 2.0], [3.0, 4.0]]), 5.0], [1, 2, 3, 4, 5]),
        ({"b": 1.0, "a": (2.0, None), "c": "text"}, [1.0, 2.0]),
        (Line(1.0, [2.0, True]), [1.0, 2.0]),
        (OrderedDict(z=1.0, a=deque([2.0, 3.0])), [1.0, 2.0, 3.0]),
        (np.array(3.0), [3.0]),
        ([], []),
        ("nothing", []),
        (np.zeros((0, 3)), []),
        (Fraction(1, 2), [0.5]),
    ],
)
def test_there_and_back(params, vector):
    v, unravel = ravel(params)
    assert v.dtype == np.float64
    np.testing.assert_array_equal(v, vector)
    again = unravel(v)
    assert type(again) is type(params)
    np.testing.assert_equal(again, params)
    np.testing.assert_array_equal(ravel(again)[0], vector)


def test_objects_and_tangents():
    net = Network([Layer(np.ones((2, 1)), 3.0), Layer(np.zeros(1), 4.0, active=False)])
    v, unravel = ravel(net)
    np.testing.assert_array_equal(v, [1, 1, 3, 0, 4])
    new = unravel(v * 2)
    assert type(new) is Network
    assert new.layers[0].w.tolist() == [[2], [2]]
    assert (new.layers[1].b, new.layers[1].name, new.layers[1].active) == (8.0, "layer", False)
    assert net.layers[0].b == 3.0
    s = ravel(Slotted(1.0, [2.0]))[1](np.array([5.0, 6.0]))
    assert (s.x, s.y) == (5.0, [6.0])

    g = gradient(lambda n: (n.layers[0].w ** 2).sum() * n.layers[1].b, net)[0]
    slope, back = ravel(g)
    np.testing.assert_array_equal(slope, [8, 8, 0, 0, 2])
    assert isinstance(back(slope), Tangent)
    assert back(slope).layers[1].b == 2.0


def test_kinds_and_dtypes_come_back():
    params = {
        "h": np.float16(1),
        "f": np.ones(2, np.float32),
        "i": np.arange(2),
        "n": 3,
        "z": 1j,
        "c": np.ones(1, np.complex64),
    }
    v, unravel = ravel(params)
    assert v.dtype == np.complex128
    again = unravel(v)
    assert type(again["h"]) is np.float16
    assert again["f"].dtype == np.float32
    assert again["i"].dtype == np.float64
    assert type(again["n"]) is float
    assert type(again["z"]) is complex
    assert again["c"].dtype == np.complex64
    assert ravel([np.float32(1), np.ones(2, np.float16)])[0].dtype == np.float32
    assert ravel(np.longdouble(1))[0].dtype == np.longdouble


def test_what_stands_in_two_places_is_taken_once():
    shared = [1.0, 2.0]
    v, unravel = ravel([shared, shared, 3.0])
    np.testing.assert_array_equal(v, [1, 2, 3])
    again = unravel(v)
    assert again[0] is again[1]
    slope = ravel(gradient(lambda p: p[0][0] * p[1][1] * p[2], [shared, shared, 3.0])[0])[0]
    np.testing.assert_array_equal(slope, [6, 3, 2])


def test_wrong_vectors():
    _, unravel = ravel([1.0, 2.0])
    with pytest.raises(ValueError, match=r"shape \(2,\), got shape \(3,\)"):
        unravel(np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(2,\), got shape \(1, 2\)"):
        unravel(np.ones((1, 2)))
    with pytest.raises(TypeError, match="vector of numbers"):
        unravel(np.array(["a", "b"]))
    with pytest.raises(TypeError, match="array of objects"):
        ravel([np.array([None])])


def test_the_inverse_pickles_and_makes_new_memory():
    x = np.ones(2)
    v, unravel = ravel({"x": x})
    v[0] = 7.0
    assert x[0] == 1.0
    again = pickle.loads(pickle.dumps(unravel))(v)
    again["x"][1] = 9.0
    assert v[1] == 1.0


@pytest.mark.usefixtures("path")
def test_both_are_differentiated(rng):
    params = {"w": rng.standard_normal((2, 3)), "b": (0.5, [2, 1.5 - 1j])}
    v, unravel = ravel(params)

    def loss(p):
        return (p["w"] ** 2).sum() * p["b"][0] + p["b"][1][0] ** 3 + abs(p["b"][1][1]) ** 2

    slope = grad(lambda v: loss(unravel(v)))(v)
    np.testing.assert_allclose(slope, ravel(grad(loss)(params))[0], rtol=1e-12)

    def of_vector(p):
        vector = ravel(p)[0]
        return (vector.real**2).sum() + vector[0].real * vector[-1].imag

    check_gradient(of_vector, params)

    def of_object(layer):
        vector, unravel = ravel(layer)
        return (unravel(vector * vector).w * layer.b).sum()

    g = gradient(of_object, Layer(np.array([2.0, 3.0]), 5.0))[0]
    np.testing.assert_array_equal(g.w, [20, 30])
    assert g.b == 13.0
    second = grad(lambda x: grad(lambda y: unravel_square(y))(x * 2))(3.0)
    assert second == 8.0


def unravel_square(y):
    vector, unravel = ravel([y, 1.0])
    return unravel(vector**2)[0] * 2


def test_a_fit_with_scipy():
    x = np.linspace(0, 1, 20)
    data = 3 * np.exp(-2 * x) + 0.5

    def loss(model):
        return ((model.w[0] * np.exp(-model.w[1] * x) + model.b - data) ** 2).sum()

    v, unravel = ravel(Layer(np.ones(2), 0.0))
    found = minimize(
        value_and_grad(lambda v: loss(unravel(v))), v, jac=True, method="BFGS", tol=1e-10
    )
    model = unravel(found.x)
    np.testing.assert_allclose(model.w, [3, 2], rtol=1e-5)
    assert model.b == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_the_entries_of_sparse_arrays(form):
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], np.float32)
    for kind in ("array", "matrix"):
        A = getattr(sparse, f"{form}_{kind}")(dense)
        vector, unravel = ravel({"A": A, "b": 1.0})
        assert sorted(vector) == [1.0, 1.0, 2.0, 3.0]
        again = unravel(2 * vector)["A"]
        assert type(again) is type(A)
        assert again.dtype == np.float32
        np.testing.assert_array_equal(again.toarray(), 2 * dense)

        def loss(v, unravel=unravel):
            p = unravel(v)
            return ((p["A"] @ np.ones(3)) ** 2).sum() * p["b"]

        sums = {1.0: 3.0, 2.0: 3.0, 3.0: 3.0}
        expected = [2 * sums[x] for x in vector[:-1]] + [18.0]
        np.testing.assert_allclose(gradient(loss, vector)[0], expected)
        slope = gradient(lambda A: (ravel(A)[0] ** 3).sum(), A)[0]
        np.testing.assert_allclose(slope.toarray(), 3 * dense**2)
