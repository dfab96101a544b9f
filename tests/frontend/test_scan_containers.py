"""Lists, dicts and dataclasses that branches of a scan's body change in place: each column sees its own branch."""

import dataclasses

import pytest

import fieldjax as fj
from tests.frontend.scans import Cell as Cells
from tests.frontend.scans import K, columns, field
from tests.frontend.test_scan_branches import assert_decides


@dataclasses.dataclass
class Pair:
    first: float
    second: float


def items(carry, x):
    values = list(carry)
    if x > 1.2:
        values[0] = values[0] * 0.5
    elif x > 0.9:
        values[0] = values[0] + values[1]
    else:
        values[1] += x
    return tuple(values)


def in_a_loop(carry, x):
    values = []
    for value in carry:
        values.append(value)
    for n in range(2):
        if values[n] + x > 1.5:
            values[n] = 0.5 * values[n]
            values[1 - n] = values[1 - n] + x
    return tuple(values)


def under_another_name(carry, x):
    values = [carry[0], [carry[1]]]
    same, inner = values, values[1]
    if x > 1:
        values[0] = x
        values[1][0] = -x
    return same[0], inner[0]


def rebound(carry, x):
    values = list(carry)
    before = values
    if x > 1:
        values = [values[1], values[0] + x]
        values[0] = values[0] + 1
    return before[0] + values[0], values[1]


def appended(carry, x):
    values = []
    if x > 1:
        values.append(carry[0])
    else:
        values.append(x)
    values.insert(0, carry[1])
    return tuple(values)


def by_key(carry, x):
    values = {"b": carry[0], "a": carry[1]}
    if x > 1:
        values["a"] = x
        if x > 1.2:
            values["b"] = values["a"] + 1
    return values["b"], values["a"]


def by_attribute(carry, x):
    pair = Pair(*carry)
    same = pair
    if x > 1:
        pair.first = x + pair.second
    return same.first, pair.second


def then_returned(carry, x):
    values = list(carry)
    if x > 1:
        values[0] = x
        return tuple(values)
    return values[0] + 1, values[1]


BODIES = [items, in_a_loop, under_another_name, rebound, appended, by_key, by_attribute, then_returned]


@pytest.mark.parametrize("body", BODIES)
def test_changes_stay_in_their_branch(body):
    assert_decides(body, (0.5, 0.25), columns())


def test_branches_that_leave_different_lengths_are_an_error():
    def uneven(carry, x):
        values = [carry]
        if x > 1:
            values.append(x)
        return values[0]

    with pytest.raises(fj.FieldjaxError, match="containers must match as a whole"):
        fj.scan_operator(uneven, axis=K, init=0.0)(field(columns(), Cells, K))


def test_containers_from_outside_are_not_changed_by_branches():
    seen = []

    def noted(carry, x):
        if x > 1:
            seen.append(1)
        return carry + x

    with pytest.raises(fj.FieldjaxError, match="changes a list from outside"):
        fj.scan_operator(noted, axis=K, init=0.0)(field(columns(), Cells, K))
    assert not seen


def test_a_plain_condition_may_change_them():
    seen = []

    def noted(carry, x, flag=True):
        if flag:
            seen.append(1)
        return carry + x

    fj.scan_operator(noted, axis=K, init=0.0)(field(columns(), Cells, K))
    assert seen
