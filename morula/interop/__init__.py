"""Other libraries that differentiate, and Morula among them: optional packages, imported only here.

The rules for the values of a library wait until a program meets one of them.
"""

from morula.core.extend import waits
from morula.interop import protocols

__all__ = ["protocols"]

for _package in ("jax", "jaxlib", "equinox", "flax", "optax"):
    waits(_package, "morula.interop.jax.rules")
for _package in ("torch", "torchvision"):
    waits(_package, "morula.interop.torch.rules")
waits("autograd", "morula.interop.autograd")
waits("dask", "morula.interop.dask")
waits("numba", "morula.interop.numba.rules")
waits("pandas", "morula.interop.pandas")
waits("pint", "morula.interop.pint")
waits("xarray", "morula.interop.xarray")
del _package
