"""Every message between the launcher and a supervisor is declared once, and handled as declared."""

import collections
import inspect

import pytest
from toy_world import ToyWorld

from gluon_launch.options.plan import plan
from gluon_launch.remote.bootstrap import REMOTE
from gluon_launch.remote.protocol import ORDERS, REPORTS
from gluon_launch.telling.output import Console
from gluon_launch.telling.record import Record
from gluon_launch.watching.connection import OWN
from gluon_launch.watching.session import Session
from gluon_launch.watching.watch import Watch
from launch import parse_args

TIME_BUDGET_S = 5


def taken(method):
    return set(inspect.signature(method).parameters) - {"self", "connection"}


@pytest.mark.parametrize("order", ORDERS)
def test_a_supervisor_takes_every_order_with_its_fields(order, monkeypatch):
    monkeypatch.syspath_prepend(REMOTE)
    from supervisor import Supervisor

    assert taken(getattr(Supervisor, f"take_{order}")) == {*ORDERS[order].split()}


@pytest.mark.parametrize("report", REPORTS)
def test_the_launcher_takes_every_report_with_its_fields(report):
    job, console = plan(parse_args(["-n", "1", "x"]), {}), Console([])
    record = Record(None, job, print, str)
    watch = Watch(Session(job, console, record, collections.deque(), ToyWorld()))
    fields = taken(watch.handlers[report]) - {"why"}
    assert fields in ({*REPORTS[report].split()} - {"why"}, {"facts"}, {"fields"})
    assert {*watch.handlers} == {*REPORTS, *OWN}
