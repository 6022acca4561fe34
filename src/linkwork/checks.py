"""Checks of the arguments of public functions: each is declared once, by its kind.

    @checked(model=MODEL, dt=POSITIVE, steps=optional(whole(1)), method=optional(NAME))
    def rollout(model, *, dt=1e-3, steps=None, method=None): ...

A kind gives a value back as the function wants it (a float, an array of its own, a tuple of names), or refuses it with
an error that says what was given and what is valid. Defaults are not checked. Numbers are
real and finite, and of a size with which products of a few of them stay so; strings are never numbers, truth values
are neither, and arrays have no masked entries.
"""

from __future__ import annotations

import os
import reprlib
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, unwrap
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from linkwork import interruptible
from linkwork.errors import InputError, LinkworkError, listing, not_found

LARGEST, SMALLEST = 1e30, 1e-30
"""Bounds of numbers that describe a mechanism, in SI units: the square of a square of them is still a number."""

MANY = 1_000_000
"""The most entries that a list of names, or of anything but numbers, may have."""

P = ParamSpec("P")
T = TypeVar("T")


class Refused(Exception):
    """A value that is not of a kind; the text says why, where that is not obvious."""


@dataclass(frozen=True)
class Kind:
    """What an argument must be ("a number above 0"), and its conversion: `take` raises `Refused`."""

    what: str
    take: Callable[[Any], Any] = field(repr=False)

    def checked(self, name: str, value: Any, given: Mapping[str, Any]) -> Any:
        """The value as functions take it; `given` are the arguments before it, already checked."""
        try:
            return self.take(value)
        except Refused as more:
            why = f" ({more})" if str(more) else ""
            raise InputError(f"{name} is {self.what}, not {shown(value)}{why}") from None


def checked(**kinds: Kind) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The function, whose arguments are of these kinds, checked in this order.

    One for `*names` is for each of them.
    """

    def declare(function: Callable[P, T]) -> Callable[P, T]:
        # read from the code: `inspect.signature` of all public functions takes 10 ms of every process
        code = unwrap(function).__code__
        count = code.co_argcount + code.co_kwonlyargcount
        places, rest = code.co_varnames[: code.co_argcount], ""
        if code.co_flags & CO_VARARGS:
            rest = code.co_varnames[count]
        unknown = {*kinds} - {*code.co_varnames[:count], rest}
        assert not unknown or code.co_flags & CO_VARKEYWORDS, unknown

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> T:
            given = {**dict(zip(places, args, strict=False)), **named}
            for n, kind in kinds.items():
                if n in given and n != rest:
                    given[n] = kind.checked(n, given[n], given)
            more = [kinds[rest].checked(rest, x, given) if rest in kinds else x for x in args[len(places) :]]
            taken = [given[n] for n in places[: len(args)]]
            try:
                return function(*taken, *more, **{n: given[n] for n in named})  # type: ignore[arg-type]
            except TypeError as problem:
                odd = [n for n in named if n not in kinds and n not in code.co_varnames[:count]]
                many = not rest and len(args) > len(places)
                if not odd and not many:
                    raise
                raise _explained(problem, function, odd, [n for n in kinds if odd or n not in places]) from None

        call.kinds = kinds  # type: ignore[attr-defined]
        return call

    return declare


def _explained(problem: TypeError, function: Callable[..., Any], odd: Sequence[str], named: Sequence[str]) -> TypeError:
    """Python's error about the arguments of a call, with what to do; `named` are those that have a name."""
    if odd:
        hint = str(not_found("argument", odd[0], named)).partition("'. ")[2]
    else:
        made = f"f = lw.{function.__name__}(model) makes a function that takes numbers, f(q, ...)"
        hint = f"{made}; o" if getattr(function, "is_factory", False) else "O"
        hint += f"thers are given by name: {listing(named)}"
    return TypeError(f"{problem}. {hint}")


def checked_class(**kinds: Kind) -> Callable[[type[T]], type[T]]:
    """The class, whose constructor takes arguments of these kinds."""

    def declare(cls: type[T]) -> type[T]:
        cls.__init__ = checked(**kinds)(cls.__init__)  # type: ignore[method-assign]
        return cls

    return declare


def shown(value: Any) -> str:
    """A value in a message: short, and safe to print whatever it is."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if value is None or isinstance(value, int | float | complex | str | bytes | list | tuple | dict | np.generic):
        return reprlib.repr(value)
    return f"a {type(value).__name__}"


def _nothing(value: Any) -> None:
    if value is not None:
        raise Refused


# numbers


def _real(value: Any) -> float:
    """A real number of any type but text and truth values; also in an array without axes."""
    if isinstance(value, np.ndarray) and value.shape == () and not np.ma.is_masked(value):
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise Refused
    try:
        return float(value)
    except OverflowError:
        raise Refused("too large") from None


def number(low: float = -LARGEST, high: float = LARGEST, what: str = "a finite number") -> Kind:
    """A real number from `low` to `high`."""

    def take(value: Any) -> float:
        x = _real(value)
        if not low <= x <= high:  # NaN is not, either
            odd = np.isfinite(x) and x != 0 and not SMALLEST <= abs(x) <= LARGEST
            raise Refused(f"from {SMALLEST:g} to {LARGEST:g} in size" if odd else "")
        return x

    return Kind(what, take)


NUMBER = number()
POSITIVE = number(SMALLEST, what="a finite number above 0")
TIME = number(SMALLEST, what="a time above 0 s")
NOT_NEGATIVE = number(0.0, what="a finite number of at least 0")


def whole(least: int = 0, most: int = 2**62, what: str = "") -> Kind:
    """A whole number from `least` to `most`."""

    def take(value: Any) -> int:
        if isinstance(value, np.ndarray) and value.shape == () and not np.ma.is_masked(value):
            value = value[()]
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise Refused
        if not least <= value <= most:
            raise Refused(f"at most {most}" if value > most else "")
        return int(value)

    return Kind(what or f"a whole number of at least {least}", take)


def _seed(value: Any) -> Any:
    if isinstance(value, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence):
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise Refused
    return int(value)


SEED = Kind("a whole number of at least 0, or a numpy.random.Generator", _seed)


# arrays


WEIGHTS = "active"
"""The one input of functions that may be truth values: which constraints hold."""


def real_array(value: Any, name: str = "") -> np.ndarray:
    """Anything array-like of real numbers, as an array of whatever real type; `Refused` otherwise.

    Truth values are no numbers, unless it is the input of that `name`.
    """
    truths = name == WEIGHTS
    try:
        if type(value) is not np.ndarray:
            refuse_entries(value, truths)
        x = interruptible.as_array(value)
    except Refused:
        raise
    except Exception as problem:  # raised by a foreign type's own conversion, or for lists of different lengths
        raise Refused(str(problem).partition(". The detected")[0]) from None
    if x.dtype.kind not in ("fiub" if truths else "fiu"):
        raise Refused("it is complex" if x.dtype.kind == "c" else f"its entries are of type {x.dtype}")
    return x


def bare_as_entry(x: Any, shape: Sequence[int]) -> Any:
    """A bare number as the only entry of an input of this shape; any other array as it is.

    For arrays of NumPy, JAX and PyTorch.
    """
    return x.reshape(1) if x.ndim == 0 and tuple(shape) == (1,) else x


BARE = frozenset((float, int, np.float64, np.float32, np.int64, np.int32))
"""Types of numbers, of which lists need no further look."""


def refuse_entries(value: Any, truths: bool) -> None:
    """Refuse what NumPy would convert to numbers: masked entries, and truth values unless `truths`."""
    if isinstance(value, list | tuple) or _is_sequence(type(value)):
        if not BARE.issuperset(map(type, value)):
            for x in value:
                refuse_entries(x, truths)
    elif "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise Refused("entries are masked; fill them first")
    elif not truths and _dtype(value).kind == "b":
        raise Refused("its entries are of type bool")


def _dtype(value: Any) -> np.dtype[Any]:
    own = getattr(value, "dtype", None)  # what JAX traces has no values, but a type
    return own if isinstance(own, np.dtype) else np.asarray(value).dtype


def _is_sequence(cls: type) -> bool:
    """Whether NumPy converts objects of this type entry by entry, as it does lists."""
    indexed = hasattr(cls, "__getitem__") and hasattr(cls, "__len__")
    whole = ("__array__", "__array_interface__", "__array_struct__", "keys")
    return indexed and not issubclass(cls, str | memoryview) and not any(hasattr(cls, n) for n in whole)


def _as_double(x: np.ndarray) -> np.ndarray:
    """A new array of float64; long doubles that are too large for it become infinite, without a warning."""
    if x.dtype.itemsize <= 8:
        return interruptible.copied(x, float)
    with np.errstate(over="ignore"):
        return interruptible.copied(x, float)


def finite_array(value: Any, size: float = LARGEST, name: str = "") -> np.ndarray:
    """A new array of float64 of finite numbers, none larger than `size`; `Refused` otherwise."""
    x = _as_double(real_array(value, name))
    if not interruptible.largest(x) <= size:  # NaN is not, either
        raise Refused(
            f"entries are larger than {size:g}" if interruptible.all_finite(x) else "entries are NaN or infinite"
        )
    return x


def array(*shape: int, what: str = "") -> Kind:
    """Finite numbers in an array of this shape."""

    def take(value: Any) -> np.ndarray:
        x = finite_array(value)
        if x.shape != shape:
            raise Refused(f"its shape is {x.shape}")
        return x

    words = f"{shape[0]} finite numbers" if len(shape) == 1 else f"a matrix of {' x '.join(map(str, shape))} numbers"
    return Kind(what or words, take)


@dataclass(frozen=True)
class Sized(Kind):
    """Numbers for each coordinate of a model: of the argument `model`, or of the model whose method it is.

    `size` names their number ("nq", "nv"). With `batch` they may also be rows; `loose` ones are any finite numbers,
    as in the middle of a computation: neither of a size that makes sense, nor quaternions of length one.
    """

    size: str = "nq"
    batch: bool = False
    loose: bool = False

    def checked(self, name: str, value: Any, given: Mapping[str, Any]) -> Any:
        model = given.get("model", given.get("self"))
        if model is None:
            return value
        n = getattr(model, self.size)
        try:
            x = finite_array(value, float(np.finfo(float).max) if self.loose else LARGEST)
        except Refused as why:
            raise InputError(f"{name} is not an array of finite numbers: {str(why) or shown(value)}") from None
        if x.ndim not in ((1, 2) if self.batch else (1,)) or x.shape[-1] != n:
            needs = f"({n},) or (batch, {n})" if self.batch else f"({n},)"
            raise InputError(f"{name} has shape {x.shape}; this model needs {needs}")
        if self.size == "nq" and not self.loose:
            model.check_position(x)
        return x


POSITION, VELOCITY = Sized("a configuration", _nothing, "nq"), Sized("a velocity", _nothing, "nv")
POSITIONS, VELOCITIES = Sized("positions", _nothing, "nq", True), Sized("velocities", _nothing, "nv", True)
ANY_POSITIONS, ANY_VELOCITIES = (Sized("finite numbers", _nothing, size, True, loose=True) for size in ("nq", "nv"))


def _matrix(value: Any) -> Any:
    """Of any backend; numbers are finite, symbols may be anything."""
    if isinstance(value, np.ndarray | list | tuple | memoryview):
        value = finite_array(value, float(np.finfo(float).max))
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise Refused
    return value


MATRIX = Kind("a matrix (two axes) of a backend", _matrix)


def _numbers(value: Any) -> np.ndarray:
    x = finite_array(value)
    if x.ndim != 1:
        raise Refused(f"its shape is {x.shape}")
    return x


NUMBERS = Kind("a list of finite numbers", _numbers)
ARRAY = Kind("an array of finite numbers", finite_array)
MODES = Kind("an array of weights, or of truth values", lambda value: finite_array(value, name=WEIGHTS))
ANY_ARRAY = Kind("an array of finite numbers", lambda value: finite_array(value, float(np.finfo(float).max)))


# words, choices, objects


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise Refused
    return bool(value)


FLAG = Kind("True or False", _flag)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("it has characters that no file can hold") from None
    return str.__str__(value)


NAME = Kind("a name (str)", _name)


def choice(what: str, valid: Iterable[str]) -> Kind:
    """One of these names; `what` says of what, as in "no integrator called"."""
    names = tuple(valid)

    def take(value: Any) -> str:
        found = _name(value)
        if found not in names:
            raise not_found(what, found, names)
        return found

    return Kind(f"one of {', '.join(names)}", take)


def several(kind: Kind, what: str = "") -> Kind:
    """Any number of things of a kind, as a tuple; a text is not one of its letters."""

    def take(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise Refused
        try:
            entries = list(islice(value, MANY + 1))
        except TypeError:  # an array without axes, say
            raise Refused from None
        if len(entries) > MANY:
            raise Refused(f"at most {MANY} of them")
        return tuple(kind.checked(f"entry {k}", x, {}) for k, x in enumerate(entries))

    return Kind(what or f"a list, each entry {kind.what}", take)


def listed(kind: Kind) -> Kind:
    """The same as a list, to which more is added."""
    take = several(kind).take
    return Kind(f"a list, each entry {kind.what}", lambda value: list(take(value)))


def _names(value: Any) -> tuple[str, ...]:
    taken: tuple[str, ...] = several(NAME).take((value,) if isinstance(value, str) else value)
    return taken


NAMES = Kind("a list of names", _names)
"""A tuple; one name serves as a list of it."""


def mapping(kind: Kind, what: str = "") -> Kind:
    """From names to things of a kind, as a dictionary."""

    def take(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Refused
        return {NAME.checked("a key", n, {}): kind.checked(f"what '{n}' stands for", x, {}) for n, x in value.items()}

    return Kind(what or f"a dictionary from names to what is {kind.what}", take)


def optional(kind: Kind) -> Kind:
    """Or None."""
    return either(kind, NOTHING)


NOTHING = Kind("None", _nothing)


@dataclass(frozen=True)
class Either(Kind):
    """The first of several kinds that takes the value."""

    kinds: tuple[Kind, ...] = ()

    def checked(self, name: str, value: Any, given: Mapping[str, Any]) -> Any:
        refusals: list[LinkworkError] = []
        for kind in self.kinds:
            try:
                return kind.checked(name, value, given)
            except LinkworkError as refusal:
                refusals.append(refusal)
        specific = [r for r in refusals if not isinstance(r, InputError)]  # a choice that lists what is near
        if specific or len(refusals) == 1 + any(kind is NOTHING for kind in self.kinds):
            raise (specific or refusals)[0]
        raise InputError(f"{name} is {self.what}, not {shown(value)}")


def either(*kinds: Kind) -> Kind:
    """Any of these kinds."""
    return Either(" or ".join(k.what for k in kinds), _nothing, kinds)


def instance(cls: type | tuple[type, ...], what: str) -> Kind:
    """An object of a class."""

    def take(value: Any) -> Any:
        if not isinstance(value, cls):
            raise Refused
        return value

    return Kind(what, take)


def like(what: str, *attributes: str) -> Kind:
    """An object with these attributes: of a class of a layer above, or of another library."""

    def take(value: Any) -> Any:
        if isinstance(value, type) or not all(
            hasattr(type(value), n) or n in getattr(value, "__dict__", ()) for n in attributes
        ):
            raise Refused
        return value

    return Kind(what, take)


def _function(value: Any) -> Any:
    if not callable(value):
        raise Refused
    return value


FUNCTION = Kind("a function", _function)
CONSTRAINT = like(
    "a constraint, such as lw.point(frame) or lw.Coupling(...)",
    "rows",
    "check",
    "touches",
    "evaluate",
    "position_error",
    "renamed",
)


# files


def _path(value: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise Refused
    text = os.fsdecode(os.fspath(value))
    if not text or "\0" in text:
        raise Refused
    return Path(text)


PATH = Kind("a path (str or os.PathLike)", _path)


def written(path: object, write: Callable[[], T]) -> T:
    """The result of `write`, which writes to the path; an error says why it could not."""
    try:
        return write()
    except LinkworkError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a suffix that a library does not know
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(f"'{path}' cannot be written: {reason}; give a path in a folder that exists") from None


def saved(path: Path, write: Callable[[Path], object]) -> None:
    """The file that `write` makes of a path it is given, whole or not at all.

    It is a path beside this one, whose file takes its place at the end; where that is not reached, because the disk is
    full or by an interrupt, nothing is left. Pipes and devices are written to as they are.
    """
    to = path.resolve()
    if to.exists() and not to.is_file():
        write(to)
        return
    part = to.with_name(f".{os.getpid()}.{to.name}")
    try:
        write(part)
        if to.exists():
            shutil.copymode(to, part)
        os.replace(part, to)
    finally:
        part.unlink(missing_ok=True)


def saved_text(path: Path, text: str) -> None:
    """The same of a text."""
    saved(path, lambda part: part.write_text(text, encoding="utf-8"))


def check_memory(what: str, entries: int, remedy: str) -> None:
    """Refuse results that this machine cannot hold: `entries` numbers of eight bytes."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**36
    if 8 * entries > size:
        raise InputError(
            f"{what} would take {8 * entries / 1e9:.3g} GB, and this machine has {size / 1e9:.3g} GB; {remedy}"
        )
