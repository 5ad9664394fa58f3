"""array_api_strict, the standard and no more: its arrays are Python, and go by value all the same."""

import array_api_strict

from morula.interop.array_api.arrays import by_standard
from morula.interop.array_api.kinds import is_array

_one = array_api_strict.asarray(1.0)
by_standard(type(_one))
is_array(_one)  # its functions are known from now on
