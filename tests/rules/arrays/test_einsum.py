"""Every form of einsum, by its rule and in programs."""

import numpy as np
import pytest

from morula import grad, hvp, pullback
from morula.mixed_mode.jacobians import general_hvp, product_for
from morula.testing import check_rrule
from tests.core.test_orders import reasons

CASES = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("i,i", [(3,), (3,)]),
    ("i,i->", [(3,), (1,)]),
    ("ij->i", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("ij->ji", [(2, 3)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
    ("...i->...", [(2, 3, 4)]),
    ("...,...", [(2, 3), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ijk,k", [(2, 3, 4), (4,)]),
    ("iii->", [(2, 2, 2)]),
    ("ab , bc -> ac", [(2, 3), (3, 2)]),
    (",ij->ij", [(), (2, 3)]),
    ("ij,kj->ik", [(3, 0), (2, 0)]),
    ("ij,jk->ik", [(0, 3), (3, 2)]),
    ("i,ij,j->", [(3,), (3, 2), (2,)]),
    ("ijj->i", [(2, 3, 3)]),
    ("ij->", [(2, 3)]),
    ("i,j->i", [(2,), (3,)]),
]


def draw(rng, shape, dtype="f8"):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype == "c16" else x).astype(dtype)


@pytest.mark.parametrize(("subscripts", "shapes"), CASES)
def test_einsum(rng, subscripts, shapes):
    operands = [draw(rng, s) for s in shapes]
    check_rrule(np.einsum, subscripts, *operands, order=2)
    check_rrule(np.einsum, subscripts, *[draw(rng, s, "c16") for s in shapes])
    check_rrule(np.einsum, subscripts, *operands, optimize=True)


def function(parameters, body):
    """A function that is written down, for programs ask no variable for subscripts."""
    namespace = {"np": np}
    exec(f"def f({parameters}): return {body}", namespace)
    return namespace["f"]


@pytest.mark.parametrize(("subscripts", "shapes"), CASES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_gradients_of_programs(rng, subscripts, shapes, dtype):
    operands = [draw(rng, s, dtype) for s in shapes]
    names = ", ".join("abc"[: len(shapes)])
    loss = function(names, f"np.sum(np.abs(np.einsum({subscripts!r}, {names})) ** 2)")
    found = grad(loss, tuple(range(len(shapes))))(*operands)
    _, back = pullback(loss, *operands)
    for x, x̄, expected in zip(operands, found, back(1.0), strict=True):
        assert np.shape(x̄) == np.shape(x)
        assert x̄.dtype == x.dtype
        np.testing.assert_allclose(x̄, expected, rtol=1e-5 if dtype == "f4" else 1e-10, atol=1e-6)


@pytest.mark.parametrize(
    ("subscripts", "shapes"), [c for c in CASES if c[1][0] and 0 not in c[1][0]]
)
def test_hessians_of_programs(rng, subscripts, shapes):
    x, v = draw(rng, shapes[0]), draw(rng, shapes[0])
    given = [f"np.cos(np.arange({np.prod(s)}) * x.ravel()[0]).reshape({s})" for s in shapes[1:]]
    operands = ", ".join(["np.sin(x)", *given])
    y = f"np.einsum({subscripts!r}, {operands}) ** 2"
    is_number = np.ndim(eval(y, {"np": np, "x": x})) == 0
    f, h = function("x", y if is_number else f"np.sum({y})"), 1e-5
    found = hvp(f, x, v)
    np.testing.assert_allclose(found, general_hvp(f, x, v), rtol=1e-9, atol=1e-12)
    slopes = [grad(f)(x + d * v) for d in (h, -h)]
    np.testing.assert_allclose(found, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-5, atol=1e-6)
    assert not reasons(product_for(f, x))


def test_operands_of_different_kinds(rng):
    a, b = draw(rng, (2, 3)), draw(rng, (3,), "c16")
    both = grad(lambda a, b: np.abs(np.sum(np.einsum("ij,j->i", a, b))) ** 2, (0, 1))(a, b)
    _, back = pullback(lambda a, b: np.abs(np.sum(a @ b)) ** 2, a, b)
    for found, expected in zip(both, back(1.0), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)
    n = np.array([1, 2, 3])
    assert grad(lambda x: np.einsum("i,i->", x, n))(n).tolist() == [1.0, 2.0, 3.0]
    assert grad(lambda x: np.einsum("i,i->", x, x))(n).tolist() == [2.0, 4.0, 6.0]


def test_operands_that_broadcast(rng):
    a, b = draw(rng, (2, 3)), draw(rng, (1, 3))
    found = grad(lambda a, b: np.sum(np.einsum("ij,ij->i", a, b) ** 2), (0, 1))(a, b)
    _, back = pullback(lambda a, b: np.sum(np.sum(a * b, 1) ** 2), a, b)
    for x̄, expected in zip(found, back(1.0), strict=True):
        np.testing.assert_allclose(x̄, expected)
