"""mappingproxy: a dict that is only read by this name; that of a class shows the class's attributes.

The keys, values and items of a dict show it, too: through them what it holds is reached.

Tests: tests/rules/test_proxies.py
"""

from __future__ import annotations

import operator
from types import MappingProxyType

from morula.core.extend import NONE, call, non_differentiable, parts_of, rrule
from morula.rules.arrays.bodies import instead_of
from morula.rules.numbers import Anything
from morula.rules.objects import behind

parts_of.register(MappingProxyType, lambda p: {"mapping": behind(p)})
for _view in ({}.keys(), {}.items(), {}.values()):
    parts_of.register(type(_view), lambda view: {"mapping": behind(view.mapping)})
del _view
non_differentiable(MappingProxyType)


@rrule(operator.getitem, by_identity=True)
def _(p: MappingProxyType, key: Anything):
    y, back = call(operator.getitem, behind(p), key)

    def getitem_pullback(ȳ):
        back(ȳ)
        return NONE, NONE

    return y, getitem_pullback


@instead_of(MappingProxyType.get)
def get(p, key, default=None):
    """An item of the mapping, or the default value."""
    return behind(p).get(key, default)


@instead_of(MappingProxyType.keys)
def keys(p):
    """A view of the mapping."""
    return behind(p).keys()


@instead_of(MappingProxyType.values)
def values(p):
    """A view of the mapping."""
    return behind(p).values()


@instead_of(MappingProxyType.items)
def items(p):
    """A view of the mapping."""
    return behind(p).items()


@instead_of(MappingProxyType.copy)
def copy(p):
    """A copy of the mapping."""
    return behind(p).copy()


@rrule(operator.or_, by_identity=True)
def _(p: MappingProxyType, q: Anything):
    y, back = call(operator.or_, behind(p), q)
    return y, lambda ȳ: (NONE, back(ȳ)[2])
