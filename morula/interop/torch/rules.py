"""The rules of PyTorch, which are loaded when a differentiated program first meets one of its values.

Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

from morula.core.extend import general, registry, stays_general
from morula.interop.torch import tensors
from morula.interop.torch.claims import belongs, claims

__all__ = ["tensors"]

general.CLAIMS.append(claims)
stays_general.append(belongs)
registry.registry.entry(claims).changed()
