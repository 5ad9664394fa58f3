"""Rules of scipy.linalg.blas and scipy.linalg.lapack: the routines that code calls by name.

    @routine(blas, "gemv", writes=("y",))
    def gemv(alpha, a, x, beta=0, y=None, …): ...      what sgemv, dgemv, cgemv and zgemv mean

The value is that of the routine; the derivative is that of the body, which takes the arguments in
the routine's dtype. Where a routine writes its result into an argument (axpy, scal, copy and swap do,
others if they may overwrite it), the argument is assigned to. Only a triangle is read of a triangular,
symmetric or Hermitian matrix, so that the rest has no influence.
Tests: tests/rules/scipy/test_blas.py
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as, without_derivative

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
PLACES = ("offx", "incx", "offy", "incy", "n")
ARRAYS = ("a", "b", "c", "x", "y", "lu")
Body = Callable[..., Any]


def routine(
    module: Any, name: str, kinds: Any = "sdcz", writes: Any = (), always: bool = False
) -> Callable[[Body], Body]:
    """Let a function tell the derivative of the routines of a name.

    `writes` are the arguments that the results of the same numbers go into, or None; `always`: whether
    they may be overwritten or not.
    """

    def register(body: Body) -> Body:
        for kind in kinds:
            fn = getattr(module, kind + name, None)
            if fn is not None:
                dtype = DTYPES["c" if "c" in kind else "z" if "z" in kind else kind]
                means(fn, kind + name, body, np.dtype(dtype), writes, always, module is lapack)
        return body

    return register


def means(
    fn: Any, name: str, body: Body, dtype: Any, writes: Any, always: bool, tells: bool
) -> None:
    """Register one routine; one that `tells` gives a number last, which is 0 for success."""
    names = tuple(inspect.signature(body).parameters)

    @instead_of(fn)
    def _(*args, **options):
        named = named_by(name, names, args, options)
        refuse_places(name, named)
        values = plain(fn, named, writes)
        converted = {k: in_dtype(x, dtype) if k in ARRAYS else x for k, x in named.items()}
        if tells and values[-1] != 0:
            results = refused(name, values, converted[names[0]])
        else:
            results = told_all(values, body(**converted))
        outs = [
            assigned(into(named, k, dtype, always), y)
            for k, y in zip((*writes, *[None] * len(results)), results, strict=False)
        ]
        return outs[0] if len(outs) == 1 else tuple(outs)


def named_by(name: str, names: Any, args: Any, options: Any) -> Any:
    """The arguments of a call by their names."""
    if len(args) > len(names):
        raise TypeError(f"{name} takes at most {len(names)} arguments ({len(args)} given)")
    return {**dict(zip(names, args, strict=False)), **options}


def refuse_places(routine_name: str, named: Any) -> None:
    """Refuse parts of arrays, that a routine can be told to take."""
    usual = {"incx": 1, "incy": 1, "offx": 0, "offy": 0, "n": None}
    for name in PLACES:
        if named.get(name, usual[name]) != usual[name]:
            raise UnsupportedError(
                f"{routine_name} with {name} has no derivative: give it a part of the array"
            )
    if any([np.ndim(named.get(name, ())) > 1 for name in ("x", "y")]):
        raise UnsupportedError(f"{routine_name} of a vector with several axes has no derivative")


def plain(fn: Any, named: Any, writes: Any) -> tuple[Any, ...]:
    """What a routine gives, without changing an argument; always a tuple."""
    options = {k: x for k, x in named.items() if not k.startswith("overwrite_")}
    for k in writes:
        if k is not None and isinstance(options.get(k), np.ndarray):
            options[k] = options[k].copy("K")
    found = fn(**options)
    return found if isinstance(found, tuple) else (found,)


def in_dtype(x: Any, dtype: Any) -> Any:
    """An argument as the routine takes it."""
    return x if x is None else np.asarray(x, dtype)


def refused(name: str, values: Any, witness: Any) -> list[Any]:
    """The results of a routine that failed."""
    what = f"{name} failed with info = {values[-1]}: its results have no derivative"
    return [
        without_derivative(y, what, UnsupportedError, witness) if is_inexact(y) else y
        for y in values
    ]


def is_inexact(y: Any) -> bool:
    """Is it an array of numbers that have derivatives?"""
    return isinstance(y, np.ndarray) and y.dtype.kind in "fc"


def told_all(values: Any, derived: Any) -> list[Any]:
    """The results, of which the first ones have derivatives."""
    derived = derived if isinstance(derived, tuple) else (derived,)
    told = [told_one(v, d) for v, d in zip(values, derived, strict=False)]
    return [*told, *values[len(told) :]]


def told_one(value: Any, derived: Any) -> Any:
    """A result with its derivative; None: it is constant."""
    if derived is None:
        return value
    return told_as(value, np.reshape(derived, value.shape) if np.ndim(value) else derived)


def into(named: Any, name: str | None, dtype: Any, always: bool) -> Any:
    """The argument that a routine writes its result to, if it does."""
    x = None if name is None else named.get(name)
    allowed = always or named.get(f"overwrite_{name}")
    if not allowed or not isinstance(x, np.ndarray) or not fits(x, dtype):
        return None
    return x


def fits(x: Any, dtype: Any) -> bool:
    """Can a routine compute in the memory of an array?"""
    return bool(x.dtype == dtype and x.flags.f_contiguous and x.flags.aligned and x.flags.writeable)


def assigned(x: Any, y: Any) -> Any:
    """The result, which is the argument that it was written to, if there is one."""
    if x is None:
        return y
    x[...] = np.reshape(y, x.shape)
    return x


non_differentiable(refuse_places, plain, fits, is_inexact)

# -- triangles, symmetric and Hermitian matrices ---------------------------------------------------


def triangle(a: Any, lower: Any, unit: Any = 0) -> Any:
    """One triangle of a matrix, whose diagonal may count as ones."""
    part = np.tril(a, -1 if unit else 0) if lower else np.triu(a, 1 if unit else 0)
    return part + np.eye(len(a), dtype=a.dtype) if unit else part


def other_triangle(a: Any, lower: Any) -> Any:
    """What is not in it."""
    return np.triu(a, 1) if lower else np.tril(a, -1)


def symmetric(a: Any, lower: Any) -> Any:
    """The symmetric matrix of which a triangle is given."""
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    return strict + strict.T + np.diag(np.diagonal(a))


def hermitian(a: Any, lower: Any) -> Any:
    """The Hermitian matrix of which a triangle is given; its diagonal counts as real."""
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    return strict + np.conjugate(strict).T + np.diag(np.diagonal(a).real)


def turned(a: Any, trans: Any) -> Any:
    """A matrix, its transpose (1) or its conjugate transpose (2)."""
    if not trans:
        return a
    return a.T if trans == 1 else np.conjugate(a).T


def added(part: Any, beta: Any, y: Any) -> Any:
    """A part and beta y, if y is given."""
    return part if y is None else part + beta * y


def kept(part: Any, beta: Any, c: Any, lower: Any) -> Any:
    """The same in one triangle; the rest is what c has there."""
    inner = triangle(added(part, beta, c), lower)
    return inner if c is None else inner + other_triangle(c, lower)


def solved(a: Any, b: Any, lower: Any, trans: Any, unit: Any) -> Any:
    """The solution of op(T) x = b, T being a triangle of a."""
    T = turned(triangle(a, lower, unit), trans)
    return linalg.solve_triangular(T, b, lower=bool(lower) != bool(trans))


# -- vectors ---------------------------------------------------------------------------------------


def vector(x: Any) -> Any:
    """With one axis."""
    return np.ravel(x)


@routine(blas, "dot", "sd")
@routine(blas, "dotu", "cz")
def dot(x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """Σ x y."""
    x = vector(x)
    return np.sum(x * vector(y)[: len(x)])


@routine(blas, "dotc", "cz")
def dotc(x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """Σ x̄ y."""
    return dot(np.conjugate(x), y)


@routine(blas, "nrm2", ("s", "d", "sc", "dz"))
def nrm2(x, n=None, offx=0, incx=1):
    """The length of a vector."""
    return np.linalg.norm(vector(x))


@routine(blas, "asum", ("s", "d", "sc", "dz"))
def asum(x, n=None, offx=0, incx=1):
    """The sum of the absolute values, of real and imaginary parts by themselves."""
    if x.dtype.kind == "c":
        return np.sum(np.abs(x.real)) + np.sum(np.abs(x.imag))
    return np.sum(np.abs(x))


@routine(blas, "axpy", writes=("y",), always=True)
def axpy(x, y, n=None, a=1.0, offx=0, incx=1, offy=0, incy=1):
    """a x + y."""
    return headed(vector(y)[: np.size(x)] + a * vector(x), y)


def headed(part: Any, y: Any) -> Any:
    """What is shorter, and then the rest of y."""
    n = len(part)
    return part if n == np.size(y) else np.concatenate((part, vector(y)[n:]))


@routine(blas, "scal", writes=("x",), always=True)
def _scal(a, x, n=None, offx=0, incx=1):
    """a x."""
    return a * x


@routine(blas, "scal", ("cs", "zd"), writes=("x",))
def _scal_by_real(a, x, n=None, offx=0, incx=1, overwrite_x=0):
    """a x with real a."""
    return np.real(a) * x


@routine(blas, "copy", writes=("y",), always=True)
def _copy(x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """x, in the place of y."""
    return headed(vector(x), y)


@routine(blas, "swap", writes=("x", "y"), always=True)
def _swap(x, y, n=None, offx=0, incx=1, offy=0, incy=1):
    """y and x."""
    n = np.size(x)
    return vector(y)[:n], headed(vector(x), y)


# -- matrices and vectors --------------------------------------------------------------------------


@routine(blas, "gemv", writes=("y",))
def gemv(
    alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, trans=0, overwrite_y=0
):  # fmt: skip
    """alpha op(a) x + beta y."""
    op = turned(a, trans)
    return added(alpha * np.dot(op, vector(x)[: op.shape[1]]), beta, y)


@routine(blas, "symv", writes=("y",))
def symv(
    alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, lower=0, overwrite_y=0
):  # fmt: skip
    """alpha a x + beta y with symmetric a."""
    return gemv(alpha, symmetric(a, lower), x, beta, y)


@routine(blas, "hemv", "cz", writes=("y",))
def hemv(
    alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, lower=0, overwrite_y=0
):  # fmt: skip
    """alpha a x + beta y with Hermitian a."""
    return gemv(alpha, hermitian(a, lower), x, beta, y)


@routine(blas, "trmv", writes=("x",))
def trmv(a, x, offx=0, incx=1, lower=0, trans=0, diag=0, overwrite_x=0):
    """op(a) x with triangular a."""
    return np.dot(turned(triangle(a, lower, diag), trans), vector(x))


@routine(blas, "trsv", writes=("x",))
def trsv(a, x, incx=1, offx=0, lower=0, trans=0, diag=0, overwrite_x=0):
    """The solution of op(a) z = x with triangular a."""
    return solved(a, vector(x), lower, trans, diag)


@routine(blas, "ger", "sd", writes=("a",))
@routine(blas, "geru", "cz", writes=("a",))
def ger(alpha, x, y, incx=1, incy=1, a=None, overwrite_x=1, overwrite_y=1, overwrite_a=0):
    """alpha x yᵀ + a."""
    return added(alpha * np.outer(x, y), 1.0, a)


@routine(blas, "gerc", "cz", writes=("a",))
def gerc(alpha, x, y, incx=1, incy=1, a=None, overwrite_x=1, overwrite_y=1, overwrite_a=0):
    """alpha x yᴴ + a."""
    return ger(alpha, x, np.conjugate(y), a=a)


# -- matrices --------------------------------------------------------------------------------------


@routine(blas, "gemm", writes=("c",))
def gemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0):
    """alpha op(a) op(b) + beta c."""
    return added(alpha * np.dot(turned(a, trans_a), turned(b, trans_b)), beta, c)


@routine(blas, "symm", writes=("c",))
def symm(alpha, a, b, beta=0.0, c=None, side=0, lower=0, overwrite_c=0):
    """alpha a b + beta c, or b a, with symmetric a."""
    S = symmetric(a, lower)
    return added(alpha * (np.dot(b, S) if side else np.dot(S, b)), beta, c)


@routine(blas, "hemm", "cz", writes=("c",))
def hemm(alpha, a, b, beta=0.0, c=None, side=0, lower=0, overwrite_c=0):
    """alpha a b + beta c, or b a, with Hermitian a."""
    H = hermitian(a, lower)
    return added(alpha * (np.dot(b, H) if side else np.dot(H, b)), beta, c)


@routine(blas, "syrk", writes=("c",))
def syrk(alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """A triangle of alpha a aᵀ + beta c, or of aᵀ a."""
    refuse_turn(trans, 2 if a.dtype.kind == "c" else None)
    return kept(alpha * (np.dot(a.T, a) if trans else np.dot(a, a.T)), beta, c, lower)


@routine(blas, "syr2k", writes=("c",))
def syr2k(alpha, a, b, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """A triangle of alpha (a bᵀ + b aᵀ) + beta c, or of aᵀ b + bᵀ a."""
    refuse_turn(trans, 2 if a.dtype.kind == "c" else None)
    half = np.dot(a.T, b) if trans else np.dot(a, b.T)
    return kept(alpha * (half + half.T), beta, c, lower)


@routine(blas, "herk", "cz", writes=("c",))
def herk(alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """A triangle of alpha a aᴴ + beta c, or of aᴴ a, with real alpha, beta and diagonal."""
    refuse_turn(trans, 1)
    H = np.conjugate(a).T
    part = np.real(alpha) * (np.dot(H, a) if trans else np.dot(a, H))
    return kept(part, np.real(beta), None if c is None else real_on_diagonal(c), lower)


def refuse_turn(trans: Any, unknown: Any) -> None:
    """Refuse what the routine only complains of, to leave its result as it was."""
    if trans == unknown:
        raise UnsupportedError(f"BLAS has no such routine with trans={trans}: it computes nothing")


def real_on_diagonal(c: Any) -> Any:
    """The imaginary part of the diagonal is not read."""
    return c - 1j * np.diag(np.diagonal(c).imag)


@routine(blas, "trmm", writes=("b",))
def trmm(alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """alpha op(a) b, or b op(a), with triangular a."""
    T = turned(triangle(a, lower, diag), trans_a)
    return alpha * (np.dot(b, T) if side else np.dot(T, b))


@routine(blas, "trsm", writes=("b",))
def trsm(alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """The solution of op(a) x = alpha b, or of x op(a) = alpha b, with triangular a."""
    if not side:
        return solved(a, alpha * b, lower, trans_a, diag)
    T = turned(triangle(a, lower, diag), trans_a)
    return linalg.solve_triangular(T.T, alpha * b.T, lower=bool(lower) == bool(trans_a)).T


non_differentiable(blas.isamax, blas.idamax, blas.icamax, blas.izamax)

# -- factors ---------------------------------------------------------------------------------------


@routine(lapack, "potrf", writes=("a",))
def potrf(a, lower=0, clean=1, overwrite_a=0):
    """The Cholesky factor of the Hermitian matrix of which a triangle is given."""
    L = np.linalg.cholesky(hermitian(a, lower))
    factor = L if lower else np.conjugate(L).T
    return factor if clean else factor + other_triangle(a, lower)


@routine(lapack, "potrs", writes=("b",))
def potrs(c, b, lower=0, overwrite_b=0):
    """The solution for the matrix of which the Cholesky factor is given."""
    first, second = (0, 2) if lower else (2, 0)
    return solved(c, solved(c, b, lower, first, 0), lower, second, 0)


@routine(lapack, "getrf", writes=("a",))
def getrf(a, overwrite_a=0):
    """The factors of a = P L U, in one matrix."""
    return linalg.lu_factor(a)[0], None


@routine(lapack, "getrs", writes=("b",))
def getrs(lu, piv, b, trans=0, overwrite_b=0):
    """The solution for the matrix of which the factors are given."""
    return linalg.lu_solve((lu, piv), b, trans)


@routine(lapack, "gesv", writes=("a", None, "b"))
def gesv(a, b, overwrite_a=0, overwrite_b=0):
    """The factors, and the solution of a x = b."""
    return linalg.lu_factor(a)[0], None, linalg.solve(a, b)


@routine(lapack, "trtrs", writes=("b",))
def trtrs(a, b, lower=0, trans=0, unitdiag=0, lda=None, overwrite_b=0):
    """The solution of op(a) x = b with triangular a."""
    return solved(a, b, lower, trans, unitdiag)
