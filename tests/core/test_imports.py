"""Imports inside functions: modules that have been imported are known, as global variables are."""

import sys
import types

import pytest

from morula import code_adjoint, grad, gradient, hvp, jvp, withgradient


def of_modules(x):
    import math
    import os.path
    from math import cos

    import numpy as np

    return math.sin(x) * cos(x) + float(np.exp(x)) + len(os.path.sep)


def test_programs_are_compiled():
    assert "0 calls are resolved at run time" in str(code_adjoint(of_modules, 0.3))
    slope = (of_modules(0.3 + 1e-6) - of_modules(0.3 - 1e-6)) / 2e-6
    assert withgradient(of_modules, 0.3) == (of_modules(0.3), (pytest.approx(slope),))
    assert jvp(of_modules, (0.3,), (1.0,)) == (of_modules(0.3), pytest.approx(slope))
    assert hvp(of_modules, 0.3, 1.0) == pytest.approx(grad(grad(of_modules))(0.3))


@pytest.fixture
def module(monkeypatch):
    """A module that only the test knows."""
    made = types.ModuleType("morula_test_module")
    made.square = lambda x: x * x
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_what_is_imported_is_what_is_there_at_each_call(module, monkeypatch, path):
    def by_name(x):
        import morula_test_module

        return morula_test_module.square(x)

    def from_it(x):
        from morula_test_module import square

        return square(x)

    for f in (by_name, from_it):
        g = grad(f)
        assert g(3.0) == 6.0
        monkeypatch.setattr(module, "square", lambda x: x**3)
        assert g(3.0) == 27.0
        monkeypatch.setattr(module, "square", lambda x: x * x)
        assert g(3.0) == 6.0
    other = types.ModuleType(module.__name__)
    other.square = lambda x: 5.0 * x
    g = grad(by_name)
    assert g(3.0) == 6.0
    monkeypatch.setitem(sys.modules, module.__name__, other)
    assert g(3.0) == 5.0


def test_a_module_that_is_imported_by_the_call_itself(tmp_path, monkeypatch, path):
    (tmp_path / "morula_new_module.py").write_text("runs = [1]\ndef cube(x): return x ** 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "morula_new_module", raising=False)

    def f(x):
        import morula_new_module

        return morula_new_module.cube(x)

    assert gradient(f, 2.0) == (12.0,)
    assert gradient(f, 2.0) == (12.0,)
    assert sys.modules.pop("morula_new_module").runs == [1]


def test_imports_that_fail_raise_what_they_raise(path):
    def f(x):
        from math import no_such_function

        return no_such_function(x)

    with pytest.raises(ImportError, match="cannot import name 'no_such_function' from 'math'"):
        gradient(f, 1.0)

    def g(x):
        try:
            import no_such_module
        except ImportError:
            return x * x
        return no_such_module.f(x)

    assert gradient(g, 3.0) == (6.0,)
