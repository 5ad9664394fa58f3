"""Rules that packages ship through the entry-point group `morula.rules`."""

import importlib
import itertools
import subprocess
import sys

import pytest

from morula import grad, gradient, pullback

pytestmark = pytest.mark.usefixtures("path")
numbers = itertools.count()

PACKAGE = """
def black_box(x):
    return float(str(x)) ** 2


def another(x):
    return float(str(x)) ** 3


def double(x):
    return 2 * x


class Box:
    def __init__(self, x):
        self.x = x

    def __call__(self, y):
        return float(str(y)) * 5
"""
RULES = """
from morula import rrule
import NAME

@rrule(NAME.black_box)
def _(x: float):
    return NAME.black_box(x), lambda ȳ: (ȳ * 2 * x,)

@rrule(NAME.another)
def _(x: float):
    return NAME.another(x), lambda ȳ: (ȳ * 3 * x**2,)

@rrule(NAME.double)
def _(x: float):
    return NAME.double(x), lambda ȳ: (ȳ * 3,)  # not what the code means
"""
CALLED = """
calls = []

def register():
    calls.append(1)
    from morula import rrule
    import NAME

    @rrule(NAME.black_box)
    def _(x: float):
        return NAME.black_box(x), lambda ȳ: (ȳ * 2 * x,)
"""

OF_A_METHOD = """
from morula import ZeroTangent, rrule
import NAME

@rrule(NAME.Box.__call__)
def _(self: NAME.Box, y: float):
    return self(y), lambda ȳ: (ZeroTangent(), ȳ * 5)
"""


@pytest.fixture
def ship(tmp_path, monkeypatch):
    """Install a package with an entry point; gives the package, which is imported."""

    def install(rules, target=""):
        name = f"shipping{next(numbers)}"
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(PACKAGE)
        (package / "adjoints.py").write_text(rules.replace("NAME", name))
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(
            f"[morula.rules]\n{name} = {name}.adjoints{target}\n"
        )
        monkeypatch.syspath_prepend(tmp_path / "")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    return install


def test_rules_are_there_when_the_package_is_met(ship):
    package = ship(RULES)
    assert gradient(lambda x: x * x, 3.0) == (6.0,)
    assert f"{package.__name__}.adjoints" not in sys.modules
    assert gradient(lambda x: package.black_box(x) * x, 3.0) == (27.0,)
    assert gradient(lambda x: package.another(x), 2.0) == (12.0,)


@pytest.mark.parametrize(
    "gradient_of",
    [
        lambda f, x: gradient(f, x)[0],
        lambda f, x: grad(f)(x),
        lambda f, x: pullback(f, x)[1](1.0)[0],
    ],
    ids=["gradient", "grad", "pullback"],
)
def test_the_function_itself_may_be_of_the_package(ship, gradient_of):
    package = ship(RULES)
    assert gradient_of(package.black_box, 3.0) == 6.0


def test_what_was_decided_before_the_package_was_met_is_decided_again(ship):
    package = ship(RULES)

    def double(x):
        return 2 * x

    package.double = double
    g = grad(lambda x: double(x) * package.black_box(x))
    g(2.0)  # where the package is met after double
    assert g(2.0) == 3.0 * 2.0**2 + 4.0 * 2 * 2.0


def test_an_object_that_is_callable_is_called_once(ship):
    package = ship(CALLED, ":register")
    for _ in range(3):
        assert gradient(lambda x: package.black_box(x), 3.0) == (6.0,)
    assert sys.modules[f"{package.__name__}.adjoints"].calls == [1]


def test_an_error_in_shipped_rules_is_shown_each_time(ship):
    package = ship("raise RuntimeError('broken rules')")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken rules") as caught:
            gradient(lambda x: package.black_box(x), 3.0)
        assert any("entry-point group morula.rules" in note for note in caught.value.__notes__)


def test_objects_and_methods_belong_to_their_package(ship):
    package = ship(OF_A_METHOD)
    box = package.Box(1.0)
    assert gradient(lambda y: box(y), 2.0) == (5.0,)


WAITING = """
import sys
import numpy as np
from morula import gradient

def loaded(name):
    return f"morula.rules.scipy.{name}" in sys.modules

gradient(lambda x: np.sum(np.fft.fft(x).real), np.ones(3))
print("scipy" in sys.modules, loaded("fft"), loaded("special"))
import scipy.fft
gradient(lambda x: np.sum(scipy.fft.dct(x)), np.ones(3))
print(loaded("fft"), "scipy.fftpack" in sys.modules, loaded("fftpack"))
import scipy.special
print(gradient(lambda x: scipy.special.expit(x), 0.0), loaded("special"))
"""


def test_morulas_rules_for_a_module_of_a_library_wait_for_it():
    run = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.splitlines() == ["False False False", "True False False", "(0.25,) True"]


STANDING_IN = """
import sys
import types
from unittest import mock
from morula import gradient, jvp

sys.modules["numba"] = MADE
import numba

numba.njit = lambda f: f

f = numba.njit(lambda x: x * x)
f.__module__ = "numba"

def g(x):
    return f(x) * x

print(gradient(g, 3.0), jvp(g, (3.0,), (1.0,)), "morula.interop.numba.rules" in sys.modules)
"""


@pytest.mark.parametrize("made", ['types.ModuleType("numba")', "mock.Mock()"])
def test_what_stands_in_for_a_library_has_no_rules(made):
    run = subprocess.run(
        [sys.executable, "-c", STANDING_IN.replace("MADE", made)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert run.stdout.strip() == "(27.0,) (27.0, 27.0) False"
