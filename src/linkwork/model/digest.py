"""A name for the content of a model, so that what was computed for it can be found again in another process."""

from __future__ import annotations

from typing import Any

from linkwork.values import content


def digest(*parts: Any) -> str | None:
    """A digest of models, joints, constraints, numbers and names; None if anything in them has no content to compare.

    Functions, as in `Custom`, are such: two with the same name need not be the same. So are objects of classes that are
    not Linkwork's: what a user's own constraint or joint does can change between two runs, and its fields do not show.
    Fields that do not take part in comparisons, as the looks of links, are left out (values.py).
    """
    found = content(*parts)
    return found.digest if found.lasting else None
