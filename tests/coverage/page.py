"""docs/coverage.md: `python -m tests.coverage.page` writes it, from the registry and the tables."""

import importlib
import json
from pathlib import Path

from morula.core.registry import registry
from morula.rules.arrays.attributes import ATTRIBUTES
from morula.rules.calls import served
from tests import coverage

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
TOOLS = {"a": "Autograd", "j": "JAX", "t": "PyTorch"}
HEADER = """\
# Coverage

Which callables of Python, NumPy and SciPy carry gradients. The page is made from the registry of
rules and from the tables in `tests/coverage`, where calls of each are checked: the pullback against
finite differences, the compiled gradient against the pullback. The rules of SciPy have their tests
in `tests/rules/scipy`; of SciPy only what has a rule is listed, and what is checked by its own code.

- **rule**: a reverse rule of Morula's own.
- **body**: the derivative is that of a few lines of Python that mean the same.
- **own code**: the function's own Python code is differentiated.
- **constant**: the result has no derivative; it costs nothing and blocks nothing.

Autograd has a function if it has a vector-Jacobian product for it; JAX and PyTorch, if they have one
of that name (checked with Autograd 1.9.1, JAX 0.10.2, PyTorch 2.13.0). What is marked (in part)
refuses some of the calls in the table, with an error.
"""


def is_declared_constant(primal):
    """Is it non-differentiable, perhaps but for values of types that make it otherwise?"""
    entry = registry.get(primal)
    return entry is not None and entry.constant


def owner(section):
    """The module or class of a section; None where it is only a heading."""
    try:
        return importlib.import_module(section)
    except ImportError:
        outer, _, inner = section.rpartition(".")
        return getattr(owner(outer), inner, None) if outer else None


def how(section, name):
    """How a callable is served."""
    primal = getattr(owner(section), name, None)
    if primal is None:
        return "own code"
    if section == "numpy.ndarray" and name in ATTRIBUTES:
        return "rule"
    if is_declared_constant(primal):
        return "constant"
    entry = registry.get(primal)
    if entry is not None and entry.reverse is not None:
        return "rule"
    return "body" if served(primal) is not None else "own code"


SCIPY = ("fft", "fftpack", "integrate", "linalg", "optimize", "sparse", "sparse.linalg", "special")
BY_THEIR_CODE = {  # checked by tests/rules/scipy
    "scipy.integrate": (
        "cumulative_simpson", "cumulative_trapezoid", "dblquad", "fixed_quad", "romb", "simpson",
        "tplquad", "trapezoid",
    ),
    "scipy.optimize": ("curve_fit",),
}  # fmt: skip


def of_scipy():
    """Section and name of the public callables of SciPy with a meaning, and how they are served."""
    for module in SCIPY:
        importlib.import_module(f"morula.rules.scipy.{module.split('.')[0]}")
        section = f"scipy.{module}"
        there = importlib.import_module(section)
        for name in sorted(getattr(there, "__all__", vars(there))):
            if name.startswith("_") or not callable(getattr(there, name, None)):
                continue
            served_by = how(section, name)
            if served_by != "own code" or name in BY_THEIR_CODE.get(section, ()):
                yield section, name, served_by


def lines():
    """Section, name, how it is served, which of the other tools have it."""
    peers = json.loads((coverage.HERE / "peers.json").read_text())
    found = []
    for path in sorted(coverage.HERE.glob("*.txt")):
        if path.name == "constant.txt":
            continue
        for section, name, calls in coverage.read(path.name):
            if all(call.startswith("~") for call in calls):
                served_by = "not yet"
            else:
                served_by = how(section, name)
                if any(call.startswith("~") for call in calls):
                    served_by += " (in part)"
            found.append((section, name, served_by, peers.get(section, {}).get(name, "")))
    for section, name, served_by in of_scipy():
        if served_by != "constant":
            found.append((section, name, served_by, peers.get(section, {}).get(name, "")))
    return found


def constants():
    """Section and name of what is declared to have no derivative."""
    section, found = "", []
    for line in (coverage.HERE / "constant.txt").read_text().splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line and line[0] != "#":
            found += [(section, name) for name in line.split()]
    declared = [(section, name) for section, name, by in of_scipy() if by == "constant"]
    return found + [pair for pair in declared if pair not in found]


def text():
    """The page."""
    parts, section = [HEADER], None
    for of, name, served_by, tools in lines():
        if of != section:
            section = of
            parts.append(f"\n## {section}\n\n| callable | Morula | Autograd | JAX | PyTorch |")
            parts.append("|---|---|---|---|---|")
        has = " | ".join("yes" if letter in tools else "" for letter in TOOLS)
        parts.append(f"| `{name}` | {served_by} | {has} |")
    parts.append("\n## Constant\n")
    by_section = {}
    for of, name in constants():
        by_section.setdefault(of, []).append(f"`{name}`")
    parts += [f"- {of}: {', '.join(names)}" for of, names in by_section.items()]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
