"""The module json: text is constant.

Tests: tests/rules/test_texts.py
"""

from __future__ import annotations

import json

from morula.core.extend import non_differentiable

non_differentiable(json.dumps, json.dump)
