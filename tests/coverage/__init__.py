"""Which callables carry gradients, and calls of them that are checked.

Each file `*.txt` here lists callables by module. A line is `name: call; call; …`; the calls are
expressions in the variables of `variables()`, by all of which they are differentiated, and are
checked two ways: the pullback against finite differences, the compiled gradient against the
pullback. Those in the folder scipy are checked in both modes against finite differences.
"""

import copy
import importlib
import re
from pathlib import Path

import numpy as np

import morula
from morula.testing import _Check, _identical

HERE = Path(__file__).parent


def variables():
    """The variables of the calls, by name."""
    rng = np.random.default_rng(3)

    def draw(*shape):
        n = int(np.prod(shape))
        return ((rng.permutation(n) - n / 2 + 0.3) * 2.6 / n + 0.02 * rng.random(n)).reshape(shape)

    x, m = draw(5), draw(3, 4)
    z, w = draw(5) + 1j * draw(5), draw(3, 4) + 1j * draw(3, 4)
    nx, nm, nz = x.copy(), m.copy(), z.copy()
    nx[1] = nm[0, 2] = nm[2, 2] = nz[3] = np.nan
    return {
        "x": x, "y": draw(5), "p": np.abs(draw(5)) + 0.2, "u": draw(5) / 2,
        "m": m, "a": draw(3, 3), "t": draw(2, 3, 4), "z": z, "w": w, "s": 0.7, "r": 1.9,
        "c": 0.6 - 0.8j, "xs": [*map(float, draw(5))], "nx": nx, "nm": nm, "nz": nz,
        "k": np.array([True, False, True, True, False]),
        "mk": np.array([[True, False, True, True], [False, True, True, False], [True] * 4]),
    }  # fmt: skip


VARIABLES = variables()
NAMESPACE = {
    name: importlib.import_module(name)
    for name in (
        "array", "cmath", "collections", "copy", "decimal", "fractions", "functools", "heapq",
        "itertools", "math", "operator", "random", "statistics", "numpy", "morula",
    )
} | {"np": np}  # fmt: skip
NAMESPACE |= {
    name: importlib.import_module(f"scipy.{name}")
    for name in (
        "cluster.hierarchy", "cluster.vq", "constants", "differentiate", "fft", "fftpack", "integrate",
        "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "sparse.csgraph",
        "spatial", "spatial.distance", "spatial.transform", "special", "stats",
    )
}  # fmt: skip
NAMESPACE |= {name.split(".")[-1]: module for name, module in NAMESPACE.items() if "." in name}
NAMESPACE["splinalg"] = importlib.import_module("scipy.sparse.linalg")


def read(path):
    """The lines of a table: section, name, calls."""
    section, lines = "", []
    for line in (HERE / path).read_text().splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line and line[0] != "#":
            name, _, calls = line.partition(": ")
            lines.append((section, name, [c.strip() for c in calls.split(";") if c.strip()]))
    return lines


def function(call):
    """The call as a function of its variables, and their values."""
    names = [v for v in VARIABLES if re.search(rf"(?<![\w.\"']){v}(?![\w\"'=])", call)]
    f = eval(f"lambda {', '.join(names)}: {call}", {**NAMESPACE})
    if holds_lists(f(*values(names))):
        f = eval(f"lambda {', '.join(names)}: frozen({call})", {**NAMESPACE, "frozen": frozen})
    return f, values(names)


def values(names):
    return [copy.deepcopy(VARIABLES[v]) for v in names]


def holds_lists(y):
    """Is it a list, or a tuple that has one?"""
    return type(y) is list or (isinstance(y, tuple) and any(map(holds_lists, y)))


def frozen(y):
    """A value with tuples in place of its lists, whose cotangents go by value."""
    if type(y) in (list, tuple):
        return tuple([frozen(part) for part in y])
    return y


def seed(y):
    """A fixed cotangent that mirrors a value."""
    if isinstance(y, tuple | list):
        parts = [seed(part) for part in y]
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    if isinstance(y, np.ndarray | float | complex | np.generic):
        ȳ = np.cos(np.arange(np.size(y)) + 1.0).reshape(np.shape(y))
        if np.iscomplexobj(y):
            ȳ = ȳ * (1 - 0.5j)
        return ȳ if isinstance(y, np.ndarray) else ȳ[()]
    return morula.NoTangent()


def check_general(call):
    """The pullback against finite differences."""
    f, args = function(call)
    check = _Check("the pullback", f, args, {}, {"order": 1, "rtol": None, "atol": None, "seed": 0})
    value, _ = morula.pullback(f, *copy.deepcopy(args))
    assert _identical(value, f(*args)), f"{value!r} is not what the plain call gives"
    check.pullbacks(lambda a, k: morula.pullback(f, *a))


def check_compiled(call):
    """The compiled gradient against the pullback."""
    f, args = function(call)
    y, back = morula.pullback(f, *args)
    expected = back(seed(y))
    weights = seed(f(*args))

    def product(y, ȳ):
        if isinstance(y, tuple | list):
            total = 0.0
            for i in range(len(y)):
                total = total + product(y[i], ȳ[i])
            return total
        if isinstance(ȳ, morula.NoTangent):
            return 0.0
        return np.sum(np.real(y * np.conj(ȳ)))

    def loss(*args):
        return product(f(*args), weights)

    found = morula.grad(loss, argnums=tuple(range(len(args))))(*args)
    for a, b in zip(found, expected, strict=True):
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def check_single(call):
    """Arguments of half the precision get gradients of their own dtype, near those of the double."""
    f, args = function(call)
    short = [shortened(x) for x in args]
    y, back = morula.pullback(f, *args)
    y_short, back_short = morula.pullback(f, *short)
    expected, found = back(seed(y)), back_short(seed(y_short))
    for x, a, b in zip(short, found, expected, strict=True):
        if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
            assert a.dtype == x.dtype
            size = np.max(np.abs(b), initial=1.0)
            np.testing.assert_allclose(a / size, b / size, atol=2e-3)


def shortened(x):
    """An array of floats or complex numbers in single precision."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        return x.astype(np.float32 if x.dtype.kind == "f" else np.complex64)
    return x
