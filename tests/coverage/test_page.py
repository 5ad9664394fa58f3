"""docs/coverage.md: nothing that it says to be covered has lost its rule."""

import re

import pytest

from tests.coverage import page

RANKS = {"not yet": 0, "own code": 1, "body": 2, "rule": 3, "constant": 3}


def on_the_page():
    section, found = "", {}
    for line in page.PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        row = re.match(r"\| `(.*?)` \| (.*?) \|", line)
        if row:
            found[section, row[1]] = row[2]
    return found


def rank(served_by):
    plain = served_by.removesuffix(" (in part)")
    return RANKS[plain], not served_by.endswith("(in part)")


def test_no_callable_has_lost_its_rule():
    now = {(section, name): served_by for section, name, served_by, _ in page.lines()}
    before = on_the_page()
    lost = {
        key: (was, now.get(key))
        for key, was in before.items()
        if not is_kept(was, now.get(key)) and is_there(*key)
    }
    assert not lost, "python -m tests.coverage.page writes docs/coverage.md, if this is meant"
    assert now.keys() <= before.keys(), "python -m tests.coverage.page adds new lines to the page"


def is_there(section, name):
    """Other versions of SciPy have other functions."""
    return not section.startswith("scipy") or hasattr(page.owner(section), name)


def is_kept(was, is_now):
    return is_now is not None and rank(is_now) >= rank(was)


@pytest.mark.parametrize(("section", "name"), page.constants())
def test_constants_are_declared(section, name):
    primal = getattr(page.owner(section), name, None)
    assert primal is None or page.is_declared_constant(primal)


def test_everything_that_autograd_differentiates_is_covered():
    missing = [
        name
        for _, name, served_by, tools in page.lines()
        if "a" in tools and served_by == "not yet"
    ]
    assert missing == []
