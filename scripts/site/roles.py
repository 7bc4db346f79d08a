"""Docstrings for the site: Sphinx roles become links such as ``[`train`][overtone.train]``."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|attr):`([\w.]+)`")


class Roles(griffe.Extension):
    """Rewrites each docstring after it has been read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(lambda role: linked(role[1], obj), obj.docstring.value)


def linked(name: str, obj: griffe.Object) -> str:
    """A link to a name of the package or of the class that contains the docstring."""
    if name.startswith("overtone."):
        return f"[`{name.removeprefix('overtone.')}`][{name}]"
    holder = obj if obj.is_class else obj.parent
    if "." not in name and holder is not None and holder.is_class:
        name = f"{holder.name}.{name}"
    return f"[`{name}`][overtone.{name}]"
