"""xⁿ by a while loop, as in the papers; ten times the steps should take ten times the time."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.case import SCALAR, Case
from benchmarks.peers import standard


def make_inputs(n: int) -> tuple[float, int]:
    return 1.0 + 1.0 / n, n  # the power stays near e


def primal(x, n):
    r = 1
    while n > 0:
        n -= 1
        r *= x
    return r


def by_hand(x: float, n: int) -> float:
    tape = []
    r: float = 1
    while n > 0:
        n -= 1
        tape.append(r)
        r *= x
    x̄, r̄ = 0.0, 1.0
    for r in reversed(tape):
        x̄ += r̄ * r
        r̄ *= x
    return x̄


def spelled(namespace: Any) -> Callable[..., Any]:
    return primal  # operators alone, the same for all


def compiled(jax: Any) -> Callable[..., Any]:
    def primal(x, n):
        return jax.lax.fori_loop(0, n, lambda _, r: r * x, 1.0)

    return primal


def case(n: int, name: str) -> Case:
    too_long = f"{n} traced steps: seconds to minutes" if n > 10_000 else ""
    return Case(
        f"power {name}",
        SCALAR,
        partial(make_inputs, n),
        primal,
        by_hand,
        peers=standard(spelled, spelled, jit=compiled, too_long=too_long),
        step=1e-3 / n,
        large=n > 1_000_000,
    )


CASES = [case(10**3, "10^3"), case(10**5, "10^5"), case(10**7, "10^7")]
