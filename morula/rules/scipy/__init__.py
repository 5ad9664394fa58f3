"""The rules of SciPy: those of each of its modules are loaded when that is first met.

cluster      scipy.cluster
fft          scipy.fft
fftpack      scipy.fftpack
graphs       scipy.sparse.csgraph
integrate    scipy.integrate
interpolate  scipy.interpolate
kernels      what writes to an argument
linalg       scipy.linalg
ndimage      scipy.ndimage
namespaces   what SciPy's functions ask about the library of their arguments
optimize     scipy.optimize
signal       scipy.signal
spatial      scipy.spatial, its distance and transform
sparse       scipy.sparse and scipy.sparse.linalg
special      scipy.special
stats        scipy.stats
"""

import numpy as np

from morula.core.extend import waits

# The functions of scipy.fft are objects of a type of SciPy's own, which does not say so.
waits("scipy.fft", "morula.rules.scipy.fft")
waits("uarray", "morula.rules.scipy.fft")
waits("scipy.cluster", "morula.rules.scipy.cluster")
waits("scipy.special", "morula.rules.scipy.special", unnamed=np.ufunc)
# Routines of BLAS and LAPACK are of types that f2py makes, which say nothing.
waits("scipy.linalg", "morula.rules.scipy.linalg", unnamed="fortran")
waits("scipy.ndimage", "morula.rules.scipy.ndimage")
waits("scipy.signal", "morula.rules.scipy.signal")
waits("scipy.interpolate", "morula.rules.scipy.interpolate")
waits("scipy.spatial", "morula.rules.scipy.spatial")
waits("scipy.sparse", "morula.rules.scipy.sparse")
waits("scipy.sparse.csgraph", "morula.rules.scipy.graphs")
waits("scipy.fftpack", "morula.rules.scipy.fftpack")
waits("scipy.optimize", "morula.rules.scipy.optimize")
waits("scipy.stats", "morula.rules.scipy.stats")
waits("scipy.integrate", "morula.rules.scipy.integrate")
for _module in ("_array_api", "_array_api_override", "array_api_compat"):
    waits(f"scipy._lib.{_module}", "morula.rules.scipy.namespaces")
