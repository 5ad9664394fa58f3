"""Morula's benchmarks: `python -m benchmarks`, see `__main__.py`."""
