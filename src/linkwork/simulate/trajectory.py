"""What a simulation leaves behind: named columns over time, to plot, to write and to read again."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.errors import InputError, MissingExtra, not_found

if TYPE_CHECKING:
    from linkwork.model import Model

TABLES = ("q", "v", "tau", "lam", "active")
FORMATS = (".csv", ".npz", ".parquet")


@dataclass(frozen=True)
class Event:
    """A contact that set in ("touchdown") or let go ("lift-off"), or bounced ("bounce")."""

    t: float
    kind: str
    contact: str


@dataclass(frozen=True)
class Trajectory:
    """A motion: row k has the state at t[k], and the joint forces, constraint forces and contacts from then on.

    `names` has the names of the columns of each table: joints for q, v and tau (with a number where a joint has
    several; quaternions are x, y, z, w), constraints for lam and active.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    lam: np.ndarray
    active: np.ndarray
    names: dict[str, tuple[str, ...]]
    events: tuple[Event, ...] = ()
    model_name: str = field(default="")

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return (f"Trajectory('{self.model_name}': {len(self)} states in {self.t[-1] - self.t[0]:g} s, "
                f"{len(self.events)} events)")

    def column(self, table: str, name: str) -> np.ndarray:
        """One quantity over time: `trajectory.column("q", "left_knee")`."""
        if table not in TABLES:
            raise not_found("table of a trajectory", table, TABLES)
        if name not in self.names[table]:
            raise not_found(f"column of '{table}'", name, self.names[table])
        return np.asarray(getattr(self, table)[:, self.names[table].index(name)])

    def save(self, path: str | Path) -> Path:
        """Write it; the suffix says how: .csv, .npz or .parquet (which needs the extra `parquet`)."""
        path = Path(path)
        if path.suffix not in FORMATS:
            raise not_found("format of a trajectory", path.suffix, FORMATS)
        if path.suffix == ".npz":
            arrays: dict[str, Any] = {n: getattr(self, n) for n in ("t", *TABLES)}
            arrays |= {f"names_{n}": np.array(c, dtype=str) for n, c in self.names.items()}
            events = [(repr(float(e.t)), e.kind, e.contact) for e in self.events]
            arrays |= {"events": np.array(events, dtype=str).reshape(-1, 3), "model": np.array(self.model_name)}
            np.savez_compressed(path, **arrays)
        elif path.suffix == ".csv":
            with path.open("w", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow(self._headings())
                writer.writerows([repr(float(x)) for x in row] for row in self._matrix())
        else:
            arrow, parquet = _pyarrow()
            columns = dict(zip(self._headings(), self._matrix().T, strict=True))
            parquet.write_table(arrow.table({n: arrow.array(x) for n, x in columns.items()}), path)
        return path

    @staticmethod
    def read(path: str | Path) -> Trajectory:
        """What `save` wrote; events are in .npz files only."""
        path = Path(path)
        if path.suffix not in FORMATS:
            raise not_found("format of a trajectory", path.suffix, FORMATS)
        if path.suffix == ".npz":
            with np.load(path) as data:
                names = {n: tuple(str(c) for c in data[f"names_{n}"]) for n in TABLES}
                events = tuple(Event(float(t), str(kind), str(contact)) for t, kind, contact in data["events"])
                return _assembled([data[n] for n in ("t", *TABLES)], names, events, str(data["model"]))
        if path.suffix == ".csv":
            with path.open(newline="") as stream:
                headings, *rows = csv.reader(stream)
            matrix = np.array(rows, dtype=float).reshape(len(rows), len(headings))
        else:
            _, parquet = _pyarrow()
            table = parquet.read_table(path)
            headings = table.column_names
            matrix = np.column_stack([table[n].to_numpy() for n in headings])
        if not headings or headings[0] != "t":
            raise InputError(f"'{path}' is not a trajectory: its first column is not 't'")
        names = {n: tuple(h.partition(".")[2] for h in headings if h.startswith(f"{n}.")) for n in TABLES}
        split = [matrix[:, [k for k, h in enumerate(headings) if h.startswith(f"{n}.")]] for n in TABLES]
        return _assembled([matrix[:, 0], *split], names)

    def plot(self, tables: Sequence[str] = ("q", "v", "tau"), names: Sequence[str] | None = None) -> Any:
        """A figure with one panel for each table, of all columns or those named; needs the extra `plot`."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingExtra("matplotlib", "plot", "plotting a trajectory") from None
        for table in tables:
            if table not in TABLES:
                raise not_found("table of a trajectory", table, TABLES)
        figure, axes = plt.subplots(len(tables), 1, sharex=True, squeeze=False, figsize=(9, 2.6 * len(tables)))
        for axis, table in zip(axes[:, 0], tables, strict=True):
            shown = [n for n in self.names[table] if names is None or n in names]
            for n in shown:
                axis.plot(self.t, self.column(table, n), label=n, linewidth=1)
            for event in self.events:
                axis.axvline(event.t, color="0.8", linewidth=0.8, zorder=0)
            axis.set_ylabel(table)
            if 0 < len(shown) <= 12:
                axis.legend(fontsize=7, ncols=2)
        axes[-1, 0].set_xlabel("t [s]")
        return figure

    def _headings(self) -> list[str]:
        return ["t", *(f"{table}.{n}" for table in TABLES for n in self.names[table])]

    def _matrix(self) -> np.ndarray:
        return np.column_stack([self.t, *(getattr(self, n) for n in TABLES)])


def column_names(model: Model) -> dict[str, tuple[str, ...]]:
    """The names of a trajectory's columns."""
    q: list[str] = []
    v: list[str] = []
    for l in model.links[1:]:
        for out, n in ((q, l.joint.nq), (v, l.joint.nv)):
            out += [l.joint_name] if n == 1 else [f"{l.joint_name}[{k}]" for k in range(n)]
    lam = [f"{c.name}[{k}]" for c in model.constraints for k in range(c.rows)]
    active = [c.name for c in model.constraints]
    return {"q": tuple(q), "v": tuple(v), "tau": tuple(v), "lam": tuple(lam), "active": tuple(active)}


def _assembled(tables: list[np.ndarray], names: dict[str, tuple[str, ...]], events: tuple[Event, ...] = (),
               model_name: str = "") -> Trajectory:
    t, q, v, tau, lam, active = tables
    return Trajectory(t, q, v, tau, lam, active, names, events, model_name)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "reading and writing Parquet files") from None
    return pyarrow, pyarrow.parquet
