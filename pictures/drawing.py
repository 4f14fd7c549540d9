"""An SVG picture that is readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"

# The pages have no picture behind the text, so each color has a light and a dark form.
_STYLE = """
.paper{fill:#ffffff}.box{fill:#eef3fa;stroke:#5b7da6}.good{fill:#e7f6ea;stroke:#4c9a62}
.warm{fill:#fdf1df;stroke:#c08a3e}.bar{fill:#5b7da6}.ours{fill:#4c9a62}.off{fill:#e3e7ec;stroke:#b6c0ca}
.text{fill:#1b2733}.soft{fill:#5a6b7b}.line{stroke:#7b8a99;fill:none}.head{fill:#7b8a99}
@media (prefers-color-scheme: dark){
.paper{fill:#0f1720}.box{fill:#1d2a3a;stroke:#6f93bd}.good{fill:#1c3324;stroke:#5fb47a}
.warm{fill:#3a2c17;stroke:#d09a4e}.bar{fill:#6f93bd}.ours{fill:#5fb47a}.off{fill:#222c37;stroke:#45525f}
.text{fill:#e6edf3}.soft{fill:#9fb0c0}.line{stroke:#9fb0c0}.head{fill:#9fb0c0}}
"""
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


class Drawing:
    """Collects shapes, and writes them as one SVG."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._shapes: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box") -> None:
        self._shapes.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            'rx="4"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: int = 13,
        kind: str = "text",
        anchor: str = "start",
        mono: bool = False,
        bold: bool = False,
    ) -> None:
        font = f' font-family="{MONO}"' if mono else ""
        weight = ' font-weight="600"' if bold else ""
        self._shapes.append(
            f'<text class="{kind}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
            f'{font}{weight} xml:space="preserve">{escape(text)}</text>'
        )

    def lines(
        self, x: float, y: float, lines: Sequence[str], size: int = 13, step: int = 18
    ) -> None:
        """Draws lines of code, one below the other."""
        for number, line in enumerate(lines):
            self.text(x, y + number * step, line, size, mono=True)

    def cells(
        self, x: float, y: float, cells: Sequence[str], width: float, kind: str = "box"
    ) -> None:
        """Draws an array: one box a value, from left to right."""
        for number, cell in enumerate(cells):
            self.box(x + number * width, y, width, 24, kind)
            self.text(x + (number + 0.5) * width, y + 16, cell, 12, anchor="middle", mono=True)

    def arrow(self, *points: tuple[float, float]) -> None:
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        self._shapes.append(f'<path class="line" marker-end="url(#head)" d="{path}"/>')

    def svg(self) -> str:
        """Returns the picture."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" role="img" font-family="system-ui, sans-serif">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{_STYLE}</style>",
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
                'markerHeight="8" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>'
                "</defs>",
                f'<rect class="paper" width="{self.width}" height="{self.height}" rx="8"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )
