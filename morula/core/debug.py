"""The debugging switch, MORULA_DEBUG=1: what every pullback returns is verified. It is read once,
when Morula is imported; off, it costs nothing.
"""

from __future__ import annotations

import os

ON = os.environ.get("MORULA_DEBUG", "") not in ("", "0")
