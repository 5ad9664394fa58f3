"""Pools run their tasks in the thread that is differentiated; other threads are refused."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

from morula import NoRuleError, UnsupportedError, gradient, jvp


def square(x):
    return x * x


def by_map(x):
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(square, [x, 2 * x]))


def by_futures(x):
    pool = ThreadPoolExecutor(2)
    given = {pool.submit(square, v): v for v in (x, 2 * x)}
    total = sum(future.result() * given[future] for future in as_completed(given))
    pool.shutdown()
    return total


def with_exceptions(x):
    with ThreadPoolExecutor(2) as pool:
        future = pool.submit(lambda v: v / 0, x)
        return x * isinstance(future.exception(), ZeroDivisionError)


@pytest.mark.parametrize(
    ("f", "slope"), [(by_map, 15.0), (by_futures, 60.75), (with_exceptions, 1.0)]
)
def test_tasks_of_pools(path, f, slope):
    assert gradient(f, 1.5) == (pytest.approx(slope),)
    assert jvp(f, (1.5,), (2.0,)) == (f(1.5), pytest.approx(2 * slope))


def test_a_pool_that_was_shut_down_says_so(path):
    def f(x):
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        return pool.submit(square, x).result()

    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        gradient(f, 1.5)


def test_what_workers_begin_with_is_not_run_here(path):
    def f(x):
        with ThreadPoolExecutor(1, initializer=list) as pool:
            return pool.submit(square, x).result()

    with pytest.raises(UnsupportedError, match="with an initializer"):
        gradient(f, 1.5)


def test_threads_that_change_what_matters_are_refused(path):
    def f(x):
        out = [0.0, x]

        def work(i):
            out[i] = x * x

        thread = threading.Thread(target=work, args=(0,))
        thread.start()
        thread.join()
        return sum(out)

    with pytest.raises(NoRuleError, match=r"Thread.start.*which changes what the gradient"):
        gradient(f, 1.5)
    with pytest.raises(NoRuleError, match=r"Thread.start.*may reach what the derivative"):
        jvp(f, (1.5,), (1.0,))


def test_a_thread_that_writes_to_an_array_is_refused(path):
    def f(x):
        thread = threading.Thread(target=lambda: x.__imul__(3.0))
        thread.start()
        thread.join()
        return (x * x).sum()

    with pytest.raises(NoRuleError, match=r"Thread.start.*which changes what the gradient"):
        gradient(f, np.array([1.0, 2.0]))


def test_threads_that_change_nothing_that_matters(path):
    def f(x):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(1))
        thread.start()
        thread.join()
        return x * x * len(seen)

    assert gradient(f, 1.5) == (3.0,)
    assert jvp(f, (1.5,), (1.0,)) == (2.25, 3.0)


def test_what_other_pools_compute_is_refused(path):
    def f(x):
        with ThreadPool(1) as pool:
            return pool.map(square, [x])[0]

    def by_result(x):
        with ThreadPool(1) as pool:
            return pool.apply_async(square, (x,)).get()

    for g in (f, by_result):
        with pytest.raises(NoRuleError, match="computed by others"):
            gradient(g, 1.5)
