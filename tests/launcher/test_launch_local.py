"""A job on this machine: how it runs and how it ends."""

import os
import shutil
import signal
import sys
import time

import pytest

from launching import ROOT, SUM_RANKS, Job, commands, launch, shell

TIME_BUDGET_S = 110


def test_worker_i_is_rank_i_and_the_sum_is_right(tmp_path):
    job = launch(tmp_path, "-n", 3, "-s", 2, "python", SUM_RANKS)
    assert job.status == 0
    for i in range(3):
        assert f"[worker {i}] worker {i} is rank {i} of 3, sum 6" in job.out.read_text()


def test_a_failed_worker_ends_the_job_with_its_status(tmp_path):
    command = shell(worker1="echo oh no >&2; exit 3", other="sleep 300")
    job = launch(tmp_path, "-n", 2, command, timeout=60)
    assert job.status == 3
    assert "worker 1 on localhost: ended with status 3, at" in job.last_words()
    assert job.last_words().endswith("  oh no")


@pytest.mark.parametrize("role", ["worker-0", "server-1", "scheduler"])
def test_a_killed_process_gives_128_plus_the_signal(tmp_path, role):
    job = Job(tmp_path, "-n", 2, "--no-check", shell(other="echo up; sleep 60"))
    job.wait_for(f"[{role.replace('-', ' ')}] up")
    os.kill(job.top(role), signal.SIGKILL)
    assert job.wait() == 137
    assert f"{role.replace('-', ' ')} on localhost: was killed by SIGKILL" in job.last_words()
    assert not job.left()


def test_a_worker_that_ends_with_0_stops_nobody(tmp_path):
    command = shell(worker0="exit 0", worker1="sleep 1; echo done", other="exit 0")
    job = launch(tmp_path, "-n", 2, "--no-check", command)
    assert job.status == 0
    assert "[worker 1] done" in job.out.read_text()


@pytest.mark.long
def test_who_does_not_heed_term_is_killed(tmp_path):
    stubborn = shell(worker1="sleep 0.5; exit 1", other="trap '' TERM; while :; do sleep 1; done")
    assert launch(tmp_path, "-n", 2, "--no-check", stubborn, timeout=60).status == 1


@pytest.mark.long
def test_a_plain_exception_in_a_worker_ends_the_job(tmp_path):
    program = ("python", SUM_RANKS, "--only", 1, "--raise", "--others", 300)
    job = launch(tmp_path, "-n", 2, "--no-check", "--no-prepare", *program, timeout=90)
    assert job.status == 1
    assert "worker 1 on localhost: printed a traceback" in job.last_words()
    assert "ValueError: a plain error" in job.last_words()


@pytest.mark.parametrize("escape", ["setsid sleep 77 &", "(setsid sleep 77 &) &", "sleep 77 &"])
def test_what_a_worker_forked_goes_with_it(tmp_path, escape):
    job = launch(tmp_path, "-n", 1, "--no-check", shell(worker0=f"{escape} sleep 0.3; exit 4"))
    assert job.status == 4  # launch() has seen that nothing is left


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_the_launcher_lets_the_workers_save(tmp_path, number):
    save = "trap 'sleep 1; echo saved; exit 75' TERM; echo up; while :; do sleep 0.1; done"
    job = Job(tmp_path, "-n", 2, "--no-check", shell(worker0=save, worker1=save))
    for i in range(2):
        job.wait_for(f"[worker {i}] up")
    job.popen.send_signal(number)
    assert job.wait() == 75
    assert job.text().count("] saved") == 2
    assert not job.left()


SAVE = """
import multiprocessing, os, signal, sys, time
def save(number, _):
    print("asked:", signal.Signals(number).name, os.getpid() == first)
    time.sleep(1)
    print("a loader works on:", pool.apply(abs, (-5,)))
    print("saved")
    os._exit(75)
first = os.getpid()
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGUSR1, save)
pool = multiprocessing.get_context("fork").Pool(2)
print("up")
while True:
    time.sleep(1)
"""


@pytest.fixture
def saving(tmp_path):
    """Return a program that saves on request, as a command, and in a script that can be executed.

    Its loaders of data inherit its handler: what they are asked is printed, too.
    """
    program, script = tmp_path / "save.py", tmp_path / "train.sh"
    program.write_text(SAVE)
    script.write_text(f"#!/bin/bash\npython {program}\n")
    script.chmod(0o755)
    return f"python {program}", str(script)


PASSES_ON = "trap 'kill -TERM $p; wait $p; exit $?' TERM; {} & p=$!; wait $p"
RELAY = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
LEAVES = "import signal, subprocess, sys; p = subprocess.Popen(['bash', '-c', sys.argv[1] + '; :'])"
LEAVES += "; signal.signal(15, lambda *_: p.terminate()); sys.exit(p.wait())"  # as conda run
# How people run a program `{}`, or a script with it, `{s}`.
WRAPPED = [
    ["true; {}; exit $?", "{s}", "exec {s}", "{}; sleep 1; echo copied"],
    ["{s} 2>&1 | tee {s}.log", "yes | {}", "setsid -w {s} | while read line; do echo $line; done"],
    [
        "env A=1 nice timeout 99 {} | cat",
        f'python -c "{RELAY}" {{}}',
        f'python -c "{LEAVES}" "{{}}"',
    ],
    ["trap 'echo trapped' TERM; {}", f'bash -c "{PASSES_ON.replace("$", chr(92) + "$")}"'],
    ["bash -c 'trap \"echo cleaned\" EXIT; {}'", "bash -c 'trap : TERM; {} & wait; wait'"],
    ["bash -c 'exec > >(tee {s}.log) 2>&1; {}'", "bash -c '{} & wait'"],
]


@pytest.mark.parametrize("commands", WRAPPED, ids=lambda commands: commands[0])
def test_what_saves_on_request_is_asked_once_whatever_it_was_started_by(tmp_path, saving, commands):
    """And the job has its status, though a pipe or a script may have another one."""
    plain, script = saving
    acts = {f"worker{i}": c.format(plain, s=script) for i, c in enumerate(commands)}
    job = Job(tmp_path, "-n", len(acts), "-s", 1, "--no-check", shell(**acts))
    for i in range(len(acts)):
        job.wait_for(f"[worker {i}] up")
    job.popen.send_signal(signal.SIGTERM)
    assert job.wait() == 75, job.text()
    for i in range(len(acts)):
        lines = [line for line in job.stdout.splitlines() if line.startswith(f"[worker {i}]")]
        words = " ".join(lines).replace(f"[worker {i}] ", "")
        assert "up asked: SIGTERM True a loader works on: 5 saved" in words and "False" not in words
    assert ("{}; sleep 1; echo copied" in commands) == ("copied" in job.stdout)
    assert not job.left()


def test_a_program_saves_on_request_in_whatever_letters_its_name_is(tmp_path):
    """The kernel cuts names to 15 bytes: here in the middle of a letter."""
    script = tmp_path / "тренировка"
    script.write_text("#!/bin/sh\ntrap 'exit 75' TERM\necho up\nwhile :; do sleep 0.1; done\n")
    script.chmod(0o755)
    job = Job(tmp_path, "-n", 1, "--no-check", shell(worker0=f"exec {script}"))
    job.wait_for("[worker 0] up")
    job.interrupt()
    job.finish(20)
    assert job.status == 75 and "Traceback" not in job.text()


@pytest.mark.parametrize("to_shell, number", [(False, signal.SIGUSR1), (True, signal.SIGTERM)])
def test_a_script_in_a_pipe_saves_on_any_request_and_tee_writes_its_last_line(
    tmp_path, saving, to_shell, number
):
    """Also if only the shell is asked that was started, whose number job.json names."""
    job = Job(tmp_path, "-n", 1, "-s", 1, "--no-check", f"{saving[1]} 2>&1 | tee {saving[1]}.log")
    job.wait_for("[worker 0] up")
    os.kill(job.top("worker-0") if to_shell else job.pid, number)
    assert job.wait() == 75, job.text()
    assert job.stdout.count("[worker 0] asked") == 1
    assert (tmp_path / "train.sh.log").read_text().endswith("saved\n")


@pytest.mark.parametrize("by", ["nohup {} > log 2>&1 &", "(setsid {} > log 2>&1 &)"])
def test_what_a_command_has_left_behind_is_ended_and_told(tmp_path, saving, by):
    job = launch(tmp_path, "-n", 1, "-s", 1, by.format(saving[0]), cwd=tmp_path, timeout=60)
    assert job.status == 0
    assert f"while this still ran, which was ended with it: {saving[0]}" in job.last_words()


def test_a_daemon_with_a_session_and_an_environment_of_its_own_goes_with_the_job(tmp_path):
    name = tmp_path / "daemon"
    name.symlink_to(shutil.which("sleep"))
    daemon = f"(setsid env -i sh -c '{name} 60 & {name} 70' > /dev/null 2>&1 < /dev/null &)"
    seen = f"grep -qsxz '{tmp_path}/daemo[n]' /proc/[0-9]*/cmdline"  # pgrep is not everywhere
    run = shell(worker0=f"{daemon}; until {seen}; do sleep 0.1; done", other="exit 0")
    assert launch(tmp_path, "-n", 1, "--no-check", run, timeout=60).status == 0
    assert str(name) not in commands()


@pytest.mark.long
def test_a_shell_tells_the_status_of_a_program_that_takes_its_time_to_end(tmp_path):
    """MXNet's threads end after the first one, and until then the shell has not been told."""
    program = """if True:
        import ctypes, os, signal, threading, time
        def save(*_):
            threading.Thread(target=lambda: (time.sleep(2), os._exit(75))).start()
            ctypes.CDLL(None).pthread_exit(None)
        signal.signal(15, save)
        print("up", flush=True)
        time.sleep(60)"""
    (tmp_path / "save.py").write_text(program)
    job = Job(tmp_path, "-n", 1, "--no-check", f"python {tmp_path}/save.py")
    job.wait_for("[worker 0] up")
    job.popen.send_signal(signal.SIGTERM)
    assert job.wait(15) == 75


def test_a_shell_does_not_go_on_with_its_next_command(tmp_path):
    job = Job(tmp_path, "-n", 1, "--no-check", "while echo again; do sleep 40; done")
    job.wait_for("[worker 0] again")
    job.popen.send_signal(signal.SIGTERM)
    assert job.wait(5) == 143
    assert job.out.read_text().count("[worker 0] again") <= 2


def test_without_servers_a_program_that_pushes_to_them_ends_with_a_line(tmp_path):
    program = "import mxnet as mx; mx.kv.create('dist').init(3, mx.nd.ones(4))"
    job = launch(tmp_path, "-n", 2, "-s", 0, "--no-check", sys.executable, "-c", program)
    assert job.status == 2 and "-s 0 is for Horovod" in job.last_words(), job.text()


def test_an_interrupt_after_the_last_worker_only_ends_the_servers(tmp_path):
    done = tmp_path / "done"
    command = shell(worker0=f"touch {done}", other="trap '' TERM; exec sleep 60")
    job = Job(tmp_path, "-n", 1, "-s", 1, "--no-check", "--max-restarts", 2, command)
    end = time.monotonic() + 20
    while (not done.exists() or job.role("worker-0")) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(2)  # the launcher has heard of it, and has asked the servers to end
    job.popen.send_signal(signal.SIGINT)
    assert job.wait(5) == 0, job.text()
    assert not job.left()


def test_usr1_goes_to_the_workers(tmp_path):
    act = "trap 'echo got it; exit 0' USR1; echo up; while :; do sleep 0.1; done"
    job = Job(tmp_path, "-n", 2, "--no-check", shell(worker0=act, worker1=act, other="exit 0"))
    job.wait_for("[worker 0] up")
    job.wait_for("[worker 1] up")
    job.popen.send_signal(signal.SIGUSR1)
    assert job.wait(10) == 0
    assert job.out.read_text().count("got it") == 2


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("ss"), reason="ss (iproute2) is not installed")
def test_two_jobs_at_once_both_finish_and_listen_on_loopback_only(tmp_path):
    command = ("-n", 2, "-s", 1, "--no-check", "python", SUM_RANKS, "--sleep", 10)
    jobs = [Job(tmp_path, *command) for _ in range(2)]
    for job in jobs:
        job.wait_for("sum 3")
    pids = [f"pid={pid}," for job in jobs for pid in job.processes()]
    listening = os.popen("ss -Hltnp").read().splitlines()
    ours = [line.split()[3] for line in listening if any(pid in line for pid in pids)]
    assert [job.wait() for job in jobs] == [0, 0]
    assert all(job.out.read_text().count("sum 3") == 2 for job in jobs)
    assert len(ours) == 8  # one a node
    assert all(address.startswith("127.0.0.1:") for address in ours)


@pytest.mark.parametrize("said", [None, "7"])
def test_the_processors_are_shared_out_unless_the_user_says(tmp_path, monkeypatch, said):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    env = {"OMP_NUM_THREADS": said} if said else {}
    job = launch(tmp_path, "-n", 2, "--no-check", "echo threads $OMP_NUM_THREADS", env=env)
    threads = said or max(1, len(os.sched_getaffinity(0)) // 2)
    assert f"[worker 0] threads {threads}" in job.text()


def test_an_inherited_port_does_not_reach_the_nodes(tmp_path):
    job = launch(tmp_path, "-n", 1, "--no-check", "echo port=$PORT.", env={"PORT": "8080"})
    assert "[worker 0] port=." in job.text()


def test_an_exception_in_a_thread_of_the_launcher_stops_the_job(tmp_path):
    """Python would print it and go on: without output, or without heartbeats."""
    program = f"import sys, threading\nsys.path.insert(0, {str(ROOT / 'tools')!r})\nimport launch\n"
    program += "import time\nhook = threading.excepthook\ndef fail():\n"
    program += "    while threading.excepthook is hook:\n        time.sleep(0.1)\n"
    program += "    time.sleep(2)\n    1 / 0\n"
    program += "threading.Thread(target=fail).start()\nsys.exit(launch.main())\n"
    (tmp_path / "p.py").write_text(program)
    job = launch(tmp_path, "-n", 1, "sleep 60", program=tmp_path / "p.py", timeout=40)
    assert job.status == 143 and "ZeroDivisionError" in job.stderr
