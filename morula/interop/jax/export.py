"""A NumPy function that Morula differentiates, as a JAX function: `to_jax(f)`.

Two primitives of JAX's: y = f(x), and its linear map at a point, ẏ = J(x) ẋ or x̄ = Jᴴ(x) ȳ. The JVP of
the first is the second, whose transpose is itself the other way round, and whose JVP is the
second again, of the function (x, ẋ) -> J(x) ẋ. So `grad`, `jvp`, `vmap` and `jit` work in any
order, and derivatives to the order to which Morula goes. The host is called by `pure_callback`.
JAX's cotangents of complex numbers are the conjugates of Morula's.
Tests: tests/interop/test_to_jax.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.tree_util import (
    DictKey,
    GetAttrKey,
    SequenceKey,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)

from morula.core.cotangents import AbstractZero, Tangent, unthunk
from morula.core.errors import ArgumentError, qualified_name
from morula.interop.operations import Operation, OperationError, is_inexact, spread_call


def to_jax(f: Callable[..., Any], out: Any = None) -> Callable[..., Any]:
    """A JAX function that calls `f` on NumPy arrays, with Morula's derivatives.

    Works under `jit`, `grad`, `vmap`, `jvp` and their compositions; derivatives of any order.
    Arguments and value are pytrees. `f` gets floating and complex numbers in double precision,
    integers as `int` or arrays; what is no number goes to it as it is. A floating value has the
    precision of the arguments, if `out` does not say otherwise. The host calls `f` once for each
    evaluation, again for each derivative, and for each point of a `vmap`: it must be pure.

    Args:
        f: a function of numbers, arrays and pytrees of them.
        out: what its value looks like: `jax.ShapeDtypeStruct`, or a pair of shape and dtype, or a
            pytree of either. By default `f` is run once to see, for every new form of the
            arguments; under `jit`, where these have no values, on ones.
    Raises:
        OperationError: the value has another shape or dtype than was announced.
        ArgumentError: under `jit`, `f` cannot be run on ones: give `out`.

    >>> import jax, numpy as np
    >>> f = to_jax(lambda x: np.sum(x**3))
    >>> jax.jit(jax.grad(f))(jax.numpy.array([1.0, 2.0]))
    Array([ 3., 12.], dtype=float32)
    """
    operations: dict[Any, Operation] = {}
    announced = None if out is None else announcement(out)

    @functools.wraps(f, updated=())
    def f_in_jax(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        is_number = tuple([isinstance(x, NUMBERS) for x in leaves])
        fixed = tuple([None if n else x for n, x in zip(is_number, leaves, strict=True)])
        xs = [jnp.asarray(x) for n, x in zip(is_number, leaves, strict=True) if n]
        kinds = tuple([(x.shape, np_dtype(x, f)) for x in xs])
        try:
            key = tree, fixed, tuple(map(type, fixed)), kinds
            operation = operations.get(key)
        except TypeError as error:
            raise ArgumentError(
                f"an argument of {qualified_name(f)} is neither a number nor an array, and cannot be "
                f"hashed: {error}"
            ) from None
        if operation is None:
            paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
            inputs = Form(tree, paths, fixed, is_number)
            found = announced or outcome(f, inputs, xs, kinds)
            operation = operations[key] = Operation(
                spread_call(f), inputs, found[0], kinds, found[1]
            )
        return tree_unflatten(operation.outputs.tree, call_p.bind(*xs, operation=operation))

    return f_in_jax


NUMBERS = (jax.Array, np.ndarray, np.generic, int, float, complex)


def np_dtype(x: Any, f: Any) -> Any:
    """The dtype of a JAX array, if NumPy has it."""
    if not isinstance(x.dtype, np.dtype):
        raise ArgumentError(f"{qualified_name(f)} runs in NumPy, which has no arrays of {x.dtype}")
    return x.dtype


# -- what the value looks like ---------------------------------------------------------------------


def announcement(out: Any) -> tuple[Any, Any]:
    """Form and kinds of a value from what the user says of it."""
    leaves, tree = tree_flatten(out, is_leaf=is_kind)
    for leaf in leaves:
        if not is_kind(leaf):
            raise ArgumentError(
                f"out says what the value looks like, by jax.ShapeDtypeStruct or pairs of shape and "
                f"dtype; got {leaf!r}"
            )
    paths = [path for path, _ in tree_flatten_with_path(out, is_leaf=is_kind)[0]]
    n = len(leaves)
    return Form(tree, paths, (None,) * n, (True,) * n), [kind_of(leaf) for leaf in leaves]


def is_kind(x: Any) -> bool:
    """Does it say shape and dtype?"""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return True
    return (
        type(x) is tuple
        and len(x) == 2
        and type(x[0]) is tuple
        and all(isinstance(n, int) for n in x[0])
        and not isinstance(x[1], (tuple, list, dict))
        and not hasattr(x[1], "shape")
    )


def kind_of(x: Any) -> tuple[Any, Any]:
    """Shape and dtype, as JAX has it."""
    shape, dtype = (x.shape, x.dtype) if hasattr(x, "dtype") else x
    return tuple(shape), jax.dtypes.canonicalize_dtype(dtype)


def outcome(f: Any, inputs: Any, xs: Sequence[Any], kinds: Any) -> tuple[Any, Any]:
    """Form and kinds of the value, found by running `f`: on ones where there are no values."""
    found = [values_of(x) for x in xs]
    leaves = [
        np.ones(*kind) if x is None else np.asarray(x) for x, kind in zip(found, kinds, strict=True)
    ]
    operation = Operation(spread_call(f), inputs, None, kinds, ())
    try:
        y = operation.plain(leaves)
    except Exception as error:
        if any(x is None for x in found):
            error.add_note(
                f"{qualified_name(f)} was run on ones, to see what its value looks like, because its "
                "arguments have no values under jit: give to_jax(f, out=jax.ShapeDtypeStruct(shape, "
                "dtype))"
            )
        raise
    of_value, tree = tree_flatten(y)
    for leaf in of_value:
        if not isinstance(leaf, NUMBERS) or np.asarray(leaf).dtype.kind not in "fciub":
            raise OperationError(
                f"{qualified_name(f)} gave a {type(leaf).__name__}: JAX takes numbers and arrays, in "
                "tuples, lists, dicts and other pytrees"
            )
    paths = [path for path, _ in tree_flatten_with_path(y)[0]]
    n = len(of_value)
    precision = precision_of(kinds)
    return Form(tree, paths, (None,) * n, (True,) * n), [
        (np.shape(leaf), in_precision(np.asarray(leaf).dtype, precision)) for leaf in of_value
    ]


def values_of(x: Any) -> Any:
    """The array that a tracer stands for, one of a batch; None under `jit`."""
    while isinstance(x, jax.core.Tracer):
        if hasattr(x, "primal"):
            x = x.primal
        elif hasattr(x, "val") and hasattr(x, "batch_dim"):
            val = values_of(x.val)
            if val is None or x.batch_dim is None or not isinstance(x.batch_dim, int):
                return val
            x = np.take(np.asarray(val), 0, x.batch_dim) if np.size(val) else None
        else:
            return None
    return x


def precision_of(kinds: Any) -> Any:
    """The floating dtype that holds the arguments, the default one if there are none."""
    floats = [dtype for _, dtype in kinds if is_inexact(((), dtype))]
    found = jnp.result_type(*floats) if floats else jax.dtypes.canonicalize_dtype(float)
    return jnp.finfo(found).dtype  # of a complex one, that of its parts


def in_precision(dtype: Any, precision: Any) -> Any:
    """The dtype of a value; what NumPy gave in double precision has that of the arguments."""
    if dtype == np.float64:
        return np.dtype(precision)
    if dtype == np.complex128:
        return np.dtype(np.complex128 if precision == np.float64 else np.complex64)
    return jax.dtypes.canonicalize_dtype(dtype)


# -- structures ------------------------------------------------------------------------------------


class Form:
    """A pytree: `fixed` are the leaves that are no numbers, where `is_number` does not hold."""

    def __init__(self, tree: Any, paths: Any, fixed: Any, is_number: Any) -> None:
        self.tree = tree
        self.paths = [p for p, n in zip(paths, is_number, strict=True) if n]
        self.fixed = fixed
        self.is_number = is_number
        like = tree_unflatten(tree, [None] * tree.num_leaves)
        self.has_objects = any(holds_object(like, path) for path in self.paths)

    def fill(self, leaves: Sequence[Any]) -> Any:
        """The pytree with these numbers."""
        given = iter(leaves)
        pairs = zip(self.is_number, self.fixed, strict=True)
        return tree_unflatten(self.tree, [next(given) if n else x for n, x in pairs])

    def mirror(self, leaves: Sequence[Any]) -> Any:
        """A tangent of the pytree: that of an object is a `Tangent`."""
        return mirrored(self.fill(leaves), list(zip(self.paths, leaves, strict=True)))

    def leaves(self, x: Any) -> list[Any]:
        """The numbers in a tangent of the pytree: None where that is a structural zero."""
        return [at(x, path) for path in self.paths]

    def parts(self, y: Any) -> list[Any]:
        """The numbers in such a pytree."""
        leaves, tree = tree_flatten(y)
        if tree != self.tree:
            raise OperationError(f"a value of the structure {self.tree} was announced, got {tree}")
        return leaves


def mirrored(x: Any, leaves: list[tuple[Any, Any]]) -> Any:
    """What is like `x`, with leaves at these paths and None elsewhere."""
    if len(leaves) == 1 and not leaves[0][0]:
        return leaves[0][1]
    below: dict[Any, list[tuple[Any, Any]]] = {}
    for path, leaf in leaves:
        below.setdefault(path[0], []).append((path[1:], leaf))
    parts = {name_of(key): mirrored(at(x, (key,)), found) for key, found in below.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[parts.get(name) for name in x._fields])
    if isinstance(x, (tuple, list)):
        return type(x)([parts.get(i) for i in range(len(x))])
    if isinstance(x, dict):
        return {key: parts.get(key) for key in x}
    return Tangent[type(x)](parts)


def holds_object(x: Any, path: Any) -> bool:
    """Is there an object on the way to a part, as a container?"""
    return any(
        isinstance(key, GetAttrKey) and not isinstance(at(x, path[:i]), tuple)
        for i, key in enumerate(path)
    )


def name_of(key: Any) -> Any:
    """Where a part of a pytree stands, as its owner says it."""
    if isinstance(key, SequenceKey):
        return key.idx
    if isinstance(key, DictKey):
        return key.key
    if isinstance(key, GetAttrKey):
        return key.name
    raise ArgumentError(
        "a pytree of a class that does not name its parts: register it with keys, by "
        "jax.tree_util.register_dataclass or register_pytree_with_keys"
    )


def at(x: Any, path: Any) -> Any:
    """A part of a pytree or of its gradient; None where that is a structural zero."""
    for key in path:
        x = unthunk(x)
        if x is None or isinstance(x, AbstractZero):
            return None
        name = name_of(key)
        x = getattr(x, name) if isinstance(key, GetAttrKey) else x[name]
    x = unthunk(x)
    return None if isinstance(x, AbstractZero) else x


# -- primitives ------------------------------------------------------------------------------------


call_p = Primitive("morula_call")
linear_p = Primitive("morula_linear")
call_p.multiple_results = linear_p.multiple_results = True


def arrays_of(kinds: Sequence[Any]) -> list[Any]:
    """What JAX calls them."""
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in kinds]


def conjugate(x: Any) -> Any:
    """From Morula's cotangent of a complex number to JAX's, and back."""
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


def call_on_host(*xs: Any, operation: Operation) -> list[Any]:
    """f(x)."""
    return operation.value(xs)


def call_kinds(*xs: Any, operation: Operation) -> Any:
    """What it gives."""
    return operation.kinds_out


def linear_on_host(
    *both: Any, operation: Operation, wrt: tuple[int, ...], transposed: bool
) -> list[Any]:
    """J(x) ẋ, or Jᴴ(x) ȳ."""
    n = len(operation.kinds_in)
    how = operation.pull if transposed else operation.push
    return how(both[:n], wrt, both[n:])


def linear_kinds(
    *both: Any, operation: Operation, wrt: tuple[int, ...], transposed: bool
) -> list[Any]:
    """What it gives."""
    if transposed:
        return [operation.kinds_in[i] for i in wrt]
    return [operation.kinds_out[i] for i in operation.of]


def on_host(primitive: Any, run: Any, kinds: Any) -> None:
    """A primitive that the host computes: at once where there are values, else by a callback."""

    def compute(*xs: Any, **params: Any) -> list[Any]:
        return [jnp.asarray(y) for y in run(*map(np.asarray, xs), **params)]

    def call_back(*xs: Any, **params: Any) -> Any:
        shapes = [jax.ShapeDtypeStruct(*kind) for kind in kinds(*xs, **params)]
        return jax.pure_callback(functools.partial(run, **params), shapes, *xs)

    primitive.def_impl(compute)
    primitive.def_abstract_eval(lambda *xs, **params: arrays_of(kinds(*xs, **params)))
    mlir.register_lowering(primitive, mlir.lower_fun(call_back, multiple_results=True))

    def batch(xs: Any, dims: Any, *, operation: Operation, **params: Any) -> Any:
        size = next(x.shape[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        along = [batching.bdim_at_front(x, d, size) for x, d in zip(xs, dims, strict=True)]
        ys = primitive.bind(*along, operation=operation.batched(size), **params)
        return ys, [0] * len(ys)

    batching.primitive_batchers[primitive] = batch


on_host(call_p, call_on_host, call_kinds)
on_host(linear_p, linear_on_host, linear_kinds)


def call_jvp(xs: Any, dots: Any, *, operation: Operation) -> Any:
    """y = f(x), ẏ = J(x) ẋ; what is no floating number has no tangent."""
    ys = call_p.bind(*xs, operation=operation)
    return ys, derivative(xs, dots, operation, operation.of, ys)


def linear_jvp(
    both: Any, dots: Any, *, operation: Operation, wrt: tuple[int, ...], transposed: bool
) -> Any:
    """The same of the linear map: linear in the second half of its arguments."""
    params = {"operation": operation, "wrt": wrt, "transposed": transposed}
    ys = linear_p.bind(*both, **params)
    n = len(operation.kinds_in)
    if all(isinstance(dot, ad.Zero) for dot in dots[:n]):
        along = [ad.instantiate_zeros(dot) for dot in dots[n:]]
        return ys, linear_p.bind(*both[:n], *along, **params)
    second = operation.linear(wrt, transposed)
    return ys, derivative(both, dots, second, second.of, ys)


def derivative(xs: Any, dots: Any, operation: Operation, of: Any, ys: Any) -> list[Any]:
    """The tangents of values, of which those that are in `of` have any."""
    found: list[Any] = [ad.Zero(jax.typeof(y).to_tangent_aval()) for y in ys]
    wrt = tuple([i for i in operation.wrt if not isinstance(dots[i], ad.Zero)])
    if wrt and of:
        given = [dots[i] for i in wrt]
        tangents = linear_p.bind(*xs, *given, operation=operation, wrt=wrt, transposed=False)
        for i, tangent in zip(of, tangents, strict=True):
            found[i] = tangent
    return found


def linear_transpose(
    bars: Any, *both: Any, operation: Operation, wrt: tuple[int, ...], transposed: bool
) -> list[Any]:
    """Jᴴ in the place of J, and the other way round."""
    xs = both[: len(operation.kinds_in)]
    given = [conjugate(ad.instantiate_zeros(bar)) for bar in bars]
    params = {"operation": operation, "wrt": wrt, "transposed": not transposed}
    return [None] * len(xs) + [conjugate(x̄) for x̄ in linear_p.bind(*xs, *given, **params)]


ad.primitive_jvps[call_p] = call_jvp
ad.primitive_jvps[linear_p] = linear_jvp
ad.primitive_transposes[linear_p] = linear_transpose
