"""The rules of PyTorch, which are loaded when a differentiated program first meets one of its values.

Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from morula.core.errors import ArgumentError
from morula.core.extend import general, registry, stays_general
from morula.interop.torch import draws, tensors
from morula.interop.torch.claims import belongs, claims
from morula.mixed_mode.jacobians import Library, libraries
from morula.rules.vectors import Foreign, foreign

__all__ = ["draws", "tensors"]


def zeros(shape: Any, dtype: Any) -> Any:
    """Zeros of a shape, as NumPy says it."""
    return torch.zeros(shape, dtype=dtype)


def stack(xs: Any, axis: int = 0) -> Any:
    """Tensors along a new axis."""
    return torch.stack(xs, dim=axis)


def real(x: Any) -> Any:
    """The real part; of real numbers they themselves."""
    return torch.real(x) if x.is_complex() else x


def goes_into_vector(x: Any) -> bool:
    """Has it a tangent space? Modules are refused: parameters are not all that they hold."""
    if isinstance(x, torch.nn.Module):
        raise ArgumentError(
            f"ravel does not take a {type(x).__name__}: give it dict(module.named_parameters()), and "
            "call the module by torch.func.functional_call"
        )
    return tensors.is_inexact(x)


def from_numpy(x: Any, kind: Any, shape: Any) -> Any:
    """A part of a vector of NumPy's as a tensor."""
    dtype, device = kind
    return torch.reshape(torch.tensor(x).to(device, dtype), shape)


def kind_of(x: Any) -> Any:
    """What a part of a vector has to become."""
    return x.dtype, x.device


AS_NUMPY = SimpleNamespace(
    zeros=zeros,
    stack=stack,
    array=stack,
    real=real,
    asarray=torch.tensor,
    reshape=torch.reshape,
    conjugate=torch.conj,
    sum=torch.sum,
)
foreign.append(
    Foreign((torch.Tensor, torch.nn.Module), goes_into_vector, tensors.host, from_numpy, kind_of)
)
libraries.append(
    Library(
        (torch.Tensor,),
        AS_NUMPY,
        lambda dtype: dtype.is_floating_point or dtype.is_complex,
        lambda dtype: dtype.is_complex,
    )
)

general.CLAIMS.append(claims)
stays_general.append(belongs)
registry.registry.entry(claims).changed()
