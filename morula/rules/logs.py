"""The module logging: what is logged is constant.

Tests: tests/rules/test_texts.py
"""

from __future__ import annotations

import logging

from morula.core.extend import non_differentiable

_NAMES = ("debug", "info", "warning", "error", "critical", "exception", "log")
non_differentiable(logging.getLogger, logging.basicConfig)
for _source in (logging, logging.Logger, logging.LoggerAdapter):
    for _name in _NAMES:
        non_differentiable(getattr(_source, _name))
non_differentiable(logging.Logger.isEnabledFor)
