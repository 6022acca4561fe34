"""Reading trajectories from untrusted files: nothing in them is executed.

Sizes that a file states are compared with that of the file before anything is allocated: numbers take at most ROOM
bytes and RATIO times the file (columns of zeros are packed a thousand times). Checksums are verified; a .csv or
.parquet file without one, written by others, is read as it is. Arrays of objects are refused, not unpickled.
"""

from __future__ import annotations

import csv
import json
import re
import zipfile
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from linkwork.errors import InputError, LinkworkError, listing, not_found
from linkwork.simulation.records.trajectory import (
    ABOUT,
    FORMATS,
    PIECE,
    SUM,
    TABLES,
    Event,
    Trajectory,
    checksum,
    pyarrow_or_error,
)

ROOM, RATIO = 64 * 2**20, 100
READ_AHEAD = 200
"""Characters of a .csv file in which its checksum is."""
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_trajectory(path: Path) -> Trajectory:
    """Read what `Trajectory.save` wrote; InputError says what is wrong with any other file."""
    if path.suffix not in FORMATS:
        raise not_found("format of a trajectory", path.suffix, FORMATS)
    if not path.exists():
        raise InputError(f"there is no trajectory at '{path}'")
    if not path.is_file():
        raise InputError(f"'{path}' is not a file that can hold a trajectory, but a folder, pipe or device")
    try:
        return {".csv": _csv, ".npz": _npz, ".parquet": _parquet}[path.suffix](path)
    except LinkworkError:
        raise
    except Exception as problem:  # decoders of other libraries raise errors of every kind for damaged files
        reason = str(problem) or type(problem).__name__
        raise InputError(f"'{path}' cannot be read as a trajectory: {reason}. Is the file complete?") from None


def _npz(path: Path) -> Trajectory:
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        members = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}
        missing = {"t", *TABLES, "about"} - members.keys()
        if missing:
            raise _refused(path, f"it has no {listing(sorted(missing))}")
        if len(members) < len(archive.infolist()) or any(i.compress_type not in PACKED for i in members.values()):
            raise _refused(path, "its parts are packed in another way, or twice")
        _check_size(path, sum(i.file_size for i in members.values()))
        found = {}
        for name in ("t", *TABLES, "about"):
            with archive.open(members[name]) as part:
                found[name] = _array(path, name, part, members[name].file_size)
    return _assembled(path, [found[n] for n in ("t", *TABLES)], json.loads(str(found["about"])))


def _array(path: Path, name: str, part: IO[bytes], size: int) -> np.ndarray:
    """One array of an archive: its header is checked against its size, and its checksum at the end."""
    version = np.lib.format.read_magic(part)
    if version not in HEADERS:
        raise _refused(path, f"'{name}' is an array of version {version}")
    shape, fortran, dtype = HEADERS[version](part)
    expected = "U" if name == "about" else "f"
    if dtype.kind != expected or (expected == "f" and dtype != np.float64) or len(shape) > 2:
        raise _refused(path, f"'{name}' is an array of {dtype} with shape {shape}")
    count = int(np.prod(shape, dtype=object))
    if count * dtype.itemsize != size - part.tell():
        raise _refused(path, f"'{name}' has {size - part.tell()} bytes for an array of {dtype} with shape {shape}")
    out, room = np.empty(count, dtype), size - part.tell()
    data = out.view(np.uint8)
    for i in range(0, max(room, 1), PIECE):
        piece = part.read(PIECE if room - i > PIECE else -1)  # the last one ends with the checksum
        if len(piece) != min(PIECE, room - i):
            raise _refused(path, f"'{name}' is not as long as it says")
        data[i : i + PIECE] = np.frombuffer(piece, np.uint8)
    return out.reshape(shape, order="F" if fortran else "C")


def _csv(path: Path) -> Trajectory:
    numbers = array("d")
    with path.open(newline="", encoding="utf-8") as stream:
        stated = re.fullmatch(rf"# {re.escape(SUM)} ([0-9a-f]{{64}})\r?\n", stream.readline(READ_AHEAD))
        if stated is None:
            stream.seek(0)  # written by others: 't' comes first
        lines = csv.reader(stream, strict=True)
        headings = next(lines, [])
        for row in lines:
            line = lines.line_num + (stated is not None)
            if len(row) != len(headings):
                raise _refused(path, f"line {line} has {len(row)} of {len(headings)} columns")
            try:
                numbers.extend(map(_number, row))
            except ValueError:
                raise _refused(path, f"line {line} has entries that are not numbers") from None
    matrix = np.array(numbers).reshape(-1, max(len(headings), 1))
    if stated is not None:
        _check_sum(path, stated[1], checksum(headings, matrix, ""))
    return _split(path, headings, matrix, None)


def _number(word: str) -> float:
    """A number as all readers of CSV take it: Python's own 1_000 is none."""
    if "_" in word:
        raise ValueError(word)
    return float(word)


def _parquet(path: Path) -> Trajectory:
    arrow, parquet = pyarrow_or_error()
    with path.open("rb") as stream, parquet.ParquetFile(stream, page_checksum_verification=True) as file:
        headings, parts = file.schema_arrow.names, file.metadata
        if any(kind != arrow.float64() for kind in file.schema_arrow.types):
            raise _refused(path, "not all of its columns are 64-bit floats")
        packed = sum(parts.row_group(k).total_byte_size for k in range(parts.num_row_groups))
        _check_size(path, max(8 * parts.num_rows * max(parts.num_columns, 1), packed))
        table = file.read(use_threads=False)
        matrix = np.column_stack([column.to_numpy() for column in table.columns] or [np.zeros((0, 1))])
        facts = file.schema_arrow.metadata or {}
    about, stated = (facts.get(key.encode()) for key in (ABOUT, SUM))
    if stated is not None:
        _check_sum(path, stated.decode(), checksum(headings, matrix, (about or b"").decode()))
    return _split(path, headings, matrix, about)


def _split(path: Path, headings: Sequence[str], matrix: np.ndarray, about: bytes | None) -> Trajectory:
    """A table whose columns are called `t`, `q.joint`, `v.joint`, ..."""
    if not headings or headings[0] != "t":
        raise _refused(path, "its first column is not 't'")
    owners = ["t", *(h.partition(".")[0] for h in headings[1:])]
    strangers = [h for h, owner in zip(headings[1:], owners[1:], strict=True) if owner not in TABLES or "." not in h]
    if strangers:
        raise _refused(path, f"the columns {listing(strangers)} belong to none of {listing(TABLES)}")
    names = {n: [h.partition(".")[2] for h, owner in zip(headings, owners, strict=True) if owner == n] for n in TABLES}
    tables = [matrix[:, [k for k, owner in enumerate(owners) if owner == n]] for n in TABLES]
    return _assembled(path, [matrix[:, 0], *tables], {"names": names} if about is None else json.loads(about))


def _assembled(path: Path, tables: Sequence[np.ndarray], about: Any) -> Trajectory:
    """The trajectory, if its parts fit together."""
    if not isinstance(about, Mapping) or not all(isinstance(about.get(n, {}), Mapping) for n in ("names", "units")):
        raise _refused(path, "what it says about its columns is not a record of names and units")
    t, rest = tables[0], dict(zip(TABLES, tables[1:], strict=True))
    if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or not np.all(np.diff(t) > 0):
        raise _refused(path, "its times are not a growing series of numbers")
    for n, table in rest.items():
        if table.ndim != 2 or len(table) != len(t):
            raise _refused(path, f"'{n}' has shape {table.shape} for {len(t)} times")
    names = {n: _words(path, f"names of '{n}'", about.get("names", {}).get(n), rest[n].shape[1]) for n in TABLES}
    units = {
        n: _words(path, f"units of '{n}'", u, rest[n].shape[1] if n in rest else 0)
        for n, u in about.get("units", {}).items()
    }
    if any(len(set(words)) < len(words) for words in names.values()):
        raise _refused(path, "two of its columns have the same name")
    title, events = about.get("model_name", ""), about.get("events", [])
    if not isinstance(title, str) or not isinstance(events, list) or not all(map(_is_event, events)):
        raise _refused(path, "the name of its model or its events are not what they should be")
    happened = tuple(Event(float(at), kind, contact) for at, kind, contact in events)
    return Trajectory(t, **rest, names=names, events=happened, model_name=title, units=units)


def _words(path: Path, what: str, words: object, count: int) -> tuple[str, ...]:
    if not isinstance(words, list) or len(words) != count or not all(isinstance(w, str) for w in words):
        raise _refused(path, f"the {what} are not {count} words")
    return tuple(words)


def _is_event(event: object) -> bool:
    return (
        isinstance(event, list)
        and len(event) == 3
        and isinstance(event[0], int | float)
        and not isinstance(event[0], bool)
        and all(isinstance(x, str) for x in event[1:])
    )


def _check_size(path: Path, stated: int) -> None:
    size = path.stat().st_size
    if stated > ROOM + RATIO * size:
        raise _refused(path, f"its {size} bytes claim to hold {stated}")


def _check_sum(path: Path, stated: str, found: str) -> None:
    if stated != found:
        raise _refused(path, "its checksum does not match, so it is damaged")


def _refused(path: Path, reason: str) -> InputError:
    return InputError(f"'{path}' is not a trajectory that this version writes: {reason}")
