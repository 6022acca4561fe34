"""Layers of a USD stage before it is composed: no files but the robot's own, and bounded sizes.

Composition opens whatever files a layer refers to, and copies what references, inherits and variants repeat. Both are
found out here from the layers alone: each file must be one of the robot's own (io/files.py), and every prim counts as
often as it is repeated.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from linkwork.io.files import checked
from linkwork.io.xml import MAX_BYTES, Element

SUFFIXES = (".usd", ".usda", ".usdc")
MAX_LAYERS = 200
MAX_PRIMS = 100_000


def is_usd(data: bytes) -> bool:
    """Whether a file is a layer of USD, as text or binary."""
    return data.startswith((b"#usda", b"PXR-USDC"))


def check_layers(root: Element, path: Path) -> None:
    """Refuse stages that read files of others, or that become too large."""
    _Layers(root, path.absolute()).check()


class _Layers:
    def __init__(self, root: Element, path: Path) -> None:
        self.root, self.path = root, path
        self.layers: dict[str, Any] = {}
        self.counts: dict[tuple[str, str], float] = {}
        self.bytes = 0

    def check(self) -> None:
        self._open(self.path)
        for layer in self.layers.values():
            total = self._count(layer, layer.pseudoRoot, ())
            if total > MAX_PRIMS:
                raise self.root.error(f"{total:.0f} prims, copies counted; at most {MAX_PRIMS} are read")

    def _open(self, path: Path) -> None:
        """A layer and all that it refers to."""
        from pxr import Sdf, Tf

        waiting = [path]
        while waiting:
            path = Path(os.path.normpath(waiting.pop()))
            if str(path) in self.layers:
                continue
            if path.suffix.lower() not in SUFFIXES:
                raise self.root.error(f"the layer '{path.name}' is not read; valid suffixes: {', '.join(SUFFIXES)}")
            self.bytes += checked(path, self.path.parent, f"the layer '{path.name}'", MAX_BYTES).stat().st_size
            if len(self.layers) >= MAX_LAYERS or self.bytes > MAX_BYTES:
                raise self.root.error(f"more than {MAX_LAYERS} layers or {MAX_BYTES >> 20} MiB; so much is not read")
            try:
                layer = Sdf.Layer.FindOrOpen(str(path))
            except Tf.ErrorException as problem:
                raise self.root.error(f"the layer '{path.name}' cannot be read: {str(problem)[:300]}") from None
            if layer is None:
                raise self.root.error(f"the layer '{path.name}' cannot be read as USD")
            self.layers[str(path)] = layer
            # the empty one is the layer itself
            waiting += [self._file(asset, path) for asset in layer.GetCompositionAssetDependencies() if asset]

    def _file(self, asset: str, path: Path) -> Path:
        if "://" in asset or "[" in asset or "`" in asset or ":SDF_FORMAT_ARGS:" in asset:
            raise self.root.error(f"the layer '{asset}' is no file of the robot's folder; only such files are read")
        return path.parent / asset

    def _count(self, layer: Any, prim: Any, above: tuple[tuple[str, str], ...]) -> float:
        """How many prims a prim becomes, with all that it refers to."""
        key = (layer.identifier, str(prim.path))
        if key in above or len(above) > 100:
            raise self.root.error(f"{prim.path} refers to itself, or more than 100 deep; break the circle")
        if key not in self.counts:
            inside = (*above, key)
            children = [*prim.nameChildren]
            for choices in prim.variantSets.values() if prim.path.IsPrimPath() else ():
                children += [variant.primSpec for variant in choices.variants.values()]
            total = 1.0
            for child in children:
                total += self._count(layer, child, inside)
            for source, target in self._references(layer, prim):
                total += self._count(source, target, inside)
            self.counts[key] = min(total, 1e18)
        return self.counts[key]

    def _references(self, layer: Any, prim: Any) -> list[tuple[Any, Any]]:
        """The prims that a prim refers to."""
        if not prim.path.IsPrimPath() and not prim.path.IsPrimVariantSelectionPath():
            return []
        found = []
        for arc in (*prim.referenceList.GetAddedOrExplicitItems(), *prim.payloadList.GetAddedOrExplicitItems()):
            source = layer
            if arc.assetPath:
                source = self.layers.get(os.path.normpath(Path(layer.realPath).parent / arc.assetPath), layer)
            path = arc.primPath or ("/" + source.defaultPrim if source.defaultPrim else "")
            found.append((source, source.GetPrimAtPath(path) if path else source.pseudoRoot))
        for path in (*prim.inheritPathList.GetAddedOrExplicitItems(), *prim.specializesList.GetAddedOrExplicitItems()):
            found.append((layer, layer.GetPrimAtPath(path)))
        return [(source, target) for source, target in found if target is not None]
