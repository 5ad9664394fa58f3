"""The rules of scipy.ndimage.

filters      by the neighbours of each entry, and splines along an axis
resampling   geometric transforms by splines, filters in Fourier space
"""

from morula.rules.scipy.ndimage import filters, resampling

__all__ = ["filters", "resampling"]
