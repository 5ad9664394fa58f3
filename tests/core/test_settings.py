import gc
import os
import sys
import threading

import pytest

from morula import gradient
from morula.core import compiled, general
from morula.core.settings import FEW, with_own_settings

before = gc.get_threshold()


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    gc.enable()
    gc.set_threshold(*before)


@with_own_settings
def during(inner=gc.get_threshold):
    return inner()


@pytest.mark.parametrize(
    ("owner", "name", "specialised"),
    [(compiled.Gradient, "compile", True), (general, "split", False)],
)
def test_the_collector_runs_seldom_while_code_is_transformed(monkeypatch, owner, name, specialised):
    seen = []
    step = getattr(owner, name)

    def look(*args, **kwargs):
        seen.append(gc.get_threshold()[0])
        return step(*args, **kwargs)

    monkeypatch.setattr(compiled, "specialising", specialised)
    monkeypatch.setattr(owner, name, look)
    assert gradient(eval("lambda x: x * x"), 3.0) == (6.0,)
    assert seen
    assert set(seen) == {FEW}
    assert gc.get_threshold() == before


def test_nested_transforms_and_exceptions():
    assert during(during)[0] == FEW
    with pytest.raises(ZeroDivisionError):
        during(lambda: 1 / 0)
    assert gc.get_threshold() == before


@pytest.mark.parametrize("threshold", [0, 10**6, FEW])
def test_a_collector_that_the_user_has_tamed_is_left_alone(threshold):
    gc.set_threshold(threshold, 10, 10)
    assert during()[0] == threshold
    assert gc.get_threshold()[0] == threshold


def test_what_the_user_sets_meanwhile_stays():
    during(lambda: gc.set_threshold(1000, 10, 10))
    assert gc.get_threshold()[0] == 1000


def test_the_last_of_several_threads_puts_it_back():
    inside, on = threading.Event(), threading.Event()

    def wait():
        inside.set()
        on.wait(10)

    other = threading.Thread(target=during, args=(wait,))
    other.start()
    inside.wait(10)
    during()
    assert gc.get_threshold()[0] == FEW
    on.set()
    other.join()
    assert gc.get_threshold() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_the_collector_of_before():
    def in_a_child():
        pid = os.fork()
        if not pid:
            os._exit(gc.get_threshold() != before)
        return os.waitpid(pid, 0)[1]

    assert during(in_a_child) == 0
    assert gc.get_threshold() == before


def test_functions_may_call_themselves_as_deep_as_without_differentiation(monkeypatch):
    monkeypatch.setattr(compiled, "specialising", False)
    limit = sys.getrecursionlimit()

    def scaled(n, x):
        return x if n == 0 else scaled(n - 1, x) * 1.001

    assert gradient(lambda x: scaled(700, x), 2.0)[0] == pytest.approx(1.001**700, rel=1e-12)
    assert sys.getrecursionlimit() == limit


def test_endless_recursion_is_an_exception():
    def endless(x):
        return endless(x) * 1.001

    with pytest.raises(RecursionError):
        gradient(endless, 2.0)
