"""Programs of users under the launcher, unchanged: right weights, or a clear end.

None of them imports ``gluon_dist``. `with us` means that the launcher prepares MXNet in them.
"""

import re
import sys

import numpy as np
import pytest

from launching import ROOT, Job, launch

TIME_BUDGET_S = 120
pytestmark = pytest.mark.long
PROGRAMS = ROOT / "tests" / "users" / "programs"
sys.path.append(str(PROGRAMS))

import changes  # noqa: E402
from examples import examples  # noqa: E402

AROUND = """
import gluon_dist
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
X, Y = np.float32(np.random.RandomState(0).normal(size=(2, 61, 3)))
train_set = gluon.data.ArrayDataset(X, Y[:, :1])
net, loss = gluon.nn.Dense(1, in_units=3), gluon.loss.L2Loss()
"""
PRINT = "print('weights', *net.weight.data().asnumpy()[0], *net.bias.data().asnumpy(), flush=True)"


def start(tmp_path, program, *options, with_us):
    command = (*["--no-prepare"] * (not with_us), sys.executable, PROGRAMS / program, *options)
    return Job(tmp_path, "-n", 2, "-s", 1, *command, env={"PYTHONPATH": ""})


def run(*arguments, with_us):
    job = start(*arguments, with_us=with_us)
    job.finish(timeout=100)
    return job


def all_weights(job):
    """The numbers of each training of a job, which all workers print alike."""
    assert job.status == 0, job.text()
    one, other = (
        re.findall(rf"^\[worker {rank}\] weights (.*)", job.stdout, re.MULTILINE) for rank in (0, 1)
    )
    assert one == other and one, job.text()
    return [[float(word) for word in line.split()] for line in one]


def weights(job):
    """The numbers of a job that trains once."""
    (found,) = all_weights(job)
    return found


def expected(rates=(0.1,) * 6, bias=1, accumulate=1):
    """Least squares by hand, in one process: weights and bias after steps at these rates."""
    w, b, gw, gb = np.zeros(3), 0, 0, 0
    for step, rate in enumerate(rates):
        x, y, _ = examples(step, 1, 0)
        error = x @ w + b - y
        gw, gb = gw + x.T @ error / len(x), gb + error.mean()
        if (step + 1) % accumulate == 0:
            w, b = w - rate / accumulate * gw, b - bias * rate / accumulate * gb
            gw, gb = 0, 0
    return pytest.approx([*w, b], abs=1e-4)


def expected_of_changes(optimizer):
    """The same for `changes.py`, in float64."""
    values, moved, squared = {"w": np.zeros(3), "b": 0.0}, {}, {}
    for step in range(changes.STEPS):
        x, y, size = examples(step, 1, 0, changes.size(step))
        error = x @ values["w"] + values["b"] - y
        for name, grad in (("w", x.T @ error), ("b", error.sum())):
            rate = changes.rate(step) * changes.lr_mult(name, step)
            grad = grad / size + changes.decay(step) * changes.wd_mult(name) * values[name]
            if optimizer == "adam":
                first = moved[name] = 0.9 * moved.get(name, 0) + 0.1 * grad
                second = squared[name] = 0.999 * squared.get(name, 0) + 0.001 * grad**2
                rate *= np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
                values[name] = values[name] - rate * first / (np.sqrt(second) + 1e-8)
            else:
                moved[name] = 0.9 * moved.get(name, 0) - rate * grad
                values[name] = values[name] + moved[name]
    return [*values["w"], values["b"]]


ALWAYS = {
    "": expected(),
    "--on-workers --schedule script": expected([0.02 * n for n in range(1, 7)]),
    "--accumulate 2": expected(accumulate=2),
    "--frozen": expected(bias=0),
}
WITH_US = {
    "--on-workers": expected(),
    "--schedule script": expected([0.02 * n for n in range(1, 7)]),
    "--schedule module": expected([0.1] * 3 + [0.05] * 3),
    "--schedule gluoncv": expected([0.1 * (1 - n / 9) for n in range(1, 7)]),
    "--optimizer script": expected(),
}


def test_with_us_the_weights_are_those_of_one_process(tmp_path):
    ways = {**ALWAYS, **WITH_US}
    found = all_weights(run(tmp_path, "least_squares.py", "/".join(ways), with_us=True))
    assert dict(zip(ways, found)) == ways and len(found) == len(ways)


@pytest.mark.parametrize("options", ["", "--accumulate 2 --frozen"])
def test_without_us_plain_mxnet_is_right_too(tmp_path, options):
    job = run(tmp_path, "least_squares.py", *options.split(), with_us=False)
    assert weights(job) == {"": expected()}.get(options, expected(bias=0, accumulate=2))


@pytest.mark.parametrize(
    "options, cause",
    [
        ("--schedule script", "AttributeError: Can't get attribute 'Warm'"),
        ("--schedule module", "AttributeError: partially initialized module 'mxnet'"),
        ("--schedule gluoncv", "ImportError: Unable to import modules"),
    ],
)
def test_without_us_a_class_that_the_servers_cannot_take_ends_the_job(tmp_path, options, cause):
    job = run(tmp_path, "least_squares.py", *options.split(), with_us=False)
    assert job.status == 1
    assert f"could not do what a worker asked for: {cause}" in job.last_words()
    assert "hint: servers take classes of the script" in job.last_words()


def test_servers_that_update_follow_what_a_program_changes_of_its_optimizer(tmp_path):
    """Two Trainers share a store that is not the first one of their process, too."""
    both, sgd = ("both names", "both texts", "both stores"), ("sgd scheduler", "sgd array")
    by_sgd, by_adam = (expected_of_changes(kind) for kind in ("sgd", "adam"))
    wanted = [by_sgd + by_adam] * len(both) + [by_sgd] * len(sgd)
    found = all_weights(run(tmp_path, "changes.py", " / ".join(both + sgd), with_us=True))
    assert found == [pytest.approx(values, abs=1e-5) for values in wanted]


def test_an_update_that_fails_on_a_server_ends_the_job(tmp_path):
    job = run(tmp_path, "least_squares.py", "--optimizer", "script", "--fails", with_us=True)
    assert job.status == 1 and "weights" not in job.stdout
    assert re.search(r"server \d on localhost: ended with status 1", job.last_words())
    assert "ValueError: an update that fails" in job.last_words()
    assert "say --ignore-server-errors" in job.last_words()


def test_a_server_may_go_on_after_updates_that_failed_and_counts_them(tmp_path):
    """Six steps, two parameters; none is updated."""
    program = (PROGRAMS / "least_squares.py", "--optimizer", "script", "--fails")
    options = ("--ignore-server-errors", sys.executable, *program)
    job = launch(tmp_path, "-n", 2, "-s", 1, *options, env={"PYTHONPATH": ""})
    assert weights(job) == [0, 0, 0, 0]
    said = "server 0: 12 updates failed, and the job went on as MXNet does; the first"
    assert f"{said}: ValueError: an update that fails" in job.last_words()


def test_a_short_batch_of_one_worker_of_dist_async_is_divided_by_its_own_size(tmp_path):
    job = run(tmp_path, "shapes.py", "short", with_us=True)
    assert job.status == 0 and job.stdout.count("wrong:\n") == 2, job.text()


def test_a_store_does_what_others_do_and_plain_mxnet_does_not(tmp_path):
    for more in (), ("gd",):
        job = run(tmp_path, "shapes.py", "right", *more, with_us=True)
        assert job.status == 0 and job.stdout.count("wrong:\n") == 2, job.text()
    plain = run(tmp_path, "shapes.py", "right", with_us=False)
    assert "wrong:; second push; pushed array; rate; stale" in plain.stdout, plain.text()


REFUSALS = {
    "lost": ["dist_async keeps the last push only"],
    "lost gd": ["dist_async keeps the last push only"],
    "refused": [
        "key 'b' is begun on worker 0, but 'a' on worker 1",
        "duplicate init of key 1",
        "2: no such key in this store",
        "'other': no such key in this store",
        "key 100000: a process's first store takes 0 to 39999",
        "servers lose the rows of row_sparse values",
        "this store has the connection of one that compresses",
    ],
}


@pytest.mark.parametrize("way", REFUSALS)
def test_what_a_store_cannot_do_right_is_refused(tmp_path, way):
    job = run(tmp_path, "shapes.py", *way.split(), with_us=True)
    assert "passed" not in job.stdout and "Traceback" not in job.text()
    for words in REFUSALS[way]:
        assert job.stdout.count(f"refused: {words}") == 2, job.text()


def test_a_trainer_that_does_not_use_the_store_is_told_of(tmp_path):
    job = run(tmp_path, "shapes.py", "alone", with_us=True)
    assert job.status == 0 and job.stderr.count("this worker trained alone") == 2, job.text()


ALIKE = [-0.5] * 3 + [0.5] * 3  # weights and biases after the step of `names.py`


def test_parameters_that_another_worker_only_counts_otherwise_are_the_same(tmp_path):
    assert weights(run(tmp_path, "names.py", "counts", with_us=True)) == ALIKE


@pytest.mark.parametrize("way, n", [("order", 0), ("chance", 0), ("shapes", 2)])
def test_parameters_that_another_worker_does_not_have_are_named_in_a_line(tmp_path, way, n):
    job = run(tmp_path, "names.py", way, with_us=True)
    assert job.status == 2 and "Traceback" not in job.text()
    assert f"error: the Trainer's parameter {n} is " in job.last_words()


def test_plain_mxnet_swaps_parameters_that_another_worker_sorts_otherwise(tmp_path):
    assert weights(run(tmp_path, "names.py", "order", with_us=False)) != ALIKE


def test_every_worker_has_the_first_weights_before_it_pushes(tmp_path):
    job = run(tmp_path, "first_weights.py", with_us=True)
    assert job.status == 0 and job.stdout.count(" 0 weights are wrong") == 2, job.text()


def test_programs_without_a_distributed_store_run_apart_and_the_launcher_says_so(tmp_path):
    command = (sys.executable, PROGRAMS / "apart.py")
    job = Job(tmp_path, "-n", 2, "-s", 1, "--no-check", "--start-timeout", 3, *command)
    job.finish(timeout=60)
    assert job.status == 0 and job.stdout.count("rank 0") == 2, job.text()
    assert job.stderr.count("no worker made a dist store: 2 programs ran apart") == 1


@pytest.mark.horovod
@pytest.mark.parametrize("servers", [(), ("-s", 0), ("-s", 2)], ids=["unsaid", "0", "2"])
def test_horovods_programs_are_recognised_or_refused_in_a_line(tmp_path, servers):
    command = (sys.executable, PROGRAMS / "with_horovod.py")
    job = launch(tmp_path, "-n", 2, *servers, "--no-check", *command, env={"PYTHONPATH": ""})
    if 2 in servers:
        assert job.status == 2 and "Traceback" not in job.text()
        assert "this program uses Horovod: start the job with -s 0" in job.last_words()
    else:
        assert weights(job) == [2, 3]
        assert ("the program imports Horovod" in job.last_words()) == (not servers)


@pytest.mark.horovod
def test_a_store_without_servers_is_refused_in_a_line(tmp_path):
    command = (sys.executable, PROGRAMS / "first_weights.py")
    job = launch(tmp_path, "-n", 2, "-s", 0, "--no-check", *command, env={"PYTHONPATH": ""})
    assert job.status == 2 and "Traceback" not in job.text()
    assert "-s 0 is for Horovod: this program needs servers" in job.last_words()


def test_stores_of_both_kinds_in_one_process_are_refused_in_a_line(tmp_path):
    (tmp_path / "kinds.py").write_text(
        "import mxnet as mx\nmx.kv.create('dist')\nmx.kv.create('dist_async')\n"
    )
    job = launch(tmp_path, "-n", 2, "-s", 1, sys.executable, tmp_path / "kinds.py")
    assert job.status == 2 and "Traceback" not in job.text()
    assert "error: dist_async: this process has a store of kind dist" in job.last_words()


def test_a_python_that_does_not_look_at_pythonpath_is_named(tmp_path):
    command = (sys.executable, "-E", PROGRAMS / "first_weights.py")
    job = launch(tmp_path, "-n", 2, "-s", 1, "--no-check", *command)
    assert job.status == 0 and "[launch] worker 0, worker 1: MXNet stayed as it is" in job.stderr


def test_module_fit_with_image_record_iter_learns(tmp_path):
    kinds = ("dist_sync", "dist")
    sync, same = (weights(run(tmp_path, "module_fit.py", tmp_path, k, with_us=True)) for k in kinds)
    assert sync == same and sync[-1] == 1


def test_a_program_like_gluoncvs_trains(tmp_path):
    first_device, second_device = weights(run(tmp_path, "gluoncv_style.py", with_us=True))
    assert first_device == second_device


@pytest.mark.parametrize(
    "way, status, words",
    [
        ("last step", 0, ""),
        ("raise", 1, "ValueError: odd"),
        ("3", 3, "worker 1 on localhost: ended with status 3"),
        ("no data", 1, "no data"),
        ("caught", 0, ""),
    ],
)
def test_with_us_a_program_that_ends_early_ends_the_job(tmp_path, way, status, words):
    job = run(tmp_path, "ends.py", way, with_us=True)
    assert job.status == status, job.text()
    assert "hung in its exit" not in job.text()
    assert words in job.last_words()


def test_with_us_an_exception_in_a_callback_ends_a_worker(tmp_path):
    job = run(tmp_path, "ends.py", "callback", with_us=True)
    assert job.status == 1 and "ZeroDivisionError" in job.last_words()


def test_sparse_gradients_which_the_servers_cannot_take_end_the_job_with_the_cause(tmp_path):
    """Not with the hundred frames of imports that Python prints after it."""
    job = run(tmp_path, "ends.py", "sparse", with_us=False)
    assert job.status == 134 and "Check failed: " in job.last_words()
    assert "importlib" not in job.last_words()
    assert "hint: sparse_grad=True does this on a dist store" in job.last_words()


@pytest.mark.parametrize("way, with_us", [("last step", False), ("fewer", True)])
def test_workers_that_wait_for_one_at_its_end_get_a_hint(tmp_path, way, with_us):
    job = start(tmp_path, "ends.py", way, with_us=with_us)
    job.wait_for("came to the end of the program, and worker ")
    job.interrupt()
    job.finish(timeout=30)


def test_the_program_that_the_notebooks_readme_shows_gives_the_same_weights_on_1_to_3(tmp_path):
    """61 examples in batches of 60: in each epoch only one worker has an example of the last."""
    text = (ROOT / "notebooks" / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    found = {}
    for count in (1, 2, 3):
        saved = program.replace("out/own", str(tmp_path / f"{count}"))
        (tmp_path / "shown.py").write_text(AROUND + saved + PRINT)
        job = launch(tmp_path, "-n", count, "-s", 1, sys.executable, tmp_path / "shown.py")
        assert job.status == 0, job.text()
        found[count] = np.float64(re.findall(r"weights (.*)", job.stdout)[0].split())
        assert job.stdout.count(" ".join(map(str, np.float32(found[count])))) == count
    assert np.allclose(found[1], found[2], atol=1e-6) and np.allclose(found[1], found[3], atol=1e-6)


def test_a_worker_that_skips_an_update_warns(tmp_path):
    job = run(tmp_path, "ends.py", "stale", with_us=True)
    assert "dense0_bias: no new gradient on this worker" in job.stderr, job.text()
