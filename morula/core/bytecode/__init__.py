"""From code objects to SSA form: what differs between CPython versions is in one file per version."""

from morula.core.bytecode.lower import lower

__all__ = ["lower"]
