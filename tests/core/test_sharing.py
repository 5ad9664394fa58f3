"""An object that is differentiated by, and read from outside too: one object has one cotangent."""

import pytest

import morula
from morula.core import compiled


class Weight:
    def __init__(self, w):
        self.w = w


class Model:
    def __init__(self, *weights):
        self.layers = [Weight(w) for w in weights]
        self.scale = 2.0

    def loss(self, x):
        for layer in self.layers:
            x = layer.w * x
        return x


SHARED = Weight(2.0)
ITEMS = [2.0, 5.0]
MODEL = Model(1.0, 2.0)


def of_global(a, x):
    return a.w * x + SHARED.w * x * x


def of_captured(shared):
    def f(a, x):
        return a.w * x + shared.w * x * x

    return f


def of_argument(a, x, b):
    return a.w * x + b.w * x * x


def of_items(a, x):
    return a[0] * x + ITEMS[0] * x * x


def of_part(layers, x):
    for layer in layers:
        x = layer.w * x
    return x * MODEL.scale + MODEL.layers[0].w


def of_item_of_list(weights, x):
    return weights[0].w * x + SHARED.w


def in_loop(layers, x, models):
    for model in models:
        x = x * layers[0].w + model.layers[0].w
    return x


def depth(tree, x):
    return tree[0] * x + (depth(tree[1], x) if tree[1] else SHARED_TREE[0])


SHARED_TREE = [3.0, []]


def of_unseen(a, x, read):
    return a.w * x + read()


def reader():
    kept = [SHARED]
    return lambda: kept[0].w


def both(f, *args):
    """The gradient by the first argument as compiled, and by the general path."""
    one = morula.grad(f)(*args)
    with compiled.by_the_general_path():
        return one, morula.grad(f)(*args)


def fields(tangent):
    return tangent.w


def test_a_global():
    one, other = both(of_global, SHARED, 3.0)
    assert fields(one) == fields(other) == 12.0
    one, other = both(of_global, Weight(2.0), 3.0)
    assert fields(one) == fields(other) == 3.0


def test_a_captured_variable():
    one, other = both(of_captured(SHARED), SHARED, 3.0)
    assert fields(one) == fields(other) == 12.0
    one, other = both(of_captured(SHARED), Weight(2.0), 3.0)
    assert fields(one) == fields(other) == 3.0


def test_another_argument():
    one, other = both(of_argument, SHARED, 3.0, SHARED)
    assert fields(one) == fields(other) == 12.0
    one, other = both(of_argument, SHARED, 3.0, Weight(2.0))
    assert fields(one) == fields(other) == 3.0


def test_a_list():
    assert both(of_items, ITEMS, 3.0) == ([12.0, 0.0],) * 2
    assert both(of_items, [2.0, 5.0], 3.0) == ([3.0, 0.0],) * 2


def test_a_part_of_a_global():
    for one in both(of_part, MODEL.layers, 1.0):
        assert list(map(fields, one)) == [5.0, 2.0]
    for one in both(of_part, Model(1.0, 2.0).layers, 1.0):
        assert list(map(fields, one)) == [4.0, 2.0]


def test_a_global_inside_of_an_argument():
    for one in both(of_item_of_list, [SHARED], 3.0):
        assert list(map(fields, one)) == [4.0]


def test_objects_that_a_loop_goes_over():
    for one in both(in_loop, MODEL.layers, 1.0, [Model(1.0), MODEL]):
        assert list(map(fields, one)) == [4.0, 0.0]
    for one in both(in_loop, MODEL.layers, 1.0, [Model(1.0), Model(1.0)]):
        assert list(map(fields, one)) == [3.0, 0.0]


def test_a_global_read_by_a_function_that_calls_itself():
    assert both(depth, SHARED_TREE, 2.0) == ([3.0, []],) * 2
    assert both(depth, [3.0, []], 2.0) == ([2.0, []],) * 2


def test_a_function_that_is_not_looked_into():
    one, other = both(of_unseen, SHARED, 3.0, reader())
    assert fields(one) == fields(other) == 4.0


def test_the_value_of_a_method():
    for one in both(MODEL.loss, 3.0):
        assert one == 2.0
    one, other = both(lambda model: MODEL.loss(3.0) + model.scale, MODEL)
    assert [fields(w) for w in one.layers] == [fields(w) for w in other.layers] == [6.0, 3.0]


@pytest.mark.parametrize("f", [of_global, of_captured(SHARED)])
def test_programs_of_other_objects_stay_compiled(f):
    g = morula.grad(f)
    assert fields(g(SHARED, 3.0)) == 12.0
    family = g.__morula__
    assert all(p.code is not None for p in family.programs.values())
    assert fields(g(Weight(2.0), 3.0)) == 3.0


def test_items_of_tuples_are_asked_about_when_they_are_there():
    def f(t, xs):
        return t[1][0] * xs[0] * t[0]

    shared = [3.0]
    grad = morula.grad(f)
    assert grad((2.0, [3.0]), [5.0]) == (15.0, [10.0])
    assert grad((2.0, shared), shared) == (9.0, [12.0])
