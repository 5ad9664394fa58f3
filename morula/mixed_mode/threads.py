"""Forward mode of threads: one that may reach a tangent is refused, for nobody pushes what it does.

Tests: tests/rules/test_threads.py
"""

import _thread
import threading
from typing import Any

from morula.core import errors
from morula.core.cotangents import ZERO
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import pushes, split_call
from morula.mixed_mode.tangents import Pass, all_zero, is_empty, reached, tangents_if_any
from morula.rules.threads import captured_by, reached_from


def start(run: Pass, fn: Any, args: Args, tangents: Args, keywords: Names, values: Any) -> Any:
    """A thread is started, if nothing that has a tangent can be found by way of these values."""
    table = tangents_if_any(run, args[0])
    if not all_zero(tangents) or not is_empty(table) or reached(run, tuple(values)):
        raise errors.no_rule(fn, args, why="which may reach what the derivative depends on")
    return split_call(fn, args, keywords), ZERO


@pushes(threading.Thread.start)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return start(run, threading.Thread.start, args, tangents, keywords, reached_from(args[0]))


@pushes(_thread.start_new_thread)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    values = [*args, *captured_by(args[0])]
    return start(run, _thread.start_new_thread, args, tangents, keywords, values)


@pushes(threading.Thread.join)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return split_call(threading.Thread.join, args, keywords), ZERO
