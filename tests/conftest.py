"""Fixtures of all tests."""

import gc
import sys
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from morula.core import compiled, verify

# So that `tests.random_programs` and its like are found, however pytest is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

verify.enabled = True  # the SSA form, between all passes
gc.set_threshold(50_000, 10, 10)  # what is collected late does no harm here


# Those that took a third of a second or more when it was written; a test that is new needs no entry.
LONG = set((Path(__file__).parent / "long.txt").read_text(encoding="utf-8").splitlines())

# Of many variants of one test, one in so many runs.
SAMPLED = {
    test: int(stride)
    for test, stride in (
        line.split()
        for line in (Path(__file__).parent / "sampled.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
}


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
        kept = sample([item for item in items if not is_long(item)])
        ids = {item.nodeid for item in kept}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
        items[:] = kept


def sample(items):
    """All tests, but of those with many variants one in so many, and always the same."""
    kept = [
        item for item in items if crc32(item.nodeid.encode()) % SAMPLED.get(name_of(item), 1) == 0
    ]
    seen = {name_of(item) for item in kept}
    for item in items:
        if name_of(item) not in seen:
            seen.add(name_of(item))
            kept.append(item)
    return kept


def name_of(item):
    """The name of a test without that of its variant."""
    return item.nodeid.split("[")[0]


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
