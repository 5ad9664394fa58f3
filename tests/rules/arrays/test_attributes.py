"""T, mT, real, imag."""

import numpy as np
import pytest

from morula.core.registry import Rule, apply_rule
from morula.rules.arrays.attributes import ATTRIBUTES, CONSTANTS, SCALAR_ATTRIBUTES

X = np.arange(6.0).reshape(2, 3) + 1j


@pytest.mark.parametrize("name", sorted({*ATTRIBUTES} - {"flat"}))
@pytest.mark.parametrize("x", [X, X.real.copy(), X.astype("c8")])
def test_attributes_of_arrays(rng, name, x):
    y, back = apply_rule(Rule(name, ATTRIBUTES[name]), (x,), {})
    assert np.array_equal(y, getattr(x, name))
    ȳ = rng.standard_normal(y.shape) + 1j * rng.standard_normal(y.shape)
    ȳ = ȳ.astype(y.dtype) if y.dtype.kind == "c" else ȳ.real.astype(y.dtype)
    v = rng.standard_normal(x.shape) + (
        1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else 0
    )
    (x̄,) = back(ȳ)
    got = np.vdot(x̄, v).real if isinstance(x̄, np.ndarray) else 0
    assert np.isclose(got, np.vdot(ȳ, getattr(v, name)).real, rtol=1e-5)


def test_attributes_of_scalars():
    for name, rule in SCALAR_ATTRIBUTES.items():
        y, back = apply_rule(Rule(name, rule), (np.float64(2),), {})
        assert y == getattr(np.float64(2), name)
        assert back(1.0)[0] == (0 if name == "imag" else 1) or name == "imag"


def test_constants_exist():
    assert all(hasattr(X, name) for name in CONSTANTS)
