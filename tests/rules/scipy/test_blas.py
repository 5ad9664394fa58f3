"""Routines of BLAS and LAPACK that are called by their names."""

import numpy as np
import pytest
from scipy.linalg import blas, get_blas_funcs, get_lapack_funcs, lapack

from morula import gradient, jvp, withgradient
from morula.core.extend import UnsupportedError
from tests.array_modes import check_array_modes

ALPHA = {"d": 0.7, "z": 0.7 - 0.2j}


def numbers(kind, *shape):
    rng = np.random.default_rng(shape)
    x = rng.standard_normal(shape)
    return x if kind == "d" else x + 1j * rng.standard_normal(shape)


def total(*results):
    """A number of all real and imaginary parts, with a weight for each."""
    y = 0.0
    for x in map(np.asarray, results):
        weights = np.cos(np.arange(x.size)).reshape(x.shape)
        y = (
            y
            + np.sum(np.sin(x.real) * weights)
            + np.sum(np.cos(1.3 * x.imag + 0.2) * (weights - 0.5))
        )
    return y


def program(module, name, *shapes, kinds="dz", **options):
    """A test for each kind: the routine of arrays of these shapes, with alpha where it has one."""
    for kind in kinds:
        yield pytest.param(module, name, kind, shapes, options, id=f"{kind}{name}{options or ''}")


PROGRAMS = [
    *program(blas, "dot", (3,), (3,), kinds="d"),
    *program(blas, "dotu", (3,), (3,), kinds="z"),
    *program(blas, "dotc", (3,), (4,), kinds="z"),
    *program(blas, "axpy", (3,), (4,)),
    *program(blas, "copy", (3,), (4,)),
    *program(blas, "swap", (3,), (4,)),
    *program(blas, "gemv", (), (4, 3), (3,)),
    *program(blas, "gemv", (), (4, 3), (4,), trans=1),
    *program(blas, "gemv", (), (4, 3), (4,), (), (3,), trans=2),
    *program(blas, "symv", (), (3, 3), (3,), (), (3,), kinds="d", lower=1),
    *program(blas, "hemv", (), (3, 3), (3,), (), (3,), kinds="z"),
    *program(blas, "trmv", (3, 3), (3,)),
    *program(blas, "trmv", (3, 3), (3,), lower=1, trans=2, diag=1),
    *program(blas, "trsv", (3, 3), (3,)),
    *program(blas, "trsv", (3, 3), (3,), lower=1, trans=1, diag=1),
    *program(blas, "ger", (), (3,), (4,), kinds="d"),
    *program(blas, "geru", (), (3,), (4,), kinds="z"),
    *program(blas, "gerc", (), (3,), (4,), kinds="z"),
    *program(blas, "gemm", (), (4, 3), (3, 2)),
    *program(blas, "gemm", (), (4, 3), (2, 4), (), (3, 2), trans_a=2, trans_b=1),
    *program(blas, "symm", (), (3, 3), (3, 2)),
    *program(blas, "symm", (), (3, 3), (2, 3), (), (2, 3), side=1, lower=1),
    *program(blas, "hemm", (), (3, 3), (3, 2), (), (3, 2), kinds="z", lower=1),
    *program(blas, "hemm", (), (3, 3), (2, 3), kinds="z", side=1),
    *program(blas, "syrk", (), (4, 3)),
    *program(blas, "syrk", (), (4, 3), (), (3, 3), trans=1, lower=1),
    *program(blas, "syr2k", (), (4, 3), (4, 3)),
    *program(blas, "syr2k", (), (4, 3), (4, 3), (), (3, 3), trans=1, lower=1),
    *program(blas, "trmm", (), (3, 3), (3, 2)),
    *program(blas, "trmm", (), (3, 3), (2, 3), side=1, lower=1, trans_a=2, diag=1),
    *program(blas, "trsm", (), (3, 3), (3, 2), trans_a=1),
    *program(blas, "trsm", (), (3, 3), (2, 3), side=1, lower=1, trans_a=2, diag=1),
    *program(lapack, "potrs", (3, 3), (3, 2)),
    *program(lapack, "potrs", (3, 3), (3,), lower=1),
    *program(lapack, "getrf", (3, 3)),
    *program(lapack, "gesv", (3, 3), (3, 2)),
    *program(lapack, "gesv", (3, 3), (3,)),
    *program(lapack, "trtrs", (3, 3), (3, 2)),
    *program(lapack, "trtrs", (3, 3), (3,), lower=1, trans=2, unitdiag=1),
]


@pytest.mark.parametrize(("module", "name", "kind", "shapes", "options"), PROGRAMS)
def test_all_modes(module, name, kind, shapes, options):
    fn = getattr(module, kind + name)
    xs = [
        numbers(kind, *shape) + 2.5 * (np.eye(*shape) if shape == (3, 3) else 0) for shape in shapes
    ]
    arrays = [x for x, shape in zip(xs, shapes, strict=True) if shape]

    def f(*arrays):
        left = iter(arrays)
        args = [next(left) * 1.0 if shape else ALPHA[kind] for shape in shapes]
        found = fn(*args, **options)
        return total(*found) if isinstance(found, tuple) else total(found)

    check_array_modes(f, *arrays)


REAL_ALPHA = {
    "zherk": lambda a, c: total(blas.zherk(0.7, a)),
    "zherk added": lambda a, c: total(blas.zherk(0.7, a, 0.3, c, trans=2, lower=1)),
    "zdscal": lambda a, c: total(blas.zdscal(0.3, a[0])),
    "zscal": lambda a, c: total(blas.zscal(0.3j, a[0].copy())),
    "norms": lambda a, c: blas.dznrm2(a[0]) * blas.dzasum(c[1]) + blas.dnrm2(a[1].real),
    "dasum": lambda a, c: blas.dasum(a[1].imag),
    "zpotrf": lambda a, c: total(lapack.zpotrf(np.dot(np.conj(a.T), a) + np.eye(3))[0]),
    "zpotrf lower": lambda a, c: total(
        lapack.zpotrf(np.dot(np.conj(a.T), a) + np.eye(3), 1, clean=0)[0]
    ),
    "zgetrs": lambda a, c: total(
        lapack.zgetrs(*lapack.zgetrf(c)[:2], a[1])[0],
        lapack.zgetrs(*lapack.zgetrf(c)[:2], np.transpose(a[:2]), trans=2)[0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL_ALPHA)
def test_of_complex_numbers(name):
    check_array_modes(REAL_ALPHA[name], numbers("z", 4, 3), numbers("z", 3, 3) + 3 * np.eye(3))


def test_numbers_beside_the_arrays(path):
    a, x, y = numbers("d", 4, 3), numbers("d", 3), numbers("d", 4)
    (g,) = gradient(lambda q: np.sum(blas.dgemv(q[0], a, x, beta=q[1], y=y)), np.array([0.5, 2.0]))
    np.testing.assert_allclose(g, [np.sum(a @ x), np.sum(y)])
    assert gradient(lambda q: np.sum(blas.dscal(q, x.copy())), 0.5) == (pytest.approx(np.sum(x)),)


V = np.array([0.4, -1.1, 0.9, 2.0])


def square(v):
    return np.outer(v, v) + 3 * np.eye(4)


def solved_in_place(v):
    a, b = square(v).copy("F"), np.outer(v, v).copy("F")
    _, _, x, _ = lapack.dgesv(a, b, overwrite_a=1, overwrite_b=1)
    return a, b, x


def halves(v):
    x, y = v * 1.0, v * 2.0
    blas.dswap(x, y)
    return x, y


WRITTEN = {
    "axpy": lambda y, v: (blas.daxpy(v, y, a=3.0), y),
    "axpy by part": lambda y, v: (blas.daxpy(v[1:3], y[2:]), y),
    "axpy with a step": lambda y, v: (blas.daxpy(v[:2], y[::2]), y),
    "axpy to a list": lambda y, v: (blas.daxpy(v, list(y)), y),
    "scal": lambda y, v: (blas.dscal(v[0], y), y),
    "copy": lambda y, v: (blas.dcopy(v[:3], y), y),
    "swap": lambda y, v: halves(v),
    "gemv": lambda y, v: (blas.dgemv(0.5, square(v), v, beta=2.0, y=y, overwrite_y=1), y),
    "gemv elsewhere": lambda y, v: (blas.dgemv(0.5, square(v), v, beta=2.0, y=y), y),
    "ger": lambda y, v: blas.dger(2.0, v, y, a=blas.dger(1.0, v, v), overwrite_a=True)[None],
    "trsv": lambda y, v: (blas.dtrsv(square(v), y, overwrite_x=1), y),
    "gesv": lambda y, v: solved_in_place(v),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_to_arguments(name):
    f = WRITTEN[name]
    check_array_modes(lambda v: total(*f(v * 2.0, v)), V)


def test_the_result_is_the_argument_that_was_written_to(path):
    def f(v):
        y = v * 1.0
        z = blas.daxpy(v, y)
        assert z is y
        z[0] = 5.0
        c = np.zeros((4, 4))  # in rows, which routines do not compute in
        d = blas.dgemm(1.0, square(v), square(v), c=c, overwrite_c=1)
        assert d is not c
        assert not c.any()
        return np.sum(y)

    np.testing.assert_array_equal(gradient(f, V)[0], [0.0, 2.0, 2.0, 2.0])


def test_routines_that_are_looked_up(path):
    gemm, nrm2 = get_blas_funcs(("gemm", "nrm2"), (np.zeros((2, 2)),))
    (potrf,) = get_lapack_funcs(("potrf",), (np.zeros((2, 2)),))

    def f(v):
        c, info = potrf(square(v), lower=True)
        assert info == 0
        return nrm2(np.diag(gemm(1.0, c, c, trans_b=True)))

    np.testing.assert_allclose(
        gradient(f, V)[0], gradient(lambda v: np.linalg.norm(v * v + 3), V)[0]
    )


def test_single_precision_and_integers(path):
    x = np.array([1, 2, 3], np.float32)
    value, (g,) = withgradient(lambda x: np.sum(blas.saxpy(x, [1, 2, 3], a=0.5)), x)
    assert value.dtype == g.dtype == np.float32
    np.testing.assert_array_equal(g, [0.5, 0.5, 0.5])
    (g,) = gradient(lambda x: blas.ddot(x, np.arange(3)), x)
    assert g.dtype == np.float32
    np.testing.assert_array_equal(g, [0.0, 1.0, 2.0])


def test_triangles_that_are_not_read_have_no_influence():
    a, x = square(V), V * 1.0
    (g,) = gradient(lambda a: np.sum(blas.dtrsv(a, x, lower=1)), a)
    np.testing.assert_array_equal(np.triu(g, 1), np.zeros((4, 4)))
    (g,) = gradient(lambda a: np.sum(lapack.dpotrf(a)[0]), a)
    np.testing.assert_array_equal(np.tril(g, -1), np.zeros((4, 4)))


def test_degenerate_ones(path):
    np.testing.assert_array_equal(gradient(blas.dnrm2, np.zeros(3))[0], np.zeros(3))
    np.testing.assert_array_equal(gradient(blas.dasum, np.zeros(3))[0], np.zeros(3))
    assert gradient(lambda v: v[blas.idamax(v)], V)[0].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_what_is_refused():
    refused = (
        lambda v: blas.ddot(v, v, n=2),
        lambda v: blas.ddot(v, v, 2),
        lambda v: blas.dnrm2(v, incx=2),
        lambda v: np.sum(blas.daxpy(v, v * 1.0, offy=1, n=3)),
        lambda v: np.sum(blas.daxpy(v, (v * 1.0).reshape(2, 2))),
        lambda v: np.sum(blas.zsyrk(1.0, np.outer(v, v), trans=2).real),
        lambda v: np.sum(lapack.dpotrf(-square(v))[0]),
    )
    for f in refused:
        with pytest.raises(UnsupportedError):
            gradient(f, V)
        with pytest.raises(UnsupportedError):
            jvp(f, (V,), (V,))
    with pytest.raises(TypeError):
        gradient(lambda v: blas.ddot(v, v, wrong=1), V)
    with pytest.raises(TypeError, match="at most 2 arguments"):
        gradient(lambda v: lapack.dgetrf(np.outer(v, v), 0, 0)[0].sum(), V)


def test_a_failure_is_told_as_in_the_plain_call(path):
    info = lapack.dpotrf(-square(V))[1]
    assert info > 0
    (g,) = gradient(lambda v: np.sum(v) * lapack.dpotrf(-square(v))[1], V)
    np.testing.assert_array_equal(g, np.full(4, float(info)))
