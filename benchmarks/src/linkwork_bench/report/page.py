"""The parts of a report, independent of its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from linkwork_bench.records import Record

PEER_NAMES = {
    "best": "Pinocchio",
    "wheel": "Pinocchio, pip's build",
    "python": "Pinocchio from Python",
    "mujoco": "MuJoCo",
}


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, its sort key, and its kind."""

    text: str = ""
    sort: float | None = None
    kind: str = ""
    """Of "", "ours", "paper", "ratio", "good", "bad", "open"."""
    hint: str = ""


@dataclass(frozen=True)
class Head:
    """A column: its title, and the method it belongs to if it does."""

    text: str
    method: str = ""
    number: bool = True


@dataclass(frozen=True)
class Row:
    """A row, and the robot it belongs to if it does."""

    cells: Sequence[Cell]
    robot: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table."""

    heads: Sequence[Head]
    rows: Sequence[Row]
    title: str = ""


@dataclass(frozen=True)
class Curve:
    """Points (x, y) of one method on one series of mechanisms."""

    method: str
    points: Sequence[tuple[float, float]]
    series: str = ""


@dataclass(frozen=True)
class Lines:
    """Curves over a quantity; axes are logarithmic where the data span decades."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Dot:
    """A figure on a row; hollow where it is not ours.

    `source` says where it comes from if it was not measured.
    """

    method: str
    value: float
    hollow: bool = False
    low: float | None = None
    high: float | None = None
    source: str = ""

    @property
    def label(self) -> str:
        """Its name in the legend."""
        return f"{self.method} ({self.source})" if self.source else self.method


@dataclass(frozen=True)
class Dots:
    """A row per case with a dot per figure; `log` unless figures may be negative."""

    title: str
    unit: str
    rows: Sequence[tuple[str, str, Sequence[Dot]]]
    """Robot, case, dots."""
    log: bool = True


@dataclass(frozen=True)
class Bars:
    """A bar per case and method, made of parts."""

    title: str
    unit: str
    rows: Sequence[tuple[str, str, str, Sequence[tuple[str, float]]]]
    """Robot, case, method, parts with their values."""


@dataclass(frozen=True)
class Section:
    """A heading with text, pictures and tables below it."""

    id: str
    title: str
    text: Sequence[str] = ()
    plots: Sequence[Lines | Dots | Bars] = ()
    sheets: Sequence[Sheet] = ()
    notes: Sequence[str] = ()
    level: int = 2
    """2 for a chapter, 3 for a section in one."""
    short: str = ""
    """The title in a table of contents, if it differs."""


@dataclass(frozen=True)
class Page:
    """The report: a title, facts about the run, a few figures that matter most, and sections."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    highlights: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """Figure and its label."""

    @property
    def methods(self) -> list[str]:
        found = [h.method for s in self.sections for sheet in s.sheets for h in sheet.heads if h.method]
        return sorted(set(found), key=str.lower)

    @property
    def robots(self) -> list[str]:
        found = [r.robot for s in self.sections for sheet in s.sheets for r in sheet.rows if r.robot]
        return sorted(set(found), key=str.lower)


def number(x: float | None) -> str:
    """A figure with three digits, or with all of them where it is a count."""
    if x is None:
        return ""
    if abs(x) >= 1000 and x == round(x):
        return f"{x:,.0f}".replace(",", "\u202f")
    if x == 0 or 1e-3 <= abs(x) < 1e6:
        return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"
    return f"{x:.1e}"


def us_cell(r: Record | None, kind: str = "") -> Cell:
    """A time with its interval as a hint."""
    if r is None:
        return Cell()
    s = r.summary
    return Cell(f"{s.median:.3g}", s.median, kind, f"{s.low:.3g} .. {s.high:.3g} (95 %)")
