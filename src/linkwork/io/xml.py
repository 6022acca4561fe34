"""Reading untrusted XML: no entity expansion, no network, bounded size, line numbers kept.

All robot formats come through `parse`; every error about a file is an `Element.error`, which names the file,
the line and the element.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from linkwork.errors import LinkworkError, LoadError, Printable, users_level
from linkwork.io.files import regular_size
from linkwork.system.files import NO_WAIT

MAX_BYTES = 64 * 2**20
MAX_ELEMENTS = 200_000
MAX_ATTRIBUTES = 1_000
"""Of one element: MuJoCo's parser compares each with all before it."""
MAX_DEPTH = 200
MAX_NUMBER = 1e30
MAX_LINKS = 4_000
MAX_CONSTRAINTS = 4_000


class LoadWarning(Printable, UserWarning):
    """A mistake in a robot file that does not keep it from being loaded."""


@dataclass
class Element:
    """One element of a file: its tag, attributes, children, text, and where it stands."""

    tag: str
    attributes: dict[str, str]
    line: int
    file: str
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def error(self, problem: str) -> LoadError:
        """The error for this element; `problem` says what is wrong and what to do."""
        name = self.attributes.get("name")
        label = f"<{self.tag} name={_shown(name)}>" if name else f"<{self.tag}>"
        return LoadError(f"{self.file}, line {self.line}, {label}: {problem}")

    def warn(self, problem: str) -> None:
        """Warn about a mistake that can be ignored."""
        warnings.warn(LoadWarning(str(self.error(problem))), stacklevel=users_level())

    def ordered(self, lower: float, upper: float) -> tuple[float, float]:
        """The bounds of a joint; none, and a warning, where the lower one is above the upper one."""
        if lower <= upper:
            return lower, upper
        self.warn(f"the lower limit {lower:g} is above the upper limit {upper:g}: the joint is taken without limits")
        return -float("inf"), float("inf")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn an error of the model's own checks into one that names this element."""
        try:
            yield
        except LoadError:
            raise
        except LinkworkError as problem:
            raise self.error(str(problem)) from problem

    def all(self, tag: str) -> list[Element]:
        return [c for c in self.children if c.tag == tag]

    def child(self, tag: str) -> Element | None:
        return next((c for c in self.children if c.tag == tag), None)

    def need(self, tag: str) -> Element:
        found = self.child(tag)
        if found is None:
            raise self.error(f"the element <{tag}> is missing; add it")
        return found

    def get(self, attribute: str, default: str | None = None) -> str:
        """The attribute's text; without a default, it must be there."""
        value = self.attributes.get(attribute, default)
        if value is None:
            raise self.error(f"the attribute '{attribute}' is missing; add {attribute}=\"...\"")
        return value

    @property
    def name(self) -> str:
        name = self.get("name").strip()
        if not name:
            raise self.error("the attribute 'name' is empty; give it a unique name")
        return name

    def number(self, attribute: str, default: float | None = None, *, bounded: bool = True) -> float:
        """The attribute as one number; `bounded=False` lets infinity through, for limits."""
        if default is not None and attribute not in self.attributes:
            return default
        return float(self._numbers(self.get(attribute), 1, f"attribute '{attribute}'", bounded)[0])

    def numbers(self, attribute: str, count: int, default: tuple[float, ...] | None = None) -> np.ndarray:
        """The attribute as `count` numbers between blanks."""
        if default is not None and attribute not in self.attributes:
            return np.array(default)
        return self._numbers(self.get(attribute), count, f"attribute '{attribute}'")

    def content(self, count: int, *, bounded: bool = True) -> np.ndarray:
        """The element's text as `count` numbers between blanks."""
        return self._numbers(self.text, count, "text", bounded)

    def _numbers(self, text: str, count: int, where: str, bounded: bool = True) -> np.ndarray:
        hint = "; expand the file with xacro first" if "$" in text else ""
        wanted = "one number" if count == 1 else f"{count} numbers between blanks"
        if "_" in text:
            raise self.error(f"the {where} is {_shown(text)}, not {wanted}")
        words = text.split(maxsplit=count)
        try:
            values = np.array([float(word) for word in words[:count]])
        except ValueError:
            raise self.error(f"the {where} is {_shown(text)}, not {wanted}{hint}") from None
        if len(words) != count:
            raise self.error(f"the {where} is {_shown(text)}, not {wanted}{hint}")
        if np.isnan(values).any() or (bounded and np.abs(values).max() > MAX_NUMBER):
            raise self.error(f"the {where} is {_shown(text)}; finite numbers of reasonable size are needed")
        return values


def _shown(text: str | None) -> str:
    """A value from the file, quoted, and cut where it is long."""
    text = str(text)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a file, or a `LoadError` that says why not."""
    size = regular_size(path, str(path))
    if size > limit:
        raise LoadError(f"{path} has {size / 2**20:.0f} MiB; robot files of at most {limit >> 20} MiB are read")
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | NO_WAIT)) as stream:
            return stream.read(limit + 1)
    except (OSError, ValueError) as problem:
        raise LoadError(f"{path} cannot be read: {problem}") from problem


def parse(data: bytes, file: str) -> Element:
    """The root element of an XML text. Entities, foreign files and outsized documents are refused."""
    if not data.strip():
        raise LoadError(f"{file} is empty; a URDF, MJCF or SDF document is needed")
    if len(data) > MAX_BYTES:
        raise LoadError(f"{file} is too large; robot files of at most {MAX_BYTES >> 20} MiB are read")
    try:
        return _parsed(data, file)
    except LoadError:
        plain = _without_comments(data)
        if plain == data:
            raise
    return _parsed(plain, file)


def _without_comments(data: bytes) -> bytes:
    """The text without comments and without what stands before <?xml.

    Real files have "--" in comments, or a comment or blank lines first, which XML forbids and other readers accept.
    A comment ends at the first "-->"; lines keep their numbers.
    """
    out, place = [], 0
    while (start := data.find(b"<!", place)) >= 0:
        opening, closing = (b"<![CDATA[", b"]]>") if data.startswith(b"<![CDATA[", start) else (b"<!--", b"-->")
        end = data.find(closing, start + len(opening)) if data.startswith(opening, start) else start + 2
        if end < 0:
            break
        end = end + len(closing) if data.startswith(opening, start) else end
        comment = opening == b"<!--" and data.startswith(opening, start)
        out += [data[place:start], b"\n" * data.count(b"\n", start, end) if comment else data[start:end]]
        place = end
    text = b"".join([*out, data[place:]])
    head, declaration, rest = text.partition(b"<?xml")
    if declaration and not head.removeprefix(b"\xef\xbb\xbf").strip():
        # the declaration moves to the beginning, and the blank lines behind it
        words, mark, rest = rest.partition(b"?>")
        return declaration + words + mark + b"\n" * head.count(b"\n") + rest
    return text


def _parsed(data: bytes, file: str) -> Element:
    top = Element("", {}, 0, file)
    stack = [top]
    texts: list[list[str]] = [[]]
    count = 0
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        element = Element(tag, attributes, parser.CurrentLineNumber, file)
        if len(stack) > MAX_DEPTH:
            raise element.error(f"elements are nested more than {MAX_DEPTH} deep; this is no robot description")
        if count > MAX_ELEMENTS:
            raise element.error(f"more than {MAX_ELEMENTS} elements; this is no robot description")
        if len(attributes) > MAX_ATTRIBUTES:
            raise element.error(f"{len(attributes)} attributes; at most {MAX_ATTRIBUTES} of an element are read")
        stack[-1].children.append(element)
        stack.append(element)
        texts.append([])

    def end(tag: str) -> None:
        stack.pop().text = "".join(texts.pop()).strip()

    def entity(name: str, *rest: object) -> None:
        raise LoadError(
            f"{file}, line {parser.CurrentLineNumber}: the entity '{name}' is declared; entities are not expanded, "
            "for safety: write its text where it is used and remove the declaration"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as problem:
        raise LoadError(
            f"{file}, line {problem.lineno}: not well-formed XML ({expat.ErrorString(problem.code)}); "
            "the file may be cut off there, or not be XML at all"
        ) from None
    except (ValueError, LookupError) as problem:  # an encoding that Python does not know
        raise LoadError(f"{file}: not readable as XML ({problem}); save it as UTF-8") from None
    return top.children[0]
