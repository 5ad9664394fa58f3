"""From code objects to SSA form: what differs between CPython versions is in one file per version."""

from morula.core.bytecode import generators as _generators  # so that they are lowered as such
from morula.core.bytecode.classes import body_code
from morula.core.bytecode.lower import lower

del _generators

__all__ = ["body_code", "lower"]
