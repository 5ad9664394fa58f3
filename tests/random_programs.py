"""Random programs: how Hypothesis draws them, and what is asked of each.

A program is the source of a few functions, the last of which, `f`, takes numbers and gives one.
`check` compares the gradient of `f` on both paths with finite differences and with a forward mode
by operator overloading, which is exact and knows nothing of Morula.

The long run, outside of the test-suite:

    python -m tests.random_programs --examples 10000 --seed 0

It goes on after a failure and prints at the end the shortest program of each kind of failure.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import linecache
import math
import random
import re
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import morula
from morula.core import compiled, general, specialise
from morula.core.bytecode.lower import _lowered
from morula.mixed_mode.jacobians import general_hvp, product_for
from tests.dual_numbers import DUAL_MATH, Dual, plain
from tests.flow_writer import FlowWriter
from tests.program_writer import FEATURES, Program, Writer
from tests.structure_writer import StructureWriter


@st.composite
def programs(
    draw: Any, without: frozenset[str] = frozenset(), writer: type[Writer] = Writer
) -> Program:
    """Programs, without the features that are named."""
    return writer(draw, without).program()


def forward_gradient(program: Program) -> tuple[Any, tuple[float, ...]]:
    """The value and the gradient by dual numbers."""
    f, _ = program.load(DUAL_MATH)
    n = len(program.args)
    Dual.edges = 0
    y = f(*[Dual(x, tuple(float(i == j) for j in range(n))) for i, x in enumerate(program.args)])
    return plain(y), y.dx if type(y) is Dual else (0.0,) * n


# -- finite differences ----------------------------------------------------------------------------


TOO_STEEP = 1e12  # the steps of differences pass over what such a function does


def difference(f: Any, args: tuple[Any, ...], i: int) -> tuple[float, float] | None:
    """∂f/∂args[i] and a bound of its error; None where differences say nothing."""
    h = 1e-4 * (1 + abs(args[i]))

    def at(step: float) -> float:
        return float(f(*args[:i], args[i] + step, *args[i + 1 :]))

    try:
        y = at(0.0)
        slopes = [(at(h * s) - at(-h * s)) / (2 * h * s) for s in (1, 0.5, 0.25)]
        sides = [(at(h / 4) - y) / (h / 4), (y - at(-h / 4)) / (h / 4)]
    except (ArithmeticError, ValueError):
        return None
    best = (4 * slopes[2] - slopes[1]) / 3
    size = 1 + abs(best)
    error = abs(slopes[1] - slopes[2]) + 1e-15 * abs(y) / h
    smooth = abs(slopes[0] - slopes[1]) < 1e-3 * size and abs(sides[0] - sides[1]) < 1e-2 * size
    if not (size < TOO_STEEP and smooth and error < 1e-4 * size):
        return None
    return best, 4 * error + 1e-7 * size


# -- what is asked of a program --------------------------------------------------------------------


@contextlib.contextmanager
def on_path(name: str) -> Iterator[None]:
    """Gradients by the specialised or the general path, nothing compiled before being used."""
    before = compiled.specialising
    compiled.specialising = name == "specialised"
    compiled._families.clear()
    try:
        yield
    finally:
        compiled.specialising = before
        compiled._families.clear()


def outcome(f: Any, args: tuple[Any, ...]) -> tuple[Any, type | None]:
    """What a call gives: a value or the type of an exception."""
    try:
        return f(*args), None
    except Exception as error:
        return None, type(error)


def ends(program: Program) -> bool:
    """Does the plain call end? A loop over a list that it makes longer does not."""
    f, _ = program.load()
    try:
        with time_limit(5):
            outcome(f, program.args)
    except OutOfTime:
        return False
    return True


def same_kind(a: type | None, b: type | None) -> bool:
    """Are they one type of exception, if each of a module of its own?"""
    return a is b or (a is not None and b is not None and a.__qualname__ == b.__qualname__)


def bits(x: Any) -> Any:
    """Something that is equal for values that agree bit for bit, types included."""
    if isinstance(x, float):
        return type(x), struct.pack("d", x)
    return (type(x), [bits(y) for y in x]) if isinstance(x, (tuple, list)) else (type(x), x)


def close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


@dataclass
class Report:
    """What could be compared."""

    raised: bool = False
    differences: int = 0  # gradients compared with finite differences
    skipped: int = 0  # at kinks, or where the program is ill-conditioned
    integers: int = 0  # arguments that are integers to the program
    compiled: bool = False  # is a product with a Hessian a program?


def check(program: Program) -> Report:
    """Compare everything; AssertionError says what is wrong and shows the program."""
    report = Report()
    f, log = program.load()
    args = program.args
    value, error = outcome(f, args)
    effects = list(log)
    if error is not None or not math.isfinite(value):
        report.raised = True
    gradients = {}
    for path in ("specialised", "general"):
        with on_path(path):
            gradients[path] = check_path(program, path, value, error, effects)
    if error is not None or isinstance(value, bool):
        return report
    a, b = gradients["specialised"], gradients["general"]
    scale = max([1.0, *[abs(x) for x in b if math.isfinite(x)]])
    expect(close(a, b, 1e-9, 1e-12 * scale), program, f"specialised {a}, general {b}")
    if report.raised:
        return report
    try:
        y, exact = forward_gradient(program)
    except ArithmeticError:
        report.skipped += 1
        return report
    # Python's sum of floats is more exact than that of other numbers, from 3.12 on.
    expect(close(y, value, 1e-13, 0.0), program, f"dual numbers give {y}, the plain call {value}")
    if all(map(math.isfinite, exact)):
        scale = max([1.0, *map(abs, exact)])
        expect(close(b, exact, 1e-7, 1e-9 * scale), program, f"gradient {b}, dual numbers {exact}")
    if Dual.edges:  # the slope is that of the branch taken, on one side
        report.skipped += 1
        return report
    for i in range(len(args)):
        if type(args[i]) is int and needs_int(f, log, args, i):
            report.integers += 1
            continue
        found = difference(f, args, i)
        if found is None:
            report.skipped += 1
            continue
        report.differences += 1
        slope, bound = found
        good = abs(b[i] - slope) <= bound
        expect(good, program, f"gradient {b}, finite difference {slope} by argument {i}")
    return report


def check_second(program: Program) -> Report:
    """Compare products with Hessians: by programs, by the general path, by differences of gradients."""
    f, _ = program.load()
    report = Report()
    x = np.array(program.args, dtype=float)
    v = np.cos(np.arange(len(x)))
    as_floats = len(program.source) % 2

    def of_vector(u: np.ndarray) -> Any:
        return f(*u.tolist()) if as_floats else f(*u)

    value, error = outcome(of_vector, (x,))
    if error is not None or isinstance(value, bool) or not math.isfinite(value):
        report.raised = True
        return report
    expected, raised = outcome(general_hvp, (of_vector, x, v))
    if raised is not None:
        report.skipped += 1
        return report
    found = morula.hvp(of_vector, x, v)
    programs = product_for(of_vector, x).__dict__["__morula__"].programs.values()
    report.compiled = all(p.code is not None for p in programs)
    scale = max([1.0, *[abs(u) for u in expected if math.isfinite(u)]])
    good = close(found, expected, 1e-8, 1e-10 * scale)
    expect(good, program, f"a program gives {found}, the general path {expected}")
    slopes = [
        differences_along(lambda u: morula.grad(of_vector)(u)[i], x, v) for i in range(len(x))
    ]
    for i, slope in enumerate(slopes):
        if slope is None or not math.isfinite(expected[i]):
            report.skipped += 1
            continue
        report.differences += 1
        good = abs(expected[i] - slope[0]) <= slope[1]
        expect(good, program, f"the product {expected}, differences {slope} of entry {i}")
    return report


def differences_along(g: Any, x: np.ndarray, v: np.ndarray) -> tuple[float, float] | None:
    """The slope of a function along a line, and a bound of its error, or None."""
    return difference(lambda t: g(x + t * v), (0.0,), 0)


def needs_int(f: Any, log: list[Any], args: tuple[Any, ...], i: int) -> bool:
    """Does the function raise where an argument that is an int is a number near it?

    Or does it take another way there, as by an exception that it catches?
    """

    def course(moved: tuple[Any, ...]) -> Any:
        log.clear()
        error = outcome(f, moved)[1]
        return error, [note for note in log if isinstance(note, str)]

    near = [(*args[:i], args[i] + h, *args[i + 1 :]) for h in (0.5, 1e-3, -1e-3)]
    return any(course(moved) != course(args) for moved in near)


def check_path(
    program: Program, path: str, value: Any, error: type | None, effects: list[Any]
) -> Any:
    """The gradient on one path, after all that the interface promises about it."""
    f, log = program.load()
    args = program.args
    both, raised = outcome(lambda *xs: morula.withgradient(f, *xs), args)
    if error is not None:
        expect(
            same_kind(raised, error), program, f"{path}: raised {raised}, the plain call {error}"
        )
        expect(bits(log) == bits(effects), program, f"{path}: effects {log}, expected {effects}")
        return None
    if isinstance(value, bool):
        expect(raised is not None, program, f"{path}: a truth value was differentiated")
        return None
    if raised is not None:
        log.clear()
        try:
            morula.withgradient(f, *args)
        except Exception as reason:
            text = f"{path}: {type(reason).__name__}: {reason}"
            raise AssertionError(f"{text}{program}") from reason
    y, gradient = both
    expect(bits(y) == bits(value), program, f"{path}: value {y!r}, the plain call {value!r}")
    expect(bits(log) == bits(effects), program, f"{path}: effects {log}, expected {effects}")
    expect(
        type(gradient) is tuple and [type(g) for g in gradient] == [float] * len(args),
        program,
        f"{path}: gradient {gradient!r} for {len(args)} numbers",
    )
    wanted = bits(gradient)

    again = morula.withgradient(f, *args)[1]
    expect(bits(again) == wanted, program, f"{path}: {gradient}, the second call {again}")
    scale = max([1.0, *[abs(x) for x in gradient if math.isfinite(x)]])
    # Other ways in: each costs a compilation, so each program takes one of them.
    last, ends, every = len(args) - 1, (-1, 0), tuple(range(len(args)))
    argnums = (None, last, ends, every)[len(program.source) % 4]
    if argnums is None:
        y, back = morula.pullback(f, *args)
        g, second = back(1.0), back(1.0)
        expect(bits(y) == bits(value), program, f"{path}: pullback's value {y!r}, plain {value!r}")
        expect(bits(g) == bits(second), program, f"{path}: back gave {g}, then {second}")
    else:
        g = morula.gradient(f, *args) if argnums is every else morula.grad(f, argnums)(*args)
    picked = gradient
    if argnums is not None:
        picked = gradient[last] if argnums is last else [gradient[i] for i in argnums]
    good = close(g, picked, 1e-9, 1e-12 * scale)
    expect(good, program, f"{path}: argnums {argnums} gave {g}, withgradient {gradient}")
    return gradient


def expect(good: bool, program: Program, message: str) -> None:
    if not good:
        raise AssertionError(f"{message}{program}")


class OutOfTime(BaseException):
    """No `except Exception` catches it."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """OutOfTime after so many seconds, on systems that have alarms."""

    def stop(*_: Any) -> None:
        raise OutOfTime(f"more than {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def forget() -> None:
    """Drop what the core and linecache keep for programs that are done with."""
    compiled._families.clear()
    general._forward_codes.clear()
    specialise._inline_forms.clear()
    _lowered.clear()
    for name in [n for n in linecache.cache if n.startswith("<program ")]:
        del linecache.cache[name]


# -- the long run ----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.random_programs", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=60, help="seconds for one program")
    parser.add_argument("--without", nargs="*", default=[], choices=FEATURES)
    parser.add_argument("--structures", action="store_true", help="of objects, lists and dicts")
    parser.add_argument("--flow", action="store_true", help="exceptions, generators, classes")
    parser.add_argument("--second", action="store_true", help="products with Hessians")
    parser.add_argument("--show", action="store_true", help="print the programs, check nothing")
    options = parser.parse_args()
    without = frozenset(options.without)
    writer = FlowWriter if options.flow else StructureWriter if options.structures else Writer
    counts: Counter[str] = Counter()
    failures: dict[str, tuple[Program, str]] = {}
    seen: set[int] = set()
    began = time.perf_counter()

    def attempt(program: Program) -> None:
        if not ends(program):
            counts["endless"] += 1
            return
        try:
            with time_limit(options.limit):
                report = check_second(program) if options.second else check(program)
        except (Exception, OutOfTime) as error:
            message = f"{type(error).__name__}: {error}".split("\nimport math")[0]
            kind = signature(message)
            counts["failures"] += 1
            counts[f"failure: {kind}"] += 1
            if kind not in failures:
                print(message, program, file=sys.stderr, flush=True)
            if kind not in failures or len(program.source) < len(failures[kind][0].source):
                failures[kind] = (program, message)
        else:
            for name, n in vars(report).items():
                counts[name] += int(n)

    for number in itertools.count():
        program = writer(random.Random(f"{options.seed} {number}"), without).program()
        if (key := hash((program.source, program.args))) in seen:
            continue
        seen.add(key)
        if options.show:
            print(program, "-" * 60)
        else:
            attempt(program)
        if len(seen) % 100 == 0 or len(seen) == options.examples:
            forget()
            rate = len(seen) / (time.perf_counter() - began)
            progress = f"{len(seen)} programs, {rate:.1f}/s, {counts['failures']} failures"
            print(progress, file=sys.stderr, flush=True)
        if len(seen) == options.examples:
            break
    for kind, (program, message) in failures.items():
        print("=" * 80, f"\n{counts[f'failure: {kind}']} × {message}{program}")
    for name in sorted(counts):
        print(f"{counts[name]:8} {name}")
    return int(bool(failures))


def signature(message: str) -> str:
    """What messages of one kind of failure have in common: no numbers, no addresses."""
    first = message.split("\n")[0]
    text = re.sub(
        r"(\(?-?#,? ?)+\)?", "# ", re.sub(r"-?(0x)?\d[\w.]*([-+]\d+)?|nan|inf", "#", first)
    )
    return text[:100]


if __name__ == "__main__":
    sys.exit(main())
