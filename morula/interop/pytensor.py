"""A NumPy function that Morula differentiates, in PyTensor's graphs: `to_pytensor(f)`.

An op that computes an operation (operations.py). Its pullback and its pushforward are the ops of the
linear map of the operation, which have both in turn: so `grad`, `jacobian`, `hessian` and
`pushforward` of PyTensor work in any order.
Tests: tests/interop/test_to_pytensor.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, grad_not_implemented
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.exceptions import ShapeError
from pytensor.tensor.type import DenseTensorType, TensorType

from morula.core.errors import ArgumentError, UnsupportedError, qualified_name
from morula.interop.operations import Operation, spread_call
from morula.interop.structures import (
    Form,
    filled,
    form_of,
    strangers,
    value_form,
    value_kinds,
)


def to_pytensor(f: Callable[..., Any], out: Any = None) -> Callable[..., Any]:
    """A function of PyTensor's variables that calls `f` on NumPy arrays, with Morula's derivatives.

    The variables are in the arguments as they are, or in tuples, lists and dicts; what is no
    variable goes to `f` as it is. `f` gets floating and complex numbers in double precision, as
    numbers where there are no axes, and must be pure. A floating value has the precision of the
    arguments, if `out` does not say otherwise. Integers have no gradient, and complex numbers
    none either, because PyTensor has none.

    Args:
        f: a function of numbers, arrays and structures of them; its value is one too.
        out: what its value looks like: a type of PyTensor's such as `pytensor.tensor.dvector`, or
            a pair of shape and dtype, where None is a length that is not known, or a tuple,
            list or dict of those. By default `f` is run once on ones to see, with lengths of four
            where PyTensor does not know them.
    Raises:
        OperationError: the value is no such thing, or looks otherwise than was announced.

    >>> import numpy as np, pytensor, pytensor.tensor as pt
    >>> f = to_pytensor(lambda x: np.sum(x**3))
    >>> x = pt.dvector("x")
    >>> slope = pytensor.function([x], pytensor.grad(f(x), x), mode="FAST_COMPILE")
    >>> slope([1.0, 2.0])
    array([ 3., 12.])
    """
    announced = None if out is None else announcement(out)

    @functools.wraps(f, updated=())
    def f_in_pytensor(*args: Any, **kwargs: Any) -> Any:
        variables: list[Any] = []
        form = form_of((args, kwargs), is_variable, variables)
        xs = [as_tensor(x, f) for x in variables]
        kinds = [(x.type.shape, np.dtype(x.type.dtype)) for x in xs]
        operation = Operation(spread_call(f), Form((args, kwargs), form), None, kinds, ())
        operation.outputs, operation.kinds_out = announced or outcome(f, operation)
        call = Call(operation, getattr(f, "__name__", "f"), [None] * len(operation.kinds_out))
        outs = call.make_node(*xs).outputs
        return filled(operation.outputs.structure, operation.outputs.form, outs)

    return f_in_pytensor


def is_variable(x: Any) -> bool:
    """Is it part of a graph?"""
    return isinstance(x, Variable)


def as_tensor(x: Any, f: Any) -> Any:
    """A variable that stands for an array."""
    if isinstance(x.type, (DenseTensorType, ScalarType)):
        return pt.as_tensor_variable(x)
    raise ArgumentError(
        f"{qualified_name(f)} was given a variable of type {x.type}: it takes tensors, so turn it "
        "into one (a sparse matrix by pytensor.sparse.dense_from_sparse)"
    )


# -- what the value looks like ---------------------------------------------------------------------


def announcement(out: Any) -> tuple[Form, tuple[Any, ...]]:
    """Form and kinds of a value from what the user says of it."""
    for other in strangers(out, is_kind):
        raise ArgumentError(
            "out says what the value looks like, by a type of PyTensor's, or by pairs of shape and "
            f"dtype; got {other!r}"
        )
    found: list[Any] = []
    form = Form(out, form_of(out, is_kind, found))
    kinds = [(x.shape, x.dtype) if hasattr(x, "dtype") else x for x in found]
    return form, tuple([(tuple(shape), np.dtype(dtype)) for shape, dtype in kinds])


def is_kind(x: Any) -> bool:
    """Does it say shape and dtype?"""
    if isinstance(x, TensorType):
        return True
    return (
        isinstance(x, tuple)
        and len(x) == 2
        and isinstance(x[0], tuple)
        and all(n is None or isinstance(n, (int, np.integer)) for n in x[0])
        and (isinstance(x[1], (str, np.dtype)) or (isinstance(x[1], type) and x[1] is not None))
    )


def outcome(f: Any, operation: Operation) -> tuple[Form, tuple[Any, ...]]:
    """Form and kinds of the value, found by running `f` on ones."""
    known = not any(None in shape for shape, _ in operation.kinds_in)
    shapes = [tuple([4 if n is None else n for n in shape]) for shape, _ in operation.kinds_in]
    pairs = zip(shapes, operation.kinds_in, strict=True)
    try:
        y = operation.plain([np.ones(shape, dtype) for shape, (_, dtype) in pairs])
    except Exception as error:
        error.add_note(
            f"{qualified_name(f)} was run on ones, to see what its value looks like, on arrays of "
            f"shapes {', '.join(map(str, shapes))}: say it by to_pytensor(f, out=(shape, dtype))"
        )
        raise
    form, leaves = value_form(f, y, "PyTensor")
    kinds = value_kinds(leaves, operation.kinds_in)
    if known:
        return form, kinds
    return form, tuple([((None,) * len(shape), dtype) for shape, dtype in kinds])


# -- the op ----------------------------------------------------------------------------------------


class Call(Op):
    """The value of an operation.

    `shaped` has, for each output, the number of the input whose shape it has, if there is one.
    """

    __props__ = ("operation",)

    def __init__(self, operation: Operation, name: str, shaped: Sequence[int | None]) -> None:
        self.operation = operation
        self.name = name
        self.shaped = shaped

    def __str__(self) -> str:
        return self.name

    def make_node(self, *inputs: Any) -> Any:
        """The op on these arguments."""
        xs = []
        for x, (shape, dtype) in zip(inputs, self.operation.kinds_in, strict=True):
            given = pt.as_tensor_variable(x)
            if given.type.ndim != len(shape) or given.type.dtype != dtype.name:
                raise ArgumentError(
                    f"{self} was made for {TensorType(dtype, shape)}, and was given {given.type}"
                )
            xs.append(given)
        return Apply(self, xs, [TensorType(dtype, s)() for s, dtype in self.operation.kinds_out])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        """Run it."""
        for store, y in zip(output_storage, self.operation.value(inputs), strict=True):
            store[0] = y

    def infer_shape(self, fgraph: Any, node: Any, shapes: Any) -> Any:
        """Shapes that are known without a run."""
        found: list[Any] = []
        for (shape, _), source in zip(self.operation.kinds_out, self.shaped, strict=True):
            if source is not None:
                found.append(shapes[source])
            elif None not in shape:
                found.append(tuple(map(pt.constant, shape)))
            else:
                raise ShapeError(f"the shape of what {self} gives is not known before it has run")
        return found

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        """Which outputs depend on which inputs, as far as derivatives go."""
        of, wrt = self.operation.of, self.operation.wrt
        return [
            [i in wrt and j in of for j in range(len(self.operation.kinds_out))]
            for i in range(len(self.operation.kinds_in))
        ]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Jᴴ ȳ."""
        operation = self.operation
        bars = [self.direction(outputs[i], cotangents[i]) for i in operation.of]
        wrt = tuple([i for i in operation.wrt if not is_complex(inputs[i])])
        call = Call(operation.linear(wrt, True), f"pullback_of_{self.name}", wrt)
        found = spread_out(call, [*inputs, *bars], wrt, len(inputs))
        for i, x in enumerate(inputs):
            if is_complex(x):
                found[i] = grad_not_implemented(self, i, x, NO_COMPLEX)
        return found

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        """J ẋ."""
        operation = self.operation
        wrt = tuple([i for i in operation.wrt if not is_disconnected(tangents[i])])
        if any(is_complex(inputs[i]) for i in wrt):
            raise UnsupportedError(NO_COMPLEX)
        dots = [self.direction(inputs[i], tangents[i]) for i in wrt]
        shaped = [self.shaped[i] for i in operation.of]
        call = Call(operation.linear(wrt, False), f"pushforward_of_{self.name}", shaped)
        return spread_out(call, [*inputs, *dots], operation.of, len(outputs))

    def direction(self, x: Any, ẋ: Any) -> Any:
        """A tangent or a cotangent, zeros where there is none."""
        if is_disconnected(ẋ):
            return pt.zeros_like(x)
        return pt.cast(ẋ, x.type.dtype)


NO_COMPLEX = "PyTensor has no derivatives by complex variables: give f the real and imaginary parts"


def is_complex(x: Any) -> bool:
    """Does a variable stand for complex numbers?"""
    return np.dtype(x.type.dtype).kind == "c"


def is_disconnected(ẋ: Any) -> bool:
    """Is there no tangent?"""
    return isinstance(ẋ.type, DisconnectedType)


def spread_out(call: Call, inputs: Sequence[Any], which: Sequence[int], n: int) -> list[Any]:
    """What a linear map gives, as some of n tangents; the others have none."""
    found = [DisconnectedType()() for _ in range(n)]
    for i, out in zip(which, call.make_node(*inputs).outputs, strict=True):
        found[i] = out
    return found
