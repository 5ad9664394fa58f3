"""The debugging switch, MORULA_DEBUG=1: the SSA form between the passes, and what every pullback
returns, are verified. It is read once, when Morula is imported; off, it costs nothing.
"""

from __future__ import annotations

import os

ON = os.environ.get("MORULA_DEBUG", "") not in ("", "0")
