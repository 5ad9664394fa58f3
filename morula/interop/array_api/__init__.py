"""Arrays of any library that follows the array API standard, CuPy for one."""

from morula.interop.array_api.arrays import by_standard
from morula.interop.array_api.claims import recognise

__all__ = ["by_standard", "recognise"]
