"""Writes random programs: functions that take numbers and give one, with all of the language.

Every choice is drawn by Hypothesis, and the first of each is the simplest, so that a program that
fails shrinks to a short one. What is written is sure to run: variables are bound where they are
read, indices are in range, divisors and bases of powers are away from zero, loops end.
"""

from __future__ import annotations

import itertools
import linecache
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

FEATURES = ("closures", "comprehensions", "dicts", "functions", "lists", "log", "recursion")
CONSTANTS = ("0.5", "2.0", "1.0", "-1.5", "0.0", "3", "0.1", "-2", "1.25", "1")
POINTS = (0.7, -1.3, 0.37, 2.1, -0.45, 1.0, 0.0, 1.7, -0.9, 0.05)


# -- programs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """Source that defines `f`, and the arguments that `f` is called with."""

    source: str
    args: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"\nimport math\n\nLOG = []\n\n{self.source}\n\nf(*{self.args})\n"

    def load(self, mathematics: Any = math) -> tuple[Callable[..., Any], list[Any]]:
        """`f` in a module of its own, and the list that its side effects go to."""
        name = f"<program {next(_numbers)}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        log: list[Any] = []
        namespace = {"__name__": __name__, "math": mathematics, "LOG": log}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # `1 is not None`
            exec(compile(self.source, name, "exec"), namespace)
        return namespace["f"], log


_numbers = itertools.count()

Kind = Any  # "float", "int", ("tuple", n), ("list", n), ("dict", keys), ("function", n)


@dataclass
class Scope:
    """The variables that are bound here, with their kinds, and what may be done here."""

    kinds: dict[str, Kind]
    own: set[str] = field(default_factory=set)  # bound in this block: may be deleted
    fixed: set[str] = field(default_factory=set)  # never rebound: loop variables, captured ones
    loops: int = 0
    depth: int = 0  # of nested statements

    def inner(self, loop: bool = False) -> Scope:
        """The scope of a block inside."""
        return Scope(dict(self.kinds), set(), set(self.fixed), self.loops + loop, self.depth + 1)

    def names(self, kind: str) -> list[str]:
        """The variables of a kind: the last bound first."""
        found = [n for n, k in self.kinds.items() if (k if type(k) is str else k[0]) == kind]
        return found[::-1]

    def assignable(self) -> list[str]:
        return [n for n in self.names("float") if n not in self.fixed or "." in n]

    def bind(self, name: str, kind: Kind) -> None:
        self.kinds.pop(name, None)
        self.kinds[name] = kind
        self.own.add(name)

    def merge(self, others: list[Scope]) -> None:
        """What is bound after branches: the variables that are bound in all of them."""
        if not others:
            return
        first, *rest = others
        for name, kind in first.kinds.items():
            if all(s.kinds.get(name) == kind for s in rest):
                self.kinds[name] = kind


Draw = Callable[[Any], Any] | random.Random


class Choices:
    """Draws, by Hypothesis or from plain random numbers, of which the first option is the simplest."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.count: Counter[str] = Counter()

    def number(self, n: int) -> int:
        """One of 0, …, n - 1."""
        if n < 2:
            return 0
        if isinstance(self.draw, random.Random):
            return self.draw.randrange(n)
        return int(self.draw(st.integers(0, n - 1)))

    def real(self) -> float:
        """A number between -3 and 3."""
        if isinstance(self.draw, random.Random):
            return round(self.draw.uniform(-3, 3), 3)
        return float(self.draw(st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 3))))

    def pick(self, options: Any) -> Any:
        """One of the options."""
        return options[self.number(len(options))]

    def chance(self, one_in: int) -> bool:
        """Seldom true; false is the simplest."""
        return self.number(one_in) == one_in - 1

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self.count[prefix] += 1
        return f"{prefix}{self.count[prefix]}"


class Writer(Choices):
    """Writes a program of numbers."""

    def __init__(self, draw: Draw, without: frozenset[str] = frozenset()) -> None:
        super().__init__(draw)
        self.without = without
        self.fuel = self.allowance = 60  # how many expressions and statements there may be
        self.helpers: dict[str, Helper] = {}
        self.captured: set[str] = set()
        self.function_depth = 0

    def has(self, feature: str) -> bool:
        """Is the feature wanted?"""
        return feature not in self.without

    # -- expressions

    def leaf(self, s: Scope, d: int = 0) -> str:
        names = s.names("float")
        if not names or self.chance(5):
            return str(self.pick(CONSTANTS))
        return str(self.pick(names[:4]))

    def expr(self, s: Scope, depth: int = 2) -> str:
        """An expression whose value is a number."""
        self.fuel -= 1
        if depth <= 0 or self.fuel < 0:
            return self.leaf(s)
        return str(self.pick(self.EXPRESSIONS)(self, s, depth - 1))

    def sum_(self, s: Scope, d: int) -> str:
        return f"({self.expr(s, d)} {self.pick('+-')} {self.expr(s, d)})"

    def product(self, s: Scope, d: int) -> str:
        return f"({self.expr(s, d)} * {self.expr(s, d)})"

    def quotient(self, s: Scope, d: int) -> str:
        below = self.expr(s, d)
        form = self.pick(("2.0 + {0} * {0}", "1.5 + abs({0})", "3 + math.sin({0})"))
        return f"({self.expr(s, d)} / ({form.format(below)}))"

    def power(self, s: Scope, d: int) -> str:
        a = self.expr(s, d)
        b = self.expr(s, 0)
        form = self.pick(
            (
                "{a} ** 2",
                "{a} ** 3",
                "(1.1 + {a} * {a}) ** 0.5",
                "(1.1 + abs({a})) ** math.sin({b})",
                "(2 + {a} * {a}) ** -1",
                "1.5 ** math.cos({a})",
                "pow({a}, 2)",
            )
        )
        return "(" + form.format(a=a, b=b) + ")"

    def sign(self, s: Scope, d: int) -> str:
        return self.pick(("(-{})", "abs({})", "(+{})")).format(self.expr(s, d))

    def function_of_math(self, s: Scope, d: int) -> str:
        form = self.pick(
            (
                "math.sin({0})",
                "math.cos({0})",
                "math.tanh({0})",
                "math.atan({0})",
                "math.exp(math.sin({0}))",
                "math.log1p({0} * {0})",
                "math.sqrt(1.0 + {0} * {0})",
                "math.hypot({0}, 1.5)",
                "math.atan2({0}, 2.5)",
                "math.exp(-abs({0}))",
            )
        )
        return str(form.format(self.expr(s, d)))

    def conditional(self, s: Scope, d: int) -> str:
        return f"({self.expr(s, d)} if {self.condition(s, d)} else {self.expr(s, d)})"

    def boolean(self, s: Scope, d: int) -> str:
        return f"({self.expr(s, d)} {self.pick(('and', 'or'))} {self.expr(s, d)})"

    def extremum(self, s: Scope, d: int) -> str:
        return f"{self.pick(('max', 'min'))}({self.expr(s, d)}, {self.expr(s, d)})"

    def item(self, s: Scope, d: int) -> str:
        """An item of a structure that a variable holds, or of one built in place."""
        options = [n for n in s.kinds if type(s.kinds[n]) is tuple and s.kinds[n][0] != "function"]
        if not options or self.chance(4):
            n = 1 + self.number(3)
            items = [self.expr(s, d - 1) for _ in range(n)]
            if self.has("dicts") and self.chance(3):
                keys = [f"{'abc'[i]!r}: {x}" for i, x in enumerate(items)]
                return f"{{{', '.join(keys)}}}[{'abc'[self.number(n)]!r}]"
            if self.has("lists") and self.chance(2):
                return f"[{', '.join(items)}][{self.index(s, n)}]"
            return f"({', '.join(items)},)[{self.index(s, n)}]"
        name = self.pick(options[::-1])
        kind, detail = s.kinds[name]
        if kind == "dict":
            key = self.pick(detail)
            return self.pick((f"{name}[{key!r}]", f"{name}.get({key!r}, 0.5)"))
        if detail == 0:
            return self.leaf(s)
        if self.chance(3):
            return self.pick((f"sum({name})", f"max({name})", f"sum({name}, 0.5)"))
        return f"{name}[{self.index(s, detail)}]"

    def index(self, s: Scope, n: int) -> str:
        ints = s.names("int")
        if ints and self.chance(3):
            return f"{self.pick(ints)} % {n}"
        i = self.number(2 * n)
        return str(i if i < n else i - 2 * n)

    def integer(self, s: Scope) -> str:
        """A small integer that is not negative."""
        ints = s.names("int")
        if not ints or self.chance(3):
            return str(self.number(4))
        i = self.pick(ints)
        return str(self.pick((f"{i}", f"({i} % 3)", f"({i} + 1)", f"({i} // 2)")))

    def mixed(self, s: Scope, d: int) -> str:
        """An integer among floats."""
        return f"({self.expr(s, d)} * {self.integer(s)})"

    def condition(self, s: Scope, d: int = 1) -> str:
        d = min(d, 1)
        a, b = self.expr(s, d), self.expr(s, 0)
        form = self.pick(
            (
                "{a} > {b}",
                "{a} <= {b}",
                "-1.0 < {a} < {b}",
                "not {a} > {b}",
                "{a} > 0.3 and {b} < 1",
                "{a} > 1.5 or {b} > 0.1",
                "{i} % 2 == 0",
                "{i} > 1",
                "{a} != {b}",
                "{i} in (0, 2)",
                "True",
                "{a} is not None",
            )
        )
        return str(form.format(a=a, b=b, i=self.integer(s)))

    def call(self, s: Scope, d: int) -> str:
        """A call of a helper, of a closure or of a lambda."""
        functions = s.names("function")
        if functions and not self.chance(3):
            name = self.pick(functions)
            n = s.kinds[name][1]
            return f"{name}({', '.join(self.expr(s, d - 1) for _ in range(n))})"
        if self.helpers and not self.chance(4):
            name = self.pick([*self.helpers][::-1])
            return self.helpers[name].call(self, s, d - 1)
        if not self.has("closures"):
            return self.leaf(s)
        u = self.fresh("u")
        inner = s.inner()
        inner.bind(u, "float")
        body = self.expr(inner, d)
        self.captured.update(s.kinds)
        return f"(lambda {u}: {body})({self.expr(s, d - 1)})"

    def comprehension(self, s: Scope, d: int) -> str:
        if not (self.has("comprehensions") and self.has("lists")):
            return self.leaf(s)
        return f"{self.pick(('sum', 'sum', 'len'))}({self.list_of(s, d)[0]})"

    EXPRESSIONS: tuple[Any, ...] = (
        leaf,
        sum_,
        product,
        function_of_math,
        quotient,
        power,
        sign,
        product,
        sum_,
        function_of_math,
        mixed,
        conditional,
        call,
        item,
        call,
        item,
        extremum,
        boolean,
        comprehension,
    )

    def iterable(self, s: Scope, d: int = 1) -> str:
        """Something to iterate over that gives numbers."""
        found = [*s.names("tuple")[:2], *s.names("list")[:2]]
        found += [f"{n}.values()" for n in s.names("dict")[:1]]
        if found and not self.chance(3):
            it = self.pick(found)
            return it if it.endswith(")") or not self.chance(4) else f"reversed({it})"
        items = [self.expr(s, d) for _ in range(self.number(4))]
        if self.has("lists") and self.chance(2):
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if items else ''})"

    def list_of(self, s: Scope, d: int) -> tuple[str, int]:
        """An expression that makes a list, and how many items it has at least."""
        if not (self.has("comprehensions") and self.chance(2)):
            n = self.number(4)
            return f"[{', '.join(self.expr(s, d) for _ in range(n))}]", n
        inner = s.inner()
        i, u = self.fresh("i"), self.fresh("u")
        form = self.number(5)
        n = 0
        if form == 0:
            n = self.number(4)
            inner.bind(i, "int")
            loop = f"for {i} in range({n})"
        elif form == 1:
            inner.bind(u, "float")
            loop = f"for {u} in {self.iterable(s)}"
        elif form == 2:
            inner.bind(i, "int")
            inner.bind(u, "float")
            loop = f"for {i}, {u} in enumerate({self.iterable(s)})"
        elif form == 3:
            inner.bind(i, "int")
            loop = f"for {i} in range({self.integer(s)}) if {self.condition(inner)}"
        else:
            inner.bind(i, "int")
            inner.bind(u, "float")
            loop = f"for {u} in {self.iterable(s)} for {i} in range(2)"
        self.captured.update(s.kinds)
        return f"[{self.expr(inner, d)} {loop}]", n

    # -- statements; each gives its lines, and whether control never gets behind it

    def block(self, s: Scope, most: int = 5) -> tuple[list[str], bool]:
        lines: list[str] = []
        for _ in range(most):
            if self.fuel < 0 or self.number(8) == 0:
                break
            new, ended = self.statement(s)
            lines += new
            if ended:
                return lines, True
        return lines or ["pass"], False

    def statement(self, s: Scope) -> tuple[list[str], bool]:
        self.fuel -= 1
        options = self.STATEMENTS if s.depth < 3 else self.SIMPLE
        result = self.pick(options)(self, s)
        return result if type(result) is tuple else (result, False)

    def target(self, s: Scope) -> str:
        """A variable to assign a number to: one that is bound already, or a new one."""
        names = s.assignable()
        if names and not self.chance(3):
            return str(self.pick(names[:3]))
        return self.fresh("v")

    def damped(self, s: Scope, e: str) -> str:
        """In loops numbers are kept from growing."""
        return f"math.sin({e})" if s.loops and self.number(3) else e

    def assign(self, s: Scope) -> list[str]:
        e = self.damped(s, self.expr(s))
        name = self.target(s)
        s.bind(name, "float")
        return [f"{name} = {e}"]

    def augmented(self, s: Scope) -> list[str]:
        names = s.assignable()
        if not names:
            return self.assign(s)
        name = self.pick(names[:3])
        e = self.expr(s)
        form = self.pick(("+= {}", "-= {}", "*= math.cos({})", "/= 2.0 + math.sin({})"))
        return [f"{name} {form.format(e)}"]

    def several(self, s: Scope) -> list[str]:
        """Assignments to more than one variable."""
        names = s.assignable()
        if len(names) > 2 and self.chance(2):
            a, b, c = names[:3]
            return [f"{a}, {b}, {c} = {b}, {c}, {a}"]
        if len(names) > 1 and self.chance(2):
            a, b = names[:2]
            return [f"{a}, {b} = {b}, {a}"]
        a, b, c = self.fresh("v"), self.fresh("v"), self.fresh("v")
        x, y = self.expr(s), self.expr(s, 1)
        form = self.pick(
            (
                f"{a}, {b} = {x}, {y}",
                f"{a} = {b} = {x}",
                f"{a} = ({b} := {x}) * {y}",
                f"({a}, {b}), {c} = ({x}, {y}), 0.5",
                f"[{a}, {b}] = ({x}, {y})",
            )
        )
        for name in (a, b, c) if c in form else (a, b):
            s.bind(name, "float")
        return [form]

    def starred(self, s: Scope) -> list[str]:
        if not self.has("lists"):
            return self.several(s)
        a, rest = self.fresh("v"), self.fresh("l")
        n = 1 + self.number(3)
        items = ", ".join(self.expr(s, 1) for _ in range(n))
        s.bind(a, "float")
        s.bind(rest, ("list", n - 1))
        return [self.pick((f"{a}, *{rest} = {items},", f"*{rest}, {a} = ({items},)"))]

    def delete(self, s: Scope) -> list[str]:
        names = [n for n in s.own if n in s.kinds and n not in self.captured | s.fixed]
        names = [n for n in names if "." not in n]
        if not names or len(s.kinds) < 2:
            return self.assign(s)
        name = self.pick(sorted(names))
        for bound in [n for n in s.kinds if n == name or n.startswith(name + ".")]:
            del s.kinds[bound]
        return [f"del {name}"]

    def build(self, s: Scope) -> list[str]:
        """A variable that holds a tuple, a list or a dict."""
        form = self.number(3)
        if form == 1 and self.has("lists"):
            e, n = self.list_of(s, 1)
            name = self.fresh("l")
            s.bind(name, ("list", n))
            return [f"{name} = {e}"]
        n = 1 + self.number(3)
        items = [self.expr(s, 1) for _ in range(n)]
        if form == 2 and self.has("dicts"):
            name, keys = self.fresh("d"), tuple("abc"[:n])
            s.bind(name, ("dict", keys))
            pairs = ", ".join(f"{k!r}: {x}" for k, x in zip(keys, items, strict=True))
            return [f"{name} = {self.pick(('{' + pairs + '}', f'dict([], **{{{pairs}}})'))}"]
        name = self.fresh("t")
        s.bind(name, ("tuple", n))
        return [f"{name} = ({', '.join(items)},)"]

    def mutate(self, s: Scope) -> list[str]:
        """Change a list or a dict in place."""
        names = [*s.names("list"), *s.names("dict")]
        if not names:
            return self.build(s)
        name = self.pick(names)
        kind, detail = s.kinds[name]
        e = self.damped(s, self.expr(s))
        if kind == "dict":
            key = self.pick(detail)
            return [self.pick((f"{name}[{key!r}] = {e}", f"{name}[{key!r}] += {e}"))]
        forms = [f"{name}.append({e})", f"{name} += [{e}]"]
        if detail:
            i = self.index(s, detail)
            forms += [f"{name}[{i}] = {e}", f"{name}[{i}] += {e}"]
        form = self.pick(forms)
        if ("append" in form or form.startswith(f"{name} +=")) and name not in self.captured:
            s.kinds[name] = (kind, detail + 1) if name in s.own else (kind, detail)
        if f"{name} +=" in form and name in s.fixed:
            form = forms[0]
        lines = [form]
        if form == forms[0] and self.chance(3):
            v = self.target(s)
            s.bind(v, "float")
            s.kinds[name] = (kind, detail)
            lines.append(f"{v} = {name}.pop()")
        return lines

    def alias(self, s: Scope) -> list[str]:
        names = s.names("list")
        if not names:
            return self.assign(s)
        name = self.pick(names)
        other = self.fresh("l")
        s.bind(other, s.kinds[name])
        return [f"{other} = {name}"]

    def effect(self, s: Scope) -> list[str]:
        """What is no derivative's business."""
        e = self.expr(s, 1)
        forms = [f"assert {e} is not None, f'never {{{self.leaf(s)}}}'"]
        if self.has("log"):
            forms += [
                f"LOG.append({e})",
                f"LOG.append(f'{{{self.leaf(s)}:.3f}} {{{self.leaf(s)}!r}}')",
            ]
        return [self.pick(forms)]

    def define(self, s: Scope) -> list[str]:
        """A function inside: a closure, which may rebind what it captured, or a lambda."""
        if not self.has("closures") or self.function_depth > 1:
            return self.assign(s)
        name, u = self.fresh("g"), self.fresh("u")
        inner = s.inner()
        inner.loops = 0
        rebound = [n for n in s.assignable() if n not in self.captured and "." not in n][:2]
        self.captured.update(s.kinds)
        inner.fixed = {*inner.kinds}
        inner.bind(u, "float")
        if self.chance(3):
            s.bind(name, ("function", 1))
            default = self.pick(("", f", w={self.leaf(s)}"))
            if default:
                inner.bind("w", "float")
            return [f"{name} = lambda {u}{default}: {self.expr(inner)}"]
        lines = []
        if rebound and self.chance(2):
            v = self.pick(rebound)
            lines.append(f"nonlocal {v}")
            inner.fixed.discard(v)
            lines.append(f"{v} = math.sin({self.expr(inner)})")
        self.function_depth += 1
        body, ended = self.block(inner, 3)
        self.function_depth -= 1
        lines += body
        if not ended:
            lines.append(f"return {self.expr(inner)}")
        s.bind(name, ("function", 1))
        return [f"def {name}({u}):", *indented(lines)]

    def early_return(self, s: Scope) -> tuple[list[str], bool]:
        if s.depth == 0:
            return self.assign(s), False
        return [f"return {self.expr(s)}"], True

    def jump(self, s: Scope) -> tuple[list[str], bool]:
        if s.depth == 0 or not s.loops:
            return self.assign(s), False
        return [self.pick(("break", "continue"))], True

    def branch(self, s: Scope) -> tuple[list[str], bool]:
        lines, ends = [f"if {self.condition(s)}:"], []
        clauses = self.pick((("if", "else"), ("if",), ("if", "elif", "else"), ("if", "elif")))
        for clause in clauses:
            if clause == "elif":
                lines.append(f"elif {self.condition(s)}:")
            elif clause == "else":
                lines.append("else:")
            inner = s.inner()
            body, ended = self.block(inner, 3)
            lines += indented(body)
            if not ended:
                ends.append(inner)
        if clauses[-1] != "else":
            ends.append(s)
            return lines, False
        s.merge(ends)
        return lines, not ends

    def for_loop(self, s: Scope) -> list[str]:
        inner = s.inner(loop=True)
        i, u = self.fresh("i"), self.fresh("u")
        form = self.number(8)
        kinds = {i: "int"}
        head = f"{i} in range({self.integer(s)})"
        if form == 1:
            head, kinds = f"{u} in {self.iterable(s)}", {u: "float"}
        elif form == 2:
            head, kinds = f"{i}, {u} in enumerate({self.iterable(s)})", {i: "int", u: "float"}
        elif form == 3:
            w = self.fresh("u")
            head = f"{u}, {w} in zip({self.iterable(s)}, {self.iterable(s)})"
            kinds = {u: "float", w: "float"}
        elif form == 4:
            head = f"{i} in range({self.integer(s)}, -1, -1)"
        elif form == 5:
            head, kinds = f"{i}, {u} in zip(range(3), {self.iterable(s)})", {i: "int", u: "float"}
        elif form == 6 and s.names("dict"):
            head = f"_, {u} in {self.pick(s.names('dict'))}.items()"
            kinds = {u: "float"}
        elif form == 7:
            head = f"{i} in (0, 1, 3)"
        for name, kind in kinds.items():
            inner.bind(name, kind)
            if kind == "int":
                inner.fixed.add(name)
        self.protect_iterated(s, inner, head)
        body, _ = self.block(inner, 4)
        return [f"for {head}:", *indented(body), *self.loop_else(s)]

    def protect_iterated(self, s: Scope, inner: Scope, head: str) -> None:
        """What is iterated over does not grow in the loop."""
        for name in [*s.names("list"), *s.names("dict")]:
            inner.kinds.pop(name) if name in head else None

    def while_loop(self, s: Scope) -> list[str]:
        n = self.fresh("n")
        inner = s.inner(loop=True)
        inner.bind(n, "int")
        inner.fixed.add(n)
        test = f"{n} < {1 + self.number(4)}"
        if self.chance(3):
            test += f" and ({self.condition(s)})"
        body, _ = self.block(inner, 4)
        s.bind(n, "int")
        s.fixed.add(n)
        lines = [f"{n} = 0", f"while {test}:", *indented([f"{n} += 1", *body])]
        return lines + self.loop_else(s)

    def loop_else(self, s: Scope) -> list[str]:
        if not self.chance(4):
            return []
        body, _ = self.block(s.inner(), 2)
        return ["else:", *indented(body)]

    def bound_in_one_branch(self, s: Scope) -> list[str]:
        v, w = self.fresh("v"), self.fresh("v")
        test = self.condition(s)
        lines = [f"{w} = {self.leaf(s)}", f"if {test}:", f"    {v} = {self.expr(s)}"]
        middle, ended = self.statement(s.inner())
        if ended or any(line.startswith(("del", "def")) for line in middle):
            middle = []
        lines += ["if True:", *indented(middle)] if middle else []
        flag = self.fresh("b")
        lines[1] = f"if {flag} := ({test}):"
        lines += [f"if {flag}:", f"    {w} = {v} * 2"]
        s.bind(w, "float")
        return lines

    SIMPLE: tuple[Any, ...] = (
        assign,
        augmented,
        several,
        build,
        mutate,
        effect,
        starred,
        delete,
        alias,
        early_return,
        jump,
    )
    STATEMENTS: tuple[Any, ...] = (
        assign,
        augmented,
        for_loop,
        branch,
        several,
        while_loop,
        build,
        define,
        mutate,
        effect,
        starred,
        for_loop,
        branch,
        delete,
        bound_in_one_branch,
        alias,
        early_return,
        jump,
    )

    # -- functions

    def body(self, s: Scope, most: int = 6) -> list[str]:
        lines, ended = self.block(s, most)
        if ended:
            return lines
        if lines == ["pass"]:
            lines = []
        used = s.names("float")[:4]
        structures = [
            n for n in s.kinds if type(s.kinds[n]) is tuple and s.kinds[n][0] in "tuplelist"
        ]
        used += [f"sum({n})" for n in structures[:2]]
        used += [f"{n}['a']" for n in s.names("dict")[:1]]
        return [*lines, f"return {' + '.join([self.expr(s), *used])}"]

    def helper(self) -> list[str]:
        """A function of the module, for others to call."""
        name = self.fresh("h")
        if self.has("recursion") and self.chance(4):
            s = Scope({"u": "float"}, depth=2)
            lines = [
                f"def {name}(n, u):",
                "    if n <= 0:",
                f"        return {self.expr(s)}",
                f"    return {name}(n - 1, math.sin({self.expr(s)})) * {self.expr(s, 1)} + u",
            ]
            self.helpers[name] = Helper(name, recursive=True)
            return [*lines, ""]
        s = Scope({"p": "float", "q": "float"}, depth=1)
        head, star, keyword = "p, q=1.5", self.chance(3), self.chance(3)
        if star:
            head += ", *rest"
            s.bind("rest", ("tuple", 0))
        if keyword:
            head += ", k=0.5" if star else ", *, k=0.5"
            s.bind("k", "float")
        s.own.clear()
        lines = [f"def {name}({head}):", *indented(self.body(s, 3))]
        self.helpers[name] = Helper(name, star=star, keyword=keyword)
        self.captured.clear()
        return [*lines, ""]

    def program(self) -> Program:
        lines: list[str] = []
        if self.has("functions"):
            for _ in range(self.number(3)):
                lines += self.helper()
        self.fuel = self.allowance
        names = "xyz"[: 1 + self.number(3)]
        kinds = {n: self.pick(("float", "float", "float", "int")) for n in names[1:]}
        s = Scope({**kinds, "x": "float"}, fixed={n for n in kinds if kinds[n] == "int"})
        args = [self.argument(s.kinds[n]) for n in names]
        form = self.pick(("def", "def", "def", "closure", "lambda", "rest"))
        if form == "lambda":
            lines.append(f"f = lambda {', '.join(names)}: {self.expr(s, 4)}")
        elif form == "closure" and self.has("closures"):
            s.kinds = {"c": "float", "k": "int", **s.kinds}
            s.fixed |= {"c", "k"}
            inside = [f"def f({', '.join(names)}):", *indented(self.body(s)), "return f"]
            lines += ["def make(c, k=2):", *indented(inside), "", "f = make(0.8)"]
        elif form == "rest":
            n = self.number(3)
            args += [self.argument("float") for _ in range(n)]
            s.kinds["rest"] = ("tuple", n)
            lines += [f"def f({', '.join(names)}, *rest):", *indented(self.body(s))]
        else:
            lines += [f"def f({', '.join(names)}):", *indented(self.body(s))]
        return Program("\n".join(lines), tuple(args))

    def argument(self, kind: str) -> Any:
        if kind == "int":
            return self.number(5)
        if self.chance(6):
            return self.number(5) - 1  # an integer where the program expects a float
        if self.chance(4):
            return self.real()
        return self.pick(POINTS)


@dataclass
class Helper:
    """How a function of the module may be called."""

    name: str
    recursive: bool = False
    star: bool = False
    keyword: bool = False

    def call(self, w: Writer, s: Scope, d: int) -> str:
        if self.recursive:
            return f"{self.name}({w.integer(s)} % 4, {w.expr(s, d)})"
        a, b = w.expr(s, d), w.expr(s, d)
        forms = [f"{a}", f"{a}, {b}", f"{a}, q={b}", f"q={a}, p={b}"]
        forms += [f"*({a}, {b})", f"{a}, **{{'q': {b}}}"]
        if self.star:
            forms += [f"{a}, {b}, {a}, 0.5", f"*({a}, {b}, {b})"]
        form = w.pick(forms)
        if self.keyword and w.chance(2):
            form += f", k={w.leaf(s)}"
        return f"{self.name}({form})"


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
