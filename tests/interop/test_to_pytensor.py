"""NumPy functions that Morula differentiates, in PyTensor's graphs: against PyTensor's own."""

import warnings

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="the extra pytensor is not installed")

import pytensor.tensor as pt  # noqa: E402
from pytensor.gradient import pushforward  # noqa: E402

from morula.interop.operations import OperationError  # noqa: E402
from morula.interop.pytensor import to_pytensor  # noqa: E402


def model(x, a):
    y = np.sin(x) * a
    while y[0] < 0.1:
        y = y + 1.0
    return np.sum(y**2) + x[0] ** 3


def model_in_pytensor(x, a):
    return pt.sum((pt.sin(x) * a) ** 2) + x[0] ** 3


f = to_pytensor(model)
x, a = pt.dvector("x"), pt.dscalar("a")


def run(inputs, outputs, point, mode="FAST_COMPILE"):
    return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*point)


DERIVED = [
    lambda y: y,
    lambda y: pytensor.grad(y, x),
    lambda y: pytensor.grad(pt.exp(y / 10) * x.sum() * a, a),
    lambda y: pytensor.gradient.hessian(y, x),
    lambda y: pytensor.grad(pytensor.grad(y, a), x),
    lambda y: pushforward(y, x, 2 * pt.ones_like(x)),
    lambda y: pushforward(y, x, 2 * pt.ones_like(x), use_op_pushforward=True),
    lambda y: pushforward(pytensor.grad(y, x), x, pt.ones_like(x), use_op_pushforward=True),
]


@pytest.mark.parametrize("derived", DERIVED)
def test_derivatives_are_those_of_functions_of_pytensor(derived):
    point = np.array([0.5, 1.0, 2.0]), 2.0
    got, want = (run([x, a], derived(h(x, a)), point) for h in (f, model_in_pytensor))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert got.dtype == want.dtype


def test_a_compiled_function_has_value_and_gradient():
    with warnings.catch_warnings(action="ignore"):  # that Numba calls Python, as it must
        y = f(x, a)
        point = np.array([0.5, 1.0, 2.0]), 2.0
        got = run([x, a], [y, *pytensor.grad(y, [x, a])], point, mode=None)
    y = model_in_pytensor(x, a)
    for one, other in zip(got, run([x, a], [y, *pytensor.grad(y, [x, a])], point), strict=True):
        np.testing.assert_allclose(one, other)


def test_precision_and_integers():
    seen = []

    def layer(w, x, n):
        seen.append((np.asarray(x).dtype.name, type(n)))
        return np.tanh(w @ x) ** n

    w, v, n = pt.fmatrix("w"), pt.fvector("v"), pt.lscalar("n")
    y = to_pytensor(layer)(w, v, n)
    own = pt.tanh(w @ v) ** 2
    rng = np.random.default_rng(0)
    point = rng.standard_normal((2, 3)).astype("f4"), rng.standard_normal(3).astype("f4"), 2
    got, want = (run([w, v, n], [z, *pytensor.grad(z.sum(), [w, v])], point) for z in (y, own))
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert {*seen} == {("float64", int)}
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        pytensor.grad(y.sum(), n)
    index = to_pytensor(lambda x, i: x[i].sum())(v, pt.lvector("i"))
    assert index.type.dtype == "float32"


def test_structures_and_what_is_no_variable():
    def g(params, n, *, how):
        assert type(n) is int
        assert how == "up"
        return {"out": params["w"] * params["b"][0] * n, "parts": (params["w"].sum(), n > 3)}

    b = pytensor.shared(2.0, "b")
    y = to_pytensor(g)({"w": x, "b": [b, None]}, 4, how="up")
    loss = y["out"].sum() ** 2 + y["parts"][0]
    slopes = run([x], [*pytensor.grad(loss, [x, b]), y["parts"][1]], [np.ones(2)])
    assert slopes[0].tolist() == [257.0, 257.0]
    assert slopes[1] == 256.0
    assert slopes[2]


def test_outputs_that_do_not_count_and_pytensors_own_check():
    both = to_pytensor(lambda x: (np.cumsum(x) * x[0], np.sum(x)))
    for i in range(2):
        pytensor.gradient.verify_grad(
            lambda x, i=i: both(x)[i],
            [np.array([1.0, 2.0, 3.0])],
            rng=np.random.default_rng(0),
            mode="FAST_COMPILE",
        )


def test_shapes_are_known_where_they_can_be():
    runs = []

    def g(x):
        runs.append(x)
        return np.cumsum(x)

    y = to_pytensor(g)(x)
    assert y.type.shape == (None,)
    runs.clear()
    assert run([x], pytensor.grad(y.sum(), x).shape, [np.ones(5)], mode="FAST_RUN") == [5]
    assert not runs
    known = pt.tensor("known", dtype="float64", shape=(3,))
    assert to_pytensor(g)(known).type.shape == (3,)
    assert to_pytensor(g, out=pt.dvector)(x).type == pt.dvector
    two = to_pytensor(lambda x: [x, x[0]], out=[((3,), float), ((), "float32")])(known)
    assert [y.type.shape for y in two] == [(3,), ()]
    assert two[1].type.dtype == "float32"


def test_complex_numbers_are_refused_where_a_gradient_would_pass():
    z = pt.zvector("z")
    y = to_pytensor(lambda z, a: np.sum(np.abs(z) ** 2) * a)(z, a)
    assert run([z, a], pytensor.grad(y, a), [np.array([1j]), 1.0]) == 1.0
    with pytest.raises(TypeError, match="no derivatives by complex variables"):
        pytensor.grad(y, z)
    with pytest.raises(NotImplementedError, match="no derivatives by complex variables"):
        pushforward(y, z, pt.ones_like(z), use_op_pushforward=True)


def test_errors():
    with pytest.raises(OperationError, match="gave a str: PyTensor takes numbers and arrays"):
        to_pytensor(lambda x: "x")(x)
    with pytest.raises(TypeError, match="out says what the value looks like"):
        to_pytensor(np.sum, out=3)
    with pytest.raises(IndexError) as caught:
        to_pytensor(lambda x: x[7])(x)
    assert "on arrays of shapes (4,)" in caught.value.__notes__[0]
    assert run([x], to_pytensor(lambda x: x[7], out=pt.dscalar)(x), [np.arange(8.0)]) == 7.0
    with pytest.raises(OperationError, match=r"shape \(2,\) where shape \(\) was announced"):
        run([x], to_pytensor(lambda x: x, out=pt.dscalar)(x), [np.ones(2)])
    with pytest.raises(TypeError, match="it takes tensors"):
        to_pytensor(np.sum)(pytensor.sparse.csr_matrix("s"))
    truth = to_pytensor(lambda x: x > 0 if np.all(x > 1) else x * 1.0)(x)
    assert run([x], truth, [np.full(2, 2.0)]).tolist() == [1.0, 1.0]

    def refuses(x):
        if x.size == 2:
            raise KeyError("no such thing")
        return x

    with pytest.raises(KeyError, match="no such thing"):
        run([x], to_pytensor(refuses)(x), [np.ones(2)])
