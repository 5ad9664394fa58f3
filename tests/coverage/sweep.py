"""What the tests of the tables leave out, for every call: `python -m tests.coverage.sweep`.

    python -m tests.coverage.sweep [--only NAME] [--checks forward,second,…] [--seed S]

It takes too long for every commit, so it is run by hand. Each check looks at the calls of the
tables in one more way; what does not hold is printed, sorted by kind:

- wrong: a number, a shape or a dtype that is not what differences or the plain call say;
- exception: one that the plain call does not raise, and that is not Morula's own;
- refused: an error of Morula's own;
- slow: a check of one call that takes more than five seconds.
"""

import argparse
import ast
import inspect
import re
import sys
import time
import warnings
from collections import deque

import numpy as np

import morula
from morula.core.errors import DifferentiationError
from morula.testing import _at, _copied, _identical, _kind, _leaves, _not_in_space
from tests import coverage

SLOW = 5.0
STEP = 2e-5


class Wrong(AssertionError):
    """A result that is not what it should be."""


# -- vectors that mirror arguments and results ----------------------------------------------------


def inner(x̄, v):
    """Re⟨x̄, v⟩ over structures."""
    return product(v)(x̄)


def product(v):
    """The function x̄ ↦ Re⟨x̄, v⟩ over structures, in as few lines as a user would write."""
    constants, terms = {"np": np}, []

    def add(v, place):
        if isinstance(v, tuple | list):
            for i, part in enumerate(v):
                add(part, f"{place}[{i}]")
        elif _kind(v):
            name = f"c{len(constants)}"
            constants[name] = np.conj(v)
            product = f"{place} * {name}"
            terms.append(f"np.sum({product if _kind(v) != 'c' else f'np.real({product})'})")

    add(v, "x̄")
    return eval(f"lambda x̄: {' + '.join(terms) or '0.0'}", constants)


def bent(y):
    """Something of a number whose derivative depends on it."""
    return y + 0.5 * y * y


def direction(x, rng):
    """A random tangent of an argument; None where it has none."""
    if isinstance(x, tuple | list):
        return type(x)([direction(part, rng) for part in x])
    if _kind(x) == "":
        return None
    v = rng.standard_normal(np.shape(x))
    if _kind(x) == "c":
        v = v + 1j * rng.standard_normal(np.shape(x))
    if isinstance(x, np.ndarray):
        return v.astype(x.dtype if x.dtype.kind in "fc" else float)
    return type(x)(v) if _kind(x) != "i" else float(v)


def moved(x, v, h):
    """x + h v, in memory like that of x."""
    if v is None:
        return _copied(x)
    if isinstance(x, tuple | list):
        return type(x)([moved(part, d, h) for part, d in zip(x, v, strict=True)])
    if isinstance(x, np.ndarray):
        new = _copied(x)
        new.setflags(write=True)
        new[...] = x + h * v
        new.setflags(write=x.flags.writeable)
        return new
    return x + h * v


def leaves_in_space(what, primal, tangent):
    """Every number and array of a cotangent or tangent is in the space of its primal."""
    for path, leaf in _leaves(primal):
        part = _at(tangent, path)
        if part is None or isinstance(part, morula.NoTangent | morula.ZeroTangent):
            continue
        wrong = _not_in_space(leaf, part)
        if wrong:
            raise Wrong(f"{what}{list(path)} {wrong}")


# -- one call, at some arguments ------------------------------------------------------------------


class Case:
    """A call as a function, with arguments, a direction and a seed."""

    def __init__(self, f, args, seed=0):
        self.f, self.args = f, args
        self.rng = np.random.default_rng(seed)
        self.v = [direction(x, self.rng) for x in args]
        self.u = [direction(x, self.rng) for x in args]
        self.value = self.plain_error = None
        try:
            self.value = f(*map(_copied, args))
        except Exception as error:
            self.plain_error = error
        self.ȳ = None if self.plain_error else coverage.seed(self.value)
        weigh = product(self.ȳ)
        self.loss = lambda *args: weigh(f(*args))
        self.curved = lambda *args: bent(self.loss(*args))  # whose gradient depends on the value

    def raises_alike(self):
        """Where the plain call raises, the differentiated one raises the same; was that so?"""
        if self.plain_error is None:
            return False
        try:
            morula.pullback(self.f, *map(_copied, self.args))
        except DifferentiationError:
            return True
        except Exception as error:
            if type(error) is not type(self.plain_error):
                raise Wrong(
                    f"raises {error!r}, the plain call {self.plain_error!r}"
                ) from self.plain_error
            return True
        raise Wrong(f"gives a value, where the plain call raises {self.plain_error!r}")

    def slope(self, function, v):
        """The derivative of a function along v by differences, and how far off it may be."""

        def at(h):
            return function(*[moved(x, d, h) for x, d in zip(self.args, v, strict=True)])

        whole = (at(STEP) - at(-STEP)) / (2 * STEP)
        half = (at(STEP / 2) - at(-STEP / 2)) / STEP
        return half, abs(whole - half)

    def pull(self):
        y, back = morula.pullback(self.f, *map(_copied, self.args))
        if not _identical(y, self.value):
            raise Wrong(f"the value is {y!r}, the plain call's is {self.value!r}")
        return back(self.ȳ)

    def compare(self, what, got, expected, size=1.0, rtol=2e-6):
        """Is a number what the differences say, if they say anything?"""
        slope, doubt = expected
        if any(
            getattr(leaf, "dtype", None) in (np.float32, np.complex64)
            for _, leaf in _leaves(self.value)
        ):
            rtol = 2e-2
        if not np.isfinite(slope) or doubt > 1e-3 * max(1.0, abs(slope)):
            return
        if not abs(got - slope) <= rtol * max(abs(slope), size) + 4 * doubt + 1e-7:
            raise Wrong(f"{what} gives {got:.9g}, differences {slope:.9g}")

    def copies(self):
        return [*map(_copied, self.args)]

    def second(self, products):
        """Products with the second derivative, each computed in some mixture of modes."""
        gradient = morula.grad(self.curved, tuple(range(len(self.args))))
        expected = self.slope(lambda *xs: inner(gradient(*xs), self.u), self.v)
        for what, value in products.items():
            with said(what):
                self.compare(what, value(), expected, abs(expected[0]), 1e-5)

    def first(self, rtol=2e-6, compiled=False):
        """Both modes at these arguments, against differences."""
        if self.raises_alike():
            return
        expected = self.slope(self.loss, self.v)
        x̄ = self.pull()
        leaves_in_space("cotangent", self.args, x̄)
        size = sum(float(np.sum(np.abs(p))) for _, p in _leaves(x̄) if _kind(p))
        self.compare("reverse", inner(x̄, self.v), expected, size, rtol)
        y, ẏ = morula.jvp(self.f, [*map(_copied, self.args)], self.v)
        if not _identical(y, self.value):
            raise Wrong(f"the value of jvp is {y!r}, the plain call's is {self.value!r}")
        floats = [_kind(leaf) in ("f", "c") for _, leaf in _leaves(self.value)]
        if all(floats):
            leaves_in_space("tangent", self.value, ẏ)
        self.compare("forward", along(ẏ, self.ȳ), expected, size, rtol)
        if compiled:
            x̄ = morula.grad(self.loss, tuple(range(len(self.args))))(*map(_copied, self.args))
            leaves_in_space("gradient", self.args, x̄)
            self.compare("compiled", inner(x̄, self.v), expected, size, rtol)


def along(ẏ, ȳ):
    """Re⟨ȳ, ẏ⟩ where parts of either may be zeros without a space."""
    if isinstance(ȳ, tuple | list):
        if ẏ is None or isinstance(ẏ, morula.NoTangent | morula.ZeroTangent):
            return 0.0
        return sum(along(ẏ[i], ȳ[i]) for i in range(len(ȳ)))
    if ẏ is None or isinstance(ẏ, morula.NoTangent | morula.ZeroTangent):
        return 0.0
    return inner(ẏ, ȳ)


# -- the checks -----------------------------------------------------------------------------------


def check_forward(call, seed):
    """Forward mode against differences."""
    f, args = coverage.function(call)
    Case(f, args, seed).first()


def check_second(call, seed):
    """Reverse and forward over reverse, and hvp, against differences of the gradient."""
    f, args = coverage.function(call)
    case = Case(f, args, seed)
    n = tuple(range(len(args)))
    loss, along_u = case.curved, product(case.u)
    products = {
        "reverse over reverse": lambda: inner(
            morula.grad(lambda *xs: along_u(morula.grad(loss, n)(*xs)), n)(*case.copies()), case.v
        ),
        "forward over reverse": lambda: inner(
            morula.jvp(lambda *xs: morula.grad(loss, n)(*xs), case.copies(), case.v)[1], case.u
        ),
    }
    if len(args) == 1 and isinstance(args[0], np.ndarray | float | complex):
        products["hvp"] = lambda: inner(morula.hvp(loss, *case.copies(), case.v[0]), case.u[0])
    case.second(products)


def check_mixed(call, seed):
    """Reverse and forward over forward, against differences of the gradient."""
    f, args = coverage.function(call)
    case = Case(f, args, seed)
    n = tuple(range(len(args)))

    def along_u(*xs):
        return morula.jvp(case.curved, xs, case.u)[1]

    case.second(
        {
            "reverse over forward": lambda: inner(morula.grad(along_u, n)(*case.copies()), case.v),
            "forward over forward": lambda: along(
                morula.jvp(along_u, case.copies(), case.v)[1], 1.0
            ),
        }
    )


def laid_out(x, how):
    """An argument with the same entries in another memory."""
    if how == "0-d":
        return np.array(x) if isinstance(x, float | complex) else x
    if not isinstance(x, np.ndarray):
        return x
    if how == "Fortran":
        return np.asfortranarray(x)
    if how == "reversed":
        flip = (slice(None, None, -1),) * x.ndim
        return x[flip].copy()[flip]
    if how == "strided":
        wide = np.full([2 * n + 1 for n in x.shape], True if x.dtype == bool else 9.0, x.dtype)
        part = wide[(slice(1, None, 2),) * x.ndim]
        part[...] = x
        return part
    x = x.copy()
    x.setflags(write=False)
    return x


def check_layouts(call, seed):
    """Operands in Fortran order, with negative strides, not contiguous, read-only, of no axes."""
    f, args = coverage.function(call)
    for how in ("Fortran", "reversed", "strided", "read-only", "0-d"):
        changed = [laid_out(x, how) for x in args]
        if all(a is b for a, b in zip(args, changed, strict=True)):
            continue
        with said(how):
            Case(f, changed, seed).first()


EMPTY = {
    "vectors": {"xyzpuk": (0,)},
    "rows": {"xyzpuk": (0,), "mw": (0, 4), "t": (0, 3, 4)},
    "matrices": {"mw": (0, 4), "a": (0, 0), "t": (0, 3, 4)},
    "columns": {"mw": (3, 0), "a": (0, 0), "t": (2, 3, 0)},
}


def check_empty(call, seed):
    """Empty operands: gradients of their shape, and no exception but the plain call's."""
    if "as_strided" in call:  # it reads memory that is not there
        return
    f, args = coverage.function(call)
    names = [*inspect.signature(f).parameters]
    for how, shapes in EMPTY.items():
        shape_of = {name: shape for group, shape in shapes.items() for name in group}
        shape_of |= {"n" + name: shape_of[name] for name in "xmz" if name in shape_of}
        shape_of |= {"mk": shape_of["m"]} if "m" in shape_of else {}
        changed = [
            np.zeros(shape_of[n], x.dtype) if n in shape_of else x
            for n, x in zip(names, args, strict=True)
        ]
        if "xs" in names and how == "vectors":
            changed[names.index("xs")] = []
        if all(a is b for a, b in zip(args, changed, strict=True)):
            continue
        with said(f"empty {how}"):
            case = Case(f, changed, seed)
            case.first(compiled=case.plain_error is None)


def check_single(call, seed):
    """Single precision: both modes and the compiled gradient keep the dtype."""
    if any(name in call for name in ("polydiv", "as_strided")):
        return
    f, args = coverage.function(call)
    for mixed in (False, True):
        short = [x if mixed and i else coverage.shortened(x) for i, x in enumerate(args)]
        if all(a is b for a, b in zip(args, short, strict=True)) or (mixed and len(args) < 2):
            continue
        with said("the first in single precision" if mixed else "single precision"):
            compare_with_double(Case(f, short, seed), Case(f, args, seed))


def compare_with_double(short, double):
    """The derivatives in single precision are near those in double, and of their own dtype."""
    expected = double.pull()
    n = tuple(range(len(short.args)))
    ȳ = short.ȳ
    gradient = morula.grad(short.loss, n)
    for what, found in (
        ("cotangent", morula.pullback(short.f, *short.args)[1](ȳ)),
        ("gradient", gradient(*map(_copied, short.args))),
    ):
        leaves_in_space(what, short.args, found)
        for a, b in zip(found, expected, strict=True):
            if isinstance(b, np.ndarray | float | complex):
                size = np.max(np.abs(b), initial=1.0)
                if not np.allclose(a / size, b / size, atol=2e-3, equal_nan=True):
                    raise Wrong(f"{what} {a!r}, in double precision {b!r}")
    y, ẏ = morula.jvp(short.f, [*map(_copied, short.args)], short.v)
    if all(_kind(leaf) in ("f", "c") for _, leaf in _leaves(y)):
        leaves_in_space("tangent", y, ẏ)
    slope = along(ẏ, ȳ)
    other = inner(gradient(*map(_copied, short.args)), short.v)
    if not abs(slope - other) <= 1e-3 * max(1.0, abs(other)) and np.isfinite(other):
        raise Wrong(f"forward gives {slope}, reverse {other}")


def check_whole(call, seed):
    """Integers and truth values in the place of one operand: as floats of the same values."""
    f, args = coverage.function(call)
    for i, x in enumerate(args):
        if not isinstance(x, float) and not (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
            continue
        if isinstance(x, np.ndarray) and np.isnan(x).any():
            continue
        whole = np.round(4 * x).astype(int) if isinstance(x, np.ndarray) else round(x)
        for kind in ("int", "bool"):
            if isinstance(x, float):
                other = int(whole) if kind == "int" else True
            else:
                other = whole if kind == "int" else whole > 0
            like = other.astype(float) if isinstance(x, np.ndarray) else float(other)
            with said(f"{kind} as argument {i}"):
                compare_with_float(
                    Case(f, [*args[:i], other, *args[i + 1 :]], seed),
                    Case(f, [*args[:i], like, *args[i + 1 :]], seed),
                    i if kind == "bool" else None,
                )


def compare_with_float(case, floats, constant):
    """The same derivatives as for floats, where the values are the same."""
    if case.raises_alike() or floats.plain_error is not None:
        return
    if not same_numbers(case.value, floats.value):
        return
    expected = morula.pullback(floats.f, *map(_copied, floats.args))[1](floats.ȳ)
    n = tuple(range(len(case.args)))
    weights = floats.ȳ
    weigh = product(weights)
    for what, found in (
        ("cotangent", morula.pullback(case.f, *map(_copied, case.args))[1](floats.ȳ)),
        ("gradient", morula.grad(lambda *xs: weigh(case.f(*xs)), n)(*map(_copied, case.args))),
    ):
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            if i == constant:
                if a is not None:
                    raise Wrong(f"{what} of a truth value is {a!r}")
            elif isinstance(b, np.ndarray | float | complex):
                leaves_in_space(f"{what} {i}", case.args[i], a)
                if not np.allclose(a, b, rtol=1e-8, atol=1e-10, equal_nan=True):
                    raise Wrong(f"{what} {i} is {a!r}, with floats {b!r}")
    v = [direction(x, case.rng) for x in case.args]
    _, ẏ = morula.jvp(case.f, [*map(_copied, case.args)], v)
    slope, other = along(ẏ, weights), inner(found, v)
    if np.isfinite(other) and not abs(slope - other) <= 1e-7 * max(1.0, abs(other)):
        raise Wrong(f"forward gives {slope}, reverse {other}")


def same_numbers(a, b):
    """The same structure of the same numbers, whatever their types."""
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same_numbers, a, b))
    if _kind(a) == "i" and _kind(b) == "f":
        return False  # what is rounded has no derivative
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, equal_nan=True))


def check_keywords(call, seed):
    """Arguments given by name where they were given by position, and the other way round."""
    f, args = coverage.function(call)
    plain = Case(f, args, seed)
    for how, text in respelt(call):
        other, others = coverage.function(text)
        with said(f"{how}: {text}"):
            case = Case(other, others, seed)
            if case.plain_error is not None or not _identical(case.value, plain.value):
                continue
            for a, b in zip(case.pull(), plain.pull(), strict=True):
                for path, leaf in _leaves(b):
                    if not np.allclose(_at(a, path), leaf, equal_nan=True):
                        raise Wrong(f"{a!r}, otherwise {b!r}")
            case.first(compiled=True)


class Box:
    """What NumPy takes for an array: it gives one when asked."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x if dtype is None else self.x.astype(dtype)


FORMS = {
    "a tuple": tuple,
    "a list": list,
    "numbers": lambda x: x.tolist(),
    "tuples": lambda x: tuple(map(tuple, x.tolist())) if x.ndim == 2 else tuple(x.tolist()),
    "a deque": deque,
    "an object": Box,
}


def check_sequences(call, seed):
    """The numbers of an array in what NumPy makes an array of."""
    f, args = coverage.function(call)
    for i, x in enumerate(args):
        if not (isinstance(x, np.ndarray) and x.ndim and x.dtype.kind in "fc"):
            continue
        for form, make in FORMS.items():

            def program(*xs, i=i, make=make):
                return f(*xs[:i], make(xs[i]), *xs[i + 1 :])

            with said(f"{form} as argument {i}"):
                Case(program, args, seed).first(compiled=True)


def overwritten(value):
    """Changes in place whatever of a value can be changed: arrays, lists and what they hold."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable and value.dtype.kind in "fc":
            value *= 0.5
            value[...] = value * value + 0.25
    elif isinstance(value, tuple | list):
        for part in value:
            overwritten(part)
        if isinstance(value, list) and len(value) > 1:
            value.reverse()
            value[0] = value[0] * 2.0
            value.pop()


def check_written(call, seed):
    """What a call gave, or what it was given, is written to later, and both are read again."""
    f, args = coverage.function(call)
    weigh = product(coverage.seed(f(*map(_copied, args))))
    weighs = [product(coverage.seed(x)) for x in args]

    def result(*xs):
        y = f(*xs)
        total = weigh(y)
        kept = y
        overwritten(y)
        return total + sum_of(kept)

    def arguments(*xs):
        y = f(*xs)
        overwritten(xs)
        total = weigh(y)
        for x, weigh_one in zip(xs, weighs, strict=True):
            total = total + weigh_one(x)
        return total

    def copies(*xs):
        return arguments(*[x * 1.0 if isinstance(x, np.ndarray) else x for x in xs])

    for how, program in (("result", result), ("arguments", arguments), ("copies", copies)):
        with said(how):
            Case(program, args, seed).first(compiled=True)


def sum_of(value):
    """All the numbers of a value that have derivatives, added up."""
    if isinstance(value, tuple | list):
        total = 0.0
        for part in value:
            total = total + sum_of(part)
        return total
    if _kind(value) == "c":
        return np.sum(np.real(value) - 0.5 * np.imag(value))
    return np.sum(value) if _kind(value) == "f" else 0.0


def respelt(call):
    """The call with every argument by name, and by position, as far as signatures tell."""
    for how, change in (("by name", named), ("by position", positional)):
        tree = ast.parse(call, mode="eval")
        changed = False
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and not any(
                isinstance(a, ast.Starred) for a in node.args
            ):
                try:
                    names = [*coverage.VARIABLES]
                    function = eval(
                        ast.unparse(node.func), {**coverage.NAMESPACE, **coverage.VARIABLES}
                    )
                    parameters = [*inspect.signature(function).parameters.values()]
                except Exception:
                    continue
                changed |= change(node, parameters, names)
        if changed:
            yield how, ast.unparse(tree)


def named(node, parameters, names):
    usual = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for i, (argument, parameter) in enumerate(zip(node.args, parameters, strict=False)):
        if parameter.kind is usual and len(node.args) <= len(parameters):
            rest = list(zip(node.args[i:], parameters[i:], strict=False))
            if any(p.kind is not usual for _, p in rest):
                return False
            node.keywords = [ast.keyword(p.name, a) for a, p in rest] + node.keywords
            del node.args[i:]
            return True
    return False


def positional(node, parameters, names):
    changed = False
    while True:
        i = len(node.args)
        if (
            i >= len(parameters)
            or parameters[i].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD
        ):
            return changed
        given = {k.arg: k for k in node.keywords}
        if not given:
            return changed
        parameter = parameters[i]
        if parameter.name in given:
            node.args.append(given[parameter.name].value)
            node.keywords.remove(given[parameter.name])
        elif isinstance(parameter.default, int | float | str | None):
            node.args.append(ast.Constant(parameter.default))
        else:
            return changed
        changed = True


CHECKS = {
    "forward": check_forward,
    "layouts": check_layouts,
    "empty": check_empty,
    "single": check_single,
    "whole": check_whole,
    "keywords": check_keywords,
    "written": check_written,
    "sequences": check_sequences,
    "second": check_second,
    "mixed": check_mixed,
}


# -- running them ---------------------------------------------------------------------------------


class said:
    """Notes, on an exception that passes, at which arguments it came up."""

    found = None

    def __init__(self, how):
        self.how = how

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, Exception):
            said.found.append((self.how, error))
            return True
        return False


def kind_of(error):
    if isinstance(error, AssertionError):
        return "wrong"
    refused = isinstance(error, DifferentiationError | NotImplementedError)
    return "refused" if refused else "exception"


def sweep(only, checks, seed):
    """Every call of the tables through the checks; what fails is printed."""
    counts = {"wrong": 0, "exception": 0, "refused": 0, "slow": 0}

    def report(kind, check, call, how, text):
        counts[kind] += 1
        first = " | ".join(str(text).strip().splitlines()[:2])
        print(f"{kind}\t{check}\t{call}\t{how}\t{first[:400]}", flush=True)

    for check in checks:
        for path in sorted(coverage.HERE.rglob("*.txt")):
            for _, name, calls in coverage.read(path):
                if only and not re.search(only, name):
                    continue
                for call in calls:
                    call = call.removeprefix("~")
                    said.found = []
                    start = time.perf_counter()
                    with warnings.catch_warnings(), said(""):
                        warnings.simplefilter("ignore")
                        warnings.simplefilter("error", np.exceptions.ComplexWarning)
                        CHECKS[check](call, seed)
                    took = time.perf_counter() - start
                    for how, error in said.found:
                        text = error if kind_of(error) == "wrong" else repr(error)
                        report(kind_of(error), check, call, how, text)
                    if took > SLOW:
                        report("slow", check, call, "", f"{took:.1f} s")
    print(counts)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names in the tables to look at, a regular expression")
    parser.add_argument("--checks", default=",".join(CHECKS), help="which of them, by name")
    parser.add_argument("--seed", type=int, default=0, help="of the random directions")
    options = parser.parse_args()
    counts = sweep(options.only, options.checks.split(","), options.seed)
    sys.exit(bool(counts["wrong"] or counts["exception"]))


if __name__ == "__main__":
    main()
