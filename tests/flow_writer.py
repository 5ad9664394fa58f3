"""Writes random programs whose control flow leaves the straight path.

Exceptions that are thrown and caught, `with`, generators, `match`, and classes made in functions.
"""

from __future__ import annotations

import re

from tests.program_writer import Draw, Helper, Program, Scope, Writer, indented
from tests.structure_writer import exchanged

PRELUDE = """\
import contextlib
import functools
import itertools


class E1(Exception):
    __match_args__ = ("value", "more")

    def __init__(self, value, more=0.5):
        super().__init__(value)
        self.value = value
        self.more = more * value


class E2(E1):
    def __init__(self, value):
        super().__init__(value * 0.5, value)


class E3(ValueError):
    pass


class P:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


def guarded(fn, u, other):
    LOG.append("guarded")
    try:
        return fn(u)
    except E2 as e:
        LOG.append(e.value)
        return e.value * e.more
    except LookupError:
        raise E1(other * u) from None
    finally:
        LOG.append(u)


class Kept:
    v = 0.75


kept, number = [1.5], 0.5


def begin():
    global number
    Kept.v, kept[0], number = 0.75, 1.5, 0.5


def put(v):
    global number
    number = math.sin(v)


def put_guarded(v):
    try:
        Kept.v = math.cos(v)
        put(v * Kept.v)
    finally:
        kept[0] = math.sin(v + 1)


def get():
    return number


def get_guarded():
    try:
        return Kept.v * number
    finally:
        LOG.append(kept[0])

"""
PUTS = (
    "put({})",
    "put_guarded({})",
    "list(map(put, [{}]))",
    "[put_guarded][0]({})",
    "kept[0] = {}",
)
GETS = ("number", "Kept.v", "kept[0]", "get()", "get_guarded()", "[get_guarded][0]()", "Kept().v")
KINDS = ("E1", "E2", "E3", "Exception", "(E1, ArithmeticError)", "LookupError", "ValueError")
OTHERS = ("gen", "manager", "made", "class")  # kinds of variables that hold no items


class FlowWriter(Writer):
    """A writer that knows more of control flow."""

    def __init__(self, draw: Draw, without: frozenset[str] = frozenset()) -> None:
        super().__init__(draw, without)
        self.allowance = 48
        self.protected = 0  # tries around what is written
        self.handling = 0
        self.yielding = False
        self.raisers: dict[str, Helper] = {}
        self.generators: dict[str, bool] = {}  # does it end?
        self.managers: list[str] = []
        self.bases: dict[str, set[str]] = {}  # of local classes, the methods

    # -- the module

    def program(self) -> Program:
        lines = [PRELUDE]
        for _ in range(1 + self.number(4)):
            lines += self.pick((self.raiser, self.generator, self.manager, self.context))()
        self.captured.clear()
        self.fuel = 20
        rest = super().program()
        source = re.sub(r"^( *)(def f\(.*:)$", r"\1\2\n\1    begin()", rest.source, flags=re.M)
        source = re.sub(r"^(f = lambda .*?: )(.*)$", r"\1(begin(), \2)[1]", source, flags=re.M)
        return Program("\n".join([*lines, source]), rest.args)

    def raiser(self) -> list[str]:
        """A function that may raise."""
        self.fuel = 20
        name = self.fresh("r")
        s = Scope({"p": "float", "q": "float"}, depth=1)
        self.protected += 1
        first, _ = self.block(s, 2)
        middle = self.raise_(s)[0]
        last, ended = self.block(s, 3)
        self.protected -= 1
        self.captured.clear()
        self.raisers[name] = Helper(name)
        lines = [f"def {name}(p, q=1.5):", *indented([*first, *middle, *last])]
        return [*lines, *([] if ended else [f"    return {self.expr(s)}"]), ""]

    def generator(self) -> list[str]:
        """A generator function."""
        self.fuel = 20
        name = self.fresh("gen")
        s = Scope({"p": "float", "q": "float"}, depth=1)
        ends = not self.chance(3)
        with_yields = self.yielding
        self.yielding = True
        if ends:
            body, ended = self.block(s, 5)
            body = [*body, *([] if ended else [*self.yield_(s), f"return {self.expr(s)}"])]
            if not any("yield" in line for line in body):
                body = [f"yield {self.leaf(Scope({'p': 'float'}))}", *body]
        else:
            inner = s.inner(loop=True)
            before, ended = self.block(s, 2)
            before = [] if ended else before
            middle, ended = self.block(inner, 2)
            middle = [] if ended or any("continue" in line for line in middle) else middle
            step = f"p = math.sin({self.expr(Scope({'p': 'float', 'q': 'float'}))})"
            body = [*before, "while True:", f"    yield {self.expr(Scope({'p': 'float'}))}"]
            body += indented([step, *middle])
        self.yielding = with_yields
        self.captured.clear()
        self.generators[name] = ends
        return [f"def {name}(p, q=1.5):", *indented(body), ""]

    def manager(self) -> list[str]:
        """A class of context managers."""
        self.fuel = 16
        name = self.fresh("M")
        s = Scope({"self.a": "float"}, depth=2)
        value = self.pick((self.expr(s), "self", "self.a"))
        suppress = self.pick(("False", "None", "kind is E1", "True", "isinstance(e, LookupError)"))
        leave = [f"self.a = {self.expr(s)}", f"LOG.append({self.leaf(s)})"]
        if self.chance(2):
            leave += ["if isinstance(e, E1):", f"    self.a += e.value * {self.leaf(s)}"]
        if self.chance(4):
            leave += ["if isinstance(e, E1):", f"    raise E3({self.expr(s)})"]
        lines = [
            f"class {name}:",
            "    def __init__(self, a):",
            f"        self.a = {self.expr(Scope({'a': 'float'}))}",
            "    def __enter__(self):",
            f"        self.a = {self.expr(s)}",
            f"        return {value}",
            "    def __exit__(self, kind, e, trace):",
            *indented(indented([*leave, f"return {suppress}"])),
            "",
        ]
        self.managers.append(name if value != "self" else f"{name}!")
        return lines

    def context(self) -> list[str]:
        """A context manager made of a generator."""
        self.fuel = 16
        name = self.fresh("cm")
        s = Scope({"p": "float"}, depth=2)
        before, ended = self.block(s, 2)
        before = [] if ended or before == ["pass"] else before
        lines = [f"def {name}(p):", *indented(before)]
        form = self.number(4)
        value = self.expr(s)
        if form == 0:
            lines += [f"    yield {value}", f"    LOG.append({self.leaf(s)})"]
        elif form == 1:
            lines += ["    try:", f"        yield {value}", "    finally:"]
            lines += [f"        LOG.append({self.expr(s)})"]
        else:
            again = self.pick((f"raise E3({self.expr(s, 1)}) from e", "raise", "p = e.more"))
            lines += ["    try:", f"        yield {value}", "    except E1 as e:"]
            lines += [f"        LOG.append(e.value * {self.leaf(s)})", f"        {again}"]
        self.captured.clear()
        self.managers.append(name)
        return ["@contextlib.contextmanager", *lines, ""]

    # -- expressions

    def item(self, s: Scope, d: int) -> str:
        inner = Scope({n: k for n, k in s.kinds.items() if k[0] not in OTHERS}, s.own, s.fixed)
        return super().item(inner, d)

    def call(self, s: Scope, d: int) -> str:
        if self.protected and self.raisers and self.chance(2):
            name = self.pick([*self.raisers][::-1])
            return self.raisers[name].call(self, s, d - 1)
        functions = s.names("function")
        if functions and self.chance(4):
            return f"guarded({self.pick(functions)}, {self.expr(s, d - 1)}, {self.leaf(s)})"
        return super().call(s, d)

    def generated(self, s: Scope, d: int) -> str:
        """An iterator, made in place, that ends."""
        self.captured.update(s.kinds)
        if self.generators and self.chance(2):
            name = self.pick([*self.generators])
            made = f"{name}({self.expr(s, d)}, {self.leaf(s)})"
            return made if self.generators[name] else f"itertools.islice({made}, {self.number(4)})"
        inner = s.inner()
        u, i = self.fresh("u"), self.fresh("i")
        inner.bind(u, "float")
        form = self.number(3)
        if form == 0:
            loop = f"for {u} in {self.iterable(s, d)}"
        elif form == 1:
            loop = f"for {u} in {self.iterable(s, d)} if {self.condition(inner)}"
        else:
            inner.bind(i, "int")
            loop = f"for {i}, {u} in enumerate({self.iterable(s, d)})"
        return f"({self.expr(inner, d)} {loop})"

    def of_generator(self, s: Scope, d: int) -> str:
        """A number from an iterator."""
        names = s.names("gen")
        if names and self.chance(2):
            name = self.pick(names)
            g = name if s.kinds[name][1] else f"itertools.islice({name}, {self.number(4)})"
            if self.chance(2):
                return f"next({name}, {self.leaf(s)})"
        else:
            g = self.generated(s, d)
        e, c = self.expr(s, d - 1), self.leaf(s)
        form = self.pick(
            (
                "sum({g})",
                "sum({g}, {c})",
                "next(iter({g}), {e})",
                "max({g}, default={e})",
                "min({g}, key=lambda t: t * {c}, default={e})",
                "([{c}, *{g}])[-1]",
                "sum(t * w for t, w in zip({g}, ({e}, {c})))",
                "sum(map(lambda t, w: t * w, ({e}, {c}), {g}))",
                "functools.reduce(lambda t, w: t * math.sin(w), {g}, {e})",
                "sum(tuple({g})[:2])",
                "sum(itertools.accumulate({g}))",
                "sum(itertools.chain({g}, ({e},)))",
                "sum(dict(zip('abc', {g})).values())",
                "sum(sorted({g})[:1])",
                "sum(i * t for i, t in enumerate({g}, 1))",
                "sum(itertools.takewhile(lambda t: t < {c}, {g}))",
                "(any(t > {c} for t in {g}) * {e})",
                "sum(filter(lambda t: t > {c}, {g}))",
                "(lambda *t: sum(t) * {c})(*{g})",
            )
        )
        return "(" + str(form.format(g=g, e=e, c=c)) + ")"

    def state(self, s: Scope, d: int) -> str:
        """A number that is kept outside of the function."""
        return self.pick(GETS)

    # -- statements

    def put(self, s: Scope) -> list[str]:
        """Keep a number there."""
        return [self.pick(PUTS).format(self.expr(s))]

    def raise_(self, s: Scope) -> tuple[list[str], bool]:
        """Raise an exception, or perhaps raise one."""
        if not self.protected:
            return self.assign(s), False
        e, c = self.expr(s, 1), self.leaf(s)
        form = self.pick(
            (
                f"raise E1({e}, {c})",
                f"raise E2({e})",
                f"raise E3({e})",
                f"raise E2({e}) from E1({c})",
                f"{self.fresh('v')} = 1 / (0 * {e})",
                f"{self.fresh('v')} = math.sqrt(-1 - abs({e}))",
                f"({e},)[3]",
                f"{{'a': {e}}}['z']",
                f"assert {c} is None, {e}",
            )
        )
        if self.handling and self.chance(3):
            form = "raise"
        if self.chance(3):
            return [form], True
        return [f"if {self.condition(s)}:", f"    {form}"], False

    def try_(self, s: Scope) -> tuple[list[str], bool]:
        clauses = self.pick(("e", "ee", "ef", "f", "el", "elf", "eef"))
        lines = ["try:"]
        inner = s.inner()
        catches = "e" in clauses
        self.protected += catches
        body, ended = self.block(inner, 4)
        if not ended:
            more, ended = self.raise_(inner)
            body += more
            if not ended and self.chance(2):
                more, ended = self.block(inner, 2)
                body += more
        self.protected -= catches
        lines += indented(body)
        ends = []
        self.handling += 1
        kinds = [self.pick(KINDS) for _ in range(clauses.count("e"))]
        if kinds and self.number(3):
            kinds[-1] = "Exception"
        for kind in kinds:
            handler = s.inner()
            e = self.fresh("e")
            lines.append(f"except {kind} as {e}:")
            first = [f"LOG.append(type({e}).__name__)"]
            if kind in ("E1", "E2"):
                handler.kinds[f"{e}.value"] = handler.kinds[f"{e}.more"] = "float"
            else:
                v = self.fresh("v")
                first.append(f"{v} = getattr({e}, 'value', {self.leaf(s)})")
                handler.bind(v, "float")
                if self.chance(3):
                    v = self.fresh("v")
                    first.append(f"{v} = {e}.args[0] if isinstance({e}, (E1, E3)) else 0.5")
                    handler.bind(v, "float")
            more, handled = self.block(handler, 3)
            lines += indented([*first, *more])
            handler.kinds = {n: k for n, k in handler.kinds.items() if not n.startswith(f"{e}.")}
            if not handled:
                ends.append(handler)
        self.handling -= 1
        if "l" in clauses:
            lines.append("else:")
            if ended:
                lines.append("    pass")
            else:
                more, ended = self.block(inner, 2)
                lines += indented(more)
        if not ended:
            ends.append(inner)
        left = False
        if "f" in clauses:
            last = s.inner()
            more, left = self.block(last, 3)
            lines += ["finally:", *indented(more)]
        if left:
            return lines, True
        s.merge(ends)
        return lines, not ends

    def with_(self, s: Scope) -> list[str]:
        """A `with` statement; behind it, only what was bound before is."""
        inner = s.inner()
        items = []
        for _ in range(1 + self.chance(4)):
            w = self.fresh("w")
            if not self.managers or self.chance(4):
                form = self.pick(
                    (
                        f"contextlib.nullcontext({self.expr(s, 1)}) as {w}",
                        "contextlib.suppress(E1)",
                        "contextlib.suppress(Exception)",
                    )
                )
            else:
                name = self.pick(self.managers[::-1])
                form = f"{name.rstrip('!')}({self.expr(s, 1)}) as {w}"
                if name.endswith("!"):
                    inner.bind(w, ("manager", name))
                    inner.kinds[f"{w}.a"] = "float"
            if form.endswith(w) and w not in inner.kinds:
                inner.bind(w, "float")
            items.append(form)
        protects = any("suppress" in i or i[0] == "M" for i in items) and self.chance(2)
        self.protected += protects
        body, ended = self.block(inner, 4)
        if protects and not ended:
            body += self.raise_(inner)[0]
        self.protected -= protects
        return [f"with {', '.join(items)}:", *indented(body)]

    def yield_(self, s: Scope) -> list[str]:
        if not self.yielding:
            return self.use_generator(s)
        e = self.expr(s)
        form = self.number(5)
        if form == 1:
            v = self.fresh("v")
            s.bind(v, "float")
            return [f"{v} = yield {e}", f"{v} = {self.leaf(s)} if {v} is None else {v}"][:2]
        if form == 2:
            return [f"yield from {self.generated(s, 1)}"]
        if form == 3 and self.generators:
            name = self.pick([*self.generators])
            if self.generators[name]:
                v = self.fresh("v")
                lines = [f"{v} = yield from {name}({e})"]
                s.bind(v, "float")
                return [*lines, f"{v} = 0.5 if {v} is None else {v}"]
        if form == 4:
            return [f"yield {e}", f"yield {self.expr(s, 1)}"]
        return [f"yield {e}"]

    def use_generator(self, s: Scope) -> list[str]:
        """Make a generator, or take from one."""
        names = s.names("gen")
        if not names or self.chance(3):
            name = self.fresh("a")
            made = [n for n in self.generators]
            if made and self.chance(2):
                g = self.pick(made)
                lines = [f"{name} = {g}({self.expr(s)})"]
                s.bind(name, ("gen", self.generators[g]))
            else:
                made = self.generated(s, 1)
                if made.startswith("itertools"):  # what has a name is sent something
                    made = f"(t for t in {made})"
                lines = [f"{name} = {made}"]
                s.bind(name, ("gen", True))
            self.captured.add(name)
            return lines
        g = self.pick(names)
        e, v, c = self.expr(s, 1), self.fresh("v"), self.leaf(s)
        form = self.number(6)
        if form == 0:
            s.bind(v, "float")
            return [f"{v} = next({g}, {c})"]
        if form == 1:
            s.bind(v, "float")
            return ["try:", f"    {v} = {g}.send(None) * {e}", "except StopIteration as stop:"] + [
                f"    {v} = {c} if stop.value is None else stop.value"
            ]
        if form == 2:
            s.bind(v, "float")
            lines = [f"{v} = {c}", "try:", f"    next({g})", f"    {v} = {g}.send({e})"]
            if self.chance(2):
                lines.append(f"    {v} += {g}.throw(E1({e}))")
            caught = ["except (StopIteration, AttributeError, TypeError, E1) as stop:"]
            return [*lines, *caught, f"    {v} = {v} + getattr(stop, 'value', 0.25) * 1.0"][:-1] + [
                f"    LOG.append({v})"
            ]
        if form == 3:
            return [f"getattr({g}, 'close', int)()"]
        u = self.fresh("u")
        inner = s.inner(loop=True)
        inner.kinds.pop(g)
        inner.bind(u, "float")
        body, _ = self.block(inner, 4)
        if not s.kinds[g][1]:
            i = self.fresh("i")
            inner.bind(i, "int")
            return [f"for {i}, {u} in zip(range({self.number(4)}), {g}):", *indented(body)]
        stop = [f"if {u} > {c}:", "    break"] if self.chance(2) else []
        return [f"for {u} in {g}:", *indented([*stop, *body]), *self.loop_else(s)]

    def match_(self, s: Scope) -> tuple[list[str], bool]:
        a, b, c = self.expr(s), self.expr(s, 1), self.leaf(s)
        x, y = self.fresh("v"), self.fresh("v")
        forms: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
            (f"({a}, {b})", (("(0.0, _)", ""), (f"({x}, {y})", x + y), (f"[{x}, *_]", x))),
            (f"[{a}, {b}, {c}]", ((f"[{x}, *_, {y}]", x + y), (f"[1, {x}, {y}]", x + y))),
            (f"{{'a': {a}, 'b': {b}}}", ((f"{{'a': {x}, **rest}}", x), ("{'z': _}", ""))),
            (f"P({a}, {b})", ((f"P({x}, b={y})", x + y), (f"P(a=1.0, b={x})", x))),
            (f"E2({a})", ((f"E3() | P(a={x})".replace(f"P(a={x})", "P()"), ""), (f"E1({x})", x))),
            (f"({a}, P({b}, {c}))", ((f"(int() | object() as {x}, P(b={y}))", x + y),)),
            (f"{self.integer(s)} % 3", (("0 | 1", ""), ("2", ""), ("int()", ""))),
        )
        subject, cases = self.pick(forms)
        lines, ends = [f"match {subject}:"], []
        for pattern, bound in [*cases, ("_", "")]:
            inner = s.inner()
            for v in (x, y):
                if v in bound:
                    inner.bind(v, "float")
            guard = f" if {self.condition(inner)}" if self.chance(3) and pattern != "_" else ""
            body, ended = self.block(inner, 3)
            lines += indented([f"case {pattern}{guard}:", *indented(body)])
            if not ended:
                ends.append(inner)
        s.merge(ends)
        return lines, not ends

    def class_(self, s: Scope) -> list[str]:
        """A class made here, or an object of one."""
        made = s.names("class")
        if made and not self.chance(3):
            c, o = self.pick(made), self.fresh("o")
            lines = [f"{o} = {c}({self.expr(s, 1)})"]
            s.bind(o, ("made", c))
            s.kinds[f"{o}.a"] = "float"
            members = self.bases[c]
            v = self.fresh("v")
            forms = [f"{v} = {o}.m({self.expr(s, 1)})", f"{v} = {o}.kk * {self.leaf(s)}"]
            forms += [f"{v} = {o}.prop"] * ("p" in members) + [f"{v} = {c}.of(0.5).a"] * (
                "of" in members
            )
            forms += [f"{v} = sum({o})"] * ("iter" in members)
            lines.append(self.pick(forms))
            s.bind(v, "float")
            return lines
        if self.function_depth > 1:
            return self.assign(s)
        name = self.fresh("K")
        base = self.pick([None, *made])
        own = s.inner()
        own.loops, own.fixed = 0, {*own.kinds}
        self.captured.update(s.kinds)
        own.kinds = {n: k for n, k in own.kinds.items() if k == "float" or k[0] == "function"}
        members = set() if base is None else set(self.bases[base])
        lines = [f"class {name}{f'({base})' if base else ''}:", f"    kk = {self.expr(own, 1)}"]
        if self.chance(3):
            lines += [f"    if {self.condition(own)}:", f"        kk = kk * {self.leaf(own)}"]
        of_self = Scope({**own.kinds, "self.kk": "float", "u": "float", "self.a": "float"}, depth=2)
        of_self.fixed = {*of_self.kinds}
        save, self.yielding, self.protected = (self.yielding, self.protected), False, 0
        self.function_depth += 1
        if base is None:
            start = Scope({**own.kinds, "u": "float"}, fixed={*own.kinds}, depth=2)
            lines += ["    def __init__(self, u):", f"        self.a = {self.expr(start)}"]
        elif self.chance(2):
            start = Scope({**own.kinds, "u": "float"}, fixed={*own.kinds}, depth=2)
            lines += ["    def __init__(self, u):"]
            lines += [f"        super().__init__({self.expr(start)})"]
            lines += [f"        self.a = {self.expr(of_self)}"]
        inherited = f" + super().m({self.leaf(of_self)})" if base and self.chance(2) else ""
        body, ended = self.block(of_self, 2)
        lines += ["    def m(self, u):", *indented(indented(body))]
        lines += [] if ended else [f"        return {self.expr(of_self)}{inherited}"]
        del of_self.kinds["u"]
        extra = self.pick(("", "p", "of", "iter"))
        plain = Scope({n: k for n, k in of_self.kinds.items() if n in own.kinds or "self" in n})
        plain.fixed = {*plain.kinds}
        if extra == "p":
            lines += ["    @property", "    def prop(self):", f"        return {self.expr(plain)}"]
        elif extra == "of":
            lines += ["    @classmethod", "    def of(cls, u):", "        return cls(u * cls.kk)"]
        elif extra == "iter":
            lines += ["    def __iter__(self):", f"        yield {self.expr(plain)}"]
            lines += ["        yield self.a"]
        self.function_depth -= 1
        self.yielding, self.protected = save
        self.bases[name] = members | {extra}
        s.bind(name, ("class", name))
        s.kinds[f"{name}.kk"] = "float"
        self.captured.add(name)
        return lines

    def define(self, s: Scope) -> list[str]:
        save = self.yielding, self.protected, self.handling
        self.yielding, self.protected, self.handling = False, int(self.chance(4)), 0
        lines = super().define(s)
        self.yielding, self.protected, self.handling = save
        return lines

    SIMPLE = (*Writer.SIMPLE, raise_, yield_, use_generator, raise_, put)
    STATEMENTS = (
        *exchanged(Writer.STATEMENTS, define),
        *(try_, with_, yield_, use_generator, match_, class_, raise_, put),
        *(try_, with_, yield_, use_generator, try_, class_, raise_),
    )
    EXPRESSIONS = (
        *exchanged(exchanged(Writer.EXPRESSIONS, item), call),
        of_generator,
        of_generator,
        of_generator,
        state,
    )
