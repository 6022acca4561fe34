"""Kinds of arguments: what they take, as what, and what they say of the rest."""

from __future__ import annotations

import time
from collections import UserList, deque
from inspect import signature

import numpy as np
import pytest

import linkwork as lw
from linkwork import checks
from linkwork.checks import (
    FLAG,
    NAME,
    NAMES,
    NUMBER,
    NUMBERS,
    POSITIVE,
    SEED,
    array,
    checked,
    checked_class,
    choice,
    either,
    mapping,
    optional,
    several,
    whole,
)
from linkwork.errors import ConvergenceWarning, InputError, LinkworkError, MissingExtra, NotFound, not_found
from linkwork.robots import mechanisms
from linkwork.robots.mechanisms import chain, quadruped


class Text(str):
    pass


def taken(kind, value):
    return kind.checked("x", value, {})


@pytest.mark.parametrize(("kind", "value", "result"), [
    (NUMBER, 3, 3.0), (NUMBER, np.float32(0.5), 0.5), (NUMBER, np.array(2), 2.0), (NUMBER, np.int8(-3), -3.0),
    (POSITIVE, 1e-30, 1e-30), (whole(1), np.int64(4), 4), (whole(), 0, 0), (FLAG, np.True_, True),
    (NAME, Text("a"), "a"),
    (NAMES, np.array(["a", "b"]), ("a", "b")), (NAMES, (n for n in "ab"), ("a", "b")), (NAMES, "ab", ("ab",)),
    (optional(NUMBER), None, None),
    (either(FLAG, NAME), "a", "a"), (choice("way", ("a", "b")), "b", "b"), (mapping(NUMBER), {"a": 1}, {"a": 1.0}),
    (several(whole(0)), range(3), (0, 1, 2)), (SEED, 10**40, 10**40),
])  # fmt: skip
def test_what_is_taken_and_as_what(kind, value, result):
    found = taken(kind, value)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(("kind", "value", "message"), [
    (NUMBER, "1", "x is a finite number, not '1'"), (NUMBER, True, "not True"), (NUMBER, np.nan, "not nan"),
    (NUMBER, 10**400, "too large"), (NUMBER, np.ma.masked, "not"), (NUMBER, 1 + 0j, "finite number"),
    (POSITIVE, 0, "above 0, not 0"), (POSITIVE, 1e-300, r"1e-30 to 1e\+30"), (whole(1, 9), 10, "at most 9"),
    (whole(1), 2.0, "whole number of at least 1, not 2.0"), (FLAG, 1, "True or False, not 1"), (NAME, b"a", "name"),
    (NAME, "\ud800", "no file can hold"), (NAMES, 3, "list of names, not 3"), (NAMES, {"a": 1}, "list of names"),
    (array(3), [1, 2], r"3 finite numbers.*shape is \(2,\)"), (array(2), ["1", "2"], "type <U1"),
    (array(2), [[1], [2, 3]], "inhomogeneous"), (array(2), np.ma.array([1.0, 2.0], mask=[0, 1]), "masked"),
    (array(1, 2), [np.ma.array([1.0, 2.0], mask=[0, 1])], "masked"), (array(2), [1, None], "type object"),
    (array(2), [1e40, 0], "larger than"), (array(2), [np.inf, 0], "NaN or infinite"), (array(2), [1j, 0], "complex"),
    (array(2), [True, 0.5], "type bool"), (array(2), (0.5, np.False_), "type bool"),
    (NUMBERS, deque([1, True]), "type bool"),
    (array(2, 2), [[1.0, 2.0], np.array([True, False])], "type bool"), (array(2), UserList([True, 0.5]), "type bool"),
    (optional(NUMBER), "a", "finite number, not 'a'"), (either(FLAG, NUMBER), "a", "True or False or a finite number"),
    (mapping(NUMBER), {"a": "b"}, "what 'a' stands for is a finite number"), (several(NAME), [1], "entry 0 is a name"),
    (SEED, -1, "Generator"),
])  # fmt: skip
def test_what_is_refused_and_why(kind, value, message):
    with pytest.raises(InputError, match=message):
        taken(kind, value)


def test_choices_are_listed():
    with pytest.raises(NotFound, match=r"no way called 'al'.*'all'"):
        taken(choice("way", ("all", "none")), "al")
    found = str(not_found("frame", "Hand", ["arm_hand_tip", "arm_hand", "x"]))
    assert "Did you mean 'arm_hand', 'arm_hand_tip'?" in found
    with pytest.raises(NotFound, match=r"Did you mean 'all'\?"):
        taken(choice("way", ("all", "none")), "ALL")
    with pytest.raises(NotFound, match="no way called"):
        taken(optional(choice("way", ("all", "none"))), "al")


def test_endless_lists_end():
    with pytest.raises(InputError, match="at most"):
        taken(several(whole()), iter(int, 1))


def test_a_function_keeps_its_signature_and_errors_of_python_stay():
    @checked(a=NUMBER, more=NAME, b=whole())
    def f(a, *more, b=1):
        """Words."""
        return a, more, b

    assert f(1, "x", "y", b=np.int64(2)) == (1.0, ("x", "y"), 2)
    assert list(signature(f).parameters) == ["a", "more", "b"]
    assert f.__doc__ == "Words."
    with pytest.raises(TypeError, match="missing"):
        f()
    with pytest.raises(TypeError, match="unexpected"):
        f(1, c=2)
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'mor'\. Did you mean 'more'\? Valid: 'a', 'more', 'b'"
    ):
        f(1, mor=2)
    with pytest.raises(TypeError, match=r"takes 1 positional .*\. f = lw\.mass_matrix\(model\)"):
        lw.mass_matrix(chain(2), np.zeros(2))
    with pytest.raises(InputError, match="more is a name"):
        f(1, 2)
    with pytest.raises(AssertionError):
        checked(c=NUMBER)(lambda a: a)


def test_a_class_is_still_one():
    @checked_class(a=NUMBER)
    class Thing:
        def __init__(self, a):
            self.a = a

    assert Thing(np.float32(1)).a == 1.0
    assert isinstance(Thing(1), Thing)
    with pytest.raises(InputError):
        Thing("1")


def test_results_that_no_machine_holds_are_refused():
    with pytest.raises(InputError, match=r"GB, and this machine has.*less"):
        checks.check_memory("a batch", 10**30, "take less")


@pytest.mark.parametrize("make", [
    lambda: lw.Coupling("a", {"b": [np.nan]}),
    lambda: lw.Stabilisation(1e-300),
    lambda: chain(1).with_gravity([0, 0, np.nan]),
    lambda: lw.Builder(gravity=[0, 0, np.nan]),
    lambda: lw.LinkRows({"a": np.full((1, 6), np.nan)}),
    lambda: lw.CentreOfMass([0, 0, np.inf]),
    lambda: lw.Hinge("a", axis=[0, 0, np.nan]),
    lambda: lw.Prox(mu=np.nan),
    lambda: lw.BodyInertia(np.nan),
    lambda: lw.BodyInertia("1"),
])  # fmt: skip
def test_numbers_that_are_none_are_refused_where_they_are_given(make):
    with pytest.raises(LinkworkError, match=r"nan|NaN|1e-300|inf|'1'|three finite"):
        make()


def test_gravity_of_a_builder_may_be_set_later_and_is_still_looked_at():
    b = lw.Builder()
    b.gravity = np.array([0, 0, np.nan])
    with pytest.raises(InputError, match="gravity is three finite numbers"):
        b.build()


@pytest.mark.parametrize("backend", ["kernel", "numpy", "casadi"])
@pytest.mark.parametrize("spoil", [
    lambda x: x.astype(str), lambda x: x.astype(object), lambda x: x.astype(complex), lambda x: x.astype(str).tolist(),
    lambda x: np.ma.array(x, mask=np.arange(x.size) == 2), lambda x: [*x[:2], np.ma.masked, *x[3:]],
    lambda x: [*x[:2], None, *x[3:]], lambda x: np.where(np.arange(x.size) == 2, np.nan, x),
    lambda x: [*x[:-1], [0.0]],
    lambda x: [*x[:2], True, *x[3:]], lambda x: x.astype(bool),
    lambda x: np.full(x.size, "2020-01-01", "datetime64[D]"),
])  # fmt: skip
def test_states_are_arrays_of_numbers(backend, spoil):
    model = quadruped()
    fd = lw.forward_dynamics(model, method="aba", backend=backend)
    given = [model.neutral(), np.zeros(model.nv), np.zeros(model.nv)]
    fd(*given)
    for k in range(3):
        wrong = list(given)
        wrong[k] = spoil(given[k])
        with pytest.raises(InputError):
            fd(*wrong)
        with pytest.raises(InputError):
            fd(**dict(zip(("q", "v", "tau"), wrong, strict=True)))


def test_an_interrupt_in_an_import_is_no_missing_package():
    def load():
        try:
            raise ImportError from KeyboardInterrupt()
        except ImportError:
            raise MissingExtra("mujoco", "mjcf", "reading MJCF") from None

    with pytest.raises(KeyboardInterrupt):
        load()


def test_arrays_without_masked_entries_are_arrays():
    model = chain(2)
    fd, x = lw.forward_dynamics(model, method="aba"), np.array([0.1, 0.2])
    expected = fd(x, x, x).a
    for same in (np.ma.array(x), x.tolist(), x.astype(np.float32), np.array(x)[::-1][::-1], [np.float32(0.1), 0.2]):
        np.testing.assert_allclose(fd(same, x, x).a, expected, rtol=1e-6)


def test_views_larger_than_any_memory_are_refused_at_once():
    """They were copied, or looked through entry by entry: for minutes, and until memory was full."""
    model, huge, began = mechanisms.chain(3), np.broadcast_to(0.0, (10**12, 3)), time.process_time()
    for call in (
        lambda: lw.joints.Revolute(huge),
        lambda: lw.simulate(model, huge),
        lambda: lw.Actuator("link1_joint", control_range=huge),
        lambda: lw.forward_dynamics(model)(huge, np.zeros(3), np.zeros(3)),
        lambda: lw.rollout(model)(huge, np.zeros(3), steps=10),
    ):
        with pytest.raises(lw.LinkworkError):
            call()
    assert time.process_time() - began < 5


def test_errors_of_foreign_types_are_refusals():
    class Broken:
        def __iter__(self):
            raise OSError("no")

    class Number(float):
        def __float__(self):
            raise RuntimeError("no")

    with pytest.raises(InputError, match=r"names is .*, not a Broken"):
        lw.terms(mechanisms.chain(2), names=Broken())
    with pytest.raises(InputError, match="dt is a time above 0 s"):
        lw.rollout(mechanisms.chain(2), dt=Number(0.1))


@pytest.mark.parametrize("name", ["\x1b[2J", "\x1b]8;;http://x\x07y", "\x9b31m", "\u202eevil", "a\rb"], ids=ascii)
def test_names_in_messages_do_not_command_a_terminal(name) -> None:
    b = lw.Builder("robot")
    b.link(name, joint="revolute", axis="z", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    for ask in (b.build().link, b.build().frame, lw.load):
        with pytest.raises(LinkworkError) as found:
            ask(f"{name}?")
        assert str(found.value).replace("\n", "").isprintable()
    assert str(ConvergenceWarning(name)).isprintable()
