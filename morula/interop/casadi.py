"""A NumPy function that Morula differentiates, as a function of CasADi's: `to_casadi(f, *shapes)`.

A callback that computes an operation (operations.py). Its derivatives, forward and reverse, are the
callbacks of the linear map of the operation, which have derivatives in turn: so CasADi forms
gradients, Jacobians and Hessians of expressions that hold the function, to any order.
Tests: tests/interop/test_to_casadi.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import casadi
import numpy as np

from morula.core.errors import ArgumentError, qualified_name
from morula.interop.operations import Operation, OperationError, spread_call
from morula.interop.structures import Form, form_of, strangers, value_form

FLOAT = np.dtype(float)


def to_casadi(f: Callable[..., Any], *shapes: Any, out: Any = None) -> Any:
    """A CasADi function that calls `f` on NumPy arrays, with Morula's derivatives.

    CasADi differentiates through it, to any order: `gradient`, `jacobian`, `hessian`, `jtimes`, and
    so `nlpsol`. CasADi has matrices of double precision only, and so have arguments and value:
    vectors are columns, what has no axes is 1 by 1. `f` gets numbers and arrays of the shapes that
    are given, and must be pure. CasADi does not keep its callbacks alive: Morula keeps this one for
    as long as the process runs, so make it once.

    Args:
        f: a function of numbers and arrays of at most two axes; its value is one too, or a tuple,
            list or dict of them, which are the outputs.
        shapes: the shape of each argument, `()` for a number, an `int` for the length of a vector;
            lists and dicts of shapes for arguments that are such structures, each part an input.
        out: the shape of the value, or a tuple, list or dict of shapes. By default `f` is run once
            on ones to see.
    Raises:
        OperationError: the value is no such thing, or has another shape than was announced.

    >>> import casadi, numpy as np
    >>> f = to_casadi(lambda x: np.sum(x**3), 2)
    >>> x = casadi.MX.sym("x", 2)
    >>> casadi.Function("g", [x], [casadi.gradient(f(x), x)])([1, 2])
    DM([3, 12])
    """
    inputs, kinds_in = announced((list(shapes), {}))
    operation = Operation(spread_call(f), inputs, None, kinds_in, ())
    if out is None:
        operation.outputs, operation.kinds_out = outcome(f, operation)
    else:
        operation.outputs, operation.kinds_out = announced(out)
    node = Node(
        identifier(getattr(f, "__name__", "f"), "f"),
        operation,
        argument_names(f, shapes, len(kinds_in)),
        value_names(operation.outputs),
    )
    kept.append(node)
    return node


kept: list[Any] = []  # what CasADi's expressions refer to, without keeping it alive


def is_shape(x: Any) -> bool:
    """Does it say what an array looks like?"""
    if isinstance(x, tuple):
        return all(map(is_length, x))
    return is_length(x)


def is_length(n: Any) -> bool:
    """Is it the length of an axis?"""
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool) and int(n) >= 0


def announced(structure: Any) -> tuple[Form, tuple[Any, ...]]:
    """The form of a structure of shapes, and the kinds of its leaves."""
    for other in strangers(structure, is_shape):
        raise ArgumentError(f"{other!r} is no shape: give (), n or (m, n) for each array")
    shapes: list[Any] = []
    form = Form(structure, form_of(structure, is_shape, shapes))
    return form, kinds_of([shape if isinstance(shape, tuple) else (shape,) for shape in shapes])


def kinds_of(shapes: Sequence[Any]) -> tuple[Any, ...]:
    """Kinds of matrices."""
    for shape in shapes:
        if len(shape) > 2:
            raise ArgumentError(f"CasADi has matrices only, and no arrays of shape {shape}")
    return tuple([(shape, FLOAT) for shape in shapes])


def outcome(f: Any, operation: Operation) -> tuple[Form, tuple[Any, ...]]:
    """Form and kinds of the value, found by running `f` on ones."""
    try:
        y = operation.plain([np.ones(*kind) for kind in operation.kinds_in])
    except Exception as error:
        error.add_note(
            f"{qualified_name(f)} was run on ones, to see what its value looks like: say it by "
            "to_casadi(f, *shapes, out=shape)"
        )
        raise
    form, leaves = value_form(f, y, "CasADi")
    if any(map(np.iscomplexobj, leaves)):
        raise OperationError(
            f"{qualified_name(f)} gave complex numbers, which CasADi does not have: give their real "
            "and imaginary parts"
        )
    return form, kinds_of([np.shape(leaf) for leaf in leaves])


# -- names -----------------------------------------------------------------------------------------


def identifier(name: str, otherwise: str) -> str:
    """A name as CasADi takes it: letters and digits, single underscores between them."""
    plain = re.sub(r"_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).strip("_")
    return plain if re.match("[A-Za-z]", plain) and plain not in RESERVED else otherwise


RESERVED = ("null", "jac", "hess")


def argument_names(f: Any, shapes: Sequence[Any], n: int) -> list[str]:
    """The names of the parameters, if each is one input."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(named) < n or not all(map(is_shape, shapes)):
        return numbered("i", n)
    return distinct(named[:n], "i")


def value_names(outputs: Form) -> list[str]:
    """The keys of a dict of arrays, if the value is one."""
    form = outputs.form
    if not (isinstance(outputs.structure, dict) and isinstance(form, dict)):
        return numbered("o", outputs.size)
    if any(isinstance(part, dict) for part in form.values()):
        return numbered("o", outputs.size)
    return distinct([str(key) for key in form], "o")


def distinct(names: Sequence[str], letter: str) -> list[str]:
    """Names as CasADi takes them; numbered ones where some would be alike."""
    plain = [identifier(name, letter + str(i)) for i, name in enumerate(names)]
    return plain if len({*plain}) == len(plain) else numbered(letter, len(names))


def numbered(letter: str, n: int) -> list[str]:
    """CasADi's own names."""
    return [letter + str(i) for i in range(n)]


# -- callbacks -------------------------------------------------------------------------------------


class Node(casadi.Callback):
    """An operation as a callback: matrices in, matrices out."""

    def __init__(
        self, name: str, operation: Operation, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self.operation = operation
        self.inputs = inputs
        self.outputs = outputs
        self.linear_nodes: dict[bool, Any] = {}
        casadi.Callback.__init__(self)
        self.construct(name, {})

    def get_n_in(self) -> int:
        """How many inputs."""
        return len(self.operation.kinds_in)

    def get_n_out(self) -> int:
        """How many outputs."""
        return len(self.operation.kinds_out)

    def get_name_in(self, i: int) -> str:
        """The name of an input."""
        return self.inputs[i]

    def get_name_out(self, i: int) -> str:
        """The name of an output."""
        return self.outputs[i]

    def get_sparsity_in(self, i: int) -> Any:
        """The shape of an input."""
        return casadi.Sparsity.dense(*matrix(self.operation.kinds_in[i][0]))

    def get_sparsity_out(self, i: int) -> Any:
        """The shape of an output."""
        return casadi.Sparsity.dense(*matrix(self.operation.kinds_out[i][0]))

    def eval(self, given: Any) -> Any:
        """The value."""
        kinds = self.operation.kinds_in
        xs = [x.full().reshape(shape) for x, (shape, _) in zip(given, kinds, strict=True)]
        return [y.reshape(matrix(y.shape)) for y in self.operation.value(xs)]

    def has_forward(self, n: int) -> bool:
        """Is there a pushforward of n directions?"""
        return True

    def has_reverse(self, n: int) -> bool:
        """Is there a pullback of n directions?"""
        return True

    def get_forward(self, n: int, name: str, inputs: Any, outputs: Any, options: Any) -> Any:
        """(x, y, ẋ) -> ẏ, for n directions side by side."""
        return self.along(n, name, inputs, outputs, options, transposed=False)

    def get_reverse(self, n: int, name: str, inputs: Any, outputs: Any, options: Any) -> Any:
        """(x, y, ȳ) -> x̄, for n directions side by side."""
        return self.along(n, name, inputs, outputs, options, transposed=True)

    def along(
        self, n: int, name: str, inputs: Any, outputs: Any, options: Any, *, transposed: bool
    ) -> Any:
        """The linear map at a point, once for each direction."""
        linear = self.linear(transposed)
        xs, ys = symbols("x", self.operation.kinds_in), symbols("y", self.operation.kinds_out)
        like = ys if transposed else xs
        directions = [casadi.MX.sym(f"d{i}", s.size1(), n * s.size2()) for i, s in enumerate(like)]
        parts = [casadi.horzsplit(d, s.size2()) for d, s in zip(directions, like, strict=True)]
        found = [linear.call([*xs, *[part[k] for part in parts]]) for k in range(n)]
        results = [casadi.horzcat(*columns) for columns in zip(*found, strict=True)]
        return casadi.Function(name, [*xs, *ys, *directions], results, inputs, outputs, options)

    def linear(self, transposed: bool) -> Any:
        """The callback of the linear map."""
        found = self.linear_nodes.get(transposed)
        if found is None:
            linear = self.operation.linear(self.operation.wrt, transposed)
            n, m = len(linear.kinds_in), len(linear.kinds_out)
            name = ("reverse_of_" if transposed else "forward_of_") + self.name()
            found = Node(name, linear, numbered("i", n), numbered("o", m))
            self.linear_nodes[transposed] = found
        return found


def symbols(letter: str, kinds: Any) -> list[Any]:
    """A symbol for each leaf."""
    return [casadi.MX.sym(f"{letter}{i}", *matrix(shape)) for i, (shape, _) in enumerate(kinds)]


def matrix(shape: Any) -> tuple[int, int]:
    """Rows and columns: vectors are columns."""
    return (*shape, 1, 1)[:2] if shape else (1, 1)
