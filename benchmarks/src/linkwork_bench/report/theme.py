"""Colours of pages and charts as CSS variables, so that both can be dark or light.

The palette is Okabe and Ito's, which colour-blind people can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b0568f", "#c08400", "#3a8fc4", "#6b6b6b")
DARK = ("#56b4e9", "#ff8a3d", "#2fc99b", "#e293c4", "#f0b429", "#8ecbf0", "#a8a8a8")
NAMES = ("text", "soft", "line", "stripe", "back")


def variables(colours: Sequence[str], *others: str) -> str:
    """The colours of one theme as CSS variables: --c0, --c1, ..., and those of NAMES."""
    named = {**{f"c{k}": c for k, c in enumerate(colours)}, **dict(zip(NAMES, others, strict=True))}
    return "".join(f"--{name}:{colour};" for name, colour in named.items())


LIGHT_THEME = variables(LIGHT, "#1b1f24", "#57606a", "#d8dee4", "#f3f5f7", "#ffffff")
DARK_THEME = variables(DARK, "#e6edf3", "#9da7b1", "#30363d", "#161b22", "#0d1117")
BY_SYSTEM = f":root{{{LIGHT_THEME}}}@media(prefers-color-scheme:dark){{:root{{{DARK_THEME}}}}}"
"""As the reader's system has it."""
