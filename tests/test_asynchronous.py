"""Asynchronous generators, tasks, futures and queues: `asyncio.run`, and loops of the user's."""

import asyncio
import contextlib
import re
import socket
import sys

import pytest

from morula import UnsupportedError, grad, hvp, jvp, withgradient
from morula.testing import check_gradient


async def powers(x, n):
    t = x
    for _ in range(n):
        await asyncio.sleep(0)
        yield t
        t = t * x


async def loop(x):
    s = 0.0
    async for v in powers(x, 4):
        s = s + v * x
    return s


async def compr(x):
    l = [v * x async for v in powers(x, 3) if v < 5]
    d = {i: v async for i, v in enum(powers(x, 3))}
    g = (v * 2 async for v in powers(x, 3))
    s = 0.0
    async for w in g:
        s += w * w
    st = {v async for v in powers(x, 2)}
    return sum(l) * d[1] + s + max(st)


async def enum(it):
    i = 0
    async for v in it:
        yield i, v
        i += 1


async def sends(x):
    async def avg():
        tot, n = 0.0, 0
        while True:
            v = yield tot / max(n, 1)
            await asyncio.sleep(0)
            tot = tot + v
            n += 1

    a = avg()
    await a.asend(None)
    await a.asend(x)
    await a.asend(x * x)
    r = await a.asend(3 * x)
    await a.aclose()
    return r**2


async def throws(x):
    log = []

    async def g():
        try:
            yield x
            yield x * x
        except ValueError:
            yield x**3
        finally:
            log.append(x * 5)
            await asyncio.sleep(0)

    it = g()
    a = await anext(it)
    b = await it.athrow(ValueError("now"))
    c = await anext(it, x * 7)
    return a * b * c + sum(log)


async def acm(x):
    @contextlib.asynccontextmanager
    async def scaled(y):
        z = y * x
        try:
            yield z
        except KeyError as e:
            st["v"] = e.args[0] * z
        finally:
            await asyncio.sleep(0)
            st["f"] = z * 3

    st = {}
    async with scaled(x) as z:
        q = z * 2
        raise KeyError(q * x)
    async with contextlib.aclosing(powers(x, 5)) as it:
        async for v in it:
            if v > x * x * 0.9:
                break
    return st["v"] + st["f"] * v


async def gathered(x):
    async def s(k):
        return sum([v async for v in powers(x * k, 3)])

    a, b = await asyncio.gather(s(1.0), s(2.0))
    return a * b


async def abandoned(x):
    async def inf():
        y = x
        while True:
            yield y
            y = y * 1.1

    n = 0
    s = 0.0
    async for v in inf():
        s += v * v
        n += 1
        if n == 4:
            break
    else:
        s = 0.0
    return s


async def raising(x):
    async def g():
        yield x
        st["a"] = x * x
        raise ValueError(x * 3)

    st = {}
    s = 0.0
    try:
        async for v in g():
            s += v * v
    except ValueError as e:
        s += e.args[0] * st["a"]
    return s


class It:
    def __init__(self, x):
        self.x = x
        self.n = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        self.n += 1
        if self.n > 3:
            raise StopAsyncIteration
        await asyncio.sleep(0)
        return self.x**self.n


async def userit(x):
    s = 0.0
    async for v in It(x):
        s += v * v
    return s + await anext(It(x))


async def order(x):
    st = {"v": x}

    async def t():
        st["v"] = st["v"] * 2

    task = asyncio.create_task(t())
    await asyncio.sleep(0)
    s = st["v"]
    st["v"] = x * 5
    await task
    return s * x + st["v"]


async def taskgroup(x):
    async def t(k):
        await asyncio.sleep(0)
        return x * k

    async with asyncio.TaskGroup() as tg:
        a = tg.create_task(t(2.0))
        b = tg.create_task(t(x))
    return a.result() * b.result()


async def queue(x):
    q = asyncio.Queue()
    out = []

    async def prod():
        for i in range(3):
            await q.put(x ** (i + 1))
        await q.put(None)

    async def cons():
        while (v := await q.get()) is not None:
            out.append(v * x)

    await asyncio.gather(prod(), cons())
    return sum(out)


async def waitfor(x):
    async def t():
        await asyncio.sleep(0)
        return x * x

    return await asyncio.wait_for(t(), 1) * x


async def lock(x):
    l = asyncio.Lock()
    st = [x]

    async def t(k):
        async with l:
            st[0] = st[0] * x + k

    await asyncio.gather(t(1), t(2))
    return st[0]


async def fut(x):
    f = asyncio.get_running_loop().create_future()

    async def t():
        f.set_result(x * x)

    task = asyncio.create_task(t())
    y = await f * x
    await task
    return y


async def exc(x):
    async def t():
        raise ValueError(x * x)

    try:
        await asyncio.gather(t())
    except ValueError as e:
        return e.args[0] * x


async def resultof(x):
    async def t():
        return x * x

    k = asyncio.create_task(t())
    await asyncio.wait([k])
    return k.result() * x


async def called_soon(x):
    items = []
    loop = asyncio.get_running_loop()
    loop.call_soon(items.append, x * x)
    loop.call_soon(items.append, 1e6).cancel()
    loop.call_later(0, lambda v: items.append(v * items[0]), 2 * x)
    await asyncio.sleep(0.01)
    return items[1] * x


async def called_when_done(x):
    total = [x]

    def add(task):
        total[0] += task.result() * x

    def never(task):
        total[0] = 1e6

    task = asyncio.create_task(squared(x))
    task.add_done_callback(add)
    task.add_done_callback(never)
    assert task.remove_done_callback(never) == 1
    await task
    await asyncio.sleep(0)
    return total[0]


async def squared(x):
    await asyncio.sleep(0)
    return x * x


async def set_by_a_callback(x):
    loop = asyncio.get_running_loop()
    result, failure = loop.create_future(), loop.create_future()
    loop.call_soon(result.set_result, x * x)
    loop.call_soon(failure.set_exception, ValueError(3 * x))
    try:
        await failure
    except ValueError as error:
        return error.args[0] * await result


async def handled_by_the_loop(x):
    items = [x]

    def fail(v):
        items.append(v * x)
        raise ValueError

    def handle(loop, context):
        items.append(items[-1] * x)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(handle)
    loop.call_soon(fail, 2 * x)
    loop.call_soon(fail, x)
    await asyncio.sleep(0.01)
    return sum(i * v for i, v in enumerate(items))


async def when_readable(x):
    items = []
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, lambda v: items.append(v * len(ours.recv(1))), x * x)
    theirs.send(b"a")
    while not items:
        await asyncio.sleep(0.001)
    loop.remove_reader(ours)
    ours.close()
    theirs.close()
    return items[0]


async def shielded(x):
    return await asyncio.shield(squared(x)) * x


async def in_a_thread(x):
    return await asyncio.to_thread(lambda v: v * v, x) * x


async def the_errors_of_a_group(x):
    items = [x]

    async def bad():
        items.append(x * x)
        raise ValueError(3 * x)

    async def slow():
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            items.append(x**3)
            raise

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(slow())
            group.create_task(bad())
    except* ValueError as errors:
        items.append(errors.exceptions[0].args[0])
    return sum(v * (i + 1) for i, v in enumerate(items))


CALLED_BACK = [
    called_soon, called_when_done, set_by_a_callback, handled_by_the_loop, shielded, in_a_thread,
    the_errors_of_a_group, *[when_readable] * (sys.platform != "win32"),
]  # fmt: skip

PROGRAMS = [
    *CALLED_BACK,
    loop, compr, sends, throws, acm, gathered, abandoned, raising, userit,
    order, taskgroup, queue, waitfor, lock, fut, exc, resultof,
]  # fmt: skip


def by_asyncio(program):
    return lambda x: asyncio.run(program(x))


def by_hand(program):
    def f(x):
        coroutine = program(x)
        while True:
            try:
                coroutine.send(None)
            except StopIteration as stop:
                return stop.value

    return f


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(program):
    f = by_asyncio(program)
    assert withgradient(f, 1.3)[0] == f(1.3)
    check_gradient(f, 1.3)


@pytest.mark.parametrize(
    "program", [sends, gathered, fut, resultof, *CALLED_BACK], ids=lambda f: f.__name__
)
def test_forward_mode(program):
    f = by_asyncio(program)
    value, tangent = jvp(f, (1.3,), (1.0,))
    assert value == f(1.3)
    assert tangent == pytest.approx(grad(f)(1.3))


def loops_of_ones_own(x):
    items = [x]
    loop = asyncio.new_event_loop()

    def begin(v):
        items.append(v * items[-1])
        loop.call_soon(end, v * x)

    def end(v):
        items.append(v + items[-1] * x)
        loop.stop()

    try:
        loop.call_soon(begin, x * x)
        loop.run_forever()
        return sum(items) * loop.run_until_complete(lock(x))
    finally:
        loop.close()


def one_runner(x):
    with asyncio.Runner() as runner:
        return runner.run(lock(x)) * runner.run(squared(x))


@pytest.mark.parametrize("f", [loops_of_ones_own, one_runner])
def test_loops_without_asyncio_run(f):
    assert withgradient(f, 1.3)[0] == f(1.3)
    check_gradient(f, 1.3)
    assert jvp(f, (1.3,), (1.0,))[1] == pytest.approx(grad(f)(1.3))


async def sent_twice(x):
    async def numbers():
        v = yield x
        yield v * v * x

    it = numbers()
    first = await it.asend(None)
    return await it.asend(first * x)


def test_a_loop_of_the_users():
    f = by_hand(sent_twice)
    second = pytest.approx(20 * 1.3**3)
    assert grad(grad(f))(1.3) == second
    assert hvp(f, 1.3, 1.0) == second


def test_asyncio_in_a_derivative_of_a_derivative_is_refused():
    with pytest.raises(UnsupportedError, match=r"asyncio\.run in a derivative of a derivative"):
        grad(grad(by_asyncio(gathered)))(1.3)


def test_effects_of_an_asynchronous_generator_happen_once_and_in_order():
    log = []

    async def numbers(x):
        try:
            for i in range(5):
                log.append(f"give {i}")
                yield x * i
        finally:
            log.append("closed")

    async def main(x):
        s = 0.0
        async with contextlib.aclosing(numbers(x)) as it:
            async for v in it:
                s = s + v * x
                log.append("taken")
                if len(log) > 4:
                    break
        return s

    f = by_asyncio(main)
    f(2.0)
    plain = log.copy()
    log.clear()
    assert withgradient(f, 2.0) == (12.0, (12.0,))
    assert log == plain


def test_awaiting_a_generator_is_the_error_of_the_plain_run():
    async def numbers():
        yield 1.0

    async def main(x):
        return await numbers()

    with pytest.raises(TypeError, match="can't be used in 'await' expression"):
        grad(by_asyncio(main))(1.0)


def test_compiled_methods_that_know_their_class_are_called_as_methods():
    found = re.compile("a(b+)").match

    def f(x):
        return x * len(found("abb").group(1))

    assert grad(f)(1.3) == 2.0
    assert jvp(f, (1.3,), (1.0,)) == (2.6, 2.0)
