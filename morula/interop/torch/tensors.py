"""What the core is told of PyTorch's tensors: spaces, units, gradients; the way to NumPy and back.

The tangent space of a floating or complex tensor has its shape, dtype and device. Integers and truth
values have none. The gradient of a module is a `Tangent` of its parameters and submodules by name.
Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from morula.core.extend import (
    NONE,
    ZERO,
    AbstractZero,
    CotangentError,
    Tangent,
    gradient_for,
    is_zero,
    materialise,
    non_differentiable,
    on_entry,
    projector,
    rrule,
    space_problem,
    unit,
    unsupported,
    unthunk,
)
from morula.interop.meanings import differentiate_copies, go_by_value
from morula.rules.arrays.memory import is_followed
from morula.rules.numbers import Anything
from morula.rules.objects import own_fields


def is_tensor(x: Any) -> bool:
    """Is it one of PyTorch's tensors?"""
    return isinstance(x, torch.Tensor)


def is_inexact(x: Any) -> bool:
    """Has a tensor a tangent space?"""
    return x.is_floating_point() or x.is_complex()


# -- between PyTorch and NumPy ---------------------------------------------------------------------


KNOWN_TO_NUMPY = (torch.float16, torch.float32, torch.float64)


def host(x: Any) -> Any:
    """A tensor as an array of NumPy's; what NumPy has no dtype for, bfloat16 say, in float32."""
    if x.is_floating_point() and x.dtype not in KNOWN_TO_NUMPY:
        x = x.float()
    return shared(x)


def shared(x: Any) -> Any:
    """The array of NumPy's that shares its memory with a tensor; an error for bfloat16."""
    return x.detach().cpu().resolve_conj().numpy()


def like(x̄: Any, x: Any) -> Any:
    """A number or an array of any kind as a tensor like `x`."""
    if is_tensor(x̄):
        if not x.is_complex() and x̄.is_complex():
            x̄ = x̄.real
        x̄ = x̄.detach().to(x.device, x.dtype)
    else:
        x̄ = np.asarray(x̄)
        if not x.is_complex():
            x̄ = x̄.real
        x̄ = torch.tensor(x̄, dtype=x.dtype, device=x.device)
    if x̄.shape != x.shape:
        if x̄.numel() != 1 or x.numel() != 1:
            raise CotangentError(
                f"the cotangent of a tensor of shape {tuple(x.shape)} has shape {tuple(x̄.shape)}"
            )
        x̄ = x̄.reshape(x.shape)
    return x̄


def shown(x: Any) -> Any:
    """The array that shares its memory with a tensor, not to be written to."""
    found = shared(x).view()
    found.flags.writeable = False
    return found


differentiate_copies(host, shown, like=like, is_array=is_tensor, is_inexact=is_inexact)


def from_shared(x: Any, y: Any) -> Any:
    """The tensor y, which shares its memory with the array x."""
    return y


@rrule(from_shared)
def _(x: Anything, y: Anything):
    def from_shared_pullback(ȳ):
        if is_followed(x):
            raise unsupported(
                "a tensor that shares memory with an array that is written to,",
                "tensors go by value in differentiated code",
                "copy the array, by torch.tensor(array)",
            )
        return host(ȳ), NONE

    return from_shared(x, y), from_shared_pullback


# -- traits ----------------------------------------------------------------------------------------


@projector.register(torch.Tensor)
def _(x: Any) -> Any:
    if not is_inexact(x):
        return nowhere

    def project_tensor(x̄: Any) -> Any:
        if is_tensor(x̄) and x̄.dtype == x.dtype and x̄.shape == x.shape and x̄.device == x.device:
            return x̄
        return like(x̄, x)

    return project_tensor


def nowhere(x̄: Any) -> Any:
    """There is no tangent space."""
    return NONE


@unit.register(torch.Tensor)
def _(y: Any) -> Any:
    return torch.ones_like(y) if y.numel() == 1 and y.is_floating_point() else None


@materialise.register(torch.Tensor)
def _(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    if not is_inexact(x):
        return None
    x̄ = unthunk(x̄)
    if isinstance(x̄, AbstractZero):
        return torch.zeros_like(x.detach())
    return like(x̄, x).clone()


@space_problem.register(torch.Tensor)
def _(x: Any, x̄: Any) -> tuple[str, str] | None:
    shape = tuple(np.shape(x̄))
    if shape != tuple(x.shape):
        return f"a tensor of shape {tuple(x.shape)}", f"of type {type(x̄).__name__}, shape {shape}"
    return None


go_by_value(torch.Tensor)


class ModuleOnEntry:
    """A module: it is shown by the names that it gives its parts."""

    def __init__(self, primal: Any) -> None:
        self.primal = primal


on_entry.register(torch.nn.Module, lambda x, known: ModuleOnEntry(x))


@materialise.register(ModuleOnEntry)
def _(picture: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    x = picture.primal
    return Tangent[type(x)](
        {
            name: gradient_for(part, bars.get(name, ZERO), of)
            for bars, parts in tables_of(x, of)
            for name, part in parts.items()
            if counts(part, bars.get(name, ZERO))
        }
    )


@materialise.register(torch.nn.Module)
def _(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    return materialise(ModuleOnEntry(x), x̄, of)


def counts(part: Any, c: Any) -> bool:
    """Is a part of a module shown in its gradient?"""
    if is_tensor(part):
        return is_inexact(part)
    return isinstance(part, torch.nn.Module) or not is_zero(c)


def tables_of(x: Any, of: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """The tables that hold the parts of a module by name, with their cotangents."""
    fields = {k: v for k, v in own_fields(x).items() if not k.startswith("_") and k != "training"}
    tables = [(of(x) or {}, fields)]
    for name in ("_parameters", "_modules"):
        table = vars(x).get(name) or {}
        tables.append((of(table) or {}, table))
    return tables


non_differentiable(is_tensor, is_inexact)
