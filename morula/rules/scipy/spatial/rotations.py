"""Rules of the compiled functions behind scipy.spatial.transform.Rotation.

The class is Python of SciPy's, which is followed; so are Slerp and RotationSpline. What it calls are
functions of arrays of quaternions, one in a row. Stacks with more axes go by Python as well, whose
functions of an angle are made smooth where that is zero.
Where a class is compiled itself, in older versions of SciPy, there are no rules.
Tests: tests/rules/scipy/test_rotations.py
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from types import FunctionType
from typing import Any

import numpy as np
from scipy.spatial import transform

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.spatial import alignment, euler
from morula.rules.scipy.spatial.quaternions import (
    conjugate,
    matrix_of,
    of_matrix,
    of_parameters,
    of_vector,
    parameters_of,
    power,
    product,
    rolled,
    sign_of,
    unit,
    vector_of,
)
from morula.rules.versions import present


def compiled(name: str, module: str = "_rotation_cy") -> list[Any]:
    """The compiled function of this name, if this version has it."""
    return [f for part in present(transform, module) for f in present(part, name)]


def in_arrays(y: Any) -> Any:
    """Results in memory that Cython has made, in arrays of their own, which may be written to."""
    if isinstance(y, tuple):
        return tuple([in_arrays(item) for item in y])
    if isinstance(y, np.ndarray):
        return y if y.base is None or isinstance(y.base, np.ndarray) else y.copy()
    return np.array(y) if isinstance(y, Sized) else y


def derivatives_of(kernels: list[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function tell the derivative of compiled functions; the values are theirs."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for kernel in kernels:
            _register(body, kernel)
        return body

    return register


def _register(body: Callable[..., Any], kernel: Any) -> None:
    owned = owning(kernel, body)

    @instead_of(kernel)
    def called(*args: Any, **kwargs: Any) -> Any:
        return owned(*args, **kwargs)


def owning(kernel: Any, body: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which gives new arrays, with the derivative of a body."""

    def owned(*args: Any, **kwargs: Any) -> Any:
        return in_arrays(kernel(*args, **kwargs))

    derivative_of(owned)(body)
    return owned


def of_many_axes(name: str, module: str = "_rotation_xp") -> Callable[..., Callable[..., Any]]:
    """Let a body tell the derivative of SciPy's function of any library's arrays for NumPy's."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for fn in compiled(name, module):
            _of_many_axes(body, fn)
        return body

    return register


def _of_many_axes(body: Callable[..., Any], fn: Any) -> None:
    of_others = FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    owned = owning(fn, body)

    @instead_of(fn)
    def called(x: Any, *rest: Any, **keywords: Any) -> Any:
        if isinstance(x, np.ndarray):
            return owned(x, *rest, **keywords)
        return of_others(x, *rest, **keywords)


# -- from something, and as something --------------------------------------------------------------


def from_quat(quat: Any, normalize: Any = True, copy: Any = True, scalar_first: Any = False) -> Any:
    """Quaternions with the scalar behind, made units or not."""
    q = rolled(np.asarray(quat), scalar_first, -1)
    return unit(q) if normalize else q


def _shares_memory(kernel: Any) -> None:
    owned = owning(kernel, from_quat)

    @instead_of(kernel)
    def called(
        quat: Any, normalize: Any = True, copy: Any = True, scalar_first: Any = False
    ) -> Any:
        if normalize or copy or scalar_first:
            return owned(quat, normalize, copy, scalar_first)
        return np.asarray(quat, dtype=float)


for _kernel in compiled("from_quat"):
    _shares_memory(_kernel)


@derivatives_of(compiled("as_quat"))
def as_quat(quat: Any, canonical: Any = False, *, scalar_first: Any = False) -> Any:
    """Quaternions, if wanted those of the two signs whose scalar is not negative."""
    q = quat * sign_of(quat) if canonical else quat
    return rolled(q, scalar_first, 1)


@of_many_axes("from_rotvec")
@derivatives_of(compiled("from_rotvec"))
def from_rotvec(rotvec: Any, degrees: Any = False) -> Any:
    """The quaternions of vectors along the axis, as long as the angle."""
    v = np.asarray(rotvec, dtype=float)
    return of_vector(np.deg2rad(v) if degrees else v)


@of_many_axes("as_rotvec")
@derivatives_of(compiled("as_rotvec"))
def as_rotvec(quat: Any, degrees: Any = False) -> Any:
    """Vectors along the axis, as long as the angle."""
    v = vector_of(quat)
    return np.rad2deg(v) if degrees else v


@derivatives_of(compiled("magnitude"))
def magnitude(quat: Any) -> Any:
    """The angles; that of no rotation has the slope zero."""
    return 2 * np.arctan2(np.linalg.norm(quat[..., :3], axis=-1), np.abs(quat[..., 3]))


@derivatives_of(compiled("from_mrp"))
def from_mrp(mrp: Any) -> Any:
    """The quaternions of modified Rodrigues parameters."""
    return of_parameters(np.asarray(mrp, dtype=float))


@derivatives_of(compiled("_from_matrix_orthogonal"))
def from_orthogonal(matrix: Any) -> Any:
    """The quaternions of rotation matrices."""
    return of_matrix(matrix)


derivatives_of(compiled("as_matrix"))(matrix_of)
derivatives_of(compiled("as_mrp"))(parameters_of)
derivatives_of(compiled("from_matrix"))(alignment.from_matrix)
derivatives_of(compiled("from_euler"))(euler.from_euler)
derivatives_of(compiled("as_euler"))(euler.as_euler)
derivatives_of(compiled("from_davenport"))(euler.from_davenport)
derivatives_of(compiled("as_davenport"))(euler.as_davenport)
non_differentiable(*compiled("approx_equal"), *compiled("identity"), *compiled("random"))

# -- with each other -------------------------------------------------------------------------------


@derivatives_of(compiled("apply"))
def apply(quat: Any, vectors: Any, inverse: Any = False) -> Any:
    """Rotated vectors; one rotation or one vector stands for many."""
    M = matrix_of(conjugate(quat) if inverse else quat)
    return np.matmul(M, np.asarray(vectors)[..., None])[..., 0]


derivatives_of(compiled("inv"))(conjugate)


def _powers(kernel: Any) -> None:
    owned = owning(kernel, power)

    @instead_of(kernel)
    def called(quat: Any, n: Any) -> Any:
        return quat if isinstance(n, int) and n == 1 else owned(quat, n)


for _kernel in compiled("pow"):
    _powers(_kernel)
derivatives_of(compiled("compose_quat"))(product)
derivatives_of(compiled("mean"))(alignment.mean)
derivatives_of(compiled("align_vectors"))(alignment.align_vectors)


def best_of(quat: Any, left: Any, right: Any) -> Any:
    """Which of the rotations on the left and on the right make the angles smallest."""
    (kernel,) = compiled("reduce")
    return kernel(quat, left, right)[1:]


non_differentiable(best_of)


def reduce(quat: Any, left: Any = None, right: Any = None) -> Any:
    """The rotations with those on both sides that make the angles smallest, and which these are."""
    if left is None and right is None:
        return quat, None, None
    i, j = best_of(quat, left, right)
    q = quat if right is None else product(quat, right[j])
    return q if left is None else product(left[i], q), i, j


derivatives_of(compiled("reduce"))(reduce)


@instead_of(*compiled("setitem"))
def setitem(quat: Any, value: Any, indexer: Any) -> Any:
    """Some quaternions become others."""
    quat[indexer] = value
    return quat
