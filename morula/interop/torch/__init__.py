"""PyTorch: its tensors and modules in differentiated code, and Morula's functions in its programs."""

from morula.interop.torch.export import to_torch

__all__ = ["to_torch"]
