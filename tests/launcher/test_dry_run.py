"""What `--dry-run` prints is a script: the shell reads it, and it does what the launcher would."""

import os
import signal
import subprocess

import pytest

from launching import ROOT, SUM_RANKS, free_port, launch

TIME_BUDGET_S = 30
ODD = ("a b", "'", '"$HOME"', "`id`", "<x>", "!!", "\\", "tab\there", "two\nlines", "é", "*", "~")


def dry_run(folder, *arguments, **options):
    job = launch(folder, *arguments[:-1], "--dry-run", *arguments[-1], **options)
    assert job.status == 0, job.text()
    return job.stdout


def bash(script, *options, **more):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = ["bash", *options]
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes, **more) as process:
        try:
            out, err = process.communicate(script, timeout=100)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err


HOSTS = ("-H", "gpu1,10.0.0.7:22,me@gpu3")


@pytest.mark.parametrize(
    "options",
    [(), HOSTS, (*HOSTS, "--sync-dst-dir", "a job"), ("-H", "gpu1,", "--interface", "ib0,eth0")],
    ids=str,
)
def test_bash_reads_a_dry_run_and_finds_no_redirection(tmp_path, options):
    said = dry_run(tmp_path, "-n", 3, "-s", 2, *options, "--env", "X=a b;c", ["python", "x y.py"])
    assert bash(said, "-n") == (0, "", "")
    assert "<" not in said and " X='a b;c'\n" in said and "python 'x y.py' &" in said


def test_a_dry_run_of_a_local_job_runs_the_job(tmp_path):
    port = ("--port", free_port())
    said = dry_run(tmp_path, "-n", 2, "-s", 2, *port, ["python", SUM_RANKS])
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist"), "PORT": "8080"}
    status, out, err = bash(said, env=env, cwd=tmp_path)
    assert status == 0, err
    for rank in range(2):
        assert f"worker {rank} is rank {rank} of 2, sum 3" in out


def test_a_dry_run_hands_over_words_and_values_as_they_were(tmp_path):
    program = "import os, sys; print([*map(os.fsencode, sys.argv[1:]), os.environb[b'X']])"
    value, words = "".join(ODD), [*ODD, os.fsdecode(b"x\xff")]
    said = dry_run(tmp_path, "-n", 1, "--env", f"X={value}", ["python", "-c", program, *words])
    expected = str([os.fsencode(word) for word in [*words, value]])
    env = {**os.environ, "HISTFILE": ""}
    for options in ([], ["-i"]):  # as a file, and as what is typed
        status, out, err = bash(said, *options, env=env)
        assert status == 0 and out.count(expected) == 3, (out, err)


def test_a_dry_run_asks_for_a_secret_before_anything_starts(tmp_path):
    env = {"DB_TOKEN": "kB7 'x'"}
    said = dry_run(tmp_path, "-n", 1, "--env", "DB_TOKEN", ["echo have $DB_TOKEN"], env=env)
    assert "kB7" not in said
    status, out, err = bash(said)
    assert status and out == "" and "DB_TOKEN: set it first" in err
    status, out, err = bash(said, env={**os.environ, **env})
    assert status == 0 and out.count("have kB7 'x'\n") == 3, err


def test_a_dry_run_asks_for_an_address_that_only_the_user_knows(tmp_path):
    said = dry_run(tmp_path, "-n", 1, "-H", "gpu1,gpu2", ["echo", "hi"])
    status, out, err = bash(said, env={**os.environ, "TEST_MARK": "x"})  # launching.py passes it
    assert status and out == "" and "root: set it first: the IPv4 address of gpu1" in err


@pytest.mark.parametrize("ending", [0, 3])
def test_a_dry_run_leaves_no_rendezvous(tmp_path, ending):
    rendezvous = "echo $$ > pid.new; mv pid.new pid; exec sleep 60 > /dev/null 2>&1"
    worker = f"until [ -e pid ]; do sleep 0.1; done; exit {ending}"
    command = f"case $DMLC_ROLE in scheduler) {rendezvous};; *) {worker};; esac"
    said = dry_run(tmp_path, "-n", 2, "-s", 0, [command], cwd=tmp_path)
    assert bash(said, cwd=tmp_path)[0] == ending
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
