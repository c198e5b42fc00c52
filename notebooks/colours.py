"""The colours of the parts of a step: one for each, on the site, in plots and in drawn pictures.

They are those of the step page on light paper (docs/site/static/step.css); a test compares. Needs
the standard library only, so that docs/site and images/draw.py may import it, too.
"""

PARTS = {
    "forward": "#0072B2",
    "backward": "#B87700",
    "push": "#C45500",
    "sum": "#A8548A",
    "pull": "#00855F",
    "update": "#5A5A66",
}
# What the page does not show, and other names: of an exchange the push is seen first.
PARTS.update({
    "data": "#56B4E9",
    "waiting": "#D5D5DC",
    "computing": PARTS["forward"],
    "exchange": PARTS["push"],
    "server adds": PARTS["sum"],
    "server copies": PARTS["pull"],
})  # fmt: skip
EDGE = "#1D1D22"  # around bars, for some colours are light on white
