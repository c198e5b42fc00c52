"""The pages to play with, as somebody uses them: names of controls, keys, motion, colours."""

import json
import re
import subprocess
import sys

import pytest
from chromium import Page
from test_play import OWN, pytestmark  # noqa: F401  with Chromium only

from launching import ROOT

TIME_BUDGET_S = 40
STATIC = OWN / "static"
CONTROLS = "slider", "button", "checkbox", "radio", "combobox", "DisclosureTriangle"
STEP = "step_model.js", "step_data.js", "step_link.js", "step.js"
PUSH_PULL = "pushpull_model.js", "pushpull_data.js", "pushpull.js"
OURS = "#network=own&weights=25e6&batch=8&hosts=8"

# Shown in place of the site's pages, which take a minute to make: they have the same scripts.
ACT = """
    const one = (selector) => document.querySelector(selector);
    const words = (selector) => one(selector).textContent.replace(/\\s+/g, " ").trim();
    const move = (selector, value) => {
        one(selector).value = value;
        one(selector).dispatchEvent(new Event("input", { bubbles: true }));
    };
    const moving = () => document.getAnimations().length;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with both pages, and what the site's programs write for them."""
    made = tmp_path_factory.mktemp("pages")
    for name in ("step_data", "pushpull_data"):
        subprocess.run([sys.executable, OWN / f"{name}.py", made / f"{name}.js"], check=True)
    for name, place, scripts in (
        ("step", '<div id="step-to-play" class="play step"></div>', STEP),
        ("pushpull", '<div id="push-pull" class="play push-pull"></div>', PUSH_PULL),
    ):
        files = [made / file if "_data" in file else STATIC / file for file in scripts]
        linked = "".join(f'<script src="{file.as_uri()}"></script>' for file in files)
        style = f'<link rel="stylesheet" href="{(STATIC / "step.css").as_uri()}">'
        shape = '<!doctype html><html lang="en"><meta charset="utf-8"><body style="margin:1rem">'
        text = f"{shape}{style}{place}{linked}<script>{ACT}</script><div style='height:60rem'>"
        (made / f"{name}.html").write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def page(folder):
    """One page in one Chromium for all tests: to start it costs most."""
    with Page(folder / "profile") as opened:
        yield opened
        assert not opened.told


@pytest.fixture
def step(page, folder):
    page.prefer(color_scheme="light")
    page.resize(1280, 900)
    page.open((folder / "step.html").as_uri())
    return page


@pytest.fixture
def push_pull(page, folder):
    page.prefer(color_scheme="light")
    page.open((folder / "pushpull.html").as_uri())
    return page


def test_every_control_has_a_name_that_is_read_out(step, folder):
    step.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    found = step.names(*CONTROLS)
    assert sum(role == "slider" for role, _ in found) == 11
    assert [pair for pair in found if not pair[1].strip()] == []
    assert any(name.startswith("Buckets 5 of") for _, name in found)
    step.open((folder / "pushpull.html").as_uri() + "#case=many&step=5")
    found = step.names(*CONTROLS)
    assert ("button", "102") in found and ("button", "Kill worker 1") in found
    assert [pair for pair in found if not pair[1].strip()] == []


def test_an_example_stays_pressed_while_its_question_is_open(step):
    script = """one("[data-example='0']").click(); move("[data-range=servers]", 2);
        [one("[data-example='0']").ariaPressed, one("[data-example='1']").ariaPressed,
         words("#step-to-play .status")]"""
    pressed, other, question = step.run(script)
    assert (pressed, other) == ("true", "false") and question.startswith("Add servers")


def test_the_step_before_stays_with_its_difference(step):
    shown, before, after = step.run("""{
        const before = stepModel.seconds(stepLink.setup(stepLink.start));
        move("[data-range=buckets]", 11);
        const changed = stepLink.setup({ ...stepLink.start, buckets: 12 });
        [words(".difference"), before, stepModel.seconds(changed)] }""")
    percent = round(100 * (after / before - 1))
    assert shown == f"{1e3 * before:.0f} → {1e3 * after:.0f} ms (\N{MINUS SIGN}{-percent} %)"
    assert step.run("document.querySelectorAll('rect.ghost').length") > 3
    step.run("one(\"[data-example='2']\").click()")  # an example changes more than one thing
    assert step.run("[words('.difference'), document.querySelectorAll('rect.ghost').length]") == [
        "",
        0,
    ]


def test_each_step_of_a_race_has_all_its_lanes_and_no_other(step):
    step.run("move('[data-range=slow]', 10); one('[data-race=keep]').click()")
    step.run("move('[data-range=slow]', 0)")
    names = step.run(
        "[...document.querySelectorAll('#step-time-t ~ text')].map(t => t.textContent)"
    )
    first, second = (i for i, name in enumerate(names) if name[:3] in ("A: ", "B: "))
    lanes = [name for name in names[first + 1 : second] if not name.isdigit()]
    assert len(lanes) == 6 and lanes[1:3] == ["slow computes", "slow sends"]
    assert [name for name in names[second + 1 :] if name in lanes] == [lanes[0], *lanes[3:]]


def test_changes_move_but_not_for_those_who_want_no_motion(step, folder):
    assert step.run("move('[data-range=buckets]', 20); moving()") > 20
    step.prefer(reduced_motion="reduce")
    step.open((folder / "step.html").as_uri())
    assert step.run("move('[data-range=buckets]', 30); moving()") == 0
    step.open((folder / "pushpull.html").as_uri())
    assert step.run("one(\"[data-move='1']\").click(); moving()") == 0
    step.prefer(color_scheme="light")
    step.open((folder / "pushpull.html").as_uri())
    assert step.run("one(\"[data-move='1']\").click(); moving()") >= 2


def test_a_race_says_how_much_faster_and_its_address_holds_both(step, folder):
    step.open((folder / "step.html").as_uri() + OURS)
    step.run("one('[data-race=keep]').click(); move('[data-range=rate]', 80)")
    ratio = step.run("""{
        const a = stepLink.read(location.hash).state;
        const b = { ...a, link: "own", rate: Number((1.25e6 * Math.pow(1e5, 0.8)).toPrecision(2)) };
        stepModel.seconds(stepLink.setup(a)) / stepModel.seconds(stepLink.setup(b)) }""")
    title = step.run("words('.versus')")
    times = rf"A [\d.]+ m?s, B [\d.]+ m?s a step; B trains {ratio:.2g} times as many"
    assert re.fullmatch(rf"{times} examples a second\.", title)
    step.run("one('[data-race=run]').click(); new Promise((done) => setTimeout(done, 300))")
    address = step.run("location.href")
    assert "&a=network:own,weights:25000000," in address
    step.open(address)
    assert step.run("words('.versus')") == title
    times = step.run("[...document.querySelectorAll('text.name')].map((t) => t.textContent)")
    assert [words[:3] for words in times] == ["A: ", "B: "]


def test_a_race_says_in_words_what_a_is_and_what_b_is(step):
    whole = "A: ResNet-50, V100, batch 32, 8 hosts, 10 Gbit/s, a server on each host, 5 buckets,"
    step.run("one('[data-race=keep]').click()")
    assert step.run("words('.who')") == f"{whole} sent while computing."
    step.run("move('[data-range=buckets]', 11); move('[data-range=slow]', 10)")
    said = step.run("words('.who')")
    assert said.startswith("A: 5 buckets, no slow worker. B: 12 buckets, a worker takes 2 ")
    assert "Both: ResNet-50, V100, batch 32, 8 hosts," in said


def test_a_program_can_lead_to_the_step_that_it_has_timed(step, folder):
    """Computing, exchange and update, in turn, are as long as they were; the diamond is there."""
    timed = "#compute=0.3&update=0.05&bytes=44726568&batch=128&hosts=2&exchange=0.2&overlap=0"
    step.open((folder / "step.html").as_uri() + timed + "&measured=2:0.56")
    assert step.run("words('.numbers')").startswith("550 ms a step")
    assert step.run("words('#step-to-play .status')").startswith("This is your own step")
    assert "your job" in step.run("words('.curve')")
    step.run("move('[data-range=hosts]', 3); new Promise((done) => setTimeout(done, 300))")
    assert step.run("location.hash").endswith("&measured=2:0.56")
    step.open((folder / "step.html").as_uri() + timed.replace("exchange=0.2", "rate=1.25e8"))
    assert "1 Gbit/s" in step.run("words('[data-of=rate]')")


@pytest.mark.parametrize("width, height", [(1280, 900), (390, 844)])
def test_the_advice_stays_in_view_while_the_last_slider_is_moved(step, width, height):
    step.resize(width, height)
    top, bottom, least = step.run("""{
        one("[data-box=overlap]").focus();
        one("[data-box=overlap]").scrollIntoView({ block: "center" });
        const { top, bottom } = one(".advice").getBoundingClientRect();
        [top, bottom, one("[data-box=overlap]").getBoundingClientRect().top] }""")
    assert top >= 0 and bottom <= height and least > 0
    assert step.run("document.documentElement.scrollWidth") <= width
    if width < 500:
        assert least >= bottom  # nothing lies on the control


@pytest.mark.parametrize("width, height", [(375, 553), (390, 640), (844, 390), (1280, 600)])
def test_the_timeline_stays_in_view_on_a_low_screen(step, width, height):
    step.resize(width, height)
    numbers, timeline, slider = step.run("""{
        one("[data-range=buckets]").focus();
        const found = [".numbers", ".timeline svg", "[data-range=buckets]"];
        found.map((s) => one(s).getBoundingClientRect().toJSON()) }""")
    assert 0 <= numbers["top"] < numbers["bottom"] <= timeline["top"] + 1
    assert timeline["bottom"] <= height and slider["bottom"] <= height
    assert slider["top"] >= timeline["bottom"] or slider["left"] >= timeline["right"]


def luminance(colour):
    channels = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_stand_out_from_the_page_and_text_from_bars(step, scheme):
    step.prefer(color_scheme=scheme)
    step.run("move('[data-range=hosts]', 3)")
    found = step.run("""{
        const paper = getComputedStyle(one(".view")).backgroundColor;
        const fill = (selector) => getComputedStyle(one(selector)).fill;
        const kinds = ["forward", "backward", "push", "sum", "pull", "update"];
        const label = (kind) => (one(`text.on-${kind}`) ? fill(`text.on-${kind}`) : "");
        [paper, kinds.map((kind) => [kind, fill(`rect.${kind}`), label(kind)])] }""")
    paper, kinds = found
    for kind, bar, text in kinds:
        assert contrast(bar, paper) >= 3, kind
        assert not text or contrast(bar, text) >= 4.5, kind
    assert sum(bool(text) for *_, text in kinds) >= 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_next_can_be_read_under_the_pointer(push_pull, scheme):
    push_pull.prefer(color_scheme=scheme)
    box = push_pull.run("one(\"[data-move='1']\").getBoundingClientRect().toJSON()")
    push_pull.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["x"] + 9, y=box["y"] + 9)
    is_hovered, paper, ink = push_pull.run("""{
        const next = one("[data-move='1']"), style = getComputedStyle(next);
        [next.matches(":hover"), style.backgroundColor, style.color] }""")
    push_pull.call("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)
    assert is_hovered and contrast(paper, ink) >= 4.5


def test_what_was_wrong_before_a_worker_is_killed_is_not_told_of_the_kill(push_pull, folder):
    push_pull.open((folder / "pushpull.html").as_uri() + "#case=many&step=8")
    assert "✗ mixed steps" in push_pull.run("words('.scene')")
    push_pull.run("one('[data-break=kill]').click()")
    assert "mixed steps" not in push_pull.run("words('.scene')")
    bottom = push_pull.run("one('.scene').getBoundingClientRect().bottom - innerHeight")
    assert bottom <= 0


@pytest.mark.parametrize("width, height", [(1280, 900), (390, 844)])
def test_what_the_launcher_says_of_a_kill_is_seen_without_scrolling(push_pull, width, height):
    push_pull.resize(width, height)
    push_pull.run("one('[data-break=kill]').click()")
    assert re.match(r"\[launch\] worker 1 .*was killed", push_pull.run("words('.line')"))
    bottom, buttons = push_pull.run(
        "['.line', '.moves'].map((s) => one(s).getBoundingClientRect()[s === '.line' ?"
        " 'bottom' : 'top'])"
    )
    push_pull.run("one('[data-break=kill]').click()")  # again: mended
    push_pull.resize(1280, 900)
    assert bottom <= (buttons if width < 500 else height)
    assert push_pull.run("words('.line')") == ""


def test_on_a_phone_a_list_has_the_cases_and_the_buttons_stay_at_the_bottom(push_pull):
    push_pull.resize(390, 844)
    listed = push_pull.run("""{
        one("[data-pick]").value = 2;
        one("[data-pick]").dispatchEvent(new Event("change", { bubbles: true }));
        [location.hash, [...one("[data-pick]").options].map((o) => o.text)] }""")
    sizes, bottom = push_pull.run("""{
        one("[data-break=kill]").click();
        scrollTo(0, 0);
        const all = [...document.querySelectorAll("#push-pull :is(button, select)")];
        [all.filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().height),
         one(".moves").getBoundingClientRect().bottom] }""")
    chosen = push_pull.run("getComputedStyle(one('[data-break=kill]'), '::before').content")
    tabs = push_pull.names("tab")
    push_pull.resize(1280, 900)
    assert listed[0] == "#case=many&step=1" and len(listed[1]) == 7 and not tabs
    assert len(sizes) == 8 and min(sizes) >= 44
    assert abs(bottom - 844) < 1 and "✓" in chosen


def test_arrow_keys_lead_through_the_steps(push_pull):
    words = push_pull.run("pushPull.CASES[0].steps.map((step) => step[0])")
    for key, at in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Home", 0)):
        push_pull.press(key)
        assert push_pull.run("words('.words')") == words[at]
    push_pull.press("ArrowLeft")
    assert push_pull.run("location.hash") == "#case=sum&step=1"


@pytest.mark.parametrize("width", [1280, 390])
def test_next_moves_no_picture_and_its_sentence_is_between_the_buttons_and_the_picture(
    push_pull, width
):
    """The buttons are above, but below on a phone."""
    push_pull.resize(width, 844)
    tops = push_pull.run("""pushPull.CASES.map((c, i) => {
        one(`[data-case="${i}"]`).click();
        return c.steps.map(() => {
            const [a, b, d] =
                [".moves", ".words", ".scene"].map((s) => one(s).getBoundingClientRect());
            one("[data-move='1']").click();
            const [first, last] = innerWidth < 500 ? [d, a] : [a, d];
            return [first.bottom <= b.top && b.bottom <= last.top, d.top];
        }); })""")
    push_pull.resize(1280, 900)
    assert len(tops) == 7
    for steps in tops:
        assert len(steps) > 4 and all(between for between, _ in steps)
        assert len({top for _, top in steps}) == 1


def test_cases_are_tabs_that_arrow_keys_choose(push_pull):
    assert len(push_pull.names("tab")) == push_pull.run("pushPull.CASES.length")
    chosen = "one('[role=tab][aria-selected=true]').textContent"
    push_pull.run("one('[data-case=\"0\"]').focus()")
    for key, name in (("ArrowRight", "A short batch"), ("Home", "A sum"), ("ArrowLeft", None)):
        push_pull.press(key)
        assert push_pull.run(chosen) == (name or "Two pushes at once")
    assert push_pull.run("document.activeElement.textContent") == "Two pushes at once"
    assert push_pull.run("one('#pp-panel').getAttribute('aria-labelledby')") == "pp-tab-3"


def test_a_push_and_a_pull_differ_in_more_than_their_colour(push_pull, folder):
    looks = []
    for step in 2, 6:
        push_pull.open((folder / "pushpull.html").as_uri() + f"#case=sum&step={step}")
        looks.append(
            push_pull.run("""{
                const arrow = getComputedStyle(one(".scene .arrow")), pill = one("[data-dx] rect");
                [arrow.strokeDasharray, pill.getAttribute("rx"),
                 one(".scene .arrow").getAttribute("marker-end")] }""")
        )
    push, pull = looks
    assert all(a != b for a, b in zip(push, pull))


def test_play_goes_on_by_itself_until_it_is_paused(push_pull):
    press = "one('[data-case=\"6\"]').click(); one('[data-play]').click(); words('[data-play]')"
    assert push_pull.run(press) == "❚❚ Pause"
    took_ms = push_pull.run("""new Promise((done) => {
        const begun = performance.now(), pause = () => {
            one("[data-play]").click();
            done(performance.now() - begun) };
        const look = () => words(".place") === "2 of 9" ? pause() : setTimeout(look, 20);
        look(); })""")
    assert took_ms > 500
    wait = "new Promise((done) => setTimeout(() => done(words('.place')), 1500))"
    assert push_pull.run(wait) == "2 of 9"


def test_a_guess_is_answered_by_what_the_model_keeps(push_pull, folder):
    push_pull.open((folder / "pushpull.html").as_uri() + "#case=many&step=5")
    assert "What will the server keep?" in push_pull.run("words('.ask')")
    push_pull.run("one('[data-answer=\"3\"]').click()")
    assert push_pull.run("words('.verdict')") == "✗ Not 3: it is 102."
    picture = push_pull.run("words('.scene')")
    assert "100 + 2 = 102" in picture and "keeps 102" in picture and "✗ should be 3" in picture
    push_pull.run("one(\"[data-move='-1']\").click(); one('[data-answer=\"102\"]').click()")
    assert push_pull.run("words('.verdict')") == "✓ Yes: 102."


def test_both_stores_count_their_updates_on_one_clock(push_pull, folder):
    push_pull.open((folder / "pushpull.html").as_uri() + "#case=both&step=9")
    picture = push_pull.run("words('.scene')")
    last = "pushPull.frames(pushPull.CASES.find((c) => c.key === '{}')).pop().servers[0].version"
    counts = [push_pull.run(last.format(key)) for key in ("sync", "async")]
    assert counts == [2, 9]
    assert [int(n) for n in re.findall(r"updates: (\d+)", picture)] == counts


def test_a_fault_after_any_step_ends_in_waiting_or_in_a_late_sum(push_pull):
    script = """pushPull.CASES.filter((c) => !c.isBoth).flatMap((c) => c.steps.flatMap((_, at) =>
        pushPull.FAULTS.map(({ key }) => {
            const { does } = pushPull.frames(pushPull.broken(c, at, key)).pop().workers[0];
            return [c.key, at, key, does];
        })))"""
    found = push_pull.run(script)
    assert len(found) > 100
    for case, at, fault, does in found:
        if does != "is done":
            assert (does == "waits for ever") == (fault != "slow"), (case, at, fault)


def stored_lines():
    """Every line that the committed notebooks 05 and 06 put out."""
    lines = set()
    for path in [*ROOT.glob("notebooks/05*.ipynb"), *ROOT.glob("notebooks/06*.ipynb")]:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for out in cell.get("outputs", ()):
                lines.update("".join(out.get("text", ())).splitlines())
    return lines


def test_what_the_launcher_says_of_a_fault_stands_in_a_notebook(push_pull):
    stored = stored_lines()
    for fault, number, flag in (
        ("kill", 3, "--max-restarts"),
        ("cable", 1, "--max-restarts"),
        ("slow", 1, "--stall-timeout"),
    ):
        push_pull.run(f"one('[data-break={fault}]').click()")
        shown = push_pull.run("[...document.querySelectorAll('pre')].map((p) => p.textContent)")
        assert len(shown) == number and flag in push_pull.run("words('.outputs')")
        lines = {line for text in shown for line in text.splitlines()}
        assert len(lines) > 7 and lines <= stored
    push_pull.run("one('[data-break=slow]').click()")  # again: mended
    assert push_pull.run("words('.outputs')") == ""
