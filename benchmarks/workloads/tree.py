"""An expression tree of nested tuples, evaluated by recursion: 255 operations, 256 leaves."""

import random
from collections.abc import Callable
from typing import Any

from benchmarks.case import SCALAR, Case
from benchmarks.peers import standard

Tree = Any  # "x", "y" or (operation, left, right)
Pairs = list[tuple[float, float]]


def make_tree(depth: int, rng: random.Random) -> Tree:
    if depth == 0:
        return rng.choice("xy")
    return rng.choice("+*"), make_tree(depth - 1, rng), make_tree(depth - 1, rng)


def make_inputs() -> tuple[Tree, float, float]:
    return make_tree(8, random.Random(2)), 0.9, 1.1


def primal(tree, x, y):
    if isinstance(tree, str):
        return x if tree == "x" else y
    operation, left, right = tree
    a = primal(left, x, y)
    b = primal(right, x, y)
    if operation == "+":
        return a + b
    return a * b


def forward(tree: Tree, x: float, y: float, tape: Pairs) -> float:
    """The value; `tape` gets the factors of each product."""
    if isinstance(tree, str):
        return x if tree == "x" else y
    operation, left, right = tree
    a = forward(left, x, y, tape)
    b = forward(right, x, y, tape)
    if operation == "+":
        return a + b
    tape.append((a, b))
    return a * b


def backward(tree: Tree, z̄: float, tape: Pairs, totals: dict[str, float]) -> None:
    """Give the leaves of `tree` their share of its cotangent z̄."""
    if isinstance(tree, str):
        totals[tree] += z̄
        return
    operation, left, right = tree
    if operation == "+":
        backward(right, z̄, tape, totals)
        backward(left, z̄, tape, totals)
    else:
        a, b = tape.pop()
        backward(right, z̄ * a, tape, totals)
        backward(left, z̄ * b, tape, totals)


def by_hand(tree: Tree, x: float, y: float) -> tuple[float, float]:
    tape: Pairs = []
    totals = {"x": 0.0, "y": 0.0}
    forward(tree, x, y, tape)
    backward(tree, 1.0, tape, totals)
    return totals["x"], totals["y"]


def dual(tree: Tree, x: float, y: float) -> tuple[float, float, float]:
    """Value and both derivatives in one pass: forward mode."""
    if isinstance(tree, str):
        return (x, 1.0, 0.0) if tree == "x" else (y, 0.0, 1.0)
    operation, left, right = tree
    a, ax, ay = dual(left, x, y)
    b, bx, by = dual(right, x, y)
    if operation == "+":
        return a + b, ax + bx, ay + by
    return a * b, ax * b + a * bx, ay * b + a * by


def by_dual_numbers(tree: Tree, x: float, y: float) -> tuple[float, float]:
    return dual(tree, x, y)[1:]


def spelled(namespace: Any) -> Callable[..., Any]:
    return primal  # operators alone, the same for all


CASES = [
    Case(
        "recursion over a tree",
        SCALAR,
        make_inputs,
        primal,
        by_hand,
        argnums=(1, 2),
        peers=standard(spelled, spelled, (1, 2)),
        variants={"dual numbers": by_dual_numbers},
        step=1e-5,
    ),
]
