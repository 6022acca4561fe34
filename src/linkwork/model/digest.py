"""A digest of the content of a model: the key of results that are cached for other processes."""

from __future__ import annotations

from typing import Any

from linkwork.value_objects import content


def digest(*parts: Any) -> str | None:
    """A digest of models, joints, constraints, numbers and names.

    None if anything in them has no content to compare.

    Functions, as in `Custom`, have none: two with the same name need not be the same. Neither have objects of classes
    that are not Linkwork's: the code of a user's own constraint or joint can change between two runs. Fields that do
    not take part in comparisons, as the looks of links, are left out (value_objects.py).
    """
    found = content(*parts)
    return found.digest if found.lasting else None
