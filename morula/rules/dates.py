"""Rules of dates and times: a time is a point on the real line, its cotangents are floats, per second.

`timedelta` and `datetime` count microseconds; that rounding has the derivative of the exact value, as
that of floats has. What counts in larger steps is constant: whole days (`date`, `.days`), the fields
of a date and of a time of day, texts, the offsets of time zones.
Tests: tests/rules/test_dates.py
"""

import datetime as names
import operator
import time
from datetime import date, datetime, timedelta
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from morula.core.extend import (
    NoTangent,
    ZeroTangent,
    is_zero,
    materialise,
    no_tangent,
    non_differentiable,
    project_to,
    projector,
    rrule,
    unthunk,
)
from morula.rules.builtins import ATTRIBUTES
from morula.rules.numbers import Anything, Real, to_float
from morula.rules.objects import constant_attribute
from morula.rules.operators import rules_of

COARSE: tuple[type, ...] = (date, names.time, names.tzinfo, names.timezone)
FIELDS = ("year", "month", "day", "hour", "minute", "second", "microsecond")
SECONDS = {  # in the unit of each parameter of `timedelta`, in their order
    "days": 86400.0,
    "seconds": 1.0,
    "microseconds": 1e-6,
    "milliseconds": 1e-3,
    "minutes": 60.0,
    "hours": 3600.0,
    "weeks": 604800.0,
}

no_tangent(*COARSE, time.struct_time)
for _type in (datetime, timedelta):
    projector.register(_type, lambda x: to_float)
    materialise.register(_type, lambda x, x̄, of: 0.0 if is_zero(x̄) else to_float(unthunk(x̄)))
for _type in (*COARSE, time.struct_time):
    materialise.register(_type, lambda x, x̄, of: None)


# -- the operators ---------------------------------------------------------------------------------


@rules_of(operator.add, operator.iadd)
def _(a: date | timedelta, b: date | timedelta):
    y = a + b  # type: ignore[operator]

    def add_pullback(ȳ):
        return (ȳ, ȳ) if is_fine(y) else (ZeroTangent(), ZeroTangent())

    return y, add_pullback


@rules_of(operator.sub, operator.isub)
def _(a: date | timedelta, b: date | timedelta):
    y = a - b  # type: ignore[operator]

    def sub_pullback(ȳ):
        return (ȳ, -ȳ) if is_fine(y) and is_fine(a) else (ZeroTangent(), ZeroTangent())

    return y, sub_pullback


def is_fine(moment: Any) -> bool:
    """Does it count less than whole days?"""
    return isinstance(moment, (datetime, timedelta))


non_differentiable(is_fine)


@rules_of(operator.mul, operator.imul)
def _(x: timedelta, k: Real):
    y = x * k

    def mul_pullback(ȳ):
        return ȳ * k, project_to(k)(ȳ * x.total_seconds())

    return y, mul_pullback


@rules_of(operator.mul, operator.imul)
def _(k: Real, x: timedelta):
    y = k * x

    def mul_pullback(ȳ):
        return project_to(k)(ȳ * x.total_seconds()), ȳ * k

    return y, mul_pullback


@rules_of(operator.truediv, operator.itruediv)
def _(x: timedelta, k: Real):
    y = x / k

    def truediv_pullback(ȳ):
        return ȳ / k, project_to(k)(-ȳ * y.total_seconds() / k)

    return y, truediv_pullback


@rules_of(operator.truediv, operator.itruediv)
def _(a: timedelta, b: timedelta):
    y = a / b

    def truediv_pullback(ȳ):
        ā = ȳ / b.total_seconds()
        return ā, -ā * y

    return y, truediv_pullback


@rules_of(operator.floordiv, operator.ifloordiv)
def _(x: timedelta, k: int):
    def floordiv_pullback(ȳ):  # that of `/`: the quotient is rounded to microseconds
        return ȳ / k, ZeroTangent()

    return x // k, floordiv_pullback


@rules_of(operator.floordiv, operator.ifloordiv)
def _(a: timedelta, b: timedelta):
    def floordiv_pullback(ȳ):
        return ZeroTangent(), ZeroTangent()

    return a // b, floordiv_pullback


@rules_of(operator.mod, operator.imod)
def _(a: timedelta, b: timedelta):
    y = a % b

    def mod_pullback(ȳ):
        return ȳ, -ȳ * (a // b)

    return y, mod_pullback


@rrule(divmod)
def _(a: timedelta, b: timedelta):
    q, r = divmod(a, b)

    def divmod_pullback(ȳ):
        return ȳ[1], -ȳ[1] * q

    return (q, r), divmod_pullback


@rrule(operator.neg)
def _(x: timedelta):
    def neg_pullback(ȳ):
        return (-ȳ,)

    return -x, neg_pullback


@rrule(operator.pos)
def _(x: timedelta):
    def pos_pullback(ȳ):
        return (ȳ,)

    return +x, pos_pullback


@rules_of(operator.abs, abs)
def _(x: timedelta):
    def abs_pullback(ȳ):
        return (ȳ * ((x > timedelta()) - (x < timedelta())),)

    return abs(x), abs_pullback


# -- to numbers and from them ----------------------------------------------------------------------


@rrule(timedelta)
def _(
    days: Real = 0,
    seconds: Real = 0,
    microseconds: Real = 0,
    milliseconds: Real = 0,
    minutes: Real = 0,
    hours: Real = 0,
    weeks: Real = 0,
):
    given = days, seconds, microseconds, milliseconds, minutes, hours, weeks

    def timedelta_pullback(ȳ):
        units = SECONDS.values()
        return tuple([project_to(x)(ȳ * s) for x, s in zip(given, units, strict=True)])

    return timedelta(*given), timedelta_pullback


@rrule(timedelta.total_seconds)
def _(x: timedelta):
    def total_seconds_pullback(ȳ):
        return (ȳ,)

    return x.total_seconds(), total_seconds_pullback


@rrule(datetime.timestamp)
def _(x: datetime):
    def timestamp_pullback(ȳ):
        return (ȳ,)

    return x.timestamp(), timestamp_pullback


@rrule(vars(datetime)["fromtimestamp"])
def _(cls: type, timestamp: Real, tz: Anything = None):
    def fromtimestamp_pullback(ȳ):
        return NoTangent(), project_to(timestamp)(ȳ), NoTangent()

    return cls.fromtimestamp(timestamp, tz), fromtimestamp_pullback  # type: ignore[attr-defined]


@rrule(vars(datetime)["utcfromtimestamp"])
def _(cls: type, timestamp: Real):
    def utcfromtimestamp_pullback(ȳ):
        return NoTangent(), project_to(timestamp)(ȳ)

    return cls.utcfromtimestamp(timestamp), utcfromtimestamp_pullback  # type: ignore[attr-defined]


@rrule(datetime.astimezone)
def _(x: datetime, tz: Anything = None):
    def astimezone_pullback(ȳ):
        return ȳ, NoTangent()

    return x.astimezone(tz), astimezone_pullback


@rrule(datetime.replace)
def _(x: datetime, *fields: Anything, **named: Anything):
    whole = len(fields) > FIELDS.index("microsecond") or "microsecond" in named

    def replace_pullback(ȳ):
        return ZeroTangent() if whole else ȳ, *[NoTangent()] * len(fields)

    return x.replace(*fields, **named), replace_pullback


# -- what is constant ------------------------------------------------------------------------------


FOLLOWED = {
    *("total_seconds", "timestamp", "fromtimestamp", "utcfromtimestamp", "astimezone", "replace"),
    *("__new__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__mod__"),
    *("__rmod__", "__truediv__", "__rtruediv__", "__floordiv__", "__divmod__", "__rdivmod__"),
    *("__neg__", "__pos__", "__abs__"),
}

for _type in (*COARSE, datetime, timedelta):
    for _name, _value in vars(_type).items():
        if isinstance(_value, GetSetDescriptorType | MemberDescriptorType):
            ATTRIBUTES[_type, _name] = constant_attribute(_name)
        elif callable(_value) and (_type in COARSE or _name not in FOLLOWED):
            non_differentiable(_value)
non_differentiable(*COARSE, datetime)
del _type, _name, _value
