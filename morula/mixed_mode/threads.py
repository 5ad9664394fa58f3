"""Forward mode of threads: one that may reach a tangent is refused, for nobody pushes what it does.

Tests: tests/rules/test_threads.py
"""

import threading
from typing import Any

from morula.core import errors
from morula.core.cotangents import ZERO
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import pushes, split_call
from morula.mixed_mode.tangents import Pass, reached
from morula.rules.threads import reached_from


@pushes(threading.Thread.start)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if reached(run, tuple(reached_from(args[0]))):
        raise errors.no_rule(
            threading.Thread.start, args, why="which may reach what the derivative depends on"
        )
    return split_call(threading.Thread.start, args, keywords), ZERO
