"""Small programs with lists, dicts and arrays that are written to: first and second derivatives.

Each is a loop with a few statements of a short list, by chance. What programs give is compared with
the general path, bit by bit for values, and the gradients with differences.

    python -m tests.small_lists --examples 10000
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import morula
from morula.core.extend import by_the_general_path
from morula.mixed_mode.jacobians import general_hvp, product_for
from tests.program_writer import Program

STATEMENTS = (
    "xs.append(s * xs[-1])",
    "xs.append(x[n])",
    "xs.append(0.5)",
    "xs[0] = s * x[n]",
    "xs[n % len(xs)] += s",
    "xs[-1] = x[0] * x[1]",
    "xs.insert(1, s)",
    "xs.reverse()",
    "xs = [v * s for v in xs]",
    "xs = [v for v in xs if v > 0.1] + [s]",
    "xs = xs[1:] if len(xs) > 2 else [s, xs[0]]",
    "ys = xs",
    "ys = [s, xs[0]]",
    "ys[0] = s * ys[1]",
    "s += sum([u * v for u, v in zip(xs, xs[1:])])",
    "s += xs.pop() if len(xs) > 2 else 0.1",
    "s = sum(xs)",
    "s = sum(ys, s)",
    "s = max(xs) * s",
    "s = min(ys)",
    "s = np.array(xs).sum() * s",
    "s = np.sum(np.array(ys) ** 2)",
    "s = s + math.sqrt(abs(xs[0]))",
    "s *= x[n]",
    "if s > 0.3: xs[0] = s * s",
    "if n == 1: s = 0.25",
    "if n: y[n - 1] = s",
    "y[n] = s",
    "y[n] += xs[0] * s",
    "y[n] = math.sqrt(abs(y[0]))",
    "y *= 0.9",
    "s += y[0] * y[n]",
    "s = y @ x",
    "s = np.sum(y * y)",
    "z = y; z[0] = s",
    "y = y * s",
    "d['a'] = d['a'] * s",
    "d[n] = xs[0]",
    "d['b'] = y[0]",
    "s += d.get('b', s)",
    "s = sum([v * v for v in d.values()])",
    "rows.append(rows[-1] * s)",
    "rows.append(np.sin(x))",
    "rows[0] = rows[-1] * x[n]",
    "s += rows[-1].sum()",
    "s = np.sum(np.stack(rows) ** 2)",
    "y = rows[0] + 0.0",
    "pairs.append([s, x[n]])",
    "pairs[0][1] = pairs[-1][0]",
    "s += sum([a * b for a, b in pairs])",
)
LOOPS = ("for n in range(3)", "for n, s in enumerate([x[1], s, x[0]])", "for n in (2, 0, 1)")
RESULTS = (
    "s",
    "sum(xs) * s",
    "y @ y + s",
    "sum(xs) + y[0] * d['a']",
    "rows[-1].sum() * xs[0]",
    "ys[0] * s + xs[-1]",
    "xs[0]",
    "pairs[0][1] * pairs[-1][0] + s",
)
BEFORE = """
    xs, ys = [x[0], x[1] * x[2]], [x[2], 1.5]
    y, rows, pairs = np.zeros(3), [x], [[x[0], x[1]]]
    d, s = {'a': x[0]}, x[1]
"""
X = np.array([0.31, 0.52, 0.73])
V = np.array([1.0, -0.4, 0.6])


def small_lists(rng: random.Random) -> str:
    """The source of a function with two loops over some of the statements."""
    text = f"def f(x):{BEFORE}"
    for _ in range(rng.randint(1, 2)):
        lines = [*rng.choices(STATEMENTS, k=rng.randint(1, 4)), "s = math.tanh(s)"]
        text += f"    {rng.choice(LOOPS)}:\n" + "".join([f"        {line}\n" for line in lines])
    return f"{text}    return {rng.choice(RESULTS)}\n"


def check_lists(source: str) -> bool:
    """Compare programs with the general path and with differences; is the second order compiled?"""
    program = Program(source.replace("def f", "import numpy as np\n\ndef f", 1), (X,))
    f, _ = program.load()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value = f(X)
        y, g = morula.value_and_grad(f)(X)
        with by_the_general_path():
            expected = morula.value_and_grad(f)(X)
        assert bits(y) == bits(value) == bits(expected[0]), f"{y}, {value}{program}"
        assert close(g, expected[1]), (
            f"a program gives {g}, the general path {expected[1]}{program}"
        )
        slope = (f(X + 1e-6 * V) - f(X - 1e-6 * V)) / 2e-6
        smooth = abs(slope - (f(X + 2e-6 * V) - f(X - 2e-6 * V)) / 4e-6) < 1e-6 * (1 + abs(slope))
        good = not smooth or math.isclose(g @ V, slope, rel_tol=1e-4, abs_tol=1e-4)
        assert good, f"the slope {g @ V}, by differences {slope}{program}"
        found, expected = morula.hvp(f, X, V), general_hvp(f, X, V)
        assert close(found, expected), f"second: {found}, the general path {expected}{program}"
        programs = product_for(f, X).__dict__["__morula__"].programs.values()
        return all(p.code is not None for p in programs)


def bits(x: Any) -> bytes:
    return np.float64(x).tobytes()


def close(a: Any, b: Any) -> bool:
    """Are they the same but for rounding, with infinities and NaN at the same places?"""
    scale = max([1.0, *[abs(v) for v in b if math.isfinite(v)]])
    return bool(np.allclose(a, b, rtol=1e-8, atol=1e-10 * scale, equal_nan=True))


def sources(seed: int) -> Iterator[str]:
    """Programs without end."""
    rng = random.Random(seed)
    while True:
        yield small_lists(rng)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.small_lists", description=__doc__)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    compiled = failures = 0
    for number, source in zip(range(1, options.examples + 1), sources(options.seed), strict=False):
        try:
            compiled += check_lists(source)
        except Exception as error:
            failures += 1
            print(type(error).__name__, error, source, sep="\n", flush=True)
        if number % 100 == 0:
            print(f"{number} programs, {compiled} compiled, {failures} failures", file=sys.stderr)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
