"""What makes text, or looks into it, is constant: re, warnings, pprint; logging and json when met.

They run as they are: nothing of a gradient is in them, and their own code is long.
Tests: tests/rules/test_texts.py
"""

from __future__ import annotations

import pprint
import re
import warnings
from typing import Any

from morula.core.extend import NONE, non_differentiable, python_function
from morula.rules.calls import serves

non_differentiable(
    re.compile, re.match, re.fullmatch, re.search, re.split, re.findall, re.finditer, re.escape,
    warnings.warn, warnings.warn_explicit, pprint.pprint, pprint.pformat, pprint.pp,
)  # fmt: skip


@serves(re.sub, re.subn)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Constant as well, but for what a function of the user's does that is called."""
    if any(callable(a) for a in (*args, *kwargs.values())):
        return python_function(fn, args, kwargs)
    return fn(*args, **kwargs), lambda ȳ: (NONE,) * (1 + len(args) + len(kwargs))
