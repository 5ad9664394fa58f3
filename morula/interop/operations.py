"""A function that Morula differentiates, as another system calls it: flat arrays in, flat arrays out.

Systems that record operations want them as values, pushforwards and pullbacks of arrays, and ask for
the derivative of those in turn. An `Operation` is the function with the forms of its arguments
and of its value; its linear map at a point is an operation too, so derivatives go to any order.
A *form* knows a structure: `fill(leaves)` makes it, `mirror(leaves)` makes what tangents and
cotangents of it look like, `leaves(x)` takes either apart.
Tests: tests/interop/test_to_jax.py, tests/interop/test_torch.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morula.core.errors import DifferentiationError, UnsupportedError, qualified_name
from morula.core.interface import pullback
from morula.mixed_mode import jvp


class OperationError(DifferentiationError, ValueError):
    """A function gave something else to another system than was announced."""


class Operation:
    """`fn(*arguments)` on leaves: `kinds` say the shape and dtype of each leaf that goes in or out.

    A length of None in a shape is one that is not known before there are values.
    """

    def __init__(
        self, fn: Callable[..., Any], inputs: Any, outputs: Any, kinds_in: Any, kinds_out: Any
    ) -> None:
        self.fn = fn
        self.inputs = inputs
        self.outputs = outputs
        self.kinds_in = tuple(kinds_in)
        self.kinds_out = tuple(kinds_out)
        self._linear: dict[Any, Operation] = {}
        self._batched: dict[int, Batched] = {}

    @property
    def wrt(self) -> tuple[int, ...]:
        """The leaves that have derivatives."""
        return tuple([i for i, kind in enumerate(self.kinds_in) if is_inexact(kind)])

    @property
    def of(self) -> tuple[int, ...]:
        """The leaves of the value that have derivatives."""
        return tuple([i for i, kind in enumerate(self.kinds_out) if is_inexact(kind)])

    def plain(self, xs: Sequence[Any]) -> Any:
        """The value itself."""
        return self.fn(*self.inputs.fill(wide(xs)))

    def value(self, xs: Sequence[Any]) -> list[Any]:
        """The leaves of the value."""
        return self.outgoing(self.plain(xs))

    def outgoing(self, y: Any) -> list[Any]:
        """The leaves of the value, of the dtypes that were announced."""
        return [
            zeros(kind, self.fn) if leaf is None else fitted(leaf, kind, self.fn)
            for leaf, kind in zip(self.outputs.parts(y), self.kinds_out, strict=True)
        ]

    def push(self, xs: Sequence[Any], wrt: tuple[int, ...], ẋs: Sequence[Any]) -> list[Any]:
        """The tangents of the leaves `of` the value, for those of the leaves `wrt`."""
        dots = self.inputs.mirror(spread(wide(ẋs), wrt, len(self.kinds_in)))
        ẏ = pushing(self.fn)(self.inputs.fill(wide(xs)), dots)
        return self.tangents(self.outputs, ẏ, self.kinds_out, self.of)

    def pull(self, xs: Sequence[Any], wrt: tuple[int, ...], ȳs: Sequence[Any]) -> list[Any]:
        """The cotangents of the leaves `wrt`, for those of the leaves `of` the value."""
        bars = self.outputs.mirror(spread(wide(ȳs), self.of, len(self.kinds_out)))
        found = pulling(self.fn)(self.inputs.fill(wide(xs)), bars)
        return self.tangents(self.inputs, found, self.kinds_in, wrt)

    def tangents(self, form: Any, x: Any, kinds: Any, which: tuple[int, ...]) -> list[Any]:
        """Some leaves of a tangent or cotangent, zeros where nothing arrived."""
        leaves = form.leaves(x)
        return [
            zeros(kinds[i], self.fn) if leaves[i] is None else fitted(leaves[i], kinds[i], self.fn)
            for i in which
        ]

    def linear(self, wrt: tuple[int, ...], transposed: bool) -> Operation:
        """The operation (x, v) -> J(x) v, or its adjoint (x, w) -> Jᴴ(x) w."""
        found = self._linear.get((wrt, transposed))
        if found is None:
            found = self._linear[wrt, transposed] = self.make_linear(wrt, transposed)
        return found

    def make_linear(self, wrt: tuple[int, ...], transposed: bool) -> Operation:
        """The same, anew."""
        if self.inputs.has_objects or self.outputs.has_objects:
            raise UnsupportedError(
                f"derivatives of derivatives by an object, in {qualified_name(self.fn)}, cannot be "
                "handed to another system: give it tuples, lists and dicts"
            )
        into, out = (self.outputs, self.inputs) if transposed else (self.inputs, self.outputs)
        kinds_into, kinds_out = (
            (self.kinds_out, self.kinds_in) if transposed else (self.kinds_in, self.kinds_out)
        )
        given, taken = (self.of, wrt) if transposed else (wrt, self.of)
        return Operation(
            (pulling if transposed else pushing)(self.fn),
            Beside(self.inputs, Part(into, given, len(kinds_into)), len(self.kinds_in)),
            Part(out, taken, len(kinds_out)),
            [*self.kinds_in, *[kinds_into[i] for i in given]],
            [kinds_out[i] for i in taken],
        )

    def batched(self, size: int) -> Batched:
        """The operation for `size` points at once, along a first axis of everything."""
        found = self._batched.get(size)
        if found is None:
            found = self._batched[size] = Batched(self, size)
        return found


class Batched(Operation):
    """An operation along a first axis, one point after the other."""

    def __init__(self, one: Operation, size: int) -> None:
        def along(kinds: Any) -> Any:
            return [((size, *shape), dtype) for shape, dtype in kinds]

        super().__init__(one.fn, one.inputs, one.outputs, along(one.kinds_in), along(one.kinds_out))
        self.one = one
        self.size = size

    def value(self, xs: Sequence[Any]) -> list[Any]:
        """The leaves of the value."""
        found = [self.one.value([x[i] for x in xs]) for i in range(self.size)]
        return stacked(found, self.kinds_out)

    def push(self, xs: Sequence[Any], wrt: tuple[int, ...], ẋs: Sequence[Any]) -> list[Any]:
        """The tangents of the value."""
        found = [
            self.one.push([x[i] for x in xs], wrt, [ẋ[i] for ẋ in ẋs]) for i in range(self.size)
        ]
        return stacked(found, [self.kinds_out[i] for i in self.of])

    def pull(self, xs: Sequence[Any], wrt: tuple[int, ...], ȳs: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments."""
        found = [
            self.one.pull([x[i] for x in xs], wrt, [ȳ[i] for ȳ in ȳs]) for i in range(self.size)
        ]
        return stacked(found, [self.kinds_in[i] for i in wrt])

    def make_linear(self, wrt: tuple[int, ...], transposed: bool) -> Operation:
        """The linear map at each point."""
        return self.one.linear(wrt, transposed).batched(self.size)


def spread_call(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a function of its positional arguments and of its keyword arguments."""

    @functools.wraps(f, updated=())
    def call(args: Any, kwargs: Any) -> Any:
        return f(*args, **kwargs)

    call.by_position = f  # type: ignore[attr-defined]
    return call


def pushing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """(x, ẋ) -> ẏ."""
    f = getattr(fn, "by_position", None)

    def pushed(args: Any, dots: Any) -> Any:
        if f is not None and not args[1]:
            return jvp(f, args[0], dots[0])[1]
        return jvp(fn, args, dots)[1]

    return pushed


def pulling(fn: Callable[..., Any]) -> Callable[..., Any]:
    """(x, ȳ) -> x̄."""
    f = getattr(fn, "by_position", None)

    def pulled(args: Any, bar: Any) -> Any:
        if f is not None and not args[1]:  # as most are called, and can be compiled
            return pullback(f, *args[0])[1](bar), {}
        return pullback(fn, *args)[1](bar)

    return pulled


class Part:
    """Some leaves of tangents of a form; the others have none."""

    has_objects = False

    def __init__(self, form: Any, which: tuple[int, ...], size: int) -> None:
        self.form = form
        self.which = which
        self.size = size

    def fill(self, leaves: Sequence[Any]) -> Any:
        """The structure of tangents."""
        return self.form.mirror(spread(leaves, self.which, self.size))

    mirror = fill

    def leaves(self, x: Any) -> list[Any]:
        """The leaves that count."""
        found = self.form.leaves(x)
        return [found[i] for i in self.which]

    parts = leaves


class Beside:
    """The arguments of a linear map at a point: those of the function, and one tangent of a part."""

    has_objects = False

    def __init__(self, first: Any, second: Any, size: int) -> None:
        self.first = first
        self.second = second
        self.size = size

    def fill(self, leaves: Sequence[Any]) -> Any:
        """Arguments and tangent."""
        return self.first.fill(leaves[: self.size]), self.second.fill(leaves[self.size :])

    def mirror(self, leaves: Sequence[Any]) -> Any:
        """Tangents of arguments, and of the tangent."""
        return self.first.mirror(leaves[: self.size]), self.second.mirror(leaves[self.size :])

    def leaves(self, x: Any) -> list[Any]:
        """The leaves of both."""
        return [*self.first.leaves(x[0]), *self.second.leaves(x[1])]


def is_inexact(kind: Any) -> bool:
    """Is it a leaf that has derivatives?"""
    return kind[1].kind in "fc" or kind[1].name == "bfloat16"


def wide(xs: Sequence[Any]) -> list[Any]:
    """Leaves as NumPy programs want them: double precision, scalars for arrays without axes."""
    return [widened(np.asarray(x)) for x in xs]


def widened(x: Any) -> Any:
    """One leaf."""
    if x.dtype.kind == "c":
        x = x.astype(np.complex128)
    elif is_inexact((x.shape, x.dtype)):
        x = x.astype(np.float64)
    if x.ndim:
        return x
    return x.item() if x.dtype.kind in "iub" else x[()]


def spread(leaves: Sequence[Any], which: tuple[int, ...], n: int) -> list[Any]:
    """n leaves, None where none is given."""
    found: list[Any] = [None] * n
    for i, leaf in zip(which, leaves, strict=True):
        found[i] = leaf
    return found


def stacked(found: list[list[Any]], kinds: Sequence[Any]) -> list[Any]:
    """Leaves of one point after the other, along a first axis."""
    if not found:
        return [np.zeros(*kind) for kind in kinds]
    return [np.stack(leaves) for leaves in zip(*found, strict=True)]


def zeros(kind: Any, fn: Any) -> Any:
    """A leaf to which nothing has come."""
    shape, dtype = kind
    if None in shape:
        raise OperationError(
            f"{qualified_name(fn)} gave a value without derivatives, such as a truth value, where a "
            "floating one was announced, whose shape is not known: give it as a float"
        )
    return np.zeros(shape, dtype)


def is_of_shape(x: Any, shape: Any) -> bool:
    """Is an array of a shape, as far as that is known?"""
    return len(shape) == x.ndim and all(
        n is None or n == m for n, m in zip(shape, x.shape, strict=True)
    )


def fitted(leaf: Any, kind: Any, fn: Any) -> Any:
    """A leaf with the dtype that was announced, if it has the shape."""
    shape, dtype = kind
    x = np.asarray(leaf)
    if not is_of_shape(x, shape):
        raise OperationError(
            f"{qualified_name(fn)} gave an array of shape {x.shape} where shape {tuple(shape)} was "
            "announced: say with out= what its value looks like, which has to be the same for all "
            "arguments of the same shapes"
        )
    if not (
        np.can_cast(x.dtype, dtype, "same_kind")
        or (is_inexact(kind) and x.dtype.kind in "iub")
        or (dtype.name == "bfloat16" and x.dtype.kind == "f")
    ):
        raise OperationError(
            f"{qualified_name(fn)} gave {x.dtype} where {dtype} was announced: say with out= what "
            "its value looks like"
        )
    return x.astype(dtype)
