"""What all tests share: no skips in CI, each module's time there, hypothesis without deadlines."""

import gc
import importlib.util
import os
import signal
import sys
from collections import defaultdict

import gluon_dist  # noqa: F401  before any test imports mxnet

import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI") == "true"
HAS_HOROVOD = importlib.util.find_spec("horovod") is not None

# What nohup, or a script with `&`, has these ignore would be ignored by all jobs of the tests.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else 0)

# A shared machine is now and then slow; in CI the examples are the same every time.
settings.register_profile("project", deadline=None, derandomize=IN_CI)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def store_of_its_own():
    """A test in this process may ask for another kind of store than the one before."""
    yield
    group = sys.modules.get("gluon_dist.workers.group")
    if group:
        group._workers = None


seconds = defaultdict(float)
budgets = {}


def forbid_skip(report, allowed):
    """In CI a skip is a failure, for a test that never runs protects nothing."""
    if IN_CI and report.skipped and not allowed and not hasattr(report, "wasxfail"):
        where, line, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{where}:{line}: skipped in CI without a may_skip marker: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    forbid_skip((yield).get_result(), allowed=item.get_closest_marker("may_skip"))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    forbid_skip((yield).get_result(), allowed=False)  # a whole module or folder


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Keep modules that share something on one of xdist's workers, and start long ones first."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            group = getattr(item.module, "SHARES", item.location[0])
            item.add_marker(pytest.mark.xdist_group(group))
        if item.get_closest_marker("horovod") and not HAS_HOROVOD:
            item.add_marker(pytest.mark.skip(reason="needs `make setup HOROVOD=1`"))
        budget = getattr(item.module, "TIME_BUDGET_S", None)
        item.user_properties.append(("budget", budget))

    def place(item):
        return not hasattr(item.module, "SHARES"), -(dict(item.user_properties)["budget"] or 0)

    items.sort(key=place)


def pytest_collection_finish():
    """What all modules have made stays to the end: no collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report):
    budgets[report.location[0]] = dict(report.user_properties)["budget"]
    seconds[report.location[0]] += report.duration


def pytest_terminal_summary(terminalreporter):
    """In CI, show each module's seconds beside its TIME_BUDGET_S: all its tests, two cores."""
    if not IN_CI:
        return
    terminalreporter.section("seconds, and how many were planned")
    for module, budget in budgets.items():
        spent = seconds[module]
        note = "no TIME_BUDGET_S" if budget is None else "over" if spent > budget else ""
        terminalreporter.line(f"{spent:8.1f} {budget or 0:8.1f}  {module}  {note}".rstrip())
