"""The description of the package for an index such as PyPI: the README, with links that work there.

hatchling calls `Description` in each build: see `[tool.hatch.metadata.hooks.custom]`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_CODE = re.compile(r"^(`{3,}).*?^\1[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!\w+:)(?P<path>[^()\s]+)\)")


class Description(MetadataHookInterface):
    """Sets the metadata `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the description to the metadata of the project."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": described(text, repository),
        }


def described(readme: str, repository: str | None) -> str:
    """Returns the README for readers who do not have the repository beside it.

    Args:
        readme: The README, with relative links.
        repository: The address of the repository. Relative links become links to its pages, and
            pictures those of its files. Without an address, only the text of a link stays.
    """

    def changed(link: re.Match[str]) -> str:
        if repository is None:
            return "" if link["image"] else link["text"]
        kind = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({repository}/{kind}/HEAD/{link['path']})"

    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(readme):
        parts += [_LINK.sub(changed, readme[end : code.start()]), code[0]]
        end = code.end()
    return "".join(parts) + _LINK.sub(changed, readme[end:])
