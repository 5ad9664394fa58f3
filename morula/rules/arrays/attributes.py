"""Rules of the attributes of arrays: T, mT, real, imag, flat; the others are constant.

They are registered for the descriptors, `np.ndarray.T`, through a table, as descriptors cannot be
called: `ATTRIBUTES[name]` is the rule of reading that attribute of an array, `CONSTANTS` are the
names of those that have no derivative. `SCALAR_ATTRIBUTES` are those of NumPy's scalars.
Tests: tests/rules/arrays/test_attributes.py
"""

from __future__ import annotations

import numpy as np

from morula.core.extend import ZeroTangent, attribute_rules
from morula.rules.arrays.addresses import exposing
from morula.rules.arrays.flat import flat
from morula.rules.arrays.traits import COMPLEX, FLOATING


def _t(x: np.ndarray):
    def t_pullback(ȳ):
        return (ȳ.T,)

    return x.T, t_pullback


def _mt(x: np.ndarray):
    def mt_pullback(ȳ):
        return (np.swapaxes(ȳ, -1, -2),)

    return x.mT, mt_pullback


def _real(x: np.ndarray):
    def real_pullback(ȳ):
        return (ȳ,)

    return x.real, real_pullback


def _imag(x: np.ndarray):
    def imag_pullback(ȳ):
        return (ȳ * 1j if np.iscomplexobj(x) else ZeroTangent(),)

    return x.imag, imag_pullback


ATTRIBUTES = {"T": _t, "mT": _mt, "real": _real, "imag": _imag, "flat": flat}
ADDRESSES = {n: exposing(n) for n in ("ctypes", "__array_interface__", "__array_struct__")}
CONSTANTS = ("shape", "size", "ndim", "dtype", "itemsize", "nbytes", "strides", "flags")


def _generic_t(x: np.generic):
    def t_pullback(ȳ):
        return (ȳ,)

    return x.T, t_pullback


SCALAR_ATTRIBUTES = {"T": _generic_t, "real": _real, "imag": _imag}

for _name in CONSTANTS:
    for _type in (np.ndarray, *FLOATING, *COMPLEX):
        attribute_rules[_type, _name] = None
for _name in ("T", "mT", "real", "imag"):
    attribute_rules[np.ndarray, _name] = ATTRIBUTES[_name]
for _type in (*FLOATING, *COMPLEX):
    for _name, _rule in SCALAR_ATTRIBUTES.items():
        attribute_rules[_type, _name] = _rule
