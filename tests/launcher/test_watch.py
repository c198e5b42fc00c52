"""What the watch makes of what happens; in a toy world, so that nobody has to wait."""

import collections
import os
import signal
import threading

import pytest
from toy_world import ToyWorld, toy_yarn

from gluon_launch.options.plan import plan
from gluon_launch.starting.ways import WAYS
from gluon_launch.telling.output import Console
from gluon_launch.telling.record import Record
from gluon_launch.telling.writer import finish
from gluon_launch.watching.restarts import run_job
from gluon_launch.watching.session import Session
from gluon_launch.watching.signals import noted
from launch import parse_args

TIME_BUDGET_S = 15
RESTARTS = ("--max-restarts", "2", "--min-uptime", "30")


@pytest.fixture
def watch(capsys):
    """A function that runs a job in a toy world: its status, and what the launcher said."""

    def run(world, *options, signals=(), environ=()):
        job = plan(parse_args(["-n", "1", "-s", "1", "--no-check", *options, "x"]), dict(environ))
        job.began = world.now
        requests = collections.deque()
        for seconds, number in signals:
            world.later(seconds, lambda number=number: requests.append(number))
        console = Console(requests)
        record = Record(None, job, console.say, str)
        status = run_job(Session(job, console, record, requests, world))
        assert finish(console.writers, [])
        return status, capsys.readouterr().err

    return run


def exits(status, after_s):
    return [(after_s, {"report": "exit", "status": status})]


def writes(text, after_s):
    return [(after_s, {"report": "line", "stream": "err", "text": text, "end": "\n"})]


def working(*acts, **more):
    """A world in which the worker acts so, in each try."""
    return ToyWorld({"worker-0": acts}, **more)


def test_a_job_whose_worker_ends_with_0_ends_with_0(watch):
    assert watch(working(exits(0, 50))) == (0, "[launch] 1 worker ended well in 50 s\n")


def test_a_failed_worker_is_told_with_its_time_and_its_last_line(watch):
    status, said = watch(working(writes("oh no", 2) + exits(3, 5)))
    assert status == 3
    assert "[launch] worker 0 on localhost: ended with status 3, at " in said
    assert said.endswith("5.0 s\n[launch] its last lines on standard error:\n[launch]   oh no\n")


@pytest.mark.parametrize(
    "line, advice",
    [
        ("ModuleNotFoundError: No module named 'gluon_dist'", "install it into that Python"),
        ("ModuleNotFoundError: No module named 'mxnet'", "is this the Python you installed into?"),
        ("ModuleNotFoundError: No module named 'sacremoses'", "or a library that it uses, needs"),
        ("AssertionError: Cannot save states for distributed training", "let the workers update"),
        ("terminate called without an active exception", "leave out --no-prepare"),
        ("UserWarning: Possible change in the `batch_size` from", "leave out --no-prepare"),
    ],
)
def test_what_a_program_of_ones_own_meets_first_comes_with_a_hint(watch, line, advice):
    _, said = watch(working(writes(line, 1) + exits(1, 2)))
    assert advice in said.splitlines()[-1]


@pytest.mark.parametrize(
    "line, advice",
    [("Fatal Python error: Bus error", "--shm-size"), ("OSError: No space left on device", "`df`")],
)
def test_what_the_machine_lacks_is_told_last_though_nobody_ended_of_it(watch, line, advice):
    """As when a data loader's worker dies, and its program waits for it."""
    status, said = watch(working(writes(line, 1) + writes("a step", 2)), "--stall-timeout", "20")
    *_, limit, cause, hint = said.splitlines()
    assert status == 124 and "--stall-timeout: no output from any process" in limit
    assert cause == f"[launch] worker 0 on localhost wrote: {line}" and advice in hint


# What ps-lite's scheduler writes when worker 0 comes.
CAME = "ps-lite/src/van.cc:1: ? => 1. cmd=ADD_NODE, node={ role=worker, ip=0177.00.00.01, }"
UNRAISABLE = "Exception ignored on calling ctypes callback function: <function controller at 0x7f>"


def test_an_exception_that_a_server_forgets_ends_the_job_though_all_workers_have_ended(watch):
    """They have the wrong weights."""
    lines = (UNRAISABLE, "Traceback (most …", "  File x", "KeyError: 3")
    said_late = [report for text in lines for report in writes(text, 5.1)]
    scripts = {"worker-0": [exits(0, 5)], "server-0": [said_late], "scheduler": [writes(CAME, 1)]}
    status, said = watch(ToyWorld(scripts))
    assert status == 1
    assert "server 0 on localhost: could not do what a worker asked for: KeyError: 3" in said


def test_updates_that_failed_on_a_server_are_counted_where_they_are_to_be_passed_over(watch):
    lines = [text.replace("controller", "updater_handle") for text in (UNRAISABLE, "KeyError: 3")]
    said = [report for text in lines * 2 for report in writes(text, 1)]
    scripts = {"worker-0": [exits(0, 5)], "server-0": [said], "scheduler": [writes(CAME, 1)]}
    assert "server 0 on localhost: an update failed: KeyError: 3" in watch(ToyWorld(scripts))[1]
    status, said = watch(ToyWorld(scripts), "--ignore-server-errors")
    assert status == 0 and "server 0: 2 updates failed" in said


def test_what_a_worker_left_behind_is_named_without_its_secrets(watch):
    left = {"report": "left", "commands": ["python serve.py --password abc7 --port 1"]}
    said = watch(working([(1, left), *exits(0, 2)]))[1]
    assert "with it: python serve.py --password *** --port 1\n" in said


def test_a_worker_that_prints_the_same_words_is_left_alone(watch):
    lines = writes(UNRAISABLE, 1) + writes("Traceback (most …", 1) + writes("KeyError: 3", 1)
    assert watch(working(lines + exits(0, 5)))[0] == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_exception_in_a_thread_of_the_launcher_asks_for_the_end():
    requests = collections.deque()
    with noted(requests) as stops:
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    assert list(requests) == stops == [signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_what_was_ignored_at_the_start_stays_ignored(number):
    """INT and QUIT where a script has started the launcher with `&`, HUP under nohup."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with noted(collections.deque()):
            assert signal.getsignal(number) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_terminal_does_not_stop_a_launcher_in_its_background():
    """After `stty tostop`, a line that it writes there would stop it."""
    with noted(collections.deque()):
        assert signal.getsignal(signal.SIGTTOU) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTTOU) is signal.SIG_DFL


def idles(how, after_s):
    return [(after_s, {"report": "idle", "how": how})]


@pytest.mark.parametrize(
    "other, is_told", [(idles("waits", 30), True), (idles("in its exit", 30), False), ([], False)]
)
def test_workers_that_stand_still_while_one_is_at_its_end_are_told_once(watch, other, is_told):
    end = exits(0, 60)
    acts = {"worker-0": [idles("in its exit", 20) + end], "worker-1": [other + end]}
    status, said = watch(ToyWorld(acts), "-n", "2")
    assert status == 0
    assert said.count("worker 0 came to the end of the program, and worker 1 stands") == is_told


def test_workers_that_all_stand_still_are_told_once(watch):
    came = writes(CAME, 1) + writes(CAME.replace("0177.00.00.01", "00177.0.0.1"), 1)
    acts = {"worker-0": [idles("waits", 30) + exits(0, 60)], "scheduler": [came]}
    acts["worker-1"] = [idles("in its exit", 30) + exits(0, 60)]
    assert "all workers stand still" not in watch(ToyWorld(acts), "-n", "2")[1]
    acts["worker-1"] = [idles("waits", 30) + exits(0, 60)]
    assert watch(ToyWorld(acts), "-n", "2")[1].count("all workers stand still") == 1
    moves = idles("waits", 30) + idles("", 40)  # that was no standstill; what follows is
    acts["worker-0"] = [moves + idles("in its exit", 50) + exits(0, 99)]
    acts["worker-1"] = [moves + idles("waits", 60) + exits(0, 99)]
    status, said = watch(ToyWorld(acts), "-n", "2", "--stall-timeout", "70")
    assert status == 124 and said.count("all workers stand still") == 1
    assert said.count("worker 1 stands still") == 2  # when it was so, and in the last lines
    acts["worker-0"], acts["worker-1"] = [idles("waits", 30) + exits(0, 60)], acts["worker-0"]
    del acts["scheduler"]  # no store
    assert "all workers stand still" not in watch(ToyWorld(acts), "-n", "2")[1]


@pytest.mark.parametrize("came, is_told", [([], 1), (writes(CAME, 1), 0)])
def test_a_worker_that_waits_for_a_scheduler_that_has_ended_is_told_once(watch, came, is_told):
    acts = {"scheduler": [came + exits(0, 2)]}
    acts["worker-0"] = [idles("waits", 30) + idles("", 40) + idles("waits", 50) + exits(0, 60)]
    _, said = watch(ToyWorld(acts))
    assert said.count("the scheduler ended with status 0 before a worker had come") == is_told


@pytest.mark.parametrize("end, is_told", [(299, 0), (400, 1)])
def test_programs_that_make_no_store_for_minutes_are_told_of_while_they_run(watch, end, is_told):
    acts = {f"worker-{n}": [exits(0, end)] for n in range(2)}
    status, said = watch(ToyWorld(acts), "-n", "2")
    assert status == 0 and said.count("no worker has made a dist store in 5 minutes") == is_told
    acts["scheduler"] = [writes(CAME, 1)]
    assert "in 5 minutes" not in watch(ToyWorld(acts), "-n", "2")[1]


def test_a_login_that_hangs_is_given_up(watch):
    """A shell that .bashrc starts in place of the login's may wait for more input: fish does."""
    status, said = watch(ToyWorld(logins={"d1": ["hangs"]}), "-H", "d1,")
    assert status == 255
    assert said.startswith("[launch] d1: no connection: no answer within 30 s\n[launch] hint: ")
    assert "a .bashrc there starts another shell (exec fish)" in said


def test_a_launcher_without_a_thread_left_says_so(watch):
    class Full(ToyWorld):
        def connect(self, *_):
            raise RuntimeError("can't start new thread")

    status, said = watch(Full(), "-H", "d1,")
    first, hint = said.splitlines()
    assert (status, first) == (2, "[launch] ssh: can't start new thread")
    assert "raise `ulimit -u`" in hint


def test_a_refused_login_is_told_beside_one_that_hangs(watch):
    world = ToyWorld(logins={"d1": ["Permission denied (publickey)."], "d2": ["hangs"]})
    status, said = watch(world, "-H", "d1,d2")
    assert status == 255
    assert "d1: no connection: Permission denied" in said
    assert "d2: no connection: no answer within 30 s" in said


def test_a_login_that_is_dropped_each_time_is_tried_six_times(watch):
    world = ToyWorld(logins={"d1": ["dropped by a busy server"]})
    status, said = watch(world, "-H", "d1,")
    assert (status, world.opened["d1"]) == (255, 6)
    assert "d1: no connection: dropped by a busy server" in said


@pytest.mark.parametrize("user, status", [(0, 0), (1, 2)])
def test_a_machine_with_two_names_is_one_host(watch, user, status):
    """Not if each of them leads to another user, whose files are others."""
    logins = {"d1": [{"machine": "m"}], "d2": [{"machine": "m", "uid": user}]}
    world = working(exits(0, 50), logins=logins)
    ended, said = watch(world, "-H", "d1,d2:23")
    assert ended == status
    assert "d2:23 and d1 are the same machine" in said
    assert ("they count as one host, d1" in said) == (status == 0)


def test_a_host_that_does_not_answer_a_question_is_named(watch):
    status, said = watch(ToyWorld(answers=()))
    assert status == 255
    assert "localhost: no answer within 120 s (a folder on a network that is away?)" in said


def test_a_host_that_falls_silent_is_lost(watch):
    world = working(exits(0, 40), silent_at_s=20)
    world.acts["scheduler"] = [writes(CAME, 1)]
    status, said = watch(world)
    assert status == 255
    assert said.startswith("[launch] localhost: not heard of for 10 s\n")
    assert "MXNet stayed as it is" not in said  # that is told at a worker's end


@pytest.mark.parametrize("status", [0, 1, 2, -9, 137, 255])
@pytest.mark.parametrize("name", sorted({*WAYS} - {"yarn"}))  # whose containers come by themselves
def test_a_lost_host_gives_255_whatever_started_it_and_whatever_that_ended_with(
    watch, name, status, monkeypatch
):
    """2 is no wrong command line either: srun and mpirun have statuses of their own."""
    monkeypatch.setattr("gluon_launch.starting.mpi.family", lambda *_: "Open MPI")
    world = working()
    lost = {"report": "closed", "status": status}
    world.acts["worker-0"] = [[(20, lost)], exits(0, 50)]
    hosts = ("-H", "d1,") if "hostfile" in WAYS[name].options else ()
    words = ("--launcher", name, *hosts)
    inside = {"SLURM_JOB_ID": "7", "PE_HOSTFILE": "unread"}
    assert watch(world, *words, environ=inside)[0] == 255
    world = working()
    world.acts["worker-0"] = [[(40, lost)], exits(0, 50)]
    assert watch(world, *words, *RESTARTS, environ=inside)[0] == 0


@pytest.mark.parametrize(
    "world, phase",
    [
        (ToyWorld(logins={"localhost": ["hangs"]}), "logging in to localhost"),
        (ToyWorld(answers=()), "waiting for an answer of localhost"),
    ],
)
def test_a_time_limit_says_what_was_being_done_and_with_which_hosts(watch, world, phase):
    status, said = watch(world, "--timeout", "9")
    assert (status, said) == (124, f"[launch] --timeout: not done after 9 s: {phase}\n")


@pytest.mark.parametrize("limit", ["60", "0.001"])
def test_a_job_that_takes_too_long_gives_124(watch, limit):
    assert watch(working(), "--timeout", limit) == (
        124,
        f"[launch] --timeout: not done after {limit} s\n",
    )


def test_the_limit_for_the_whole_job_counts_all_tries(watch):
    world = working(exits(3, 40))
    status, said = watch(world, "--timeout", "100", *RESTARTS)
    assert (status, world.tries) == (124, 3)
    assert said.endswith("--timeout: not done after 100 s\n")


@pytest.mark.parametrize("act", [writes("a line", 50), [(50, {"report": "wrote"})]])
def test_the_limit_for_silence_counts_from_the_last_byte(watch, act):
    act = act + exits(0, 110)
    assert watch(working(act), "--stall-timeout", "61")[0] == 0
    status, said = watch(working(act), "--stall-timeout", "51")
    assert status == 124
    assert "--stall-timeout: no output from any process for 51 s" in said


def test_a_failed_job_starts_again_as_often_as_allowed(watch):
    world = working(exits(4, 50))
    status, said = watch(world, *RESTARTS)
    assert (status, world.tries) == (4, 3)
    assert said.endswith("not restarted: that was --max-restarts 2\n")


def test_a_job_that_fails_at_once_does_not_start_again(watch):
    world = working(exits(4, 29))
    status, said = watch(world, *RESTARTS)
    assert (status, world.tries) == (4, 1)
    assert "it failed 29 s after its start, sooner than --min-uptime 30" in said


def test_the_time_to_end_the_other_processes_is_no_uptime(watch):
    world = working(exits(4, 29), heeds_s=2)
    assert watch(world, *RESTARTS)[0] == 4
    assert world.tries == 1


def test_a_wrong_command_line_is_not_tried_again(watch):
    world = working(exits(2, 50))
    status, said = watch(world, *RESTARTS)
    assert (status, world.tries) == (2, 1)
    assert "not restarted: with status 2" in said


def test_saving_counts_as_a_restart(watch):
    world = working(exits(75, 50))
    status, said = watch(world, *RESTARTS)
    assert (status, world.tries) == (75, 3)
    assert "not restarted: that was --max-restarts 2" in said


def test_saving_twice_without_progress_ends_the_job(watch):
    world = working(exits(75, 1))
    assert watch(world, *RESTARTS)[0] == 75
    assert world.tries == 2


def test_a_request_to_stop_is_no_failure_to_restart_after(watch):
    world = working()
    status, said = watch(world, *RESTARTS, signals=[(50, signal.SIGTERM)])
    assert (status, world.tries) == (143, 1)
    assert said == ("[launch] stopped by SIGTERM after 50 s: no worker saved on request\n")


def test_workers_that_save_on_request_make_75(watch):
    world = working(heeds_with=75, heeds_s=10)
    assert watch(world, signals=[(50, signal.SIGINT)])[0] == 75


def test_a_worker_that_needs_longer_than_the_grace_is_killed(watch):
    world = working(heeds_with=75, heeds_s=10)
    assert watch(world, "--grace", "9", signals=[(50, signal.SIGINT)])[0] == 130


def test_a_second_interrupt_does_not_wait_for_the_grace(watch):
    world = working(heeds_with=75, heeds_s=10)
    signals = [(50, signal.SIGINT), (51, signal.SIGINT)]
    assert watch(world, signals=signals)[0] != 75 or world.now < 60


def test_a_restart_waits_for_a_host_that_is_away(watch):
    logins = {"d1": ["ready", "Connection refused", "ready"]}
    world = working(exits(1, 50), [], exits(0, 50), logins=logins)
    status, said = watch(world, "-H", "d1,", *RESTARTS)
    assert (status, world.tries) == (0, 3)
    assert "d1: no connection: Connection refused: waiting for the host, up to 600 s" in said


@pytest.mark.parametrize("line", ["bind failed", "OSError: [Errno 98] Address already in use"])
def test_a_port_that_is_taken_meanwhile_makes_the_start_repeat(watch, line):
    """The second is of Horovod's rendezvous."""
    taken = writes(line, 1) + exits(255, 1)
    world = ToyWorld({"scheduler": [taken, []], "worker-0": [[], exits(0, 50)]})
    status, said = watch(world)
    assert (status, world.tries) == (0, 2)
    assert "scheduler on localhost: ended with status 255: starting again" in said


def test_a_port_that_was_taken_is_no_cause_once_workers_have_come(watch):
    """Another port, of a monitor perhaps: the scheduler's own was free."""
    acts = writes("Address already in use", 1) + writes(CAME, 2) + exits(1, 50)
    world = ToyWorld({"scheduler": [acts]})
    assert (watch(world)[0], world.tries) == (1, 1)


@pytest.fixture
def yarn(tmp_path, monkeypatch):
    """A program of that name that takes an application."""
    toy_yarn(tmp_path, jar="echo Submitted application application_1_1; exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_a_container_that_is_lost_at_once_ends_the_start(watch, yarn):
    """The others may have to wait for long until there is room."""
    logins = {"container-1": ["YARN ended the container"], "container-2": ["hangs"]}
    status, said = watch(ToyWorld(logins=logins), "-n", "2", "--launcher", "yarn")
    assert status == 255
    assert "container-1: no connection: YARN ended the container" in said


def test_a_container_that_does_not_come_makes_124_and_no_stacks(watch, yarn):
    world = ToyWorld(logins={"container-1": ["hangs"]})
    status, said = watch(world, "--launcher", "yarn")
    assert status == 124
    assert "not all containers have come in 600 s" in said and "stacks" not in said
