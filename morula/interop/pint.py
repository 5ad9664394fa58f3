"""Quantities of pint, which are Python and followed as such: what names their units is no number.

Tests: tests/interop/test_protocols.py
"""

from pint.util import UnitsContainer

from morula.core.extend import no_tangent, on_entry, remembered

no_tangent(UnitsContainer)
on_entry.register(UnitsContainer, lambda x, known: x)
remembered.register(UnitsContainer, lambda x, known: [])
