"""Every small loop: all ways to fill a loop with a few assignments, one after the other.

Random programs are long, and a fault of the simplest loop may hide among what else they do. Here all
loops with `LENGTH` statements of a short list are written, in the forms of a loop that Python has.

    python -m tests.small_loops --length 3

writes those with three statements, which takes long.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from functools import partial

import morula
from tests.program_writer import Program
from tests.random_programs import forward_gradient

STATEMENTS = (
    "x = math.sin(y * 3)",
    "y = x * y",
    "s = s + x * y",
    "s = x",
    "x = 0.5",
    "x, y = y, x",
    "if n % 2: x = math.cos(s)",
    "if x > y: s = s * y",
)
LOOPS = (
    "for n in range(3):\n",
    "n = 0\n    while n < 3:\n        n += 1\n",
    "n = 0\n    while True:\n        n += 1\n        if n > 2: break\n",
    "for n in [0.0, 1.0, x]:\n",
)
RESULTS = ("s", "x", "x * s + y")
ARGUMENTS = (0.7, -1.189)


def small_loops(length: int) -> Iterator[str]:
    """The sources of all functions with a loop over so many of the statements."""
    for loop, *body, result in itertools.product(LOOPS, *[STATEMENTS] * length, RESULTS):
        lines = "".join(f"        {line}\n" for line in body)
        yield f"def f(x, y):\n    s = x * y\n    {loop}{lines}    return {result}\n"


def check_loop(source: str) -> None:
    """The gradient of the compiled program is that by dual numbers."""
    program = Program(source, ARGUMENTS)
    value, exact = forward_gradient(program)
    y, gradient = morula.withgradient(program.load()[0], *ARGUMENTS)
    good = y == value and all(
        map(partial(math.isclose, rel_tol=1e-9, abs_tol=1e-12), gradient, exact)
    )
    assert good, f"{y}, {gradient}; by dual numbers {value}, {exact}{program}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=3)
    length = parser.parse_args().length
    failures = 0
    for number, source in enumerate(small_loops(length), 1):
        try:
            check_loop(source)
        except Exception as reason:
            failures += 1
            print(f"{type(reason).__name__}: {reason}\n", flush=True)
        if number % 500 == 0:
            print(f"{number} loops, {failures} failures", flush=True)
    print(f"{number} loops, {failures} failures")


if __name__ == "__main__":
    main()
