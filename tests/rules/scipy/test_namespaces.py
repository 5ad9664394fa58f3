"""Functions of SciPy's that ask for the library of their arguments are compiled."""

import numpy as np
import pytest
from scipy import optimize

from morula import code_adjoint, grad, hvp
from morula.testing import check_gradient

api = pytest.importorskip("scipy._lib._array_api", reason="SciPy keeps it elsewhere")
promote = getattr(api, "xp_promote", None)
needs_promote = pytest.mark.skipif(promote is None, reason="this SciPy promotes in another way")
X = np.array([0.7, -1.3, 0.4])


def is_compiled(f, *args):
    return str(code_adjoint(f, *args)).startswith("# specialised")


def of_namespace(x):
    xp = api.array_namespace(x)
    y = xp.asarray(x)
    return xp.sum(xp.sin(y) * xp.asarray(x, dtype=xp.float64))


def of_arrays(x):
    y = api._asarray(x, xp=np)
    return np.sum(y**2.0 * api._asarray(x, dtype=float, xp=api.np_compat))


def of_types(x):
    xp = api.array_namespace(x)
    dtype = api.xp_result_type(x, 1, xp=xp)
    return np.sum(np.asarray(x, dtype) ** 2) if xp.isdtype(dtype, "real floating") else 0.0


def promoted(x):
    return np.sum(promote(x, force_floating=True, xp=api.np_compat) ** 3)


def promoted_together(x):
    a, b = promote(x, 2, xp=api.np_compat)
    return np.sum(a * b) + a[0] * x[1]


@pytest.mark.parametrize("f", [of_namespace, of_arrays])
def test_namespaces_are_constants(path, f):
    check_gradient(f, X)
    assert is_compiled(f, X)


@needs_promote
@pytest.mark.parametrize("f", [promoted, promoted_together, of_types, optimize.rosen])
def test_promoted_arrays(path, f):
    check_gradient(f, X)
    assert is_compiled(f, X)


@needs_promote
def test_whole_numbers_are_promoted(path):
    x = np.array([1, 2, 3])
    assert promoted(x) == 36.0
    check_gradient(lambda a: np.sum(promote(x, a, xp=api.np_compat)[0] * a), 0.3)


def test_the_rosenbrock_function_of_scipy():
    x, v = np.array([1.3, 0.7, 0.8]), np.array([0.5, -1.0, 0.3])
    assert np.allclose(grad(optimize.rosen)(x), optimize.rosen_der(x))
    assert np.allclose(hvp(optimize.rosen, x, v), optimize.rosen_hess_prod(x, v))


def test_asarray_copies_as_it_is_told(path):
    xp = api.np_compat

    def f(x):
        y = xp.asarray(x, copy=True)
        return np.sum(y * xp.asarray(x, copy=False))

    check_gradient(f, X)
    with pytest.raises(ValueError, match="copy"):
        grad(lambda x: np.sum(xp.asarray([x[0], x[1]], copy=False)))(X)
    with pytest.raises(ValueError, match="elsewhere"):
        grad(lambda x: np.sum(xp.asarray(x, device="elsewhere")))(X)


def test_large_arrays_and_masks_are_asked_about_too():
    """Of their types alone: there is no sample of an array of many entries, nor of a mask."""
    x = np.linspace(0.5, 1.5, 40_000)
    np.testing.assert_allclose(grad(optimize.rosen)(x), optimize.rosen_der(x))

    def masked(x):
        return np.sum(x * np.isrealobj(x > 1))

    assert grad(masked)(x).tolist() == np.ones(40_000).tolist()
    assert is_compiled(masked, x)


@needs_promote
def test_promoted_large_arrays():
    x = np.ones(40_000)
    f = lambda x: np.sum(promote(x, force_floating=True, xp=np) ** 2)
    assert grad(f)(x).tolist() == [2.0] * 40_000
