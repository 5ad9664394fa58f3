"""What CPython 3.12 to 3.14 have added to the language, and code that comes from elsewhere than a file.

The sources are texts, for older versions cannot compile them.
"""

from __future__ import annotations

import codeop
import contextlib
import importlib.util
import io
import linecache
import marshal
import math
import py_compile
import sys
import types

import pytest

from morula import NoRuleError, UnsupportedError, grad, gradient, jvp, pullback, value_and_grad
from tests.modes import check_modes
from tests.rules.test_unknown import cubic_root


def defined(source, name="f"):
    """A function of a program."""
    scope = {"math": math, "LOG": []}
    exec(compile(source, "<new syntax>", "exec", dont_inherit=True), scope)
    return scope[name]


def forward(f):
    """The derivative in forward mode."""
    return lambda x: jvp(f, (x,), (1.0,))[1]


SINCE_3_12 = {
    "generic function": """
def f(x):
    def scaled[T: (int, float)](y: T, by: T) -> T:
        return y * by
    return scaled(x, 3) * scaled(x, x)
""",
    "generic class": """
class Pair[A, B]:
    def __init__(self, a: A, b: B):
        self.a, self.b = a, b
    def product(self):
        return self.a * self.b
def f(x):
    return Pair[float, float](x, x**2).product() + Pair(x, 2).product()
""",
    "generic class made inside": """
def f(x):
    class Box[T]:
        def __init__(self, value: T):
            self.value = value
        def squared(self) -> T:
            return self.value**2
    return Box(x * 3).squared() * x
""",
    "values in the body of a generic class": """
def f(x):
    def inside(a):
        class Box[T]:
            value = a * 2
            values = [a * len(T.__name__) for _ in range(2)]
            def product[U](self, u: U, by=a * a) -> U:
                return u * self.value * sum(self.values) * by
        return Box[int]().product(x) * Box.value
    return inside(x)
""",
    "bases and keywords of a generic class": """
class Base:
    def __init_subclass__(cls, k):
        cls.k = k
def base_with(v):
    class Other:
        v_of_base = v
    return Other
def f(x):
    class Box[T](Base, base_with(x * x), k=x**3):
        pass
    return Box.k * Box.v_of_base
""",
    "defaults of generic functions": """
def f(x):
    def plain[T](a: T, b=x * x):
        return a * b
    def by_name[T: int, U: (int, float), *Ts, **P](a: T, *rest: Ts, b: U = x * 3):
        return a * b * len(by_name.__type_params__)
    return plain(x) * by_name(x)
""",
    "generic data class": """
import dataclasses
def f(x):
    @dataclasses.dataclass
    class Box[T]:
        a: T
        b: T = x * x
    return Box(x).a * Box(2).b
""",
    "type alias": """
type Vector[T] = list[T]
def f(x):
    type Pairs = list[tuple[float, float]]
    values: Vector[float] = [x, x * x]
    pairs: Pairs = [(v, 2.0) for v in values]
    return sum(a * b for a, b in pairs) * len(Vector.__type_params__)
""",
    "quotes in an f-string": """
def f(x):
    d = {"a": x}
    text = f"{d["a"]:{".3" + "f"}} {f"{len(d)!r}"}"
    return d["a"] ** 2 * len(text)
""",
    "lines in an f-string": '''
def f(x):
    text = f"""{
        x  # what it is
        > 0
    }"""
    return x**3 if text == "True" else x
''',
    "comprehensions in a class body and a loop": """
def f(x):
    total = 0.0
    for i in range(3):
        rows = [[x * j for j in range(i + 1)] for i in range(i + 1)]
        total += sum(v * i for row in rows for v in row)
    class K:
        powers = [x**n for n in range(1, 4)]
    return total * K.powers[-1] + sum(k * x for k in {n for n in range(3)})
""",
    "comprehension over a name of its own": """
def f(x):
    y = [x, 2 * x]
    z = [y * x for y in y]
    return sum(z) + sum(y) * sum((lambda: [y * x for y in y])())
""",
}

SINCE_3_13 = {
    "defaults of type parameters": """
def f(x):
    class Box[T = float, **P = [int]]:
        def __init__(self, value):
            self.value = value
    return Box(x).value ** 2 * x
""",
    "values beside defaults of type parameters": """
def f(x):
    def g[T: int = bool, *Ts = *tuple[int, ...], **P = [int]](a: T, b=x * 2) -> T:
        return a * b if g.__type_params__[0].__default__ is bool else 0
    class Box[T = int]:
        value = g(x)
    return g(x) * Box.value
""",
    "copy.replace": """
import copy, dataclasses
@dataclasses.dataclass(frozen=True)
class State:
    a: float
    b: float = 1.0
def f(x):
    s = copy.replace(State(x), b=x * x)
    return s.a * s.b
""",
}

SINCE_3_14 = {
    "exceptions without parentheses": """
def f(x):
    try:
        LOG.append("asked")
        return x * {}["missing"]
    except ValueError, KeyError:
        LOG.append("caught")
        return x**2
""",
    "groups without parentheses": """
def f(x):
    y = x
    try:
        raise ExceptionGroup("several", [ValueError(x), KeyError("k")])
    except* ValueError, TypeError:
        y = y * x
    except* KeyError:
        y = y * x
    return y
""",
    "template strings": """
from string.templatelib import Interpolation, Template
def f(x):
    t = t"a{x}b{x * 2!r:.2f}{x + 1:{len("abc")}}"
    y = sum(part.value * (i + 1) for i, part in enumerate(t) if isinstance(part, Interpolation))
    a, b, c = t.values
    first = t.interpolations[0]
    text = "".join(part if isinstance(part, str) else part.expression for part in t)
    return y * a + b * c * len(text) + first.value * len(first.format_spec or "none")
""",
    "templates made by their classes": """
from string.templatelib import Interpolation, Template
def f(x):
    t = Template("a", Interpolation(x * x, "x"), "b") + t"{x}"
    return t.values[0] * t.values[1] * len(t.strings)
""",
    "places in partials": """
from functools import Placeholder as _, partial
def g(a, b, c, d=1.0):
    return a * b**2 + c * d
def f(x):
    p = partial(g, _, x, _, x * x)
    q = partial(partial(p, 2.0), x)
    return p(x, 3.0) * q() + sum(map(partial(g, _, 2.0), [x, 1.0], [2.0, x])) * p.args[1]
""",
    "places in partials from elsewhere": """
import operator
from functools import Placeholder as _, partial, partialmethod
square = partial(operator.pow, _, 2)
def g(a, b):
    return a * b
class K:
    def difference(self, a, b):
        return a - b * b
    less = partialmethod(difference, _, 3.0)
def apply(h, x):
    return h(x)
def f(x):
    try:
        partial(g, _, 2.0)()
    except TypeError:
        x = x * 2
    try:
        square()
    except TypeError as error:
        x = x * len(str(error))
    return apply(square, x) * K().less(x)
""",
    "numbers made of numbers": """
from decimal import Decimal
class Length(float):
    pass
def f(x):
    y = float.from_number(x) * Length.from_number(x) + complex.from_number(x * 1j).imag
    return y * float(Decimal.from_number(x)) * complex.from_number(x).real
""",
    "annotations that are not evaluated": """
def f(x):
    y: Undefined[x] = x * 2
    def g(z: AlsoUndefined) -> NotHere:
        w: Missing = z * y
        return w
    class K:
        a: NoSuchName = 3
    return g(x) * K.a
""",
    "annotations that are asked for": """
import annotationlib
def f(x):
    def g(z: float, w: "int" = 2):
        return z * w
    return g(x * x) * len(annotationlib.get_annotations(g))
""",
}

VERSIONS = [((3, 12), SINCE_3_12), ((3, 13), SINCE_3_13), ((3, 14), SINCE_3_14)]
CASES = [
    pytest.param(
        source,
        id=name,
        marks=pytest.mark.skipif(sys.version_info < since, reason=f"new in CPython {since}"),
    )
    for since, sources in VERSIONS
    for name, source in sources.items()
]


@pytest.mark.parametrize("source", CASES)
def test_new_syntax(source):
    check_modes(defined(source), 1.3)


LATE = {
    "type statement": ((3, 12), "type W = [x, 1.0]\n  return x * W.__value__[0]"),
    "getattr": ((3, 12), "type W = x\n  return x * getattr(W, '__value__')"),
    "bound": ((3, 12), "class K[T: x]: pass\n  return x * K.__type_params__[0].__bound__"),
    "constraints": (
        (3, 12),
        "def g[T: (x, int)](): pass\n  return x * g.__type_params__[0].__constraints__[0]",
    ),
    "default": ((3, 13), "class K[T = x]: pass\n  return x * K.__type_params__[0].__default__"),
    "defaults of many": (
        (3, 13),
        "def g[*T = [x]](): pass\n  return x * g.__type_params__[0].__default__[0]",
    ),
    "annotations": ((3, 11), "def g(a: x): pass\n  return x * g.__annotations__['a']"),
    "annotations of a class": ((3, 14), "class K:\n    a: x\n  return x * K.__annotations__['a']"),
}


@pytest.mark.parametrize("mode", [grad, lambda f: lambda x: pullback(f, x)[1](1.0), forward])
@pytest.mark.parametrize("name", LATE)
def test_numbers_in_what_is_evaluated_late_are_refused(name, mode):
    since, body = LATE[name]
    if sys.version_info < since:
        pytest.skip(f"new in CPython {since}")
    with pytest.raises(UnsupportedError, match="in which there are numbers"):
        mode(defined(f"def f(x):\n  {body}"))(1.3)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="new in CPython 3.13")
def test_types_that_are_evaluated_late_are_free():
    body = """
def f(x):
    type W[T] = list[T] | float
    def g[T: float = int, S: (int, float) = float](a: T = x) -> S:
        bound, (_, kind) = (t.__bound__ or t.__constraints__ for t in g.__type_params__)
        return bound(a) * kind(a) if g.__annotations__["return"] else a
    return g() * x if W.__value__ else x
"""
    check_modes(defined(body), 1.3)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="new in CPython 3.14")
def test_functions_that_evaluate_types_are_followed():
    body = """
def f(x):
    type W = x * x
    def g[T: x](a: 2 * x): pass
    bound = g.__type_params__[0].evaluate_bound(1)
    return W.evaluate_value(1) * bound * g.__annotate__(1)["a"]
"""
    check_modes(defined(body), 1.3)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="new in CPython 3.14")
def test_effects_of_new_syntax_happen_once():
    f = defined(SINCE_3_14["exceptions without parentheses"])
    for transform in (grad(f), value_and_grad(f), lambda x: jvp(f, (x,), (1.0,))):
        f.__globals__["LOG"].clear()
        transform(1.3)
        assert f.__globals__["LOG"] == ["asked", "caught"]


# -- functions from anywhere -----------------------------------------------------------------------

PLAIN = """
def f(x):
    y = math.sin(x) * x
    return y if y > 0 else y**2
"""


def from_exec(tmp_path):
    return defined(PLAIN)


def from_eval(tmp_path):
    return eval("lambda x: math.sin(x) * x if x > 0 else x", {"math": math})


def from_a_prompt(tmp_path):
    scope = {"math": math}
    compiled = codeop.CommandCompiler()
    for statement in ("import math\n", PLAIN.strip() + "\n"):
        code = compiled(statement, "<stdin>", "single")
        assert code is not None
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, scope)
    return scope["f"]


def from_a_notebook(tmp_path):
    """As a notebook does: each cell is a file that only linecache knows."""
    name = "<ipython-input-1-0123456789ab>"
    linecache.cache[name] = (len(PLAIN), None, PLAIN.splitlines(keepends=True), name)
    scope = {"math": math}
    exec(compile(PLAIN, name, "exec"), scope)
    return scope["f"]


def from_compiled_files(tmp_path):
    """Only the `.pyc` is there."""
    source = tmp_path / "module_without_source.py"
    source.write_text("import math\n" + PLAIN)
    target = tmp_path / "module_without_source.pyc"
    py_compile.compile(str(source), str(target))
    source.unlink()
    spec = importlib.util.spec_from_file_location("module_without_source", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def from_marshal(tmp_path):
    code = marshal.loads(marshal.dumps(defined(PLAIN).__code__))
    return types.FunctionType(code, {"math": math})


def from_code_without_positions(tmp_path):
    code = defined(PLAIN).__code__
    return types.FunctionType(code.replace(co_linetable=b""), {"math": math})


ANYWHERE = [
    from_exec, from_eval, from_a_prompt, from_a_notebook, from_compiled_files, from_marshal,
    from_code_without_positions,
]  # fmt: skip


@pytest.mark.parametrize("origin", ANYWHERE)
def test_functions_from_anywhere(origin, tmp_path):
    check_modes(origin(tmp_path), 1.3)


@pytest.mark.parametrize("where", ["<stdin>", "<ipython-input-2-abc>", "/nowhere/deleted.py"])
def test_an_error_says_where_also_without_a_source(where):
    scope = {"opaque": cubic_root}
    exec(compile("def f(x):\n    y = x\n    return opaque(y) * 2", where, "exec"), scope)
    with pytest.raises(NoRuleError) as caught:
        gradient(scope["f"], 1.3)
    assert f"{where}:3, in f" in str(caught.value)
