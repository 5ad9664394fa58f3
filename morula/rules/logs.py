"""The module logging: what is logged is constant.

Where a handler writes to memory, the text can be read again: it is noted as others are, see
rules/lossy.py.
Tests: tests/rules/test_texts.py, tests/rules/test_lossy.py
"""

from __future__ import annotations

import io
import logging
from typing import Any

from morula.core.extend import call, constant_unless, no_tangent, non_differentiable
from morula.rules.calls import runs_body, serves

_NAMES = ("debug", "info", "warning", "error", "critical", "exception", "log")
METHODS = [
    getattr(source, name)
    for source in (logging, logging.Logger, logging.LoggerAdapter)
    for name in _NAMES
]
non_differentiable(logging.getLogger, logging.basicConfig)
non_differentiable(logging.Logger.isEnabledFor)


def streams_in_memory() -> list[io.StringIO]:
    """What the handlers that there are write to, if it is in memory."""
    handlers = [reference() for reference in logging._handlerList]  # type: ignore[attr-defined]
    streams = [getattr(handler, "stream", None) for handler in handlers]
    return [stream for stream in streams if isinstance(stream, io.StringIO)]


def is_read_again(types: tuple[Any, ...]) -> bool:
    """May what is logged be read again?"""
    return bool(streams_in_memory())


def log(fn: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """`fn(*args, **options)`."""
    fn(*args, **options)


def write_to(text: str, *streams: io.StringIO) -> None:
    """Stands for what handlers do."""


def logs_in_memory(fn: Any) -> Any:
    """`fn`, as a function that notes its text, which is that of what it is made of."""

    def log_in_memory(*args: Any, **options: Any) -> None:
        log(fn, args, options)
        write_to(str(args), *streams_in_memory())

    return log_in_memory


no_tangent(logging.Logger, logging.RootLogger, logging.LoggerAdapter)
non_differentiable(streams_in_memory, is_read_again, log, write_to)
constant_unless(is_read_again, *METHODS)
BODIES = {method: logs_in_memory(method) for method in METHODS}


@serves(*METHODS)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(BODIES[fn], *args, **kwargs)


for _method, _body in BODIES.items():
    runs_body(_body, _method)
