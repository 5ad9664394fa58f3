"""The second opinion on random programs: forward mode by operator overloading.

It is exact, shares no code with Morula, and follows the branches that the program takes.
"""

from __future__ import annotations

import math
import operator
from types import SimpleNamespace
from typing import Any, ClassVar


class Dual:
    """A number and its derivatives by the arguments of the program.

    `edges` counts the decisions that a small change of the arguments may turn: whether a number is
    zero, where it is, and comparisons of equal numbers.
    """

    __slots__ = ("dx", "x")
    edges: ClassVar[int] = 0

    def __init__(self, x: Any, dx: tuple[float, ...]) -> None:
        self.x, self.dx = x, dx

    def __bool__(self) -> bool:
        Dual.edges += not self.x
        return bool(self.x)

    def __index__(self) -> int:
        return operator.index(self.x)

    def __format__(self, form: str) -> str:
        return format(self.x, form)

    def __repr__(self) -> str:
        return repr(self.x)

    def __hash__(self) -> int:
        return hash(self.x)


def plain(x: Any) -> Any:
    return x.x if type(x) is Dual else x


def lifted(fn: Any, *partials: Any) -> Any:
    """`fn` on dual numbers, from its partial derivatives as functions of its arguments."""

    def on_duals(*args: Any) -> Any:
        values = [plain(a) for a in args]
        y = fn(*values)
        dx: Any = None
        for a, partial in zip(args, partials, strict=False):
            if type(a) is Dual and any(a.dx):
                d = partial(*values)
                term = [d * v if v else 0.0 for v in a.dx]
                dx = term if dx is None else [p + q for p, q in zip(dx, term, strict=True)]
        return y if dx is None else Dual(y, tuple(dx))

    return on_duals


def comparison(fn: Any) -> Any:
    """A comparison, of dual numbers and others."""

    def on_duals(a: Any, b: Any) -> Any:
        x, y = plain(a), plain(b)
        Dual.edges += bool(x == y) and a is not b
        return fn(x, y)

    return on_duals


def of_numbers(fn: Any) -> Any:
    """An operator that leaves all but numbers to the operand's own."""

    def on_duals(a: Any, b: Any) -> Any:
        both = isinstance(plain(a), int | float) and isinstance(plain(b), int | float)
        return fn(a, b) if both else NotImplemented

    return on_duals


def _power_by_base(a: Any, b: Any) -> Any:
    return 0.0 if b == 0 else b * a ** (b - 1)


DUNDERS = {
    "add": (operator.add, lambda a, b: 1.0, lambda a, b: 1.0),
    "sub": (operator.sub, lambda a, b: 1.0, lambda a, b: -1.0),
    "mul": (operator.mul, lambda a, b: b, lambda a, b: a),
    "truediv": (operator.truediv, lambda a, b: 1 / b, lambda a, b: -a / b / b),
    "pow": (operator.pow, _power_by_base, lambda a, b: a**b * math.log(a)),
    "floordiv": (operator.floordiv, lambda a, b: 0.0, lambda a, b: 0.0),
    "mod": (operator.mod, lambda a, b: 1.0, lambda a, b: -(a // b)),
}
for _name, (_fn, _da, _db) in DUNDERS.items():
    _lifted = of_numbers(lifted(_fn, _da, _db))
    setattr(Dual, f"__{_name}__", _lifted)
    setattr(Dual, f"__r{_name}__", lambda b, a, g=_lifted: g(a, b))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Dual, f"__{_name}__", comparison(getattr(operator, _name)))
Dual.__neg__ = lifted(operator.neg, lambda a: -1.0)
Dual.__pos__ = lifted(operator.pos, lambda a: 1.0)
Dual.__abs__ = lifted(abs, lambda a: (a > 0) - (a < 0))

DUAL_MATH = SimpleNamespace(
    sin=lifted(math.sin, math.cos),
    cos=lifted(math.cos, lambda a: -math.sin(a)),
    tanh=lifted(math.tanh, lambda a: 1 - math.tanh(a) ** 2),
    atan=lifted(math.atan, lambda a: 1 / (1 + a * a)),
    exp=lifted(math.exp, math.exp),
    log1p=lifted(math.log1p, lambda a: 1 / (1 + a)),
    sqrt=lifted(math.sqrt, lambda a: 0.5 / math.sqrt(a)),
    hypot=lifted(math.hypot, lambda a, b: a / math.hypot(a, b), lambda a, b: b / math.hypot(a, b)),
    atan2=lifted(math.atan2, lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)),
)
