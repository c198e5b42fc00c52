"""Shapes of the pictures: a light card, and what stands on it; and the same card for a dark page.

Lengths are pixels at a width of 900, and ``x, y`` the upper left corner if nothing else is said.
A narrow card is half as wide: on a phone its letters are still 11 pixels high.
"""

import math
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

sys.path.append(str(Path(__file__).resolve().parent.parent))

from colours import DARK, DARK_PAGE, INK, LAUNCHER, PAPER, SCHEDULER, SERVER, WORKERS

# After Okabe and Ito, whose colours colour-blind people tell apart. Most are darker than theirs: a
# line has a contrast of 3 to the paper, and to tints. These are the same colours, see-through.
BLUE, ORANGE, PURPLE, VERMILLION = WORKERS
GREEN, SKY, GREY = SERVER, LAUNCHER, SCHEDULER
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
WIDE, NARROW = 900, 450
# The digits 0 to 9: five rows of three pixels, each row an octal digit.
FONT = (0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71222, 0o75757, 0o75717)


class Card:
    """A light card with shapes from back to front."""

    def __init__(self, height, width=WIDE):
        self.width, self.height, self.shapes = width, height, []
        self.box(0.5, 0.5, width - 1, height - 1, GREY, 0, radius=14, width=0.5)

    def pick(self, wide, narrow):
        """Return what belongs to the width of this card."""
        return narrow if self.width == NARROW else wide

    def turn(self, *lengths):
        """Return ``x, y`` or ``x, y, w, h``, which a narrow card has the other way round."""
        x, y, *size = lengths
        return self.pick(lengths, (y, x, *size[::-1]))

    def turns(self, *points):
        """Return points of a line, turned."""
        return [self.turn(*point) for point in points]

    def add(self, tag, content="", **attributes):
        words = [f'{key.replace("_", "-")}="{plain(value)}"' for key, value in attributes.items()]
        self.shapes.append(f"<{tag} {' '.join(words)}>{escape(content)}</{tag}>")

    def rect(self, x, y, w, h, fill, tint=1, **more):
        self.add("rect", x=x, y=y, width=w, height=h, fill=fill, fill_opacity=tint, **more)

    def box(self, x, y, w, h, colour, tint=0.1, radius=8, width=2.0):
        """Draw a rounded box, in a tint on paper."""
        self.rect(x, y, w, h, PAPER, rx=radius)
        self.rect(x, y, w, h, colour, tint, rx=radius, stroke=colour, stroke_width=width)

    def text(self, x, y, words, size=16, anchor="middle", colour=INK, **more):
        """Write lines, the first on the base line ``y``."""
        more.update(text_anchor=anchor, font_size=size, fill=colour)
        for i, line in enumerate(words.splitlines()):
            self.add("text", line, x=x, y=y + 18 * i, **more)

    def bold(self, x, y, words, anchor="middle"):
        self.text(x, y, words, anchor=anchor, font_weight="bold")

    def code(self, x, y, words):
        self.text(x, y, words, size=15, font_family=MONO)

    def panel(self, x, y, w, h, colour, name, tint=0.1):
        """Draw a box with a name in its corner."""
        self.box(x, y, w, h, colour, tint)
        self.bold(x + 14, y + 27, name, anchor="start")

    def node(self, x, y, w, h, colour, name, words):
        """Draw a box with a name and a line below it."""
        self.box(x, y, w, h, colour, 0.15)
        self.bold(x + w / 2, y + h / 2 - 5, name)
        self.text(x + w / 2, y + h / 2 + 17, words, size=14)

    def cell(self, x, y, w, h, colour, words, tint=0.25, size=15):
        """Draw a piece of data, or of time, with a word inside."""
        self.box(x, y, w, h, colour, tint, radius=4, width=1.5)
        self.text(x + w / 2, y + h / 2 + 5, words, size=size)

    def line(self, *points, colour=GREY, dash="none"):
        """Draw a line through points, with rounded corners."""
        path = f"M{pair(points[0])}"
        for before, corner, after in zip(points, points[1:], points[2:]):
            start, end = toward(corner, before, 10), toward(corner, after, 10)
            path += f" L{pair(start)} Q{pair(corner)} {pair(end)}"
        path += f" L{pair(points[-1])}"
        more = {"stroke": colour, "stroke_width": 2, "stroke_dasharray": dash}
        self.add("path", d=path, fill="none", **more)

    def arrow(self, *points, colour=GREY, dash="none"):
        """Draw a line with a head at its last point."""
        (x, y), (back_x, back_y) = points[-1], toward(points[-1], points[-2], 12)
        dx, dy = 0.45 * (y - back_y), 0.45 * (back_x - x)
        self.line(*points[:-1], toward(points[-1], points[-2], 10), colour=colour, dash=dash)
        wings = pair((back_x + dx, back_y + dy)), pair((back_x - dx, back_y - dy))
        self.add("path", d=f"M{pair((x, y))} L{wings[0]} L{wings[1]} Z", fill=colour)

    def image(self, x, y, digit, colour):
        """Draw a handwritten digit, as coarse as can be, in a tile of 35."""
        self.box(x, y, 35, 35, colour, 0.2, radius=3, width=1)
        for i, bit in enumerate(f"{FONT[digit]:015b}"):
            if bit == "1":
                at = x + 10 + i % 3 * 5, y + 5 + i // 3 * 5
                self.rect(*at, 5, 5, INK, shape_rendering="crispEdges")

    def bars(self, x, y, words, *layers):
        """Draw four numbers as bars, in layers one on the other, and what they are."""
        floors = [y] * 4
        for heights, colour, tint in layers:
            edge = {"stroke": colour, "stroke_dasharray": "3 3" if tint < 1 else "none"}
            for i, height in enumerate(heights):
                floors[i] -= height
                self.rect(x - 42 + 22 * i, floors[i], 18, height, colour, tint, **edge)
        self.line((x - 48, y), (x + 48, y))
        self.text(x, y + 20, words, size=14)

    def svg(self, name, title, desc):
        """Return the file's text; what is read aloud is the title and the description."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
        head += f' role="img" aria-labelledby="{name}-title {name}-desc" font-family="{SANS}">'
        title = f'<title id="{name}-title">{escape(title)}</title>'
        desc = f'<desc id="{name}-desc">{escape(desc)}</desc>'
        return "\n".join([head, title, desc, *self.shapes, "</svg>\n"])


def in_the_dark(svg):
    """Return the text of a picture, or of one of Matplotlib's plots, in the colours of DARK."""
    if "Matplotlib" in svg:  # black is not written there
        svg = svg.replace("<svg ", f'<svg fill="{INK}" ', 1).replace(PAPER.lower(), DARK_PAGE)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: DARK.get(m[0].upper(), m[0]), svg)


def plain(value):
    """Write a number so that rounding errors of a machine do not show."""
    return value if isinstance(value, str) else f"{round(value, 2):g}"


def pair(point):
    return f"{plain(point[0])} {plain(point[1])}"


def toward(start, end, distance):
    """Return the point that far from ``start`` on the way to ``end``."""
    share = distance / math.hypot(end[0] - start[0], end[1] - start[1])
    return tuple(a + (b - a) * share for a, b in zip(start, end))
