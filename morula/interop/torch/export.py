"""A NumPy function that Morula differentiates, as a PyTorch function: `to_torch(f)`.

Two autograd functions: y = f(x), and its linear map at a point, ẏ = J(x) ẋ or x̄ = Jᴴ(x) ȳ. The
backward of each is the linear map of an operation (operations.py), so `backward`, double backward,
forward mode and `torch.func` work in any order.
Tests: tests/interop/test_to_torch.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from morula.core.cotangents import AbstractZero, unthunk
from morula.core.errors import ArgumentError, qualified_name
from morula.interop.operations import Operation, OperationError, is_inexact
from morula.interop.torch.primitives import filled, form_of
from morula.interop.torch.tensors import is_tensor


def to_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """A PyTorch function that calls `f` on NumPy arrays, with Morula's derivatives.

    Works with `backward`, double backward, forward mode and `torch.func`; derivatives of any order.
    Arguments and value are tensors in tuples, lists and dicts. `f` gets floating and complex tensors
    as arrays in double precision, or as numbers if they have no axes; what is no tensor goes to it
    as it is. A floating value has the precision of the arguments, and is on their device. `f` must
    be pure: it runs once for each evaluation and again for each derivative, and once more for
    arguments of new shapes, on ones where a transform of PyTorch's hides their values.

    Raises:
        OperationError: the shape of the value changes with the values of the arguments.

    >>> import numpy as np, torch
    >>> f = to_torch(lambda x: np.sum(x**3))
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    operations: dict[Any, Operation] = {}

    @functools.wraps(f, updated=())
    def f_in_torch(*args: Any, **kwargs: Any) -> Any:
        xs: list[Any] = []
        form = form_of((args, kwargs), is_tensor, xs)
        kinds = tuple([(tuple(x.shape), np_dtype(x, f)) for x in xs])
        inputs = Form((args, kwargs), form)
        operation = Operation(spread_call(f), inputs, None, kinds, ())
        known = operations.get((shown(form), kinds))
        if known is None:
            y = operation.plain([values_of(x, kind) for x, kind in zip(xs, kinds, strict=True)])
            known = operations[shown(form), kinds] = announced(f, operation, y)
        operation.outputs, operation.kinds_out = known.outputs, known.kinds_out
        outs = Call.apply(operation, *xs)
        return filled(known.outputs.structure, known.outputs.form, outs)

    return f_in_torch


def spread_call(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a function of its positional arguments and of its keyword arguments."""

    @functools.wraps(f, updated=())
    def call(args: Any, kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return call


def shown(form: Any) -> Any:
    """A form that can be hashed."""
    if isinstance(form, dict):
        return tuple([(key, shown(part)) for key, part in form.items()])
    return form


def np_dtype(x: Any, f: Any) -> Any:
    """The dtype of a tensor, as NumPy has it."""
    if x.dtype is torch.bfloat16:
        raise ArgumentError(f"{qualified_name(f)} runs in NumPy, which has no arrays of bfloat16")
    return np.dtype(str(x.dtype).removeprefix("torch."))


def values_of(x: Any, kind: Any) -> Any:
    """The numbers of a tensor; ones for one that stands for many, in a transform of PyTorch's."""
    try:
        return x.detach().cpu().resolve_conj().numpy()
    except RuntimeError:
        return np.ones(*kind)


def announced(f: Any, operation: Operation, y: Any) -> Operation:
    """The operation, with what the value looks like."""
    leaves: list[Any] = []
    form = form_of(y, is_number, leaves)
    if form is None:
        raise OperationError(
            f"{qualified_name(f)} gave a {type(y).__name__}: PyTorch takes numbers and arrays, in "
            "tuples, lists and dicts"
        )
    precise = any(
        dtype in (np.float64, np.complex128) for _, dtype in operation.kinds_in
    ) or not any(map(is_inexact, operation.kinds_in))
    narrow = {np.dtype(float): np.dtype("f4"), np.dtype(complex): np.dtype("c8")}
    kinds = []
    for leaf in leaves:
        dtype = np.asarray(leaf).dtype
        kinds.append((np.shape(leaf), dtype if precise else narrow.get(dtype, dtype)))
    operation.outputs, operation.kinds_out = Form(y, form), tuple(kinds)
    return operation


def is_number(x: Any) -> bool:
    """Is it a number or an array that PyTorch takes?"""
    kinds = (int, float, complex, np.ndarray, np.generic)
    return isinstance(x, kinds) and np.asarray(x).dtype.kind in "fciub"


class Form:
    """A structure with tensors, or numbers and arrays, as leaves."""

    has_objects = False

    def __init__(self, structure: Any, form: Any) -> None:
        self.structure = structure
        self.form = form
        self.size = size_of(form)

    def fill(self, leaves: Sequence[Any]) -> Any:
        """The structure with these leaves."""
        return filled(self.structure, self.form, leaves)

    def mirror(self, leaves: Sequence[Any]) -> Any:
        """A tangent of the structure: None where there is no leaf."""
        return mirrored(self.structure, self.form, leaves)

    def leaves(self, x: Any) -> list[Any]:
        """The leaves of a tangent; None where that is a structural zero."""
        found: list[Any] = [None] * self.size
        find(x, self.form, found)
        return found

    def parts(self, y: Any) -> list[Any]:
        """The leaves of such a structure."""
        leaves: list[Any] = []
        if form_of(y, is_number, leaves) != self.form:
            raise OperationError(
                "the structure of a value changes with the values of the arguments"
            )
        return leaves


def size_of(form: Any) -> int:
    """How many leaves a form has."""
    if isinstance(form, dict):
        return sum(map(size_of, form.values()))
    return 0 if form is None else 1


def mirrored(x: Any, form: Any, leaves: Any) -> Any:
    """What is like `x`, with leaves where it has them and None elsewhere."""
    if form is None or isinstance(form, int):
        return None if form is None else leaves[form]
    if isinstance(x, dict):
        return {key: mirrored(item, form.get(key), leaves) for key, item in x.items()}
    items = [mirrored(item, form.get(i), leaves) for i, item in enumerate(x)]
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)


def find(x: Any, form: Any, found: list[Any]) -> None:
    """Put the leaves of a tangent where they belong."""
    x = unthunk(x)
    if form is None or x is None or isinstance(x, AbstractZero):
        return
    if isinstance(form, int):
        found[form] = x
        return
    for key, part in form.items():
        find(x[key], part, found)


# -- autograd functions ----------------------------------------------------------------------------


def tensors(found: Sequence[Any], like: Sequence[Any]) -> tuple[Any, ...]:
    """Arrays as tensors, on the device of others."""
    device = next((x.device for x in like), None)
    return tuple([torch.as_tensor(np.array(y), device=device) for y in found])


def arrays(xs: Sequence[Any]) -> list[Any]:
    """Tensors as arrays."""
    return [x.detach().cpu().resolve_conj().numpy() for x in xs]


def along_axis(
    function: Any, info: Any, dims: Any, xs: Any, operation: Operation, *rest: Any
) -> Any:
    """One call for all points of a `vmap`."""
    size = info.batch_size
    moved = [
        x.expand(size, *x.shape) if d is None else x.movedim(d, 0)
        for x, d in zip(xs, dims, strict=True)
    ]
    outs = function.apply(operation.batched(size), *rest, *moved)
    return outs, (0,) * len(outs)


class Call(torch.autograd.Function):
    """y = f(x)."""

    @staticmethod
    def forward(operation: Any, *xs: Any) -> Any:
        """The value."""
        return tensors(operation.value(arrays(xs)), xs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the point."""
        ctx.operation, *xs = inputs
        keep(ctx, xs, output, ctx.operation.kinds_out)

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        """Jᴴ ȳ."""
        return None, *pulled(ctx.operation, ctx.saved_tensors, bars, ctx.needs_input_grad[1:])

    @staticmethod
    def jvp(ctx: Any, _: Any, *dots: Any) -> Any:
        """J ẋ."""
        return pushed(ctx.operation, ctx.saved_tensors, dots)

    @staticmethod
    def vmap(info: Any, dims: Any, operation: Any, *xs: Any) -> Any:
        """All points at once."""
        return along_axis(Call, info, dims[1:], xs, operation)


class Linear(torch.autograd.Function):
    """J(x) ẋ, or Jᴴ(x) ȳ."""

    @staticmethod
    def forward(operation: Any, wrt: Any, transposed: Any, *both: Any) -> Any:
        """The value."""
        n = len(operation.kinds_in)
        how = operation.pull if transposed else operation.push
        given = arrays(both)
        return tensors(how(given[:n], wrt, given[n:]), both)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the point."""
        operation, wrt, transposed, *both = inputs
        ctx.linear = functools.partial(operation.linear, wrt, transposed)
        keep(ctx, both, output, None)

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        """The pullback of the linear map, by the point too."""
        found = pulled(ctx.linear(), ctx.saved_tensors, bars, ctx.needs_input_grad[3:])
        return None, None, None, *found

    @staticmethod
    def jvp(ctx: Any, _a: Any, _b: Any, _c: Any, *dots: Any) -> Any:
        """Its pushforward."""
        return pushed(ctx.linear(), ctx.saved_tensors, dots)

    @staticmethod
    def vmap(info: Any, dims: Any, operation: Any, wrt: Any, transposed: Any, *both: Any) -> Any:
        """All points at once."""
        return along_axis(Linear, info, dims[3:], both, operation, wrt, transposed)


def keep(ctx: Any, xs: Sequence[Any], outs: Any, kinds: Any) -> None:
    """Save the point for both modes."""
    ctx.save_for_backward(*xs)
    ctx.save_for_forward(*xs)
    if kinds is not None:
        constant = [y for y, k in zip(outs, kinds, strict=True) if not is_inexact(k)]
        ctx.mark_non_differentiable(*constant)


def pulled(operation: Operation, xs: Any, bars: Any, needed: Any) -> list[Any]:
    """The cotangents of the leaves that need one."""
    wrt = tuple([i for i in operation.wrt if needed[i]])
    found: list[Any] = [None] * len(xs)
    given = [bars[i] for i in operation.of]
    for i, x̄ in zip(wrt, Linear.apply(operation, wrt, True, *xs, *given), strict=True):
        found[i] = x̄
    return found


def pushed(operation: Operation, xs: Any, dots: Any) -> Any:
    """The tangents of the value."""
    wrt = tuple([i for i in operation.wrt if dots[i] is not None])
    found: list[Any] = [None] * len(operation.kinds_out)
    tangents = Linear.apply(operation, wrt, False, *xs, *[dots[i] for i in wrt])
    for i, ẏ in zip(operation.of, tangents, strict=True):
        found[i] = ẏ
    return tuple(found)
