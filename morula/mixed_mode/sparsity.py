"""Sparse Jacobians: the pattern, the colours of the columns, the compressed runs."""

from __future__ import annotations

from typing import Any


def sparse_jacobian(f: Any, args: tuple[Any, ...], sparsity: Any) -> Any:
    """Later."""
    raise NotImplementedError
