"""One colour for one thing: in plots, in drawn pictures, and on the site's pages."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

import plots
from colours import DARK, EDGE, LAUNCHER, PARTS, SCHEDULER, SERVER, WORKERS
from launching import ROOT
from notebooks.test_shown import contrast

TIME_BUDGET_S = 10
STATIC = ROOT / "docs" / "site" / "static"
PAGE = STATIC / "step.css"
ON_THE_PAGE = "forward", "backward", "push", "sum", "pull", "update"


@pytest.fixture
def drawn(monkeypatch):
    """The figures that plots draw."""
    figures = []
    monkeypatch.setattr(plots, "figure", lambda fig, alt: figures.append(fig))
    return figures


@pytest.mark.parametrize("part", ON_THE_PAGE)
def test_a_part_has_the_colour_of_the_page_on_light_paper(part):
    (light,) = re.findall(rf"--{part}: light-dark\((#\w+),", PAGE.read_text(encoding="utf-8"))
    assert PARTS[part] == light.upper()


@pytest.mark.parametrize(
    "file, names",
    [
        ("step.css", ("--worker-0:", "--worker-1:", "--server:")),
        (
            "front.css",
            (
                r"\.own0 {\s*--own:",
                r"\.own1 {\s*--own:",
                r"\.own2 {\s*--own:",
                r"\.sum,\s*\.pull {\s*--own:",
            ),
        ),
    ],
)
def test_workers_and_servers_have_their_colours_on_every_page_in_light_and_dark(file, names):
    css = (STATIC / file).read_text(encoding="utf-8")
    for name, own in zip(names, (*WORKERS[: len(names) - 1], SERVER)):
        ((light, dark),) = re.findall(rf"{name} light-dark\((#\w+), (#\w+)\)", css)
        assert (light.upper(), dark.upper()) == (own, DARK[own]), name


def test_who_takes_part_in_a_job_has_a_colour_that_is_seen_on_both_papers():
    roles = [*WORKERS, SERVER, LAUNCHER, SCHEDULER]
    assert len({*roles}) == len(roles)
    for own in roles:
        assert contrast(own, "#FFFFFF") >= 3 and contrast(DARK[own], DARK["#FFFFFF"]) >= 3


def test_drawn_jobs_have_these_colours():
    for name in "parameter-server", "one-command", "job-over-ssh":
        picture = (ROOT / "notebooks" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        for own in (*WORKERS[:2], SERVER, SCHEDULER):
            assert f'fill="{own}"' in picture, name


def test_other_names_have_the_colour_of_the_same_thing_and_other_things_another():
    same = {"computing": "forward", "exchange": "push"}
    same.update({"server adds": "sum", "server copies": "pull"})
    assert all(PARTS[name] == PARTS[part] for name, part in same.items())
    others = [colour for name, colour in PARTS.items() if name not in same]
    assert len(set(others)) == len(others) == len(PARTS) - len(same)
    assert contrast(EDGE, "#FFFFFF") > 4.5


def test_bars_of_a_step_have_their_colours_in_any_order_and_a_dark_edge(drawn):
    plots.bars({"job": {"backward": 1, "own": 2, "forward": 3}}, "ms", "alt")
    backward, own, forward = drawn[0].axes[0].patches
    assert to_hex(backward.get_facecolor()).upper() == PARTS["backward"]
    assert to_hex(own.get_facecolor()).upper() == plots.COLOURS[1]
    assert to_hex(forward.get_facecolor()).upper() == PARTS["forward"]
    assert to_hex(forward.get_edgecolor()).upper() == EDGE


def test_parts_beside_each_other_in_a_bar_differ_in_more_than_colour(drawn):
    plots.bars({"job": dict.fromkeys(["read", "decode", *PARTS][:7], 1)}, "ms", "alt")
    plots.bars({"job": {"forward": 1, "backward": 2, "update": 3, "exchange": 4}}, "ms", "alt")
    for figure in drawn:
        hatches = [bar.get_hatch() for bar in figure.axes[0].patches]
        assert len(hatches) >= 4 and all(a != b for a, b in zip(hatches, hatches[1:]))


def test_the_drawn_step_has_these_colours():
    picture = (ROOT / "notebooks/images/one-device.svg").read_text(encoding="utf-8")
    assert all(PARTS[part] in picture for part in ("forward", "backward", "update"))


@pytest.mark.parametrize("ends", [(1, 1, 1, 1), (0, 0, 0.01, 1), (np.inf, 1, np.nan, 0.99)])
def test_lines_are_thick_enough_and_named_at_their_ends_apart(drawn, ends):
    curves = {f"curve {number}": [0, end] for number, end in enumerate(ends)}
    plots.lines(curves, "x", "y", "alt", below="curve 0", ylim=(0, 1))
    (ax,) = drawn[0].axes
    assert min(line.get_linewidth() for line in ax.get_lines()) >= 2
    assert [text.get_text() for text in sorted(ax.texts, key=lambda t: t.get_text())] == [*curves]
    heights = sorted(text.get_position()[1] for text in ax.texts)
    assert min(np.diff(heights)) > 0.08 and heights[0] > -0.01 and heights[-1] <= 1.01
