"""contextvars: variables that are set, read and reset, in copies of contexts and in tasks."""

import asyncio
import contextvars

import numpy as np
import pytest

from morula import gradient, hvp, jvp
from morula.rules import context_variables
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")
gain = contextvars.ContextVar("gain", default=2.0)


def scaled(x):
    return gain.get() * x


def set_and_reset(x):
    token = gain.set(x * x)
    y = scaled(x)
    gain.reset(token)
    return y * scaled(x)


def in_a_copy_of_the_context(x):
    def inner():
        gain.set(x)
        return scaled(3.0)

    return contextvars.copy_context().run(inner) * scaled(x)


def with_arguments(x):
    context = contextvars.copy_context()
    context.run(gain.set, x * x)
    return context.run(scaled, x) + context.run(lambda *, a: scaled(a), a=2.0 * x)


def defaults(x):
    other = contextvars.ContextVar("other")
    third = contextvars.ContextVar("third", default=x * x)
    return other.get(x) * third.get() * gain.get(x)


def an_array_that_is_written_to(x):
    variable = contextvars.ContextVar("state")
    variable.set(np.array([x, x * x]))
    variable.get()[0] *= x
    return (variable.get() * variable.get()[0]).sum()


PROGRAMS = [
    set_and_reset,
    in_a_copy_of_the_context,
    with_arguments,
    defaults,
    an_array_that_is_written_to,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_agree_with_differences(program):
    check_gradient(program, 0.7, order=2)
    (slope,) = gradient(program, 0.7)
    assert jvp(program, (0.7,), (1.0,)) == (program(0.7), pytest.approx(slope))
    assert hvp(program, 0.7, 1.0) == pytest.approx(
        gradient(lambda x: gradient(program, x)[0], 0.7)[0]
    )
    assert gain.get() == 2.0


def test_each_task_has_its_own_context():
    async def task(v):
        gain.set(v)
        await asyncio.sleep(0)
        return scaled(v)

    async def both(x):
        a, b = await asyncio.gather(task(x), task(x * x))
        return a * b * scaled(1.0)

    check_gradient(lambda x: asyncio.run(both(x)), 0.7)


def test_values_of_former_runs_are_constants():
    def keep(x):
        gain.set(x * x)
        return x

    context = contextvars.copy_context()
    context.run(gradient, keep, 3.0)
    assert context.run(gradient, scaled, 3.0) == (9.0,)


def test_settings_are_not_kept_for_long():
    def many(x):
        for _ in range(1000):
            gain.reset(gain.set(x * 1.5))
        return scaled(x)

    assert gradient(many, 3.0) == (2.0,)
    for _ in range(1000):
        gradient(set_and_reset, 0.7)
    assert len(context_variables._settings) < 1000
