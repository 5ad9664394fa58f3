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

from morula.core.errors import ArgumentError, qualified_name
from morula.interop.operations import Operation, is_inexact, spread_call
from morula.interop.structures import (
    Form,
    filled,
    form_of,
    shown,
    value_form,
    value_kinds,
)
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
    operation.outputs, leaves = value_form(f, y, "PyTorch")
    operation.kinds_out = value_kinds(leaves, operation.kinds_in)
    return operation


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
