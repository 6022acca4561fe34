"""Charts by matplotlib as SVG text: curves, rows of dots, stacked bars.

Colours are drawn as stand-ins and become CSS variables (theme.py); artists are tagged with their method and robot, so
that pages can hide them, and show their figure as a tooltip.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import accumulate, pairwise
from math import floor, log10
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from linkwork_bench.report.page import Bars, Dot, Dots, Lines, number
from linkwork_bench.report.theme import BY_SYSTEM, LIGHT, NAMES

STAND_INS = {name: f"#0a0a{k:02x}" for k, name in enumerate((*(f"c{k}" for k in range(len(LIGHT))), *NAMES))}
TEXT, SOFT, LINE, STRIPE, BACK = (STAND_INS[name] for name in NAMES)
MARKERS, DASHES = ("o", "s", "^", "D"), ("-", "--", ":", "-.", (0, (8, 2)))
WIDTH, SMALL, NORMAL, WIDEST = 900.0, 11.0, 12.0, 40
"""In pixels; and letters of a label that are shown."""
LETTER = 6.7
"""Pixels that a letter of a label takes, on average and no less."""

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "linkwork",
    "font.size": SMALL,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.dpi": 72,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "text.parse_math": False,
    "legend.frameon": False,
}


def draw(plot: Lines | Dots | Bars, title: bool = True) -> str:
    """The plot as an `svg` element; its title is left out where a heading says it."""
    with mpl.rc_context(STYLE):
        chart = Chart(plot.title if title else "")
        if isinstance(plot, Lines):
            _lines(chart, plot)
        elif isinstance(plot, Dots):
            _dots(chart, plot)
        else:
            _bars(chart, plot)
        return chart.svg(plot.title)


def standalone(svg: str) -> str:
    """An SVG file of its own, dark where its reader is."""
    head, _, rest = svg.partition(">")
    return f"{head}><style>{BY_SYSTEM}</style>{rest}\n"


class Chart:
    """A figure of one pair of axes, and what its marked artists belong to."""

    def __init__(self, title: str) -> None:
        self.figure = Figure()
        self.title = title
        self.top = 30.0 if title else 10.0
        self._marks: list[str] = []
        self._methods: dict[str, int] = {}

    def axes(self, left: float, right: float, top: float, inner: float, bottom: float) -> Axes:
        """Axes `inner` pixels high, with these margins around them."""
        height = top + inner + bottom
        self.figure.set_size_inches(WIDTH / 72, height / 72)
        self.figure.text(4 / WIDTH, 1 - 18 / height, self.title, size=13, weight="bold")
        ax: Axes = self.figure.add_axes((left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, inner / height))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        return ax

    def colour(self, method: str) -> str:
        return STAND_INS[f"c{self._index(method) % len(LIGHT)}"]

    def marker(self, method: str, hollow: bool = False) -> dict[str, Any]:
        colour = self.colour(method)
        shape = MARKERS[self._index(method) // 2 % len(MARKERS)]
        return {"marker": shape, "color": colour, "mfc": BACK if hollow else colour, "mew": 1.8}

    def mark(self, artist: Artist, hint: str = "", *, method: str = "", robot: str = "") -> None:
        """Tag an artist with a method and a robot, and a tooltip."""
        data = {"data-method": method, "data-robot": robot}
        attributes = "".join(f' {name}="{escape(text)}"' for name, text in data.items() if text)
        artist.set_gid(f"mark{len(self._marks)}.")
        self._marks.append(f"<g{attributes}>" + (f"<title>{escape(hint)}</title>" if hint else ""))

    def svg(self, label: str) -> str:
        """The figure as text, without matplotlib's metadata."""
        for artist in self.figure.findobj():
            artist.set_clip_on(False)  # limits leave room for everything
        out = io.StringIO()
        self.figure.savefig(out, format="svg")
        text = out.getvalue()
        text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text[text.index("<svg") :], flags=re.S)
        text = re.sub(r'<g id="mark(\d+)\.">', lambda m: self._marks[int(m[1])], text)
        text = re.sub(r' id="(?:figure|axes|patch|line2d|text|legend|matplotlib|xtick|ytick)[\w.]*"', "", text)
        text = re.sub(r"'DejaVu Sans'[^;\"]*|&quot;DejaVu Sans&quot;[^;\"]*", "system-ui, sans-serif", text)
        for name, stand_in in STAND_INS.items():
            text = text.replace(stand_in, f"var(--{name})")
        height = self.figure.get_size_inches()[1] * 72
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{WIDTH:g}" '
            f'viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(label)}">'
        )
        return re.sub(r"\n\s*", "\n", head + text.partition(">")[2].strip())

    def _index(self, method: str) -> int:
        return self._methods.setdefault(method, len(self._methods))


def _lines(chart: Chart, plot: Lines) -> None:
    """Curves, and their names beside them in the order in which they end."""
    ax = chart.axes(74, 210, chart.top, 330, 46)
    series = list(dict.fromkeys(c.series for c in plot.curves))
    for values, axis in (
        ([p[k] for c in plot.curves for p in c.points], a) for k, a in enumerate((ax.xaxis, ax.yaxis))
    ):
        if min(values) > 0 and max(values) / min(values) > 6:
            _logarithmic(axis, values)
        else:
            axis.set_major_formatter(FuncFormatter(_tick))
    handles = []
    for c in plot.curves:
        name = f"{c.method}, {c.series}" if len(series) > 1 else c.method
        dash = DASHES[series.index(c.series) % len(DASHES)]
        (line,) = ax.plot(*zip(*c.points, strict=True), ls=dash, lw=2, label=_short(name))
        line.set(**{**chart.marker(c.method), "markersize": 6})
        last = f"{name}: {number(c.points[-1][1])} {plot.y} at {number(c.points[-1][0])}"
        chart.mark(line, last, method=c.method, robot=c.series)
        handles.append((c.points[-1][1], line, c))
    handles.sort(key=lambda h: -h[0])
    ax.set(xlabel=plot.x, ylabel=plot.y)
    legend = ax.legend(handles=[h for _, h, _ in handles], loc="center left", bbox_to_anchor=(1.0, 0.5))
    for (_, _, c), handle, text in zip(handles, legend.legend_handles, legend.get_texts(), strict=True):
        for part in filter(None, (handle, text)):
            chart.mark(part, method=c.method, robot=c.series)


def _dots(chart: Chart, plot: Dots) -> None:
    """A row per case, a dot per figure, and a legend above."""
    names = [_short(f"{robot} {case}".strip()) for robot, case, _ in plot.rows]
    left = 24 + LETTER * max(map(len, names), default=1)
    seen = {d.label: d for _, _, row in plot.rows for d in row}
    top, place = _key(chart, sorted(seen.values(), key=lambda d: d.hollow))
    ax = chart.axes(left, 30, top, 22 * len(plot.rows), 34)
    place()
    ax.grid(axis="y", visible=False)
    ax.set(ylim=(len(plot.rows) - 0.5, -0.5), xlabel=plot.unit)
    ax.yaxis.set_major_locator(NullLocator())
    values = [v for _, _, row in plot.rows for d in row for v in (d.value, d.low, d.high) if v is not None]
    if plot.log:
        _logarithmic(ax.xaxis, [v for v in values if v > 0] or [1.0])
    for k, (name, (robot, _, row)) in enumerate(zip(names, plot.rows, strict=True)):
        if k % 2 == 0:
            stripe = ax.axhspan(k - 0.5, k + 0.5, xmin=-left / (WIDTH - left - 30), xmax=1.02, color=STRIPE, lw=0)
            stripe.set_zorder(0)
            chart.mark(stripe, robot=robot)
        label = ax.annotate(name, (0, k), (-12, 0), ("axes fraction", "data"), "offset points")
        label.set(ha="right", va="center", size=NORMAL)
        chart.mark(label, robot=robot)
        for d in row:
            if d.low is not None and d.high is not None:
                (bar,) = ax.plot([d.low, d.high], [k, k], color=chart.colour(d.method), lw=1.5, alpha=0.6)
                chart.mark(bar, method=d.method, robot=robot)
            (dot,) = ax.plot([d.value], [k], ls="", markersize=8, **chart.marker(d.method, d.hollow))
            chart.mark(dot, f"{name}, {d.label}: {number(d.value)} {plot.unit}", method=d.method, robot=robot)


def _bars(chart: Chart, plot: Bars) -> None:
    """Stacked bars, grouped by case; parts get fainter from left to right."""
    labels = list(dict.fromkeys(p for *_, parts in plot.rows if len(parts) > 1 for p, _ in parts))
    names = [f"{robot} {case}".strip() for robot, case, _, _ in plot.rows]
    places = list(accumulate((1.0 if a == b else 1.7 for a, b in pairwise(names)), initial=0.0))
    ax = chart.axes(210, 70, chart.top, 15 * (places[-1] + 1), 34)
    ax.grid(visible=False)
    ax.set(ylim=(places[-1] + 0.5, -0.5))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(NullLocator())
    ax.set_xlabel(f"{plot.unit}; from left to right: {', '.join(labels)}" if labels else plot.unit, color=SOFT)
    for k, (y, (robot, _, method, parts)) in enumerate(zip(places, plot.rows, strict=True)):
        if k == 0 or names[k] != names[k - 1]:
            head = ax.annotate(_short(names[k], 26), (0, y), (-206, 0), ("axes fraction", "data"), "offset points")
            head.set(va="center", size=NORMAL)
            chart.mark(head, robot=robot)
        start = 0.0
        for n, (part, value) in enumerate(parts):
            (bar,) = ax.barh(y, value, 0.8, start, color=chart.colour(method), alpha=max(1 - 0.22 * n, 0.2), lw=0)
            chart.mark(bar, f"{names[k]}, {method}, {part}: {number(value)}", method=method, robot=robot)
            start += value
        for text, x, side in ((method, 0.0, "right"), (number(start), start, "left")):
            shift = (-6 if side == "right" else 6, 0)
            note = ax.annotate(text, (x, y), shift, textcoords="offset points", ha=side, va="center", color=SOFT)
            chart.mark(note, method=method, robot=robot)


def _key(chart: Chart, seen: Sequence[Dot]) -> tuple[float, Callable[[], None]]:
    """Where the rows below the legend begin, and the function that draws it row by row."""
    x, y, entries = 4.0, chart.top + 8, []
    for d in seen:
        room = 26 + LETTER * len(d.label)
        if x + room > WIDTH and x > 4:
            x, y = 4.0, y + 17
        entries.append((d, x, y))
        x += room

    def place() -> None:
        height = chart.figure.get_size_inches()[1] * 72
        for d, x, y in entries:
            at = ([(x + 6) / WIDTH], [1 - y / height])
            dot = Line2D(
                *at, ls="", markersize=8, transform=chart.figure.transFigure, **chart.marker(d.method, d.hollow)
            )
            chart.figure.add_artist(dot)
            text = chart.figure.text((x + 16) / WIDTH, at[1][0], d.label, color=SOFT, va="center_baseline")
            for part in (dot, text):
                chart.mark(part, method=d.method)

    return y + 14, place


def _logarithmic(axis: Any, values: Sequence[float]) -> None:
    """A logarithmic scale with a margin, and ticks at 1, 2, 5 where there are few decades."""
    name, a, b = axis.axis_name, log10(min(values)), log10(max(values))
    pad = max(0.04 * (b - a), 0.02)
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": (10 ** (a - pad), 10 ** (b + pad))})
    subs = (1,) if b - a > 3.2 else (1, 2, 5) if b - a > 0.7 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_tick))


def _tick(v: float, _: object = None) -> str:
    if v and (abs(v) >= 1e4 or abs(v) < 1e-3):
        exponent = floor(log10(abs(v)) + 1e-9)
        lead = v / 10.0**exponent
        power = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{power}" if abs(lead - 1) < 1e-6 else f"{lead:g}·10{power}"
    return f"{v:g}"


def _short(text: str, most: int = WIDEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
