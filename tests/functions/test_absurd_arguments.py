"""Absurd arguments: every argument of everything public, replaced by what nobody means.

A call works, with a result that is made of numbers, or ends with an error of ours; and it does so soon.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from inspect import signature
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import linkwork as lw
from linkwork import joints
from linkwork.errors import LinkworkError
from linkwork.robots import mechanisms
from public_calls import ATTACKED_ELSEWHERE, Call, arm, public_calls

PLAIN_JOINTS = ("KINDS", "SIMPLE", "Joint", "Fixed", "Free", "Planar", "Spherical", "SphericalZYX", "Translation")
"""Names of linkwork.joints that take no arguments, or that are attacked elsewhere."""

SECONDS = 5.0
"""A call takes no longer, whatever it is given."""


SLOW = ("learn.mujoco.rollout", "write_html live", "ppo.train", "view", "identify")
"""Calls that take half of the time of all, as most of what they are given is right: one attack in five is tried here on
each argument. This file as a program tries all."""


class Text(str):
    """A name all the same."""


class Odd:
    """Answers nothing as it should."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __array__(self, *args: Any, **named: Any) -> np.ndarray:
        raise RuntimeError("no")

    def __float__(self) -> float:
        raise RuntimeError("no")


class Silent:
    """Has no attribute, not even a class that could be asked for."""

    def __getattribute__(self, name: str) -> Any:
        raise OSError("no")


class Shapeless(np.ndarray):
    """An array, but for that."""

    @property
    def shape(self) -> Any:
        raise KeyError("no")


class Endless(list[float]):
    """A list that cannot be counted."""

    def __len__(self) -> int:
        raise KeyError("no")

    __iter__ = None  # type: ignore[assignment]


class Unending:
    """A sequence without an end, whatever it says of its length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> float:
        return 1.0


class Bottomless(Unending):
    """Each of its entries is itself."""

    def __getitem__(self, place: int) -> Any:
        return self


def multiplied() -> list[Any]:
    """Some lists that are 2^30 numbers to whoever looks through them."""
    x: list[Any] = [0.1]
    for _ in range(30):
        x = [x, x]
    return x


class Late(BaseException):
    """Nothing that a call could take for an error of what it was given."""


NOT_NUMBERS: dict[str, Callable[[], Any]] = {
    "NaN": lambda: np.nan,
    "infinity": lambda: np.inf,
    "-infinity": lambda: -np.inf,
    "complex": lambda: 1 + 2j,
    "text": lambda: "x",
    "a number as text": lambda: "1",
    "empty text": lambda: "",
    "bytes": lambda: b"x",
    "an object": object,
    "odd": Odd,
    "silent": Silent,
    "a function": lambda: lambda *args: 1,
    "a class": lambda: dict,
    "a link": lambda: arm().links[1],
    "a generator": count,
    "a dictionary": dict,
    "a set": lambda: {1.0},
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "a module": lambda: np,
    "a date": lambda: np.datetime64("2020-01-01"),
    "NaNs": lambda: np.full(3, np.nan),
    "surrogate": lambda: "\ud800",
    "NUL": lambda: "a\0b",
    "an array of text": lambda: np.array(["1", "2"]),
    "an array of objects": lambda: np.array([1.0, None, 2.0]),
    "a masked number": lambda: np.ma.masked,
    "complex array": lambda: np.ones(2) * 1j,
    "a truth value": lambda: np.True_,
    "truth values": lambda: np.array([True, False, True]),
    "a duration": lambda: np.timedelta64(1, "s"),
    "a record": lambda: np.zeros(3, [("x", float)]),
    "bytes as a memoryview": lambda: memoryview(b"abc").cast("c"),
    "None in an array without axes": lambda: np.array(None),
    "a fraction": lambda: Fraction(1, 2),
    "a decimal": lambda: Decimal("0.5"),
    "a sequence without an end": lambda: Unending(-1),
    "a sequence that is too long": lambda: Unending(10**9),
    "a sequence without a bottom": lambda: Bottomless(2),
    "lists that multiply": multiplied,
}
"""Never taken where the valid value is a number, or an array of them."""

ABSURD: dict[str, Callable[[], Any]] = {
    **NOT_NUMBERS,
    "None": lambda: None,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1e300": lambda: 1e300,
    "-1e300": lambda: -1e300,
    "1e-300": lambda: 1e-300,
    "10**30": lambda: 10**30,
    "-10**30": lambda: -(10**30),
    "10**400": lambda: 10**400,
    "2**62": lambda: 2**62,
    "0.5": lambda: 0.5,
    "True": lambda: True,
    "a float32": lambda: np.float32(0.5),
    "an array without axes": lambda: np.array(0.5),
    "an empty list": list,
    "an empty array": lambda: np.zeros(0),
    "1 x 1": lambda: np.ones((1, 1)),
    "a long list": lambda: [0.1] * 101,
    "many axes": lambda: np.zeros((1,) * 9),
    "a list of names": lambda: ["a", "b"],
    "a list of None": lambda: [None],
    "huge numbers": lambda: [10**30] * 3,
    "a str subclass": lambda: Text("x"),
    "a model": arm,
    "a range": lambda: range(3),
    "long text": lambda: "x" * 10_000,
    "bools": lambda: [True, False, True],
    "an array whose shape is an error": lambda: np.zeros(3).view(Shapeless),
    "a list whose length is an error": lambda: Endless([0.0, 0.0, 0.0]),
}


def variants(valid: Any) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """What replaces a valid value: its name, a maker, and whether it must be refused."""
    numeric = isinstance(valid, int | float | np.ndarray) and not isinstance(valid, bool)
    numeric |= isinstance(valid, list | tuple) and len(valid) > 0 and isinstance(valid[0], int | float)
    for name, make in ABSURD.items():
        yield name, make, numeric and name in NOT_NUMBERS
    if numeric and np.ndim(valid) and np.size(valid):
        x = np.array(valid, dtype=float)

        def spoilt(value: Any, dtype: Any = float) -> np.ndarray:
            y = x.astype(dtype)
            y.reshape(-1)[0] = value
            return y

        yield "masked", lambda: np.ma.array(x, mask=spoilt(1) == 1), True
        yield "a list of masked arrays", lambda: list(np.ma.array([x], mask=True)), True
        yield "in text", lambda: x.astype(str), True
        yield "as objects", lambda: x.astype(object), True
        yield "one NaN", lambda: spoilt(np.nan), True
        yield "one infinity", lambda: spoilt(np.inf), True
        yield "complex", lambda: x.astype(complex), True
        yield "all truth values", lambda: x.astype(bool), True
        yield "a truth value among numbers", lambda: spoilt(True, object).tolist(), True
        yield "dates", lambda: x.astype("M8[s]"), True
        yield "durations", lambda: x.astype("m8[s]"), True
        yield "a matrix", lambda: x if x.ndim > 2 else np.asmatrix(x), False
        yield "read-only", lambda: np.broadcast_to(x, x.shape), False
        yield "backwards", lambda: x[..., ::-1], False
        yield "in the other byte order", lambda: x.astype(x.dtype.newbyteorder()), False
        yield "a memoryview", lambda: memoryview(np.ascontiguousarray(x)), False
        yield "long doubles", lambda: x.astype(np.longdouble), False
        yield "unaligned", lambda: np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(float).reshape(x.shape), False
        yield "two rows", lambda: np.stack([x, x]), False
        yield "no rows", lambda: np.stack([x, x])[:0], False
        yield "a longer one", lambda: np.concatenate([x, x[:1]]), False
        yield "an axis more", lambda: x[None, None, None], False
        yield "as float32", lambda: x.astype(np.float32), False


def excused(call: Call, argument: str, name: str) -> bool:
    """What is right after all: "x" is an axis, and errors of the user's own functions are the user's own."""
    if name == "text" and argument in ("axis", "second"):
        return True
    if call.name == "Limits" and "infinity" in name:
        return True
    if call.name == "Kernel()" and name.startswith(("NaN", "one ")):
        return True  # below the functions: it computes with what it is given
    if argument == "active" and "truth value" in name:
        return True  # contacts are on, or off
    return argument == "controller" and name == "a class"


def hollow(result: Any, depth: int = 0) -> bool:
    """Whether a result has a number in it that is none."""
    if isinstance(result, float | np.floating | np.ndarray):
        x = np.asarray(result)
        return x.dtype.kind == "f" and bool(np.isnan(x).any())
    if depth > 6 or isinstance(result, str | bytes):
        return False
    if is_dataclass(result) and not isinstance(result, type):
        return any(hollow(getattr(result, f.name), depth + 1) for f in fields(result))
    if isinstance(result, Mapping):
        return any(hollow(x, depth + 1) for x in result.values())
    if isinstance(result, list | tuple):
        return any(hollow(x, depth + 1) for x in result)
    return False


@contextmanager
def bounded() -> Iterator[None]:
    """Ended after SECONDS."""

    def late(*_: Any) -> None:
        raise Late(f"longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fault(call: Call, argument: str, make: Callable[[], Any], refused: bool) -> str | None:
    """What is wrong with the way in which a call takes this, None if nothing."""
    try:
        with bounded():
            result = call(**{argument: make()})
    except LinkworkError as problem:
        return None if str(problem) else "an error without a word"
    except TypeError as problem:
        own = "argument" in str(problem) and str(problem).split("(")[0].isidentifier()
        return None if own else f"TypeError: {problem}"
    except BaseException as problem:
        return f"{type(problem).__name__}: {problem}"[:200]
    if refused:
        return "taken"
    return "a result with NaN" if hollow(result) else None


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> Iterator[dict[str, Call]]:
    """All of them, in a folder of their own: "x" is a path, too, and `write_html` writes there."""
    before = set(Path.cwd().iterdir())
    with chdir(folder := tmp_path_factory.mktemp("absurd")):
        found = list(public_calls(folder))
        assert len({c.name for c in found}) == len(found)
        yield {c.name: c for c in found}
    assert set(Path.cwd().iterdir()) <= before, "a call wrote into the folder that the tests were started in"


def test_everything_public_is_attacked(calls) -> None:
    named = {n.partition(".")[0] for n in calls} | ATTACKED_ELSEWHERE
    assert set(lw.__all__) <= named
    assert set(mechanisms.__all__) <= named
    assert {n for n in joints.__all__ if n not in PLAIN_JOINTS} <= named


def test_every_argument_is_attacked(calls) -> None:
    """A function that gets a new argument gets an attack on it."""
    for name in [n for n in (*lw.__all__, *mechanisms.__all__) if n not in ATTACKED_ELSEWHERE]:
        function = getattr(lw, name, None) or getattr(mechanisms, name)
        given = {a for c in calls.values() if c.name.startswith(name) for a in c.arguments}
        plain = [
            n for n, p in signature(function).parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        assert {n for n in plain if not n.startswith("_")} <= given | {"self"}, name


def test_every_argument_is_declared() -> None:
    """By its kind, above the function: `checks` does the rest."""
    for name in [n for n in (*lw.__all__, *mechanisms.__all__) if n not in ATTACKED_ELSEWHERE]:
        function = getattr(lw, name, None) or getattr(mechanisms, name)
        parameters = signature(function).parameters
        declared = getattr(function.__init__ if isinstance(function, type) else function, "kinds", {})
        missing = [
            n
            for n, p in parameters.items()
            if p.kind is not p.VAR_KEYWORD and not n.startswith("_") and n not in declared
        ]
        assert not missing, f"{name}: {missing}"


def test_valid_calls_work(calls) -> None:
    for call in calls.values():
        with bounded():
            assert not hollow(call())


def attacked(call: Call, share: int = 1) -> Iterator[tuple[str, str | None]]:
    """Every attack on a call, or one in so many, others for each argument; and what is wrong with its end."""
    for argument, valid in call.arguments.items():
        first = crc32(f"{call.name} {argument}".encode())
        for k, (name, make, refused) in enumerate(variants(valid), first):
            if k % share == 0 and not excused(call, argument, name):
                yield f"{call.name}({argument}={name})", fault(call, argument, make, refused)


def test_absurd_arguments_end_well(calls, capsys) -> None:
    """Every second attack; this file as a program tries all."""
    tried, wrong = 0, []
    absent = set() if find_spec("torch") else {"ppo.train"}
    assert {*SLOW} - absent <= {*calls}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = (end for n, call in calls.items() for end in attacked(call, 5 if n in SLOW else 2))
        for attack, found in ends:
            tried += 1
            if found is not None:
                wrong.append(f"{attack}: {found}")
    assert not wrong, f"{len(wrong)} of {tried}\n" + "\n".join(wrong[:200])
    assert tried > 30_000


if __name__ == "__main__":  # the same as a list, for counting
    import os
    import tempfile
    import time
    from collections import Counter

    tried, kinds, slow = 0, Counter[str](), []
    started = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder := Path(tempfile.mkdtemp()))
        for call in public_calls(folder):
            begun = time.time()
            for attack, found in attacked(call):
                tried += 1
                if found is not None:
                    kinds[found.split(":")[0]] += 1
                    print(ascii(f"{attack}: {found}"))
            slow.append((time.time() - begun, call.name))
    print(sorted(slow)[-12:])
    sys.exit(f"{sum(kinds.values())} of {tried} calls, {time.time() - started:.1f} s: {dict(kinds)}")
