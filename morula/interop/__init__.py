"""Other libraries that differentiate, and Morula among them: optional packages, imported only here.

The rules for the values of a library wait until a program meets one of them.
"""

from inspect import getattr_static

import numpy as np

from morula.core.extend import recognises, waits
from morula.interop import array_classes, converted, object_arrays, protocols, weak_references

__all__ = ["array_classes", "converted", "object_arrays", "protocols", "weak_references"]

for _package in ("jax", "jaxlib", "equinox", "flax", "optax"):
    waits(_package, "morula.interop.jax.rules")
for _package in ("torch", "torchvision"):
    waits(_package, "morula.interop.torch.rules")
waits("array_api_strict", "morula.interop.array_api.strict")
waits("autograd", "morula.interop.autograd")
waits("dask", "morula.interop.dask")
waits("gmpy2", "morula.interop.gmpy2")
waits("mpmath", "morula.interop.mpmath")
waits("numba", "morula.interop.numba.rules")
waits("numpy.ma", "morula.interop.masked")
waits("pandas", "morula.interop.pandas")
waits("pydantic_core", "morula.interop.pydantic")
waits("pydantic", "morula.interop.pydantic")
waits("pint", "morula.interop.pint")
waits("sympy", "morula.interop.sympy")
waits("xarray", "morula.interop.xarray")
del _package


@recognises
def _of_standard(t: type) -> bool:
    """Is a class that has just been met one of arrays of the array API standard?"""
    # Found without asking a metaclass, whose answer would be code of the user's.
    if getattr_static(t, "__array_namespace__", None) is None:
        return False
    if issubclass(t, (np.ndarray, np.generic)):
        return False
    from morula.interop.array_api import recognise

    return recognise(t)
