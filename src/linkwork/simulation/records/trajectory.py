"""The record of a simulation: named columns over time, to plot, to write and to read again."""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork import chunked_arrays as interruptible
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import (
    ANY_ARRAY,
    MODES,
    NAME,
    NAMES,
    NUMBER,
    NUMBERS,
    PATH,
    checked,
    checked_class,
    choice,
    instance,
    mapping,
    optional,
    several,
)
from linkwork.constraints import CentreOfMass, Closure
from linkwork.errors import InputError, MissingExtra, not_found
from linkwork.output_files import saved, written

if TYPE_CHECKING:
    from linkwork.model import Model

TABLES = ("q", "v", "tau", "lam", "active")
TITLES = {"q": "position", "v": "velocity", "tau": "joint force", "lam": "constraint force", "active": "active"}
FORMATS = (".csv", ".npz", ".parquet")
ABOUT = "linkwork"
"""The key of a Parquet file's metadata under which names, units and events are."""
SUM = "linkwork.sha256"
"""The key under which the checksum of a Parquet file's numbers, headings and metadata is: Parquet's own checksums cover
pages only.

A .csv file begins with a comment of this key and the checksum of its headings and numbers.
"""
PIECE = 1 << 18
"""Bytes that are packed or unpacked at once: some milliseconds."""


@checked_class(t=NUMBER, kind=NAME, contact=NAME)
@dataclass(frozen=True)
class Event:
    """A contact that became active ("touchdown"), was released ("lift-off") or bounced ("bounce").

    Examples:
        >>> lw.Event(0.25, "touchdown", "left_foot")
        Event(t=0.25, kind='touchdown', contact='left_foot')
    """

    t: float
    kind: str
    contact: str


TABLE = choice("table of a trajectory", TABLES)


@checked_class(
    t=NUMBERS,
    q=ANY_ARRAY,
    v=ANY_ARRAY,
    tau=ANY_ARRAY,
    lam=ANY_ARRAY,
    active=MODES,
    names=mapping(NAMES),
    events=several(instance(Event, "an Event")),
    model_name=NAME,
    units=mapping(NAMES),
)
@dataclass(frozen=True)
class Trajectory:
    """A motion: row k has the state at t[k], and joint forces, constraint forces, contacts from then on.

    `names` has the names of the columns of each table: joints for q, v and tau (with a number where a joint has
    several; quaternions are x, y, z, w), constraints for lam and active. `units` has their units in the same
    order ("1": a pure number), where known.

    Examples:
        >>> run = lw.simulate(chain(2), np.zeros(2), dt=1e-3, duration=0.01)
        >>> run.model_name, run.column("q", "link2_joint").shape
        ('chain 2', (11,))
        >>> file = run.save("run.csv")
        >>> lw.Trajectory.read("run.csv").q.shape
        (11, 2)
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
    units: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for n in TABLES:
            shape = (len(self.t), len(self.names.get(n, ())))
            if n not in self.names or getattr(self, n).shape != shape:
                raise InputError(
                    f"a trajectory of {len(self.t)} states has as many rows in '{n}', and a column for "
                    f"each of its names ({shape[1]}); it is of shape {getattr(self, n).shape}"
                )

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return (
            f"Trajectory('{self.model_name}': {len(self)} states in {self.t[-1] - self.t[0]:g} s, "
            f"{len(self.events)} events)"
        )

    @checked(table=TABLE, name=NAME)
    def column(self, table: str, name: str) -> np.ndarray:
        """One quantity over time: `trajectory.column("q", "left_knee")`."""
        if name not in self.names[table]:
            raise not_found(f"column of '{table}'", name, self.names[table])
        return np.asarray(getattr(self, table)[:, self.names[table].index(name)])

    @checked(path=PATH)
    def save(self, path: str | Path) -> Path:
        """Write it; the suffix says how: .csv, .npz or .parquet (which needs the extra `parquet`).

        CSV holds the numbers, their names and, as a comment in its first line, a checksum (other readers skip it by
        `comment="#"`); the others also events, units and the name of the model.
        """
        path = Path(path)
        check_suffix(path)
        written(path, lambda: saved(path, self._write))
        return path

    def _write(self, path: Path) -> None:
        if path.suffix == ".npz":
            arrays: dict[str, Any] = {n: getattr(self, n) for n in ("t", *TABLES)}
            _write_archive(path, {**arrays, "about": np.array(self._about())})
        elif path.suffix == ".csv":
            with path.open("w", newline="", encoding="utf-8") as stream:
                headings, matrix = self._headings(), self._matrix()
                stream.write(f"# {SUM} {checksum(headings, matrix, '')}\r\n")
                writer = csv.writer(stream)
                writer.writerow(headings)
                writer.writerows([repr(float(x)) for x in row] for row in matrix)
        else:
            arrow, parquet = pyarrow_or_error()
            columns = dict(zip(self._headings(), self._matrix().T, strict=True))
            table = arrow.table({n: arrow.array(x) for n, x in columns.items()})
            about = self._about()
            facts = {ABOUT: about, SUM: checksum(self._headings(), self._matrix(), about)}
            parquet.write_table(table.replace_schema_metadata(facts), path, write_page_checksum=True)

    @staticmethod
    @checked(path=PATH)
    def read(path: str | Path) -> Trajectory:
        """Read what `save` wrote; InputError for any other file. Nothing in it is executed."""
        from linkwork.simulation.records.reading import read_trajectory

        return read_trajectory(Path(path))

    @checked(tables=several(TABLE), names=optional(NAMES))
    def plot(self, tables: Sequence[str] = ("q", "v", "tau"), names: Sequence[str] | None = None) -> Any:
        """A figure with one panel for each table and unit, of all columns or those named.

        Needs the extra `plot`.

        Examples:
            >>> figure = lw.simulate(chain(2), np.ones(2), dt=1e-3, duration=0.01).plot(["q"])
            >>> len(figure.axes)
            1
        """
        from linkwork.simulation.records.figure import figure_of

        for n in names or ():
            if not any(n in self.names[table] for table in tables):
                raise not_found(f"column of {', '.join(tables)}", n, [c for t in tables for c in self.names[t]])
        return figure_of(self, tables, names)

    def _about(self) -> str:
        """The entries that are not numbers, as JSON."""
        events = [[e.t, e.kind, e.contact] for e in self.events]
        return json.dumps({"names": self.names, "units": self.units, "events": events, "model_name": self.model_name})

    def _headings(self) -> list[str]:
        return ["t", *(f"{table}.{n}" for table in TABLES for n in self.names[table])]

    def _matrix(self) -> np.ndarray:
        columns = [self.t[:, None], *(getattr(self, n) for n in TABLES)]
        out = np.empty((len(self.t), sum(x.shape[1] for x in columns)))
        for rows in interruptible.pieces(out):
            out[rows] = np.concatenate([x[rows] for x in columns], axis=1)
        return out


def _write_archive(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """What `numpy.savez_compressed` writes, in pieces, between which Ctrl-C is handled."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, x in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                x = interruptible.packed(x)
                np.lib.format.write_array_header_1_0(part, np.lib.format.header_data_from_array_1_0(x))
                data = x.reshape(-1).view(np.uint8)
                for i in range(0, len(data), PIECE):
                    part.write(data[i : i + PIECE].tobytes())


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


def column_units(model: Model) -> dict[str, tuple[str, ...]]:
    """The units of a trajectory's columns: rad for joints that turn, m for those that only slide."""
    q: list[str] = []
    v: list[str] = []
    tau: list[str] = []
    for l in model.links[1:]:
        S = l.joint.subspace(l.joint.neutral()[:, None], NUMPY)
        turns = [bool(np.any(column[3:])) for column in S.T]
        v += ["rad/s" if turn else "m/s" for turn in turns]
        tau += ["N m" if turn else "N" for turn in turns]
        unitless = {k for part in l.joint.units for k in range(part.start, part.stop)}
        of_q = ["rad" if turn else "m" for turn in turns] if not unitless else ["m"] * l.joint.nq
        q += ["1" if k in unitless else unit for k, unit in enumerate(of_q)]
    return {
        "q": tuple(q),
        "v": tuple(v),
        "tau": tuple(tau),
        "lam": tuple(_row_units(model)),
        "active": ("1",) * len(model.constraints),
    }


def _row_units(model: Model) -> list[str]:
    """Units of the multipliers: N for translational rows, N m for rotational ones, "" for both."""
    units: list[str] = []
    for c in model.constraints:
        if isinstance(c, Closure):
            units += ["N" if np.any(column[:3]) else "N m" for column in c.directions.T]
        else:
            units += ["N"] * 3 if isinstance(c, CentreOfMass) else [""] * c.rows
    return units


def checksum(headings: Sequence[str], matrix: np.ndarray, about: str) -> str:
    """The checksum of all content of a file."""
    words = json.dumps([*headings, about]).encode()
    found, numbers = hashlib.sha256(words), np.ascontiguousarray(matrix, float)
    for at in interruptible.pieces(numbers):
        found.update(numbers[at])
    return found.hexdigest()


def check_suffix(path: Path) -> None:
    """Raise if no trajectory can be written to a file of this name.

    Unknown formats, and those without a package.
    """
    if path.suffix not in FORMATS:
        raise not_found("format of a trajectory", path.suffix, FORMATS)
    if path.suffix == ".parquet":
        pyarrow_or_error()


def pyarrow_or_error() -> tuple[Any, Any]:
    """The package and its module for Parquet files."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "reading and writing Parquet files") from None
    return pyarrow, pyarrow.parquet
