"""Jacobians and second derivatives: jacobian, hessian, hvp, diaghessian, forwarddiff.

A Jacobian is made of columns by forward mode or of rows by reverse mode, whichever are fewer. Second
derivatives are the pushforward of the gradient, forward over reverse; of numbers and arrays of NumPy's
they come from a compiled program, the gradient of a product with the gradient, where there is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from morula.core import errors, memory
from morula.core.callables import by_position
from morula.core.compiled import leaves_nothing
from morula.core.context import adjoint_of, is_reached_at, isolated
from morula.core.cotangents import ZERO, Thunk, accumulate, is_zero, unthunk
from morula.core.general import call, changes, held_by, holds
from morula.core.gradients import Transformed
from morula.core.interface import grad, gradient_product, pullback, pulled_product
from morula.core.registry import called_whole, non_differentiable
from morula.core.shipped import meet
from morula.core.traits import (
    Known,
    adjoint_object,
    expected_results,
    from_memory,
    in_several_runs,
    inlined,
    typed_bodies,
)
from morula.core.values import known
from morula.mixed_mode.directions import chunks, pushed_along
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.pushforward import jvp, pushed_again
from morula.mixed_mode.repetition import Repetition, begin, end, repetition
from morula.mixed_mode.tangents import Pass, absorb, zeros_like
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.traits import tangent_dtype, whole_shape
from morula.rules.calls import entry, serves
from morula.rules.checkpoints import is_nested
from morula.rules.containers import lengthen
from morula.rules.vectors import inner, inner_of_tuples

_MISSING = object()


# -- arrays of entries -----------------------------------------------------------------------------


class Library(NamedTuple):
    """A library of arrays: its types, its functions by NumPy's names, which dtypes have tangents."""

    types: tuple[type, ...]
    module: Any
    is_inexact: Callable[[Any], bool]
    is_complex: Callable[[Any], bool]


libraries: list[Library] = []  # besides NumPy


def library_of(x: Any) -> Library | None:
    """The library that an array is of; None: NumPy, or it is no array."""
    meet(type(x))
    return next((library for library in libraries if isinstance(x, library.types)), None)


def functions_for(x: Any) -> Any:
    """The functions of NumPy's, or their like for an array of another library."""
    library = library_of(x)
    return np if library is None else library.module


class Space(NamedTuple):
    """Where the tangents of a number or an array are: its shape, their dtype."""

    shape: tuple[int, ...]
    dtype: Any
    is_complex: bool

    @property
    def size(self) -> int:
        """How many entries."""
        return math.prod(self.shape)


def space_of(x: Any, what: str) -> Space:
    """The space of the tangents of a number or an array of numbers."""
    library = library_of(x)
    if library is not None:
        if not library.is_inexact(x.dtype):
            raise errors.ArgumentError(f"{what} has the dtype {x.dtype}, which has no derivative")
        return Space(tuple(x.shape), x.dtype, library.is_complex(x.dtype))
    if isinstance(x, bool) or not isinstance(x, (int, float, complex, np.ndarray, np.generic)):
        raise errors.ArgumentError(
            f"{what} is a {type(x).__name__}, Jacobians and Hessians are of numbers and arrays: use "
            "ravel for a structure, or grad, jvp and pullback, which take any"
        )
    of_x = np.asarray(x).dtype
    dtype = tangent_dtype(of_x)
    if dtype is None or dtype.kind == "O":
        raise errors.ArgumentError(f"{what} has the dtype {of_x}, which has no derivative")
    return Space(np.shape(x), dtype, dtype.kind == "c")


def basis(x: Any, space: Space, i: int) -> Any:
    """The tangent of `x` that is one in its i-th entry."""
    dtype = space.dtype
    if not isinstance(dtype, np.dtype):  # a library's own: it takes tangents of NumPy's
        dtype = np.dtype(complex if space.is_complex else float)
    if not space.shape and not isinstance(x, np.ndarray):
        return dtype.type(1)
    e = np.zeros(space.size, dtype)
    e[i] = 1
    return e.reshape(space.shape)


def like_argument(x: Any, space: Space, table: Any) -> Any:
    """A Jacobian by a number or an array is of the library that that is of, whatever the result was."""
    library = library_of(x)
    if library_of(table) is library:
        return table
    if library is not None:
        return library.module.asarray(table)
    table = np.asarray(table)
    return table.astype(np.result_type(space.dtype, 1j) if table.dtype.kind == "c" else space.dtype)


non_differentiable(space_of, basis, library_of, functions_for)


# -- Jacobians -------------------------------------------------------------------------------------


def jacobian(
    f: Callable[..., Any], /, *args: Any, mode: str | None = None, sparsity: Any = None
) -> Any:
    """The Jacobians of `f` by its arguments, one for each; or a function that gives them.

    Args:
        f: function of numbers and arrays that gives a number or an array.
        args: where; without any, the result is a function of them that gives the bare Jacobian if
            there is one argument, and hands keyword arguments on to `f`.
        mode: "forward" runs `f` along all entries of the arguments, several of them at once;
            "reverse" pulls back once per entry of the result; None goes by which are fewer.
        sparsity: "auto" finds out which entries can be other than zero, computes them in as few
            runs as columns that overlap need, and gives `scipy.sparse` matrices; a sparse matrix of
            that pattern is taken for the one argument.
    Returns:
        A tuple of arrays of shape `y.shape + x.shape`, numbers where both are numbers. Where an
        argument and the result are complex, the derivative of a holomorphic function; where only
        the argument is, J with dy = Re(J dz), the conjugate of the gradient.
    Raises:
        TypeError: an argument or the result is no number and no array of numbers.

    >>> jacobian(lambda x: x * x[0], np.array([1.0, 2.0]))
    (array([[2., 0.],
           [2., 1.]]),)
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"mode is 'forward', 'reverse' or None, not {mode!r}")
    if not args:
        made = functools.partial(bare_jacobian, mode, sparsity)
        return transformed(jacobian, f, {"mode": mode, "sparsity": sparsity}, made)
    if sparsity is not None:
        from morula.mixed_mode.sparsity import sparse_jacobian

        return sparse_jacobian(f, args, sparsity)
    return dense_jacobian(f, args, mode)


def bare_jacobian(mode: Any, sparsity: Any, f: Any, *args: Any) -> Any:
    """What `jacobian(f)` gives for arguments."""
    found = jacobian(f, *args, mode=mode, sparsity=sparsity)
    return found[0] if len(found) == 1 else found


def transformed(transform: Any, f: Any, options: dict[str, Any], made: Any) -> Any:
    """What a transform gives for a function alone: what is `made` of it at arguments."""
    at = functools.update_wrapper(general_transformed(transform, f, options, made), f, updated=())
    return Transformed(transform, f, options, at)


@instead_of(transformed)
def general_transformed(_transform: Any, f: Any, _options: dict[str, Any], made: Any) -> Any:
    """The same as differentiated code sees it."""

    def at(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        return made(functools.partial(f, **kwargs) if kwargs else f, x, *args)

    return at


def dense_jacobian(f: Any, args: tuple[Any, ...], mode: str | None) -> tuple[Any, ...]:
    """The Jacobians by all arguments."""
    spaces = [space_of(x, f"argument {i}") for i, x in enumerate(args)]
    columns = sum([space.size for space in spaces])
    most_rows = {"forward": 0, "reverse": math.inf, None: columns}[mode]
    if mode == "forward" and not is_nested():
        units = units_of(spaces)
        if units and all_real(spaces):
            found = pushed_again(f, args, [unit_along(args, spaces, *unit) for unit in units])
            if found is not None:
                return tables_of(args, spaces, found[1])
    product = known_product(f, args, most_rows)
    again = None if product is not None else repetition((f, args), is_nested())
    if mode != "forward":
        y, back = once(again, pullback_for, f, args, product)
        of_result = space_of(y, "the result")
        fewer_rows = of_result.size <= columns and all_real([of_result, *spaces])
        if mode == "reverse" or fewer_rows:
            return by_rows(args, spaces, y, of_result, back)
    return by_columns(f, args, spaces, again)


def pullback_for(f: Any, args: tuple[Any, ...], product: Any) -> tuple[Any, Any]:
    """The value of `f` and its pullback; a compiled one runs `f` anew for each cotangent."""
    if product is None:
        y, back = pullback(f, *args)
        note_result(f, y)
        return y, back
    y = f(*args)

    def pull(ȳ: Any) -> Any:
        return product(args[0], float(ȳ) if type(y) is float else ȳ, *args[1:])

    return y, pull


def known_product(f: Any, args: tuple[Any, ...], most_rows: float) -> Any:
    """The compiled product of a cotangent and the Jacobian, for a function without effects.

    None the first time: one Jacobian is not worth the compilation.
    """
    found = _results.get(id(getattr(f, "__code__", None)))
    if found is None or np.size(found[1]) > most_rows:
        return None
    if is_nested() or not all([is_real(x) for x in args]):
        return None
    return pulled_product(f, inner, by_pullback, args, found[1])


def note_result(f: Any, y: Any) -> None:
    """Remember what kind of result a function has given."""
    if type(f) is FunctionType and (is_real(y) or type(y) is np.float64):
        _results[id(f.__code__)] = f.__code__, np.ones_like(y) if isinstance(y, np.ndarray) else y


_results: dict[int, tuple[Any, Any]] = {}  # by code


def by_pullback(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the program of `pullback_for` does where only the general path will do."""
    x, ȳ, *rest = args
    return pullback(f, x, *rest)[1](ȳ)


non_differentiable(known_product, note_result)


def once(again: Any, run: Any, /, *args: Any) -> Any:
    """A run that finds what the first has found, and leaves what that has left; None: they all do."""
    if again is None:
        return run(*args)
    begin(again)
    try:
        return run(*args)
    finally:
        end(again)


def all_real(spaces: Any) -> bool:
    """Are these all real?"""
    return not any(space.is_complex for space in spaces)


non_differentiable(all_real)


def units_of(spaces: Any) -> list[tuple[int, int]]:
    """All entries of all arguments: the number of the argument, and of the entry."""
    return [(k, i) for k, space in enumerate(spaces) for i in range(space.size)]


def unit_along(args: tuple[Any, ...], spaces: Any, k: int, i: int) -> tuple[Any, ...]:
    """The direction along an entry of an argument: a tangent for each, None for a zero."""
    return tuple([basis(x, spaces[k], i) if j == k else None for j, x in enumerate(args)])


def by_columns(f: Any, args: tuple[Any, ...], spaces: Any, again: Any) -> tuple[Any, ...]:
    """The derivatives along each entry of each argument, many in one run of `f`."""

    def direction(k: int, i: int) -> Any:
        return basis(args[k], spaces[k], i)

    columns = columns_along(f, args, units_of(spaces), direction, again)
    if all([space.size for space in spaces]):
        return tables_of(args, spaces, columns)
    return tables_of(args, spaces, columns, once(again, f, *args))


def tables_of(
    args: tuple[Any, ...], spaces: Any, columns: list[Any], y: Any = None
) -> tuple[Any, ...]:
    """The Jacobians from all their columns; of those without any, y says the shape."""
    all_columns = iter(columns)
    found = []
    for k, x in enumerate(args):
        space = spaces[k]
        xp = functions_for(x)
        columns = [next(all_columns) for _ in range(space.size)]
        if not columns:
            of_result = space_of(y, "the result")
            shape = of_result.shape + space.shape
            table = functions_for(y).zeros(shape, dtype=of_result.dtype)
            found.append(like_argument(x, space, table))
            continue
        space_of(columns[0], "the result")  # refuses what is no number and no array
        columns = [like_argument(x, space, column) for column in columns]
        if not space.shape and not isinstance(x, np.ndarray):
            found.append(columns[0])
        else:
            table = xp.stack(columns, axis=-1)
            found.append(xp.reshape(table, tuple(np.shape(columns[0])) + space.shape))
    return tuple(found)


def columns_along(
    f: Any, args: tuple[Any, ...], units: list[Any], direction: Any, again: Any
) -> list[Any]:
    """The derivatives along `direction(k, i)` of argument k, for all (k, i) among the units.

    Of a real result by a complex argument there are two: along e and along i e.
    """
    found = []
    for some in chunks(units):
        columns = [(k, direction(k, i)) for k, i in some]
        real = along_each(f, args, columns, again)
        both = [j for j, (_, e) in enumerate(columns) if is_complex(e) and not is_complex(real[j])]
        turned = [(columns[j][0], 1j * columns[j][1]) for j in both]
        for j, imaginary in zip(both, along_each(f, args, turned, again), strict=True):
            real[j] = real[j] - 1j * imaginary
        found += real
    return found


def is_complex(x: Any) -> bool:
    """Is it a complex number or array?"""
    return space_of(x, "the result").is_complex


non_differentiable(is_complex)


def along_each(f: Any, args: tuple[Any, ...], columns: list[Any], again: Any) -> list[Any]:
    """The derivatives along directions of one argument each, in one run."""
    if not columns:
        return []
    directions = [tuple([e if i == k else None for i in range(len(args))]) for k, e in columns]
    found = None if is_nested() else pushed_again(f, args, directions)
    return (once(again, pushed_along, f, args, directions) if found is None else found)[1]


def by_rows(
    args: tuple[Any, ...], spaces: Any, y: Any, of_result: Any, back: Any
) -> tuple[Any, ...]:
    """A run of the pullback for each entry of the result.

    Of a complex result, a cotangent of one gives the conjugate of a row of the holomorphic derivative,
    or the real part of a row by a real argument, and one of i the imaginary part.
    """
    units = [basis(y, of_result, i) for i in range(of_result.size)]
    rows = [back(e) for e in units]
    in_parts = of_result.is_complex and not all([space.is_complex for space in spaces])
    imaginary = [back(1j * e) for e in units] if in_parts else []
    found = []
    for k, x in enumerate(args):
        space = spaces[k]
        xp = functions_for(x)
        if not rows:
            found.append(xp.zeros(of_result.shape + space.shape, dtype=space.dtype))
            continue
        if space.is_complex:
            mine = [xp.conjugate(row[k]) for row in rows]
        elif of_result.is_complex:
            mine = [re[k] + 1j * im[k] for re, im in zip(rows, imaginary, strict=True)]
        else:
            mine = [row[k] for row in rows]
        if not of_result.shape and not isinstance(y, np.ndarray):
            found.append(mine[0])
        else:
            found.append(xp.reshape(xp.stack(mine), of_result.shape + space.shape))
    return tuple(found)


# -- second derivatives ----------------------------------------------------------------------------


def hvp(f: Callable[..., Any], x: Any, v: Any, *args: Any) -> Any:
    """The Hessian of `f` at `x` times `v`, never formed: the pushforward of the gradient along `v`.

    Args:
        f: real function of x, and of `args`, which are constant, as SciPy's `hessp` wants it.
        x: point; any structure.
        v: direction, like x.
    Returns:
        Like x; costs a few evaluations of `f`.
    Reference: Pearlmutter, Fast exact multiplication by the Hessian, Neural Comput. 6(1), 1994.

    >>> hvp(lambda x: x**3, 2.0, 1.0)
    12.0
    """
    product = product_for(f if args else by_position(f), x)
    return general_hvp(f, x, v, *args) if product is None else product(x, like(x, v), *args)


def general_hvp(f: Callable[..., Any], x: Any, v: Any, *args: Any) -> Any:
    """`hvp` by forward over reverse mode."""
    return jvp(lambda x: grad(f)(x, *args), (x,), (v,))[1]


def by_general_path(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the functions of `product_for` do where there is no program."""
    return general_hvp(f, *args)


def product_for(f: Any, x: Any) -> Any:
    """`(x, v, *args)` -> the Hessian times v, compiled; None where only the general path will do."""
    if not is_real(x):
        return None
    return gradient_product(f, inner_of_tuples if type(x) is tuple else inner, by_general_path)


def is_real(x: Any) -> bool:
    """Is it a float, an array of floats, or a tuple of these?"""
    if type(x) is tuple:
        return all(map(is_real, x))
    return type(x) is float or (type(x) is np.ndarray and x.dtype.kind == "f")


def like(x: Any, v: Any) -> Any:
    """A direction in the space of x, which is real."""
    alike = type(v) is type(x) is not tuple
    if alike and (type(x) is float or (v.dtype == x.dtype and v.shape == x.shape)):
        return v
    return filled(x, absorb(Pass(), x, v, "argument 0"))


def filled(x: Any, ẋ: Any) -> Any:
    """The same tangent with zeros where it is structurally zero."""
    if type(x) is tuple:
        return tuple([filled(part, entry(ẋ, i)) for i, part in enumerate(x)])
    return zeros_like(x) if is_zero(ẋ) else ẋ


def real_hvp(f: Any, x: Any, v: Any, *args: Any) -> Any:
    """`hvp` of a float, or an array of floats, by gradients of gradients."""
    return grad(lambda x: inner(grad(f)(x, *args), v))(x)


@serves(hvp)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _, x, v, *_ = args
    by_gradients = is_real(x) and type(v) is type(x) is not tuple
    return call(real_hvp if by_gradients else general_hvp, *args, **kwargs)


def hessian(f: Callable[..., Any], x: Any = _MISSING, *args: Any, sparsity: Any = None) -> Any:
    """The Hessian of `f` at `x`, of shape `x.shape + x.shape`; `hessian(f)` is a function of `x`.

    Args:
        f: real function of x, and of `args`, which are constant, as SciPy's `hess` wants it.
        x: point; a number or an array. Without it, the result is a function of x and `args`, which
            hands keyword arguments on to `f`.
        sparsity: "auto" finds out which entries can be other than zero, and computes them by as few
            products as a star colouring needs; a sparse matrix is taken for that pattern. The
            result is a matrix of `scipy.sparse`, of shape `(x.size, x.size)`.

    >>> hessian(lambda x: x[0] ** 2 * x[1], np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if x is _MISSING:
        made = hessian if sparsity is None else functools.partial(hessian, sparsity=sparsity)
        return transformed(hessian, f, {} if sparsity is None else {"sparsity": sparsity}, made)
    if sparsity is not None:
        return hessian_by_keyword(f, x, *args, sparsity=sparsity)
    space = space_of(x, "argument 0")
    product = product_for(f, x)
    known = product is not None and leaves_nothing(product)
    again = None if known else repetition((f, x, args), False)
    if product is None or space.size == 0:
        return by_columns(lambda x: grad(f)(x, *args), (x,), [space], again)[0]
    rows = [once(again, product, x, basis(x, space, i), *args) for i in range(space.size)]
    return rows[0] if type(x) is float else np.reshape(np.stack(rows), x.shape + x.shape)


def hessian_of_float(f: Any, x: Any, *args: Any) -> Any:
    """`hessian` of a float by gradients."""
    return grad(grad(f))(x, *args)


def hessian_of_array(f: Any, x: Any, *args: Any) -> Any:
    """`hessian` of an array of floats by gradients of gradients."""
    return row_by_row(real_hvp, f, x, *args)


def row_by_row(product: Any, f: Any, x: Any, *args: Any) -> Any:
    """The Hessian at an array by its products with unit vectors."""
    units = np.eye(x.size, dtype=x.dtype)
    rows = [product(f, x, np.reshape(e, x.shape), *args) for e in units]
    table = np.reshape(np.stack(rows), (x.size, x.size))
    return table if x.ndim == 1 else np.reshape(table, x.shape + x.shape)


def hessian_in_runs(f: Any, x: Any, *args: Any) -> Any:
    """The same of a function whose runs may have effects."""
    again = repetition((f, x, args), is_nested())
    return row_by_row(functools.partial(once, again, real_hvp), f, x, *args)


def hessian_function(f: Any) -> Any:
    """`hessian(f)` as differentiated code sees it."""
    return general_transformed(hessian, f, {}, hessian)


@serves(hessian)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs:
        return call(hessian_by_keyword, *args, **kwargs)
    return call(body_for_point(args, hessian_of_float, hessian_in_runs, general_hessian), *args)


def hessian_by_keyword(f: Any, x: Any = _MISSING, *args: Any, sparsity: Any = None) -> Any:
    """`hessian(…, sparsity=…)` as differentiated code sees it."""
    if x is _MISSING:
        made = functools.partial(hessian, sparsity=sparsity)
        return general_transformed(hessian, f, {"sparsity": sparsity}, made)
    if sparsity is None:
        return hessian(f, x, *args)
    from morula.mixed_mode.sparsity import sparse_hessian

    return sparse_hessian(f, x, args, sparsity)


def body_for_point(args: Any, of_float: Any, of_array: Any, otherwise: Any) -> Any:
    """Which of these takes the second derivative at the point."""
    if len(args) < 2:
        return hessian_function
    x = args[1]
    if type(x) is float:
        return of_float
    return of_array if is_real(x) and x.size else otherwise


def general_hessian(f: Any, x: Any, *args: Any) -> Any:
    """`hessian` by forward over reverse mode."""
    slope = grad(f)
    again = repetition((f, x, args), is_nested())
    return by_columns(lambda x: slope(x, *args), (x,), [space_of(x, "argument 0")], again)[0]


def diaghessian(f: Callable[..., Any], x: Any) -> Any:
    """The diagonal of the Hessian of `f` at `x`, in the shape of x.

    >>> diaghessian(lambda x: (x**3).sum(), np.array([1.0, 2.0]))
    array([ 6., 12.])
    """
    return general_diaghessian(f, x)


def general_diaghessian(f: Any, x: Any) -> Any:
    """The same by products with each unit vector."""
    space = space_of(x, "argument 0")
    xp = functions_for(x)
    if not space.shape and not isinstance(x, np.ndarray):
        return hvp(f, x, basis(x, space, 0))
    if not space.size:
        return xp.zeros(space.shape, dtype=space.dtype)
    again = repetition((f, x), is_nested())
    products = [once(again, hvp, f, x, basis(x, space, i)) for i in range(space.size)]
    columns = [xp.reshape(product, (-1,)) for product in products]
    return xp.reshape(xp.stack([column[i] for i, column in enumerate(columns)]), space.shape)


def entry_along(f: Any, x: Any, e: Any) -> Any:
    """The entry of the diagonal of the Hessian that belongs to a unit vector."""
    return inner(e, real_hvp(f, x, e))


def diagonal_at_array(f: Any, x: Any) -> Any:
    """`diaghessian` of an array of floats by gradients of gradients."""
    return entry_by_entry(entry_along, f, x)


def entry_by_entry(entry: Any, f: Any, x: Any) -> Any:
    """The diagonal of the Hessian at an array."""
    units = np.eye(x.size, dtype=x.dtype)
    entries = [entry(f, x, np.reshape(e, x.shape)) for e in units]
    return np.reshape(np.array(entries), x.shape)


def diagonal_in_runs(f: Any, x: Any) -> Any:
    """The same of a function whose runs may have effects."""
    again = repetition((f, x), is_nested())
    return entry_by_entry(functools.partial(once, again, entry_along), f, x)


@serves(diaghessian)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bodies = (hessian_of_float, diagonal_in_runs, general_diaghessian)
    return call(body_for_point(args, *bodies), *args, **kwargs)


# -- the same in forward mode ----------------------------------------------------------------------


def _pushed(fn: Any, body: Callable[[int], Any]) -> None:
    @pushes(fn)
    def _(run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...], keywords: Any) -> Any:
        return push(run, body(len(args)), ZERO, args, tangents, keywords)


_pushed(hvp, lambda n: general_hvp)
_pushed(diaghessian, lambda n: general_diaghessian)


@pushes(hessian)
def _(run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...], keywords: Any) -> Any:
    plain = general_hessian if len(args) > 1 else hessian_function
    return push(run, hessian_by_keyword if keywords else plain, ZERO, args, tangents, keywords)


# -- the same in programs --------------------------------------------------------------------------


def real_point(args: list[Any]) -> Any:
    """What is known of the point, if it is a float or an array of floats."""
    x = args[1] if len(args) > 1 else None
    if type(x) is not Known or x.type not in (float, np.ndarray):
        return None
    return x if x.type is float or (x.detail is not None and x.detail[0][1] == "f") else None


def table_at_point(args: list[Any]) -> Any:
    """What is known of the Hessian."""
    x = real_point(args)
    if x is None or x.type is float:
        return x
    dtype, ndim, _ = x.detail
    shape = whole_shape(x.detail)
    return Known(np.ndarray, (dtype, 2 * ndim, None if shape is None else shape + shape))


def body_of_hvp(args: list[Any]) -> Any:
    """The function for a point and a direction of one type."""
    x, v = real_point(args), known(args[2])
    return real_hvp if x is not None and v is not None and v.type is x.type else None


def body_by_point(of_float: Any, of_array: Any) -> Any:
    """Which of these takes the second derivative, by what is known of the point."""

    def body(args: list[Any]) -> Any:
        if len(args) == 1:
            return hessian_function
        x = real_point(args)
        if x is None or x.type is float:
            return None if x is None else of_float
        shape = whole_shape(x.detail)
        return of_array if shape and 0 not in shape else None

    return body


expected_results.update(
    {id(hvp): real_point, id(diaghessian): real_point, id(hessian): table_at_point}
)
typed_bodies[id(hvp)] = body_of_hvp
typed_bodies[id(hessian)] = body_by_point(hessian_of_float, hessian_of_array)
typed_bodies[id(diaghessian)] = body_by_point(hessian_of_float, diagonal_at_array)
in_several_runs.update([id(hessian), id(diaghessian)])
inlined(
    real_hvp, hessian_of_float, hessian_of_array, row_by_row, hessian_function, diagonal_at_array,
    entry_by_entry, entry_along, general_transformed,
)  # fmt: skip


# -- forward mode inside reverse mode --------------------------------------------------------------


def forwarddiff(f: Callable[[Any], Any], x: Any) -> Any:
    """`f(x)`; in reverse mode its adjoint is the forward-mode Jacobian, computed alongside.

    So nothing is kept of what happens in `f`, however long it runs: for functions of few numbers with
    long loops. `x` is a number or an array, the result too; `f` runs once for some entries. Only if
    the derivative by what `f` has captured is asked for, `f` is differentiated in reverse as well.

    >>> from morula import gradient
    >>> gradient(lambda x: forwarddiff(lambda y: y**3, x) * x, 2.0)
    (32.0,)
    """
    return f(x)


called_whole(forwarddiff)


@serves(forwarddiff)
def _(fn: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    f, x = args
    again = repetition((f, x), is_nested())
    y, columns = with_columns(f, x, again)
    captured = held_by((f,))
    changed = changed_by(again)

    def forwarddiff_pullback(ȳ: Any) -> tuple[Any, ...]:
        check_not_reached(changed)
        ȳ = unthunk(accumulate(ȳ, from_memory(y, (x,))))
        if is_zero(ȳ):
            return ZERO, ZERO, ZERO
        f̄ = give_to_captured(captured, f, x, y, ȳ)
        return ZERO, f̄, contracted(x, columns, ȳ)

    return y, forwarddiff_pullback


@pushes(forwarddiff)
def _(run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...], keywords: Any) -> Any:
    return push(run, args[0], tangents[0], args[1:], tangents[1:])


def changed_by(again: Repetition) -> list[tuple[Any, list[Any]]]:
    """The parts of mutable values that the runs have changed; an error if those are arrays'."""
    for owner in again.written_arrays():
        raise errors.UnsupportedError(
            f"a function given to forwarddiff writes to an array of shape {owner.shape} that it has "
            "not made: let it work on a copy"
        )
    return again.changed_parts()


def check_not_reached(changed: list[tuple[Any, list[Any]]]) -> None:
    """An error if the runs have changed what a cotangent has reached: they told of the result only."""
    for x, keys in changed:
        if is_reached_at(x, keys):
            raise errors.UnsupportedError(
                f"a function given to forwarddiff changes a {type(x).__name__} that the output depends "
                "on: let it return what it has found"
            )


non_differentiable(changed_by, check_not_reached)


def with_columns(f: Any, x: Any, again: Any) -> tuple[Any, list[Any]]:
    """The value of `f` and its derivatives along the entries of `x`, the imaginary ones last."""
    space = space_of(x, "the argument of forwarddiff")
    units = [
        (scale, i) for scale in ((1, 1j) if space.is_complex else (1,)) for i in range(space.size)
    ]
    directions = [(scale * basis(x, space, i),) for scale, i in units]
    by_program = None
    if not is_nested() and not is_made_anew(f):
        by_program = pushed_again(f, (x,), directions)
    if by_program is not None:
        space_of(by_program[0], "the result of forwarddiff")
        return by_program
    runs = [once(again, pushed_along, f, (x,), some) for some in chunks(directions)]
    y = runs[0][0] if runs else once(again, f, x)
    space_of(y, "the result of forwarddiff")
    return y, [ẏ for _, columns in runs for ẏ in columns]


def is_made_anew(f: Any) -> bool:
    """Is it a function that Morula has made, anew at each call?"""
    return str(getattr(f, "__module__", "")).startswith("morula.")


def contracted(x: Any, columns: list[Any], ȳ: Any) -> Any:
    """The cotangent of `x` from the derivatives of y along its entries."""
    shape = tuple(np.shape(x))
    n = math.prod(shape)
    if not n:
        return ZERO
    xp = functions_for(columns[0])
    slopes = [xp.sum(xp.real(xp.conjugate(ẏ) * ȳ)) for ẏ in columns]
    if len(slopes) > n:
        slopes = [re + 1j * im for re, im in zip(slopes[:n], slopes[n:], strict=True)]
    if not shape and not isinstance(x, np.ndarray):
        return slopes[0]
    return xp.reshape(xp.array(slopes), shape)


def give_to_captured(captured: Any, f: Any, x: Any, y: Any, ȳ: Any) -> Any:
    """The cotangents of `f` and of what it captured, in reverse mode when the first is needed."""
    owners = holders(captured)
    if owners and memory.in_memory():  # cotangents of arrays go by place, where they are to be now
        return again_in_reverse(captured, f, x, y)(ȳ)[0]
    found: list[Any] = []

    def in_second_run() -> Any:
        if not found:
            back = again_in_reverse(captured, f, x, y)
            with isolated():
                f̄ = back(ȳ)[0]
                found.extend([f̄, {id(held): adjoint_of(held) for held, _ in owners}])
        return found

    def given(owner: Any, key: Any) -> Any:
        return part_of(in_second_run()[1][id(owner)], key)

    for owner, keys in owners:
        for key in keys:
            give_part(owner, key, Thunk(functools.partial(given, owner, key)))
    return Thunk(lambda: in_second_run()[0]) if holds(f, is_number) else ZERO


def again_in_reverse(captured: Any, f: Any, x: Any, y: Any) -> Any:
    """The pullback of a second run, which read the same and gave y again."""
    again, back = call(f, x)
    check_unchanged(captured, again, y)
    return back


def check_unchanged(captured: Any, again: Any, y: Any) -> None:
    """Did the run in reverse mode read and give what the one in forward mode did?"""
    if changes(captured) or not np.array_equal(np.asarray(again), np.asarray(y), equal_nan=True):
        raise errors.UnsupportedError(
            "what a function given to forwarddiff captured was changed after the call, and its "
            "gradient is asked for: hand it over as an argument, or let the function capture a copy"
        )


def holders(captured: Any) -> list[tuple[Any, list[Any]]]:
    """The mutable values among these, and where numbers and arrays are in them."""
    found = []
    for x, parts in captured:
        keys = [k for k, v in parts.items() if holds(v, is_number)]
        if keys and adjoint_object(x) is not None:
            found.append((x, keys))
    return found


def is_number(x: Any) -> bool:
    """Is it a number or an array?"""
    return isinstance(x, NUMERIC) and not isinstance(x, bool)


NUMERIC = (int, float, complex, np.ndarray, np.generic)
non_differentiable(holders, holds, is_number, check_unchanged)


def give_part(owner: Any, key: Any, c: Any) -> None:
    """Add to the cotangent of a part of a mutable value, which is not computed for that."""
    bars = adjoint_of(owner)
    if isinstance(bars, list):
        lengthen(bars, key + 1)
        bars[key] = accumulate(bars[key], c)
    elif isinstance(bars, dict):
        bars[key] = accumulate(bars.get(key, ZERO), c)
    else:
        bars.cotangent = accumulate(bars.cotangent, c)


def part_of(bars: Any, key: Any) -> Any:
    """The cotangent of a part of a mutable value."""
    if isinstance(bars, list):
        return bars[key] if key < len(bars) else ZERO
    return bars.get(key, ZERO) if isinstance(bars, dict) else bars.cotangent
