"""Every error that Linkwork raises on purpose.

Messages say what was given, what is valid and what to do.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np


def printable(text: str) -> str:
    """The text with what is no character of a line escaped: names from files must not command a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)


class Printable(BaseException):
    """A message that is safe to print, whatever names are in it."""

    def __str__(self) -> str:
        return printable(super().__str__())


class LinkworkError(Printable, Exception):
    """Base of all errors below: catch this to catch them all.

    Examples:
        >>> try:
        ...     lw.load("no_such_robot.urdf")
        ... except lw.LinkworkError as error:
        ...     print(type(error).__name__)
        LoadError
    """


class ModelError(LinkworkError):
    """An invalid mechanism: two parents, a cycle, an inertia that no body can have."""


class LoadError(ModelError):
    """A file that cannot be read as a robot; names the file, the element and the remedy."""


class NotFound(LinkworkError, KeyError):
    """An unknown name; the message lists the valid ones."""

    def __str__(self) -> str:
        return printable(str(self.args[0])) if self.args else ""


class InputError(LinkworkError, ValueError):
    """An argument with the wrong shape, type or value."""


class UnsupportedError(LinkworkError):
    """A method that cannot handle this model; the message names those that can."""


class SingularError(LinkworkError):
    """Equations that a method cannot solve: dependent rows or a singular posture, where it takes neither."""


class ConvergenceWarning(Printable, UserWarning):
    """Results of an iterative method that have not converged: `result.converged` says which."""


class StepError(LinkworkError):
    """A motion that gains energy without work: its time steps are too long for its speed."""


class StepWarning(Printable, UserWarning):
    """A motion whose energy is off by some percent: its time steps are long for its speed."""


class AssemblyError(LinkworkError):
    """Loops that stay open: names and errors (m, rad) in `gaps`, largest first; `q` is the best found.

    Examples:
        >>> torn = four_bar().with_constraints(lw.Distance("crank", "world", length=9.0))
        >>> try:
        ...     lw.assemble(torn, [0.1, 0.2, 0.3], attempts=1)
        ... except lw.AssemblyError as error:
        ...     print(len(error.gaps) > 0)
        True
    """

    def __init__(self, message: str, q: Any = None, gaps: tuple[tuple[str, float], ...] = ()) -> None:
        super().__init__(message)
        self.q, self.gaps = q, gaps


class ActuationError(LinkworkError):
    """Motors that cannot cause a motion: too few, or accelerations that need others.

    Examples:
        >>> try:
        ...     lw.constrained_inverse_dynamics(four_bar(), actuated=[])
        ... except lw.ActuationError:
        ...     print("no motor can move it")
        no motor can move it
    """


class MissingExtra(LinkworkError, ImportError):
    """An optional dependency that is not installed; the message names the extra."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        if "KeyboardInterrupt" in f"{sys.exception()!r} {getattr(sys.exception(), '__cause__', None)!r}":
            raise KeyboardInterrupt from None  # of extension modules an interrupt is an ImportError
        super().__init__(f"{purpose} needs the package '{package}': pip install 'linkwork[{extra}]'")


class KernelError(LinkworkError):
    """A program that cannot be compiled, or a call that its kernel cannot serve."""


class ClusterError(LinkworkError):
    """A cluster that cannot be used: no scheduler, no workers, other versions there; says what to start."""


class CompilationWarning(Printable, UserWarning):
    """A function that will take minutes to compile; the message says what is less work."""


class UnmodelledWarning(Printable, UserWarning):
    """Something of the model that a function leaves out; the message counts it and says which has it."""


class OpenLoopWarning(Printable, UserWarning):
    """A motion that begins with loops open and keeps them so, or whose overconstrained loops drift open."""


class CacheWarning(Printable, UserWarning):
    """A cache that is not used, because others can write to it; the message says what to change."""


def listing(names: Iterable[str], limit: int = 12) -> str:
    """The names, quoted and comma-separated, cut after `limit` of them."""
    names = list(names)
    more = f", ... ({len(names)} in all)" if len(names) > limit else ""
    return ", ".join(f"'{n}'" for n in names[:limit]) + more if names else "(none)"


def not_found(kind: str, name: object, valid: Iterable[str]) -> NotFound:
    """The error for an unknown name: near misses first, and names of which it is a part, in any case."""
    from difflib import get_close_matches

    valid = list(valid)
    folded = {v.casefold(): v for v in reversed(valid)}
    given = str(name).casefold()
    longer = sorted((v for v in folded if len(given) > 2 and given in v), key=len)
    near = [folded[v] for v in dict.fromkeys([*get_close_matches(given, folded, n=3), *longer])][:3]
    hint = f" Did you mean {listing(near)}?" if near else ""
    return NotFound(f"no {kind} called '{name}'.{hint} Valid: {listing(valid)}")


def users_level() -> int:
    """The `stacklevel` with which a warning of the calling function names a line of the user's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "linkwork":
        frame, level = frame.f_back, level + 1
    return level


def warn_unsolved(function: str, converged: np.ndarray | bool) -> None:
    """Warn, once per place in the user's code as Python does, that a contact problem is not solved."""
    failed = np.size(converged) - np.count_nonzero(converged)
    where = f" in {failed} of {np.size(converged)} states" if np.ndim(converged) else ""
    warnings.warn(
        f"{function}: the contact problem is not solved{where} (see result.converged and result.residual): take a "
        "shorter dt, or fewer contacts on one body",
        ConvergenceWarning,
        stacklevel=users_level(),
    )


def warn_many(function: str, contacts: int) -> None:
    """Warn, once per place in the user's code as Python does, that so many contacts take long to compile."""
    warnings.warn(
        f"{function}: {contacts} candidates for contact take a minute or more to compile, once. Name the links that "
        "may touch, lw.contacts(model, [...]), or take backend='numpy', which compiles nothing",
        CompilationWarning,
        stacklevel=users_level(),
    )


def warn_unconverged(function: str, method: str, converged: np.ndarray) -> None:
    """Warn, once per place in the user's code as Python does, that results have not converged."""
    failed = np.size(converged) - np.count_nonzero(converged)
    where = f" in {failed} of {len(converged)} states" if np.ndim(converged) else ""
    warnings.warn(
        f"{function} by {method} has not converged{where} (see result.converged and result.residual): the rows "
        "contradict each other, or are so near to redundant that 1e-6 of their scale decides. Close the loops "
        "(lw.assemble, lw.project_velocity), remove redundant rows, or use method='kkt'",
        ConvergenceWarning,
        stacklevel=users_level(),
    )


def warn_violated(function: str, method: str, bound: float, converged: np.ndarray | bool) -> None:
    """Warn, once per place in the user's code as Python does, that steps of a motion violate constraints."""
    failed = np.size(converged) - np.count_nonzero(converged)
    where = f" of {failed} of {np.size(converged)} states" if np.ndim(converged) else ""
    warnings.warn(
        f"{function} by {method} has not converged: in a step{where}, constraint rows are violated by more than "
        f"{bound:g} of their terms. The motion comes near a singular posture, or rows nearly depend on each other, and "
        "from there it may be off; take iterations=3 or more, float64, or remove redundant rows",
        ConvergenceWarning,
        stacklevel=users_level(),
    )
