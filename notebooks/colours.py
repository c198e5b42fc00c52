"""One colour for each thing, on the site, in plots and in drawn pictures: what a step is made of,
and who takes part in a job.

The site has them on light paper (docs/site/static/*.css); a test compares. Needs the standard
library only: docs/site and images/draw.py import it, too.
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
# Workers 0 to 3, and devices: blue, gold, purple, vermillion. Those of servers are green.
WORKERS = "#0072B2", "#B87700", "#A8548A", "#D55E00"
SERVER, LAUNCHER, SCHEDULER = "#00855F", "#3389BF", "#666666"
EDGE = "#1D1D22"  # around bars, for some colours are light on white
INK, PAPER = "#222222", "#FFFFFF"
DARK_PAGE = "#131416"  # of the site: plots have no frame, so their paper is the page
# What each colour is on a dark page, in drawn pictures and in plots.
DARK = {
    PAPER: "#1B1D21",
    INK: "#E6E6EA",
    "#000000": "#E6E6EA",
    SCHEDULER: "#A0A0AB",
    "#DDDDDD": "#3B3D44",
    WORKERS[0]: "#56B4E9",
    WORKERS[1]: "#E69F00",
    WORKERS[2]: "#DD9BC1",
    WORKERS[3]: "#F07F3C",
    SERVER: "#2BC295",
    LAUNCHER: "#9AD4F5",
    PARTS["push"]: "#F07F3C",
    PARTS["update"]: "#A0A0AB",
    "#BD6495": "#DD9BC1",
    "#009E73": "#2BC295",
    "#00734D": "#2BC295",
    "#B3261E": "#FF8F87",
}
