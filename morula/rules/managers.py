"""`with` statements over context managers that may be entered once more: np.errstate and the like.

A compiled program enters and leaves them. Where an exception is raised inside, whoever runs the
program leaves what it was in, and the general path does all of it again.
Tests: tests/rules/test_managers.py
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    effects,
    non_differentiable,
    primitives,
    protected,
    repeatable,
    rewrites,
)

MANAGERS = (np.errstate, np.printoptions, warnings.catch_warnings, contextlib.nullcontext)


def make_manager(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`cls(*args, **kwargs)`."""
    return cls(*args, **kwargs)


STEPS = (make_manager, protected.enter_manager, protected.exit_manager)
non_differentiable(*STEPS)
effects(*STEPS)
repeatable(*STEPS)


@rewrites
def enter_and_leave(s: Any) -> bool:
    """The protocol of `with` becomes calls of functions that are known."""
    if not s.protected:
        return False
    changed = False
    methods = {c.out: c for c in s.ir.calls() if c.primitive is protected.special_method}
    made = {c.out for c in s.ir.calls() if c.primitive is make_manager}
    for call in s.ir.calls():
        cls = call.fn.value if type(call.fn) is Const else None
        if cls is not None and cls in MANAGERS and is_entered_only(s, call.out, methods):
            call.fn, call.args = Const(make_manager), (call.fn, *call.args)
            made.add(call.out)
            changed = True
    for block in s.ir.blocks:
        for call in block.calls:
            method = methods.get(call.fn)
            if method is None or method.args[0] not in made:
                continue
            enters = method.args[1].value == "__enter__"
            step = protected.enter_manager if enters else protected.exit_manager
            call.fn, call.args = Const(step), (method.args[0],)
            changed = True
    if changed:
        for block in s.ir.blocks:
            block.calls = [c for c in block.calls if not is_left_over(c, methods, made)]
    return changed


def is_left_over(call: Any, methods: dict[Any, Any], made: set[Any]) -> bool:
    """Is it the look-up of a method that is not needed any more, or a demand for one?"""
    if call.primitive is primitives.require:
        call = methods.get(call.args[0], call)
    return call.out in methods and call.args[0] in made


def is_entered_only(s: Any, x: Any, methods: dict[Any, Any]) -> bool:
    """Is a context manager entered and left, and nothing else?"""
    calls = [c for c in s.ir.calls() if c.primitive is not primitives.require]
    uses = [c for c in calls if x in c.operands()]
    if not uses or any(c.out not in methods or type(c.args[1]) is not Const for c in uses):
        return False
    found = {c.out for c in uses}
    for call in calls:
        if not found.isdisjoint(call.args):
            return False
        if call.fn in found and any(type(a) is not Const or a.value is not None for a in call.args):
            return False
    branches = [b for block in s.ir.blocks for b in block.branches]
    return not any(a is x or a in found for b in branches for a in b.args)
