"""Fixtures of all tests."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

from morula.core import compiled, verify

# So that `tests.random_programs` and its like are found, however pytest is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

verify.enabled = True  # the SSA form, between all passes
gc.set_threshold(50_000, 10, 10)  # what is collected late does no harm here


# Those that took a third of a second or more when it was written; a test that is new needs no entry.
LONG = set((Path(__file__).parent / "long.txt").read_text(encoding="utf-8").splitlines())


def pytest_addoption(parser):
    """`--thorough`: also what takes long, such as third derivatives of exceptions."""
    parser.addoption("--thorough", action="store_true", help="also the tests that take long")


def pytest_configure(config):
    """Tell the checks of arrays in all modes."""
    from tests import array_modes

    array_modes.thorough = config.getoption("--thorough")


def pytest_collection_modifyitems(config, items):
    """Without `--thorough`, leave those out."""
    if not config.getoption("--thorough"):
        long = [item for item in items if is_long(item)]
        items[:] = [item for item in items if not is_long(item)]
        config.hook.pytest_deselected(items=long)


def is_long(item):
    """Is it marked, or in the list of those that take long?"""
    return item.nodeid in LONG or item.get_closest_marker("thorough") is not None


def pytest_collection_finish():
    """The collector need not look at the tests and the libraries, again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def quick_collections():
    """The collector does not look at what is here already, so that it may be called."""
    gc.freeze()


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)


@pytest.fixture(params=["specialised", "general"])
def path(request, monkeypatch):
    """Each of the two ways that lead to a gradient; nothing compiled before is used."""
    compiled.forget_programs()
    compiled._families.clear()
    monkeypatch.setattr(compiled, "specialising", request.param == "specialised")
    yield request.param
    compiled.forget_programs()
    compiled._families.clear()
