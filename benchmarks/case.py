"""What a workload says of itself, and the structures that its gradients come in.

A workload is a module with a list `CASES`. Its primal is plain code that knows nothing of Morula;
its hand-written adjoint is the yardstick of all ratios. The yardstick computes what the primal's
reverse pass must compute and nothing else: no value, no cotangent that nobody asked for, nothing
twice; arrays are overwritten when nobody needs them any more, and each operation has its cheapest
spelling (`x.dot(w)` and `np.add.reduce` are cheaper than `x @ w` and `np.sum` on small arrays). It
keeps the shape of the program: a recursion stays one. Adjoints that know less about the program, or
change its shape, are `variants`: timed too, for information.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]

# Bounds of the contract, as ratios to the hand-written adjoint.
SCALAR = 1.25
ARRAY = 1.1
MEMORY = 1.5
COLD_MS = 50.0


class Skip(Exception):
    """A competitor does not run this case; the message says why."""


def same(result: Any) -> Any:
    """The identity: a result that needs no reading."""
    return result


@dataclass(frozen=True)
class Call:
    """One call to be timed, and how its result is read for comparison (not timed)."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    read: Callable[[Any], Any] = same
    rtol: float = 1e-8


Peer: TypeAlias = Callable[..., Call]


@dataclass(frozen=True)
class Case:
    """One program, its inputs, its adjoint by hand and the peers' spellings.

    `by_hand` and every entry of `variants` take the primal's arguments and give what
    `grad(primal, argnums)` should give; `(value, gradient)` where `with_value` is set. A peer takes
    the inputs and gives the call to be timed, or raises `Skip`.
    """

    name: str
    bound: float
    make_inputs: Callable[[], tuple[Any, ...]]
    primal: Callable[..., Any]
    by_hand: Callable[..., Any]
    argnums: int | tuple[int, ...] = 0
    with_value: bool = False
    peers: Mapping[str, Peer] = field(default_factory=dict)
    variants: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    step: float = 1e-3  # of the finite differences that check the hand-written adjoint
    large: bool = False  # seconds per call: left out of quick runs


def leaves(tree: Any, like: Any = None) -> Iterator[Array]:
    """The numbers of a gradient in order, each raveled; `like` says the fields of an object's."""
    if isinstance(tree, tuple | list):
        alike = isinstance(like, tuple | list) and len(like) == len(tree)
        for i, part in enumerate(tree):
            yield from leaves(part, like[i] if alike else None)
    elif isinstance(tree, Mapping):
        for key in tree if like is None else like:
            yield from leaves(tree[key], None if like is None else like[key])
    elif isinstance(like, Mapping):  # the cotangent of an object, by its attributes
        for name in like:
            yield from leaves(getattr(tree, name), like[name])
    else:
        yield np.asarray(tree, dtype=np.float64).ravel()


def flat(tree: Any, like: Any = None) -> Array:
    """All numbers of a gradient as one vector."""
    return np.concatenate([*leaves(tree, like)])


def transplant(like: Any, numbers: Iterator[float]) -> Any:
    """The structure of `like` with other numbers."""
    if isinstance(like, tuple | list):
        return type(like)([transplant(part, numbers) for part in like])
    if isinstance(like, Mapping):
        return {key: transplant(part, numbers) for key, part in like.items()}
    if isinstance(like, np.ndarray):
        return np.array([next(numbers) for _ in range(like.size)]).reshape(like.shape)
    return next(numbers)


def shifted(point: Any, direction: Any, by: float) -> Any:
    """`point + by * direction`, where direction has the structure of point's gradient."""
    if isinstance(direction, tuple | list):
        return type(point)([shifted(p, d, by) for p, d in zip(point, direction, strict=True)])
    if isinstance(direction, Mapping):
        other = copy.copy(point)
        for name, part in direction.items():
            setattr(other, name, shifted(getattr(point, name), part, by))
        return other
    return point + by * direction


def chosen(case: Case, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments that the case differentiates by, always as a tuple."""
    argnums = (case.argnums,) if isinstance(case.argnums, int) else case.argnums
    return tuple(args[i] for i in argnums)
