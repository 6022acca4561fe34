"""Plots as SVG text: curves, rows of dots, stacked bars. Colours are variables, so that pages can be dark or light.

The palette is Okabe and Ito's, which colour-blind people can tell apart; markers and dashes differ as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from math import ceil, floor, log10

from linkwork_bench.report.page import Bars, Dot, Dots, Lines, number

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b0568f", "#c08400", "#3a8fc4", "#6b6b6b")
DARK = ("#56b4e9", "#ff8a3d", "#2fc99b", "#e293c4", "#f0b429", "#8ecbf0", "#a8a8a8")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4")
STYLE = """
.pl-grid{stroke:var(--line);stroke-width:1;fill:none}.pl-axis{stroke:var(--soft);stroke-width:1;fill:none}
.pl-text{fill:var(--text);font:12px system-ui,sans-serif}.pl-soft{fill:var(--soft);font:11px system-ui,sans-serif}
.pl-title{fill:var(--text);font:600 13px system-ui,sans-serif}.pl-line{fill:none;stroke-width:2}
.pl-stripe{fill:var(--stripe)}
"""
Scale = Callable[[float], float]


def variables(colours: Sequence[str], text: str, soft: str, line: str, stripe: str, back: str) -> str:
    """The colours of one theme as CSS variables."""
    palette = "".join(f"--c{k}:{c};" for k, c in enumerate(colours))
    return f"{palette}--text:{text};--soft:{soft};--line:{line};--stripe:{stripe};--back:{back};"


LIGHT_THEME = variables(LIGHT, "#1b1f24", "#57606a", "#d8dee4", "#f3f5f7", "#ffffff")
DARK_THEME = variables(DARK, "#e6edf3", "#9da7b1", "#30363d", "#161b22", "#0d1117")


def standalone(svg: str) -> str:
    """An SVG file of its own, dark where its reader is."""
    style = f"<style>:root{{{LIGHT_THEME}}}@media(prefers-color-scheme:dark){{:root{{{DARK_THEME}}}}}{STYLE}</style>"
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">{style}{rest}\n'


class Colours:
    """A colour and a marker for each method of a plot."""

    def __init__(self, methods: Sequence[str]) -> None:
        self._index = {m: k for k, m in enumerate(dict.fromkeys(methods))}

    def of(self, method: str) -> str:
        return f"var(--c{self._index.setdefault(method, len(self._index)) % len(LIGHT)})"

    def marker(self, method: str, x: float, y: float, hollow: bool = False, r: float = 4.5) -> str:
        shape = self._index.setdefault(method, len(self._index)) // 2 % 4
        paint = f'fill="{"var(--back)" if hollow else self.of(method)}" stroke="{self.of(method)}" stroke-width="1.8"'
        if shape == 0:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {paint}/>'
        if shape == 1:
            return f'<rect x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r}" height="{2 * r}" {paint}/>'
        if shape == 2:
            return f'<path d="M{x:.1f} {y - r - 1:.1f}l{r + 1} {2 * r}h{-2 * r - 2}z" {paint}/>'
        a, b = r + 1, r + 1.5
        return f'<path d="M{x:.1f} {y - b:.1f}l{a} {b}l{-a} {b}l{-a} {-b}z" {paint}/>'


def draw(plot: Lines | Dots | Bars, title: bool = True) -> str:
    """The plot as an `svg` element; its title is left out where a heading says it."""
    if not title:
        plot = replace(plot, title="")
    if isinstance(plot, Lines):
        return lines(plot, Colours([c.method for c in plot.curves]))
    if isinstance(plot, Dots):
        return dots(plot, Colours([d.method for *_, row in plot.rows for d in row]))
    return bars(plot, Colours([method for _, _, method, _ in plot.rows]))


def lines(plot: Lines, colours: Colours) -> str:
    """Curves with their names at their ends."""
    width, height, left, right, bottom = 860, 400, 74, 190, 46
    top = 30 if plot.title else 12
    points = [p for c in plot.curves for p in c.points]
    x, x_ticks = _scale([p[0] for p in points], left, width - right, _wide([p[0] for p in points]))
    y, y_ticks = _scale([p[1] for p in points], height - bottom, top, _wide([p[1] for p in points]))
    out = [_text(left - 54, 16, plot.title, "pl-title")]
    for tick in y_ticks:
        out.append(f'<path class="pl-grid" d="M{left} {y(tick):.1f}H{width - right}"/>')
        out.append(_text(left - 8, y(tick) + 4, _tick(tick), "pl-soft", "end"))
    for tick in x_ticks:
        out.append(f'<path class="pl-grid" d="M{x(tick):.1f} {top}V{height - bottom}"/>')
        out.append(_text(x(tick), height - bottom + 16, _tick(tick), "pl-soft", "middle"))
    out.append(_text((left + width - right) / 2, height - 8, plot.x, "pl-text", "middle"))
    out.append(
        f'<text class="pl-text" text-anchor="middle" transform="translate(14 {(top + height - bottom) / 2})'
        f'rotate(-90)">{escape(plot.y)}</text>'
    )
    series = list(dict.fromkeys(c.series for c in plot.curves))
    ends = []
    for c in plot.curves:
        path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in c.points)
        dash = DASHES[series.index(c.series) % len(DASHES)]
        name = f"{c.method}, {c.series}" if len(series) > 1 else c.method
        marks = "".join(
            f"<g>{colours.marker(c.method, x(a), y(b), r=3.5)}<title>{escape(name)}: {_tick(a)} - "
            f"{number(b)} {escape(plot.y)}</title></g>"
            for a, b in c.points
        )
        out.append(
            f'<g data-method="{escape(c.method)}" data-robot="{escape(c.series)}"><path class="pl-line" '
            f'd="M{path}" stroke="{colours.of(c.method)}" stroke-dasharray="{dash}"/>{marks}</g>'
        )
        ends.append((y(c.points[-1][1]), x(c.points[-1][0]), name, c))
    ends.sort(key=lambda e: e[0])
    places = _spread([e[0] for e in ends], 14, top, height - bottom)
    for at, (_, start, name, c) in zip(places, ends, strict=True):
        out.append(
            f'<g data-method="{escape(c.method)}" data-robot="{escape(c.series)}"><text class="pl-text" '
            f'x="{max(start, width - right) + 10:.1f}" y="{at + 4:.1f}" style="fill:{colours.of(c.method)}">'
            f"{escape(_short(name, 25))}</text></g>"
        )
    return _svg(width, height, out, plot.title)


def dots(plot: Dots, colours: Colours) -> str:
    """A row per case, a dot per figure, and who is who above."""
    names = [f"{robot} {case}".strip() for robot, case, _ in plot.rows]
    left = 24 + 6.6 * max((len(_short(n, 40)) for n in names), default=1)
    width, step, legend = 900, 22, 40 if plot.title else 18
    figures = [d for _, _, row in plot.rows for d in row]
    values = [v for d in figures for v in (d.value, d.low, d.high) if v is not None]
    x, ticks = _scale(values, left, width - 30, plot.log)
    key, lowest = _key(colours, figures, 4, legend, width)
    top = lowest + 10
    height = top + step * len(plot.rows) + 34
    out = [_text(4, 16, plot.title, "pl-title"), key]
    for k, (name, (robot, _, row)) in enumerate(zip(names, plot.rows, strict=True)):
        y = top + step * (k + 0.5)
        out.append(f'<g data-robot="{escape(robot)}">')
        if k % 2 == 0:
            out.append(f'<rect class="pl-stripe" x="0" y="{y - step / 2}" width="{width}" height="{step}"/>')
        out.append(_text(left - 14, y + 4, _short(name, 40), "pl-text", "end"))
        for d in row:
            bar = ""
            if d.low is not None and d.high is not None:
                bar = (
                    f'<path d="M{x(d.low):.1f} {y}H{x(d.high):.1f}" stroke="{colours.of(d.method)}" '
                    'stroke-width="1.5" opacity=".6"/>'
                )
            what = f"{d.method}{' (published)' if d.hollow else ''}: {number(d.value)} {plot.unit}"
            out.append(
                f'<g data-method="{escape(d.method)}">{bar}{colours.marker(d.method, x(d.value), y, d.hollow)}'
                f"<title>{escape(name)}, {escape(what)}</title></g>"
            )
        out.append("</g>")
    for tick in ticks:
        out.insert(2, f'<path class="pl-grid" d="M{x(tick):.1f} {top}V{height - 30}"/>')
        out.append(_text(x(tick), height - 14, _tick(tick), "pl-soft", "middle"))
    out.append(_text(width - 4, height - 1, plot.unit, "pl-soft", "end"))
    return _svg(width, height, out, plot.title)


def bars(plot: Bars, colours: Colours) -> str:
    """Stacked bars, grouped by case; parts get fainter from left to right."""
    width, left, top, thick = 900, 190, 34 if plot.title else 8, 15
    most = max((sum(v for _, v in parts) for *_, parts in plot.rows), default=1.0) or 1.0
    x: Scale = lambda v: left + (width - left - 90) * v / most  # noqa: E731
    out, y, before = [_text(4, 16, plot.title, "pl-title")], float(top), ""
    for robot, case, method, parts in plot.rows:
        name = f"{robot} {case}".strip()
        if name != before:
            y += 10 if before else 0
            out.append(f'<g data-robot="{escape(robot)}">{_text(4, y + 12, _short(name, 22), "pl-text")}</g>')
            before = name
        out.append(f'<g data-robot="{escape(robot)}" data-method="{escape(method)}">')
        out.append(_text(left - 8, y + 12, method, "pl-soft", "end"))
        start = 0.0
        for k, (part, value) in enumerate(parts):
            out.append(
                f'<rect x="{x(start):.1f}" y="{y + 2}" width="{max(x(start + value) - x(start), 0.5):.1f}" '
                f'height="{thick - 3}" fill="{colours.of(method)}" opacity="{1 - 0.22 * k:.2f}">'
                f"<title>{escape(name)}, {escape(method)}, {escape(part)}: {number(value)}</title></rect>"
            )
            start += value
        out.append(_text(x(start) + 6, y + 12, number(start), "pl-soft"))
        out.append("</g>")
        y += thick
    labels = list(dict.fromkeys(p for *_, parts in plot.rows if len(parts) > 1 for p, _ in parts))
    foot = f"{plot.unit}; from left to right: {', '.join(labels)}" if labels else plot.unit
    out.append(_text(4, y + 22, foot, "pl-soft"))
    return _svg(width, y + 32, out, plot.title)


def _key(colours: Colours, figures: Sequence[Dot], x: float, y: float, width: float) -> tuple[str, float]:
    """Who is who, and how far down that reaches."""
    out = []
    seen = dict.fromkeys((d.method, d.hollow) for d in figures)
    for method, hollow in sorted(seen, key=lambda s: s[1]):
        label = f"{method} (published)" if hollow else method
        room = 26 + 6.7 * len(label)
        if x + room > width:
            x, y = 4, y + 16
        out.append(
            f'<g data-method="{escape(method)}">{colours.marker(method, x + 6, y - 4, hollow)}'
            f"{_text(x + 16, y, label, 'pl-soft')}</g>"
        )
        x += room
    return "".join(out), y


def _scale(values: Sequence[float], start: float, end: float, log: bool) -> tuple[Scale, list[float]]:
    """A map from figures to the plot, and where to put ticks."""
    finite = [v for v in values if not log or v > 0] or [1.0]
    low, high = min(finite), max(finite)
    if log:
        a, b = log10(low), log10(high)
        pad = max(0.04 * (b - a), 0.02)
        a, b = a - pad, b + pad
        return lambda v: start + (end - start) * (log10(max(v, 1e-300)) - a) / (b - a), _log_ticks(a, b)
    pad = 0.05 * (high - low) or 1.0
    low, high = (0.0 if low >= 0 else low - pad), high + pad
    return lambda v: start + (end - start) * (v - low) / (high - low), _linear_ticks(low, high)


def _log_ticks(a: float, b: float) -> list[float]:
    every = max(1, ceil((b - a) / 7))
    decades = [10.0**k for k in range(ceil(a), floor(b) + 1) if k % every == 0]
    if b - a > 3.2:
        return decades
    digits = (1, 2, 5) if b - a > 0.7 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    return [d * 10.0**k for k in range(floor(a), ceil(b) + 1) for d in digits if a <= log10(d) + k <= b]


def _linear_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 6
    step = 10.0 ** floor(log10(raw))
    step *= next(f for f in (1, 2, 5, 10) if f * step >= raw)
    return [k * step for k in range(ceil(low / step), floor(high / step) + 1)]


def _wide(values: Sequence[float]) -> bool:
    """Whether figures are better seen on a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > 6


def _spread(ys: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions in order, moved apart so that labels do not overlap."""
    out: list[float] = []
    for y in ys:
        out.append(max(y, out[-1] + gap) if out else max(y, low))
    over = out[-1] - high if out else 0.0
    if over > 0:
        out[-1] -= over
        for k in reversed(range(len(out) - 1)):
            out[k] = min(out[k], out[k + 1] - gap)
    return out


def _tick(v: float) -> str:
    if v and (abs(v) >= 1e4 or abs(v) < 1e-3):
        exponent = floor(log10(abs(v)) + 1e-9)
        lead = v / 10.0**exponent
        power = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{power}" if abs(lead - 1) < 1e-6 else f"{lead:g}·10{power}"
    return f"{v:g}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
