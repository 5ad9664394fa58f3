"""The other tools: how each is asked for a gradient, with its inputs prepared beforehand.

Each adapter takes a function in the tool's own spelling. Packages are imported only when used, so
that one that is not installed costs its own column and nothing else. All work in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Call, Peer, Skip

Argnums = int | tuple[int, ...]
Spelling = Callable[[Any], Callable[..., Any]]

# The columns of the table, in their order.
PEERS = ("autograd", "torch", "jax", "jax.jit", "differences")


def converted(tree: Any, convert: Callable[[Any], Any]) -> Any:
    """`tree` with its floats and float arrays converted, all else as it is."""
    if isinstance(tree, tuple | list):
        return type(tree)([converted(part, convert) for part in tree])
    if isinstance(tree, float) or (isinstance(tree, np.ndarray) and tree.dtype.kind == "f"):
        return convert(tree)
    return tree


def has_floats(tree: Any) -> bool:
    """Is there anything in `tree` that a tool would convert?"""
    found: list[Any] = []
    converted(tree, found.append)
    return bool(found)


def in_autograd(
    f: Callable[..., Any], inputs: tuple[Any, ...], argnums: Argnums = 0, with_value: bool = False
) -> Call:
    """HIPS Autograd, on the very inputs of the primal."""
    from autograd import grad, value_and_grad

    transform = value_and_grad if with_value else grad
    return Call(transform(f, argnums), inputs)


def in_torch(
    f: Callable[..., Any], inputs: tuple[Any, ...], argnums: Argnums = 0, with_value: bool = False
) -> Call:
    """PyTorch, eager: leaves made once, then `torch.autograd.grad` at every call."""
    import torch

    torch.set_num_threads(1)
    parameters: list[Any] = []

    def parameter(x: Any) -> Any:
        parameters.append(torch.tensor(x, dtype=torch.float64, requires_grad=True))
        return parameters[-1]

    def constant(x: Any) -> Any:
        return torch.tensor(x, dtype=torch.float64)

    wanted = (argnums,) if isinstance(argnums, int) else argnums
    args = tuple(converted(x, parameter if i in wanted else constant) for i, x in enumerate(inputs))

    def gradient(*args: Any) -> Any:
        return torch.autograd.grad(f(*args), parameters)

    def value_and_gradient(*args: Any) -> Any:
        value = f(*args)
        return value.detach(), torch.autograd.grad(value, parameters)

    return Call(value_and_gradient if with_value else gradient, args)


def in_jax(
    f: Callable[..., Any],
    inputs: tuple[Any, ...],
    argnums: Argnums = 0,
    with_value: bool = False,
    jit: bool = False,
) -> Call:
    """JAX on device arrays made once; with `jit` the whole gradient is compiled, once."""
    import jax
    import jax.numpy as jnp

    args = tuple(converted(x, jnp.asarray) for x in inputs)
    transform = (jax.value_and_grad if with_value else jax.grad)(f, argnums)
    if jit:
        static = tuple(i for i, x in enumerate(inputs) if not has_floats(x))
        transform = jax.jit(transform, static_argnums=static)

    def gradient(*args: Any) -> Any:
        return jax.block_until_ready(transform(*args))

    return Call(gradient, args)


def by_differences(f: Callable[..., Any], x: Any, with_value: bool = False) -> Call:
    """SciPy's forward differences at the vector `x`: the gradient alone, as its optimisers do."""
    from scipy.optimize import approx_fprime

    def read(gradient: Any) -> Any:
        return (f(x), gradient) if with_value else gradient

    return Call(approx_fprime, (x, f), read, rtol=1e-4)


def standard(
    spelled: Spelling,
    torch: Spelling,
    argnums: Argnums = 0,
    *,
    jit: Spelling | None = None,
    with_value: bool = False,
    too_long: str = "",
) -> dict[str, Peer]:
    """The peers of a program that `autograd.numpy` and `jax.numpy` spell alike.

    `spelled(np)` gives the program in either of these two, `torch(torch)` in PyTorch, and
    `jit(jax)` in JAX where its compiler wants loops and branches of its own. `too_long` is the
    reason why tools that trace every operation are not asked.
    """

    def by_autograd(*inputs: Any) -> Call:
        import autograd.numpy

        return in_autograd(spelled(autograd.numpy), inputs, argnums, with_value)

    def by_torch(*inputs: Any) -> Call:
        import torch as torch_module

        return in_torch(torch(torch_module), inputs, argnums, with_value)

    def by_jax(*inputs: Any) -> Call:
        import jax.numpy

        return in_jax(spelled(jax.numpy), inputs, argnums, with_value)

    def by_jit(*inputs: Any) -> Call:
        import jax

        program = jit(jax) if jit else spelled(jax.numpy)
        return in_jax(program, inputs, argnums, with_value, jit=True)

    def skipped(*inputs: Any) -> Call:
        raise Skip(too_long)

    eager = {"autograd": by_autograd, "torch": by_torch, "jax": by_jax}
    return {name: skipped if too_long else peer for name, peer in eager.items()} | {
        "jax.jit": by_jit
    }
