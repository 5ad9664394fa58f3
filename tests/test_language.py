"""The language: every construct that is lowered, in functions as people write them."""

# ruff: noqa: B905

import collections
import dataclasses
import functools
import math
import operator

import numpy as np
import pytest

from morula import grad, gradient, pullback
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")

SCALE = 1.5


def branches(x, y):
    if x > y:
        z = x * y
    elif x * 2 > y:
        z = y**2
    else:
        z = x - y
    return z * (x if y > 1 else y) + (x and y) * (0.0 or x)


def while_with_break_continue_else(x, y):
    n, s = 0, 0.0
    while n < 10:
        n += 1
        if n % 3 == 0:
            continue
        s = s * x + y
        if s > 40:
            break
    else:
        s = s * 2
    while s > 1:
        s /= 2
    else:
        s += x
    return s


def for_with_break_continue_else(x, y):
    s = 0.0
    for i in range(2, 9, 2):
        for j in range(i):
            if j == 3:
                break
            if (i + j) % 2:
                continue
            s += x**i * y / (j + 1)
        else:
            s -= y
        if s > 1e6:
            break
    else:
        s *= 1.1
    return s


def early_returns(x, y):
    for i in range(10):
        if x * i > y:
            return x * i * y
    return x


def recursion(x, n):
    return 1.0 if n < 1 else x * recursion(x, n - 1) + recursion(x, n - 2)


def mutual_recursion(x, y):
    def even(n):
        return x if n == 0 else odd(n - 1) * y

    def odd(n):
        return y if n == 0 else even(n - 1) + x

    return even(5)


def closures_and_lambdas(x, y):
    add = lambda a: lambda b: a + b * SCALE
    twice = lambda f: lambda v: f(f(v))
    return twice(add(x))(y)


def keyword_star_and_default_arguments(x, y):
    def f(a, /, b=2.0, *rest, c, d=3.0, **more):
        return a * b + sum(rest) * c + d * more.get("e", 1.0)

    values, named = [x, y, x], {"c": y, "e": x}
    return f(x, c=y) + f(x, y, x, y, c=x, d=y) + f(*values, **named) + f(*values, y, **named, d=x)


def decorators(x, y):
    def scaled(factor):
        def decorate(f):
            @functools.wraps(f)
            def g(*args, **kwargs):
                return f(*args, **kwargs) * factor

            return g

        return decorate

    @scaled(y)
    @scaled(2.0)
    def f(v, w=1.0):
        return v * v * w

    return f(x) + f(x, w=y)


def unpacking_and_swapping(x, y):
    a, (b, *c), d = x, (y, x, y), [x, y]
    a, b = b, a
    d[0], d[1] = d[1], d[0]
    for i, (u, v) in enumerate([(x, y), (y, x)]):
        a = a * u + v * i
    return a * b + c[0] * c[1] + d[0] ** 2 * d[1]


def comprehensions(x, y):
    a = [v * i for i, v in enumerate([x, y, x * y]) if v > 0.1]
    b = {k: v for k, v in zip("ab", (x, y))}
    c = [[u * v for u in (x, y)] for v in (y, 2.0)]
    d = {i % 2 for i in range(5)}
    return a[0] + a[1] * b["a"] + c[1][0] * c[0][1] * len(d)


def walrus_and_chained_comparisons(x, y):
    s = 0.0
    if 0 < (z := x * y) < 10:
        s += z
    while (w := s * 2) < 20:
        s += w * x + 0.1
    return s + w if 1 < 2 < 3 else 0.0


def formatting_and_text(x, y):
    name = f"{x:.2f} {y!r:>10} {'a' if x > y else 'b'}"
    text = "%.3f" % x + str(y) + "".join(map(str, [1, 2]))
    return x * len(name) + y * len(text.split("."))


# A text, for pytest writes the assertions in its modules anew, with all that it says of what fails.
WITH_ASSERTIONS = """
def assertions(x, y):
    assert x > 0, f"not positive: {x}"
    assert y
    return math.log(x) * y
"""
written = {"math": math}
exec(WITH_ASSERTIONS, written)
assertions = written["assertions"]


def imports_inside(x, y):
    import math as m
    from math import cos, sin
    from os import path

    return m.exp(x) * cos(y) + sin(x) * len(path.join("a", "b"))


def deleting(x, y):
    z = x * y
    d = {"a": z, "b": x}
    del d["b"]
    w = z
    del z
    return w * d["a"]


def in_place_operators(x, y):
    s = x
    s += y
    s *= x
    s -= 1.0
    s /= y
    s **= 2
    s %= 100.0
    n = 7
    n //= 2
    n <<= 2
    n |= 1
    return s * n


def all_operators(x, y):
    return (
        -x + +y - x * y / (x + y) ** 2 + x**y + x % y + x // y + abs(-x) + (not x) + (x < y) * x
        + (3 & 1 | 4 ^ 1) * y + (~2 << 1 >> 1) * x + divmod(x, y)[1] + pow(x, 3) + round(x) * y
    )  # fmt: skip


def slices(x, y):
    xs = [x, y, x * y, x + y]
    t = tuple(xs)
    a = np.array(xs)
    return xs[1:][0] * t[::-1][0] + sum(xs[:-1]) * a[1:3].sum() + a[::2] @ a[1::2] + t[-2:][1]


def none_and_identity(x, y=None):
    z = None
    for v in [x, None, 2 * x]:
        if v is None:
            continue
        z = v if z is None else z * v
    return z if y is not None else z * 2


@dataclasses.dataclass
class Account:
    balance: float
    history: list = dataclasses.field(default_factory=list)

    def deposit(self, amount):
        self.history.append(amount)
        self.balance += amount
        return self

    @property
    def average(self):
        return sum(self.history) / len(self.history)

    def __iadd__(self, amount):
        return self.deposit(amount)

    def __getitem__(self, i):
        return self.history[i]

    def __len__(self):
        return len(self.history)


class Savings(Account):
    rate = 0.1

    def deposit(self, amount):
        super().deposit(amount * (1 + self.rate))
        self.rate = self.rate * amount
        return self


def classes(x, y):
    a, b = Account(x), Savings(balance=y)
    a.deposit(x * y).deposit(y)
    b += x
    b += y
    return a.balance * b.average + a[0] * b[-1] * len(b)


Tree = collections.namedtuple("Tree", "value children")


def a_tree(x, y):
    tree = Tree(x, [Tree(y, []), Tree(x * y, [Tree(2.0, []), Tree(x, [])])])

    def total(tree):
        return tree.value * (1.0 + sum([total(child) for child in tree.children]))

    return total(tree)


def a_stack_machine(x, y):
    stack = []
    for token in ["x", "y", "*", 2.0, "+", "x", "swap", "-"]:
        if token == "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif token in ("*", "+", "-"):
            b, a = stack.pop(), stack.pop()
            stack.append({"*": operator.mul, "+": operator.add, "-": operator.sub}[token](a, b))
        else:
            stack.append({"x": x, "y": y}.get(token, token))
    return stack.pop() * (1.0 if not stack else 0.0)


def a_memo(x, n):
    memo = {}

    def f(k):
        if k not in memo:
            memo[k] = x if k < 2 else f(k - 1) * 0.5 + f(k - 2) * x
        return memo[k]

    return f(n)


def dynamic_programming(x, y):
    n = 5
    table = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if i == 0 or j == 0:
                table[i][j] = x + i * y + j
            else:
                table[i][j] = min(table[i - 1][j], table[i][j - 1]) * x + y
    return table[-1][-1]


def bisection(x, y):
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle**3 + y * middle < x:
            low = middle
        else:
            high = middle
    m = (low + high) / 2
    for _ in range(2):  # one step of Newton's brings the dependence on x back
        m = m - (m**3 + y * m - x) / (3 * m**2 + y)
    return m


def two_loops(x, y):
    """What the second loop gives is a factor in the adjoint of the first."""
    t = 0.0
    for i in range(3):
        t += x * i
    u = 1.0
    for _ in range(3):
        u *= y + u
    return t * u


def loops_in_loops(x, y):
    """The same, for each iteration of an outer loop."""
    total = 1.0
    for n in range(1, 4):
        t = x
        while t < 4.0 * n:
            t += x * y
        u = y
        for _ in range(n):
            u = u * t
        total *= t * u if n % 2 else u
    return total


def a_loop_and_the_same_behind_it(x, y):
    """The adjoint of both needs the cosine of v, but of another v."""
    v = x
    for _ in range(3):
        v = v * 0.5 + math.sin(v)
    return math.sin(v) * y


PROGRAMS = [
    two_loops,
    a_loop_and_the_same_behind_it,
    loops_in_loops,
    branches,
    while_with_break_continue_else,
    for_with_break_continue_else,
    early_returns,
    mutual_recursion,
    closures_and_lambdas,
    keyword_star_and_default_arguments,
    decorators,
    unpacking_and_swapping,
    comprehensions,
    walrus_and_chained_comparisons,
    formatting_and_text,
    assertions,
    imports_inside,
    deleting,
    in_place_operators,
    all_operators,
    slices,
    none_and_identity,
    classes,
    a_tree,
    a_stack_machine,
    dynamic_programming,
    bisection,
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("point", [(0.7, 1.3), (1.9, 0.6)])
def test_the_gradient_agrees_with_differences(program, point):
    check_gradient(program, *point)


@pytest.mark.parametrize("program", [recursion, a_memo])
def test_recursive_programs(program):
    check_gradient(lambda x: program(x, 6), 0.7)


@pytest.mark.parametrize("program", [branches, classes, a_tree, dynamic_programming])
def test_second_derivatives(program):
    check_gradient(lambda x: grad(program)(x, 1.3), 0.7)


def test_code_typed_at_a_prompt_and_code_without_source():
    scope = {}
    exec("def f(x):\n    s = 0.0\n    for i in range(3):\n        s += x ** i\n    return s", scope)
    assert gradient(scope["f"], 2.0) == (5.0,)
    assert gradient(eval("lambda x: x * x"), 3.0) == (6.0,)


def test_failing_assertions_and_exceptions_are_the_users():
    with pytest.raises(AssertionError, match=r"not positive: -1\.0"):
        gradient(assertions, -1.0, 2.0)

    def raising(x):
        if x > 1:
            raise ValueError(f"too large: {x}")
        return x

    assert gradient(raising, 1.0) == (1.0,)
    with pytest.raises(ValueError, match=r"too large: 2\.0"):
        gradient(raising, 2.0)

    def raising_from(x):
        raise KeyError("outer") from ValueError("inner")

    with pytest.raises(KeyError) as caught:
        gradient(raising_from, 1.0)
    assert str(caught.value.__cause__) == "inner"


def test_effects_happen_once_and_in_order(capsys):
    log = []

    def f(x):
        for i in range(3):
            print("step", i)
            log.append(x * i)
            x = x * x if log[-1] < 5 else x
        return x

    expected = f(1.5)
    printed, kept = capsys.readouterr().out, log[:]
    log.clear()
    y, back = pullback(f, 1.5)
    assert y == expected
    assert capsys.readouterr().out == printed
    assert log == kept
    back(1.0)
    assert capsys.readouterr().out == ""
    assert log == kept


def test_unbound_variables_raise_what_python_raises():
    def f(x):
        if x > 1:
            y = x
        return y

    assert gradient(f, 2.0) == (1.0,)
    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        gradient(f, 0.5)
    with pytest.raises(NameError, match="name 'nowhere' is not defined"):
        gradient(lambda x: nowhere * x, 0.5)  # noqa: F821


def test_long_loops_need_no_recursion_and_linear_time():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s = s * 0.5 + x
        return s

    assert gradient(f, 1.0, 20_000)[0] == pytest.approx(2.0)


def test_what_a_truth_value_is_compared_with_none(path):
    def f(x):
        y = (x > 1.0) is None
        z = (not x) is not None
        return (x if y is None else x * x) + (x if (z is None) is None else 3.0 * x * x)

    assert grad(f)(1.5) == 3.0 + 9.0
    assert grad(lambda x: x * x if (not x) is None else 5.0 * x)(1.5) == 5.0
    assert grad(lambda x: x * x if (x is None) is not None else 5.0 * x)(1.5) == 3.0
