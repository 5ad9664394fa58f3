"""Writes random programs whose numbers live in lists, dicts and objects that functions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.program_writer import Draw, Helper, Kind, Program, Scope, Writer, indented

LONGEST = 12  # no list grows beyond
STRUCTURES = ("object", "objects", "nested")


@dataclass
class Class:
    """What the objects of a class of the module can do."""

    name: str
    members: set[str]


@dataclass
class Sharing(Helper):
    """A function of the module that takes structures, and may change them."""

    params: tuple[Kind, ...] = ()
    result: Kind = "float"

    def call(self, w: Writer, s: Scope, d: int) -> str:
        """A call, as a number."""
        text = self.written(w, s, d)
        return text if self.result == "float" else f"{text}[{w.number(2)}]"

    def written(self, w: Writer, s: Scope, d: int) -> str:
        """A call, as it is."""
        assert isinstance(w, StructureWriter)
        args = [w.argument_of(k, s, d) for k in self.params]
        if w.chance(4):
            args[-1] = f"{'pqrs'[len(args) - 1]}={args[-1]}"
        return f"{self.name}({', '.join(args)})"


def exchanged(options: tuple[Any, ...], new: Any) -> list[Any]:
    """The options, with `new` in the place of the one of its name."""
    return [new if f.__name__ == new.__name__ else f for f in options]


class StructureWriter(Writer):
    """A writer that knows classes, and more of lists and dicts."""

    def __init__(self, draw: Draw, without: frozenset[str] = frozenset()) -> None:
        super().__init__(draw, without)
        self.allowance = 36
        self.classes: dict[str, Class] = {}
        self.makers: list[str] = []

    # -- the module

    def program(self) -> Program:
        lines: list[str] = []
        for _ in range(1 + self.number(2)):
            lines += self.class_()
        for _ in range(1 + self.number(2)):
            lines += self.pick((self.sharing, self.maker, self.collecting))()
        self.captured.clear()
        self.fuel = 20
        rest = super().program()
        return Program("\n".join([*IMPORTS, *lines, rest.source]), rest.args)

    def class_(self) -> list[str]:
        """A class with two numbers and a list, and methods that change them."""
        self.fuel = 18
        name = self.fresh("C")
        base = self.pick([None, *self.classes.values()])
        if base is None and self.chance(5):
            self.classes[name] = Class(name, {"record"})
            return [f"{name} = namedtuple({name!r}, 'a b')", ""]
        if base is not None and "record" in base.members:
            base = None
        members = set() if base is None else set(base.members)
        lines = [f"class {name}({base.name if base else ''}):"]
        start = Scope({"a": "float", "b": "float"}, depth=2)
        body = []
        if base is None and self.chance(4):
            lines = ["@dataclass", f"class {name}:", "    a: float", "    b: float = 0.5"]
            lines.append("    xs: list = field(default_factory=lambda: [0.5, 1.5])")
            lines.append("    k = 0.7")
        elif base is None:
            if self.chance(4):
                lines.append("    __slots__ = ('a', 'b', 'xs', 'k')")
                body.append("self.k = 0.7")
            else:
                lines.append("    k = 0.7")
            body += [f"self.a = {self.expr(start)}", f"self.b = {self.expr(start, 1)}"]
            body.append(f"self.xs = [{self.expr(start, 1)}, a]")
        elif self.chance(2):
            body.append(f"super().__init__({self.expr(start, 1)}, b)")
            body.append(f"self.b *= {self.expr(start, 1)}")
        if body:
            lines += ["    def __init__(self, a, b=0.5):", *indented(indented(body))]
        written: set[str] = set()
        for _ in range(1 + self.number(4)):
            method = self.pick([m for m in METHODS if m not in written])
            written.add(method)
            lines += indented(self.method(method, base is not None and method in members))
        if base is None and "step" not in written:
            written.add("step")
            lines += indented(self.method("step", False))
        self.classes[name] = Class(name, members | written)
        return [*lines, ""]

    def method(self, name: str, inherited: bool) -> list[str]:
        s = Scope({"u": "float", "self.k": "float", "self.b": "float", "self.a": "float"}, depth=2)
        s.kinds["self.xs"] = ("list", 2)
        if name in ("step", "__call__"):
            lines = [f"def {name}(self, u):", *indented(self.method_body(s))]
            if inherited:
                lines[-1] += f" + super().{name}({self.leaf(s)})"
            return lines
        if name == "p":
            del s.kinds["u"]
            setter = ["@p.setter", "def p(self, u):", f"    self.a = u * {self.expr(s, 1)}"]
            lines = ["@property", "def p(self):", f"    return {self.expr(s)}"]
            return lines + setter
        if name == "twice":
            s = Scope({"u": "float"}, depth=2)
            return ["@staticmethod", "def twice(u):", f"    return {self.expr(s)} * 2"]
        if name == "of":
            s = Scope({"u": "float"}, depth=2)
            return ["@classmethod", "def of(cls, u):", f"    return cls({self.expr(s)}, u)"]
        if name == "__getitem__":
            return ["def __getitem__(self, i):", "    return (self.a, self.b)[i]"]
        if name == "__iter__":
            return ["def __iter__(self):", "    return iter([self.a, self.b])"]
        if name == "__add__":
            del s.kinds["u"]
            s.kinds["other.a"] = s.kinds["other.b"] = "float"
            made = f"{self.expr(s)}, {self.expr(s, 1)}"
            return ["def __add__(self, other):", f"    return type(self)({made})"]
        if name == "__iadd__":
            del s.kinds["u"]
            s.kinds["other.a"] = s.kinds["other.b"] = "float"
            lines = ["def __iadd__(self, other):", f"    self.a += {self.expr(s)}"]
            return [*lines, "    return self"]
        assert name == "__mul__"
        made = f"self.a * u, {self.expr(s, 1)}"
        return ["def __mul__(self, u):", f"    return type(self)({made})", "__rmul__ = __mul__"]

    def method_body(self, s: Scope) -> list[str]:
        lines, ended = self.block(s, 3)
        if lines == ["pass"]:
            lines = []
        return [*lines, *([] if ended and self.fuel < -99 else [f"return {self.expr(s)}"])]

    def sharing(self) -> list[str]:
        """A function that takes structures and changes them."""
        self.fuel = 18
        name = self.fresh("h")
        kinds: list[Kind] = ["float", ("list", 2), ("dict", ("a", "b"))]
        kinds += [("object", c.name) for c in self.classes.values() if "record" not in c.members]
        params = tuple(self.pick(kinds[::-1]) for _ in range(1 + self.number(3)))
        s = Scope({"z0": "float"}, depth=1)
        for p, kind in zip("pqrs", params, strict=False):
            self.bind_structure(s, p, kind)
        s.own.clear()
        body, ended = self.block(s, 4)
        result: Kind = self.pick(("float", ("tuple", 2), ("list", 2)))
        value = f"{self.expr(s)}, {self.expr(s, 1)}"
        if result == "float":
            value = self.expr(s)
        elif result[0] == "list":
            value = self.pick([f"[{value}]", *s.names("list")[:2]])
            value = value if value[0] == "[" or s.kinds[value][1] > 1 else f"[0.5, 1.5, *{value}]"
        if ended or any("return" in line for line in body):
            body = []
        lines = [f"def {name}({', '.join('pqrs'[: len(params)])}):", "    z0 = 0.25"]
        lines += indented([line for line in body if line != "pass"])
        self.helpers[name] = Sharing(name, params=params, result=result)
        self.captured.clear()
        return [*lines, f"    return {value}", ""]

    def maker(self) -> list[str]:
        """A function that makes two closures over one variable."""
        self.fuel = 12
        name = self.fresh("make")
        s = Scope({"c": "float", "n": "float", "u": "float"}, fixed={"c", "n", "u"}, depth=2)
        lines = [
            f"def {name}(c):",
            f"    n = {self.expr(Scope({'c': 'float'}), 1)}",
            "    def step(u):",
            "        nonlocal n",
            f"        n = math.sin({self.expr(s)})",
            f"        return {self.expr(s)}",
            f"    return step, lambda u=0.5: {self.expr(s)}",
            "",
        ]
        self.makers.append(name)
        return lines

    def collecting(self) -> list[str]:
        """A function that takes what it gets by stars."""
        self.fuel = 12
        name = self.fresh("h")
        s = Scope({"u": "float", "k": "float", "p": "float"}, depth=2)
        s.kinds["r"] = ("tuple", 0)
        lines = [
            f"def {name}(p, *r, k=0.5, **o):",
            "    for i, (key, u) in enumerate(o.items()):",
            f"        p += {self.expr(s)} * len(key) + i",
            f"    return p * {self.pick(('o', 'dict(o)'))}.get('a', k) + sum(r)",
            "",
        ]
        self.helpers[name] = Collecting(name)
        return lines

    def bind_structure(self, s: Scope, name: str, kind: Kind) -> None:
        """Bind a variable, and with an object what it holds."""
        s.bind(name, kind)
        if kind[0] != "object":
            return
        s.kinds[f"{name}.xs"] = ("list", 2)
        s.kinds[f"{name}.b"] = s.kinds[f"{name}.a"] = "float"

    def argument_of(self, kind: Kind, s: Scope, d: int) -> str:
        """An expression of a kind that a function expects."""
        if kind == "float":
            return self.expr(s, d)
        if kind[0] == "object":
            found = [n for n in s.names("object") if s.kinds[n] == kind]
            if found and not self.chance(5):
                return str(self.pick(found))
            return f"{kind[1]}({self.expr(s, d)}, {self.leaf(s)})"
        if kind[0] == "list":
            found = [n for n in s.names("list") if s.kinds[n][1] > 1]
            if found and not self.chance(5):
                return str(self.pick(found))
            return f"[{self.expr(s, d)}, {self.leaf(s)}]"
        found = [n for n in s.names("dict") if len(s.kinds[n][1]) > 1]
        if found and not self.chance(5):
            return str(self.pick(found))
        return f"{{'a': {self.expr(s, d)}, 'b': {self.leaf(s)}}}"

    # -- expressions

    def long_list(self, s: Scope, d: int) -> str:
        """An expression that is a list of two items or more."""
        return self.argument_of(("list", 2), s, d)

    def of_list(self, s: Scope, d: int) -> str:
        """A number from a list."""
        e, c = self.expr(s, d - 1), self.leaf(s)
        form = self.pick(
            (
                "{l}[-1]",
                "sum({l}[:2])",
                "sum({l}[::-1]) * {e}",
                "({l} + [{e}])[-1]",
                "({l} * 2)[-1]",
                "[{c}, *{l}, {e}][1]",
                "sorted({l})[0]",
                "max({l}, key=lambda t: t * t - {c})",
                "sum(map(lambda t: t * {c}, {l}))",
                "sum([t * w for t, w in zip({l}, [{e}, {c}, 0.5])])",
                "sum([t for t in {l} if t > {c}])",
                "functools.reduce(lambda t, w: t * math.cos(w), {l}, {e})",
                "list(reversed({l}))[0]",
                "len({l}) * {e}",
                "sum(filter(lambda t: t < {c}, {l}))",
                "sum([t * i for i, t in enumerate({l}, 1)])",
                "tuple({l})[1] * {e}",
                "(lambda t, *w: t * sum(w))(*{l})",
                "[[{e}, {c}], {l}][1][1]",
                "sum(map(sum, [{l}, ({e}, {c})]))",
                "sum([t * w for t in {l} for w in (1.0, {c})])",
                "max({e}, *{l})",
                "({l} if {l}[0] > {c} else [{e}])[-1]",
                "math.fsum([{e}, *{l}])",
                "{l}.copy().pop() * {e}",
            )
        )
        if "fsum" in form:
            form = "sum([{e}, *{l}], {c})"
        name = self.long_list(s, d - 1)
        return "(" + str(form.format(l=name, e=e, c=c)) + ")"

    def of_dict(self, s: Scope, d: int) -> str:
        """A number from a dict."""
        name = self.argument_of(("dict", ("a", "b")), s, d - 1)
        e, c = self.expr(s, d - 1), self.leaf(s)
        form = self.pick(
            (
                "{d}['a']",
                "{d}.get('q', {e})",
                "sum({d}.values())",
                "{{**{d}, 'a': {e}}}['b']",
                "({d} | {{'z': {e}}})['z']",
                "sum([len(k) * v for k, v in {d}.items()])",
                "[v * {e} for v in {d}.values()][-1]",
                "{{k: v * {c} for k, v in {d}.items()}}['b']",
                "dict({d}, a={e})['a']",
                "sum([{d}[k] for k in {d}])",
                "max({d}.values())",
                "({d}['b'] if 'a' in {d} else {e})",
                "dict(zip('ab', ({e}, {d}['a'])))['b']",
                "{d}.setdefault('a', {e})",
                "(lambda a, b=0.5, **k: a * b + sum(k.values()))(**{d})",
            )
        )
        return "(" + str(form.format(d=name, e=e, c=c)) + ")"

    def of_object(self, s: Scope, d: int) -> str:
        """A number from an object of a class of the module."""
        if not self.classes:
            return self.of_dict(s, d)
        c = self.pick([*self.classes.values()][::-1])
        o = self.argument_of(("object", c.name), s, d - 1)
        e = self.expr(s, d - 1)
        if "record" in c.members:
            e2 = self.leaf(s)
            made = f"{c.name}({e}, {e2})"
            forms = [f"{made}.a", f"{made}[1]", f"{made}._replace(a={e2}).a", f"sum({made})"]
            return str(self.pick(forms))
        forms = [f"{o}.a", f"{o}.step({e})", f"({o}.a * {o}.b)", f"{o}.xs[-1]", f"{o}.k"]
        forms += [f"getattr({o}, 'b')", f"{c.name}({e}).step({self.leaf(s)})"]
        forms += [f"{c.name}.step({o}, {e})"]
        more = {
            "p": f"{o}.p",
            "__call__": f"{o}({e})",
            "twice": f"{o}.twice({e})",
            "of": f"{c.name}.of({e}).a",
            "__getitem__": f"{o}[1]",
            "__iter__": f"sum({o})",
            "__add__": f"({o} + {o}).b",
            "__mul__": f"({e} * {o}).a",
        }
        forms += [text for name, text in more.items() if name in c.members]
        return str(self.pick(forms))

    def of_functions(self, s: Scope, d: int) -> str:
        """A number from functions that are kept in a container."""
        made = [*s.names("function")[:2], f"lambda t: t * {self.leaf(s)}", "math.sin", "abs"]
        a, b, e = self.pick(made), self.pick(made), self.expr(s, d - 1)
        form = self.pick(
            (
                "sum([t({e}) for t in ({a}, {b})])",
                "[{a}, {b}][{i}]({e})",
                "{{'a': {a}, 'b': {b}}}['b']({e})",
                "functools.partial({a}, {e})()",
                "(lambda t: t({e}))({a})",
                "sum(map({a}, [{e}, 0.5]))",
            )
        )
        return str(form.format(a=a, b=b, e=e, i=self.number(2)))

    def item(self, s: Scope, d: int) -> str:
        forms = (super().item, self.of_list, self.of_dict, self.of_object, self.of_functions)
        if self.number(3) == 0:
            plain = Scope({n: k for n, k in s.kinds.items() if k[0] not in STRUCTURES})
            return super().item(plain, d)
        return self.pick(forms[1:])(s, d)

    # -- statements

    def place(self, s: Scope) -> str:
        """Where a number stands in a structure."""
        places = [n for n in s.names("float") if "." in n][:3]
        places += [f"{n}[{self.index(s, s.kinds[n][1])}]" for n in s.names("list") if s.kinds[n][1]]
        places += [f"{n}[{self.pick(s.kinds[n][1])!r}]" for n in s.names("dict")]
        places += [f"{n}[{self.number(2)}][{self.number(2)}]" for n in s.names("nested")]
        places += [f"{n}[{self.number(2)}].a" for n in s.names("objects")]
        return str(self.pick(places)) if places else ""

    def store(self, s: Scope) -> list[str]:
        """Write into a structure."""
        place = self.place(s)
        if not place:
            return self.build(s)
        e = self.damped(s, self.expr(s))
        other, v = self.place(s), self.fresh("v")
        form = self.pick(
            (
                f"{place} = {e}",
                f"{place} += {e}",
                f"{place} *= math.cos({e})",
                f"{place}, {other} = {other}, {place}",
                f"{v} = {place} = {e}",
                f"{place}, {v} = {e}, {place}",
                f"{place} -= {other}",
            )
        )
        if v in form:
            s.bind(v, "float")
        return [form]

    def change_list(self, s: Scope) -> list[str]:
        """Change a list with two items or more, which it keeps."""
        names = [n for n in s.names("list") if s.kinds[n][1] > 1]
        if not names:
            name = self.fresh("l")
            lines = [f"{name} = [{self.expr(s)}, {self.expr(s, 1)}]"]
            s.bind(name, ("list", 2))
            return lines
        name = self.pick(names)
        e, c = self.damped(s, self.expr(s)), self.leaf(s)
        v, copy = self.fresh("v"), self.fresh("l")
        growing = (
            f"{name}.insert({self.number(3)}, {e})",
            f"{name}.extend(({e}, {c}))",
            f"{name}[0:1] = [{e}, {c}]",
            f"{name}.append({name}[0] * {c})",
            f"{name} += ({e}, {c})",
        )
        forms = [
            f"{name}.reverse()",
            f"{name}.sort()",
            f"{name}.sort(key=lambda t: -t * {c}, reverse=True)",
            f"{name}[:2] = [{e}, {c}]",
            f"{name}[1:2] = [{e}]",
            f"{name}[0], {name}[1] = {name}[1], {name}[0]",
            f"{v} = {name}.pop(0); {name}.append({v} * {c})",
            f"del {name}[0]; {name}.insert(1, {e})",
            f"{copy} = {name}[:]",
            f"{copy} = {name}.copy()",
            f"{copy} = [*{name}]",
            f"{copy} = list({name})",
            f"{name}[::-1] = [t for t in {name}]",
            f"for i, t in enumerate({name}): {name}[i] = t * {c}",
            *[f"if len({name}) < {LONGEST}: {form}" for form in growing],
        ]
        if name in s.fixed:
            forms.pop()
        form = self.pick(forms)
        if form.startswith(copy):
            s.bind(copy, s.kinds[name])
        return form.split("; ")

    def change_dict(self, s: Scope) -> list[str]:
        """Change a dict, which keeps its keys."""
        names = [n for n in s.names("dict") if len(s.kinds[n][1]) > 1]
        if not names:
            name = self.fresh("d")
            lines = [f"{name} = {{'a': {self.expr(s)}, 'b': {self.expr(s, 1)}}}"]
            s.bind(name, ("dict", ("a", "b")))
            return lines
        name = self.pick(names)
        e, c = self.damped(s, self.expr(s)), self.leaf(s)
        copy, v = self.fresh("d"), self.fresh("v")
        form = self.pick(
            (
                f"{name}.update(a={e})",
                f"{name}.update({{'b': {e}}}, a={c})",
                f"{name}['a'], {name}['b'] = {name}['b'], {name}['a']",
                f"{v} = {name}.pop('a'); {name}['a'] = {v} * {c}",
                f"{copy} = dict({name})",
                f"{copy} = {name}.copy()",
                f"{copy} = {{**{name}, 'b': {e}}}",
                f"for k in {name}: {name}[k] *= {c}",
                f"del {name}['b']; {name}['b'] = {e}",
                f"for k, t in list({name}.items()): {name}[k] = t + {c}",
                f"{copy} = {{k: t * {c} for k, t in {name}.items()}}",
                f"{name}['q'] = {name}.get('q', 0.5) * {c}",
            )
        )
        if form.startswith(copy):
            s.bind(copy, s.kinds[name])
        return form.split("; ")

    def table(self, s: Scope) -> list[str]:
        """Fill a dict by keys that are computed, change it, and read a number from it."""
        d, v, t = self.fresh("d"), self.fresh("v"), self.fresh("t")
        e, c = self.damped(s, self.expr(s)), self.leaf(s)
        key = self.pick(("i", "i % 2", "str(i % 3)", "(i, i % 2)", "'ab'[i % 2]", "-i"))
        put = self.pick(
            (
                f"{d}[{key}] = {e} * i",
                f"{d}[{key}] = {d}.get({key}, {c}) * 0.5 + {e}",
                f"{d}[{key}] = {d}.setdefault({key}, {c}) + {e}",
                f"{d}.update({{{key}: {e}}})",
                f"{d} = {d} | {{{key}: {c} * i}}",
                f"{d}[{key}] = {e} if i else {d}.pop({key}, {c})",
            )
        )
        change = self.pick(
            (
                "pass",
                f"for k, u in {d}.items(): {d}[k] = u * {c}",
                f"for k in {d}: {d}[k] += {c}",
                f"for k in list({d}): {d}[k] = {d}.pop(k) * 0.5",
                f"{t} = dict({d}); {t}.update({d}); {d} = {t}.copy()",
                f"for k in [k for k in {d}][1:]: del {d}[k]",
                f"{d} = {{k: u * {c} for k, u in {d}.items()}}",
            )
        )
        read = self.pick(
            (
                f"sum({d}.values())",
                f"sum([u * (n + 1) for n, (k, u) in enumerate(sorted({d}.items()))])",
                f"max({d}.values())",
                f"{d}[max({d}, key={d}.get)]",
                f"sum([{d}[k] for k in sorted({d})[:2]])",
                f"sorted({d}.values(), reverse=True)[0] * len({d})",
                f"min({d}.items(), key=lambda ku: ku[1])[1]",
            )
        )
        s.bind(v, "float")
        filled = [f"{d} = {{}}", f"for i in range({2 + self.number(3)}):", f"    {put}"]
        return [*filled, *change.split("; "), f"{v} = {read}"]

    def queue(self, s: Scope) -> list[str]:
        """Put numbers into a list in order, or as a heap, and take some out."""
        q, v = self.fresh("l"), self.fresh("v")
        e, c = self.damped(s, self.expr(s)), self.leaf(s)
        least, last = f"heapq.heappop({q})", f"{q}.pop({self.pick(('', '0', '-2', '1'))})"
        put, take = self.pick(
            (
                (f"heapq.heappush({q}, {e} * i)", least),
                (f"heapq.heappush({q}, ({c} * i, i))", f"{least}[0]"),
                (f"bisect.insort({q}, {e} * i)", last),
                (f"{q}.insert(i // 2, [{c}, {e} * i])", f"{last}[0]"),
                (f"{q}.append([{c} * i, {e}])", f"{last}[1]"),
            )
        )
        change = "pass"
        if put.startswith(q):
            change = self.pick(
                (
                    f"{q}.sort(key=lambda row: row[1])",
                    f"{q}[0], {q}[1] = {q}[1], {q}[0]",
                    f"{q}.reverse()",
                    f"{q}[1][0] = {c}",
                    f"{q}.append({q}[0]); {q}[-1][1] *= {c}",
                    f"{q} += {q}",
                    f"del {q}[1]; {q}.extend([[{c}, {e}]])",
                )
            )
        s.bind(v, "float")
        filled = [f"{q} = []", f"for i in range({3 + self.number(3)}):", f"    {put}"]
        total = f"{v} = sum([{take} * (i + 1) for i in range(2)])"
        return [*filled, *change.split("; "), total]

    def change_object(self, s: Scope) -> list[str]:
        """Make an object, or change one."""
        plain = [c for c in self.classes.values() if "record" not in c.members]
        if not plain:
            return self.pick((self.change_list, self.change_dict))(s)  # type: ignore[no-any-return]
        names = s.names("object")
        if not names or self.chance(4):
            c = self.pick(plain[::-1])
            name = self.fresh("o")
            lines = [f"{name} = {c.name}({self.expr(s)}, {self.expr(s, 1)})"]
            self.bind_structure(s, name, ("object", c.name))
            return lines
        name = self.pick(names)
        members = self.classes[s.kinds[name][1]].members
        e = self.damped(s, self.expr(s))
        other, v = self.fresh("o"), self.fresh("v")
        forms = [
            f"{name}.step({e})",
            f"{name}.a, {name}.b = {name}.b, {name}.a",
            f"setattr({name}, 'a', {e})",
            f"{name}.xs = {self.long_list(s, 1)}",
            f"{v} = {name}.step; {name}.a = {v}({e})",
            f"{name}.k = {e}",
            f"{other} = {name}",
            f"del {name}.a; {name}.a = {e}",
        ]
        if "p" in members:
            forms += [f"{name}.p = {e}", f"{name}.p += {e}"]
        if "__iadd__" in members and name not in s.fixed:
            forms.append(f"{name} += {self.pick(names)}")
        form = self.pick(forms)
        if form.startswith(other):
            self.bind_structure(s, other, s.kinds[name])
        return form.split("; ")

    def nest(self, s: Scope) -> list[str]:
        """A list of lists, or of objects; or something done with one."""
        nested, objects = s.names("nested"), s.names("objects")
        plain = [c for c in self.classes.values() if "record" not in c.members]
        if not (nested or objects) or self.chance(3):
            name = self.fresh("m")
            if plain and self.chance(2):
                kind = ("object", self.pick(plain).name)
                items = [self.argument_of(kind, s, 1) for _ in range(2)]
                s.bind(name, ("objects", kind[1]))
            else:
                items = [self.long_list(s, 1) for _ in range(2)]
                s.bind(name, ("nested", 2))
            return [f"{name} = [{', '.join(items)}]"]
        e = self.damped(s, self.expr(s, 1))
        if objects and self.chance(2):
            name, c = self.pick(objects), s.kinds[self.pick(objects)][1]
            o, v = self.fresh("o"), self.fresh("v")
            c = s.kinds[name][1]
            form = self.pick(
                (
                    f"for t in {name}: t.a *= {e}",
                    f"{v} = sum([t.step({e}) for t in {name}])",
                    f"{name}[0], {name}[1] = {name}[1], {name}[0]",
                    f"{o} = {name}[1]",
                    f"{name}[0] = {c}({e})",
                    f"{v} = [t.step for t in {name}][0]({e})",
                )
            )
            if form.startswith(o):
                self.bind_structure(s, o, ("object", c))
        elif nested:
            name = self.pick(nested)
            o, v = self.fresh("l"), self.fresh("v")
            form = self.pick(
                (
                    f"for t in {name}: t[0] *= {e}",
                    f"{v} = sum([t[0] * t[1] for t in {name}])",
                    f"{name}[0], {name}[1] = {name}[1], {name}[0]",
                    f"{o} = {name}[1]",
                    f"{name}[0] = [{e}, {e}]",
                    f"{v} = sum(map(sum, {name}))",
                    f"{name}[1] = {name}[0]",
                    f"{name}[0] = {self.long_list(s, 1)}",
                    f"{v} = sum([w for t in {name} for w in t])",
                    f"({v}, *_), *_ = {name}",
                )
            )
            if form.startswith(o):
                s.bind(o, ("list", 2))
        else:
            return self.store(s)
        if form.startswith((v, f"({v}")):
            s.bind(v, "float")
        return [form]

    def share(self, s: Scope) -> list[str]:
        """Call a function that changes what it gets, or a maker of closures."""
        if self.makers and self.chance(2):
            a, b = self.fresh("g"), self.fresh("g")
            lines = [f"{a}, {b} = {self.pick(self.makers)}({self.expr(s)})"]
            s.bind(a, ("function", 1))
            s.bind(b, ("function", 1))
            return lines
        sharing = [h for h in self.helpers.values() if isinstance(h, Sharing)]
        if not sharing:
            return self.nest(s)
        h = self.pick(sharing)
        text = h.written(self, s, 1)
        if self.chance(3):
            return [text]
        if h.result == "float":
            v = self.fresh("v")
            s.bind(v, "float")
            return [f"{v} = {text}"]
        if self.chance(2):
            a, b = self.fresh("v"), self.fresh("v")
            s.bind(a, "float")
            s.bind(b, "float")
            star = f"*{self.fresh('v')}" if h.result[0] == "list" else ""
            return [f"{a}, {b}{', ' if star else ''}{star} = {text}"]
        name = self.fresh("tl"[h.result[0] == "list"])
        s.bind(name, h.result)
        return [f"{name} = {text}"]

    def endless(self, s: Scope) -> list[str]:
        """A loop that is left by a break."""
        n = self.fresh("n")
        inner = s.inner(loop=True)
        inner.bind(n, "int")
        inner.fixed.add(n)
        body, _ = self.block(inner, 4)
        test = f"if {n} > {1 + self.number(4)}{self.pick(('', f' or {self.condition(s)}'))}:"
        s.bind(n, "int")
        s.fixed.add(n)
        return [
            f"{n} = 0",
            f"while {self.pick(('True', '1', 'not 0'))}:",
            *indented([f"{n} += 1", test, "    break", *body]),
            *self.loop_else(s),
        ]

    def mutate(self, s: Scope) -> list[str]:
        forms = (self.store, self.change_list, self.change_object, self.change_dict, self.nest)
        forms += (self.table, self.queue)
        return self.pick(forms)(s)  # type: ignore[no-any-return]

    def body(self, s: Scope, most: int = 6) -> list[str]:
        first = [self.pick((self.change_object, self.change_list, self.change_dict))(s)]
        first += [self.pick((self.change_object, self.share, self.nest))(s)]
        return [*first[0], *first[1], *super().body(s, 2 * most)]

    SIMPLE = (*exchanged(Writer.SIMPLE, mutate), share, mutate, mutate)
    STATEMENTS = (
        *exchanged(Writer.STATEMENTS, mutate),
        *(mutate, mutate, mutate, share, share, endless),
    )
    EXPRESSIONS = (*exchanged(Writer.EXPRESSIONS, item), item, item, item)


class Collecting(Helper):
    """A function of the module that takes what it gets by stars."""

    def call(self, w: Writer, s: Scope, d: int) -> str:
        """A call, as a number."""
        a, b, c = w.expr(s, d), w.expr(s, d), w.leaf(s)
        form = w.pick(
            (
                "{a}, {b}",
                "{a}, b={b}, a={c}",
                "*[{a}, {b}], k={c}",
                "{a}, **{{'k': {b}, 'a': {c}}}",
                "{a}, *({b}, {c}), x={b}, **{{'a': {c}}}",
            )
        )
        return f"{self.name}({form.format(a=a, b=b, c=c)})"


METHODS = (
    "step",
    "__call__",
    "p",
    "twice",
    "of",
    "__getitem__",
    "__iter__",
    "__add__",
    "__mul__",
    "__iadd__",
)
IMPORTS = (
    "import bisect",
    "import functools",
    "import heapq",
    "from collections import namedtuple",
    "from dataclasses import dataclass, field",
    "",
)
