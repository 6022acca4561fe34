"""A trajectory as a figure: one panel for each table and unit, events as marked lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.errors import MissingExtra
from linkwork.simulation.records.trajectory import TITLES

if TYPE_CHECKING:
    from linkwork.simulation.records.trajectory import Trajectory

PER_COLUMN, COLUMNS = 12, 3
"""Names in one column of a legend, and columns: longer legends are unreadable."""

LINES = 30
"""Events up to which each has a line through all panels; more would hide the curves, and have their marks only."""

MARKS = {"touchdown": "v", "lift-off": "^", "bounce": "d"}


def matplotlib_or_error() -> Any:
    """The module that draws."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("matplotlib", "plot", "plotting a trajectory") from None
    return plt


def figure_of(run: Trajectory, tables: Sequence[str], names: Sequence[str] | None) -> Any:
    """The figure; see `Trajectory.plot`."""
    plt = matplotlib_or_error()
    panels = [p for table in tables for p in _panels(run, table, names)]
    size = (10, 0.8 + 2.1 * max(len(panels), 1))
    figure, axes = plt.subplots(max(len(panels), 1), 1, sharex=True, squeeze=False, figsize=size, layout="constrained")
    figure.suptitle(run.model_name, fontsize=12, fontweight="bold")
    for axis, (table, unit, shown) in zip(axes[:, 0], panels, strict=False):
        _style(axis)
        colours = plt.get_cmap("tab10" if len(shown) <= 10 else "turbo")
        for k, n in enumerate(shown):
            colour = colours(k) if len(shown) <= 10 else colours(0.05 + 0.9 * k / (len(shown) - 1))
            drawn = "steps-post" if table in ("tau", "active") else "default"
            axis.plot(run.t, run.column(table, n), label=n, linewidth=1.3, color=colour, drawstyle=drawn)
        _label(axis, table, unit)
        _legend(axis, len(shown))
        for event in run.events if len(run.events) <= LINES else ():
            axis.axvline(event.t, color="0.75", linewidth=0.8, linestyle=":", zorder=0)
    _events(run, axes[0, 0])
    axes[-1, 0].set_xlabel("time $t$ [s]")
    if len(run) > 1:
        axes[-1, 0].set_xlim(run.t[0], run.t[-1])
    return figure


def _panels(run: Trajectory, table: str, names: Sequence[str] | None) -> list[tuple[str, str, list[str]]]:
    """(table, unit, columns) of every panel, in the order in which the units come up."""
    units = run.units.get(table) or ("",) * len(run.names[table])
    found: dict[str, list[str]] = {}
    for n, unit in zip(run.names[table], units, strict=True):
        if names is None or n in names:
            found.setdefault(unit, []).append(n)
    return [(table, unit, shown) for unit, shown in found.items()]


def _style(axis: Any) -> None:
    axis.grid(True, color="0.92", linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8)


def _label(axis: Any, table: str, unit: str) -> None:
    symbol = {"q": "$q$", "v": "$v$", "tau": r"$\tau$", "lam": r"$\lambda$"}.get(table, "")
    title = {("q", "1"): "orientation", ("q", "rad"): "angle"}.get((table, unit), TITLES[table])
    shown = f" [{unit}]" if unit not in ("", "1") else ""
    axis.set_ylabel(f"{title} {symbol}{shown}".replace("  ", " ").strip(), fontsize=9)
    if table == "active":
        axis.set_yticks([0, 1])
        axis.set_ylim(-0.1, 1.1)


def _legend(axis: Any, count: int) -> None:
    """Beside the panel; as many columns as needed, or how many lines there are if that is too many."""
    if count == 0:
        return
    if count > PER_COLUMN * COLUMNS:
        axis.text(1.01, 1.0, f"{count} columns", transform=axis.transAxes, va="top", fontsize=8, color="0.4")
        return
    columns = int(np.ceil(count / PER_COLUMN))
    axis.legend(
        loc="upper left",
        bbox_to_anchor=(1.0, 1.02),
        borderaxespad=0.3,
        frameon=False,
        fontsize=7,
        ncols=columns,
        handlelength=1.2,
        labelspacing=0.25,
        columnspacing=1.0,
    )


def _events(run: Trajectory, axis: Any) -> None:
    """A mark for every event above the first panel, and what the marks mean."""
    if not run.events:
        return
    kinds = list(dict.fromkeys(e.kind for e in run.events))
    for kind in kinds:
        at = [e.t for e in run.events if e.kind == kind]
        axis.plot(
            at,
            np.full(len(at), 1.03),
            MARKS.get(kind, "o"),
            color="0.35",
            markersize=4,
            clip_on=False,
            transform=axis.get_xaxis_transform(),
        )
    signs = {"v": "▼", "^": "▲", "d": "◆"}
    text = "   ".join(f"{signs.get(MARKS.get(k, ''), '●')} {k}" for k in kinds)
    axis.text(0.0, 1.07, text, transform=axis.transAxes, fontsize=7, color="0.35")
