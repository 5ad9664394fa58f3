"""Pools run their tasks in the thread that is differentiated; other threads are refused."""

import _thread
import queue
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


def by_arguments(x):
    found = []
    thread = threading.Thread(target=lambda y: found.append(y * y), args=(x,))
    thread.start()
    thread.join()
    return found[0] * x


def by_a_method(x):
    found = []
    thread = threading.Thread(target=found.append, args=(x * x,))
    thread.start()
    thread.join()
    return found.pop() * x


def by_a_timer(x):
    found = []
    timer = threading.Timer(0.0, lambda: found.append(x * x))
    timer.start()
    timer.join()
    return found[0] * x


def by_a_queue(x):
    q = queue.Queue()
    threading.Thread(target=lambda: q.put(x * x)).start()
    return q.get() * x


def by_a_queue_that_is_handed_over(x):
    q = queue.Queue()
    thread = threading.Thread(target=lambda p, y: p.put(y), args=(q, x * x))
    thread.start()
    thread.join()
    return q.get() * x


def by_a_bare_thread(x):
    found, ready = [], threading.Event()

    def run():
        found.append(x * x)
        ready.set()

    _thread.start_new_thread(run, ())
    ready.wait()
    return found[0] * x


def by_a_class(x):
    worker = Worker(x)
    worker.start()
    worker.join()
    return worker.y * x


class Worker(threading.Thread):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def run(self):
        self.y = self.x * self.x


OF_ONE_S_OWN = [
    by_arguments, by_a_method, by_a_timer, by_a_queue, by_a_queue_that_is_handed_over,
    by_a_bare_thread, by_a_class,
]  # fmt: skip


@pytest.mark.parametrize("f", OF_ONE_S_OWN)
def test_what_a_thread_of_one_s_own_computes_is_refused(f, path):
    with pytest.raises(NoRuleError, match=r"start.*which changes what the gradient"):
        gradient(f, 1.3)
    with pytest.raises(NoRuleError, match=r"start.*which may reach what the derivative"):
        jvp(f, (1.3,), (1.0,))


def test_a_thread_that_nobody_waits_for(path):
    def f(x):
        ready, count = threading.Event(), [0]

        def run():
            ready.wait()
            count[0] += 1

        threading.Thread(target=run, daemon=True).start()
        ready.set()
        return [x * x][0] * x

    assert gradient(f, 2.0) == (12.0,)
    assert jvp(f, (2.0,), (1.0,)) == (8.0, 12.0)
