"""gluon_dist.Checkpoint: a program of a user's own that was stopped ends like one that was not."""

import os
import random
import re
import shutil
import signal
import sys
import time

import gluon_dist as gd
from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.statistics import restore_statistics
from gluon_dist.common.errors import UsageError

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon
from mxnet.gluon import nn

from launching import PROGRAMS, Job
from restarting import ENVIRONMENT, finished

TIME_BUDGET_S = 90
PROGRAM = str(PROGRAMS / "own_job.py")
SLOW = ("--pause", "0.5")
END = re.compile(r"End of worker \d: (\w+)")


def own(folder, *options, workers=0, servers=1, launch=()):
    """Start the program; return the job."""
    arguments = (folder / "m", *options)
    if not workers:
        return Job(folder, *arguments, env=ENVIRONMENT, program=PROGRAM)
    command = (sys.executable, PROGRAM, *arguments)
    return Job(folder, "-n", workers, "-s", servers, *launch, *command, env=ENVIRONMENT)


def end_of(job):
    """The checksum with which all workers ended."""
    (found,) = set(END.findall(finished(job).text()))
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Train to the end without a disturbance, once for each number of workers; the checksum."""
    known = {}

    def train(workers):
        if workers not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            known[workers] = end_of(own(folder, workers=workers))
        return known[workers]

    return train


def stop(job, who, number, moment="epoch 1 step 1"):
    """Send a signal to a worker or server; without a launcher to the one process."""
    job.wait_for(moment)
    os.kill(job.top(who) if who else job.pid, number)


def test_a_program_told_to_stop_within_an_epoch_ends_like_one_that_was_not(tmp_path, undisturbed):
    job = own(tmp_path, *SLOW)
    stop(job, None, signal.SIGUSR1)
    assert "Stopped and saved" in finished(job, 75).text()
    assert re.search("m-0001-0000[23].json", str(list(tmp_path.iterdir())))
    assert end_of(own(tmp_path)) == undisturbed(0)


@pytest.mark.parametrize(
    "servers", [1, pytest.param(0, marks=[pytest.mark.horovod, pytest.mark.long])]
)
def test_a_job_of_which_one_worker_is_told_to_stop_ends_like_one_that_was_not(
    tmp_path, undisturbed, servers
):
    job = own(tmp_path, *SLOW, workers=2, servers=servers)
    stop(job, "worker-1", signal.SIGTERM)
    finished(job, 75)
    assert end_of(own(tmp_path, workers=2, servers=servers)) == undisturbed(2)


@pytest.mark.long
@pytest.mark.parametrize("who", ["worker-0", "worker-1", "server-0"])
def test_a_job_of_which_a_process_is_killed_starts_again_and_ends_like_one_that_was_not(
    tmp_path, undisturbed, who
):
    launch = ("--max-restarts", 2, "--min-uptime", 0)
    job = own(tmp_path, *SLOW, workers=2, launch=launch)
    moment = f"epoch {random.randrange(1, 3)} step {random.randrange(4)}"
    stop(job, who, signal.SIGKILL, moment)
    assert end_of(job) == undisturbed(2) and "Resumed from" in job.text(), moment


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 3])
def test_a_program_goes_on_with_another_number_of_workers(tmp_path, workers):
    """Without dropout and BatchNorm, which depend on how the batch is cut."""
    (tmp_path / "other").mkdir()
    finished(own(tmp_path / "other", "gan", "plain"))
    job = own(tmp_path, "gan", "plain", *SLOW, workers=2)
    stop(job, "worker-0", signal.SIGTERM)
    finished(job, 75)
    finished(own(tmp_path, "gan", "plain", workers=workers))
    ours, theirs = np.load(tmp_path / "m.npz"), np.load(tmp_path / "other" / "m.npz")
    for name in theirs.files:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-4)


@pytest.mark.long
def test_an_asynchronous_job_goes_on_and_says_once_what_is_not_saved(tmp_path):
    options = ("one", "exact", "--store", "dist_async")
    job = own(tmp_path, *options, *SLOW, workers=2)
    stop(job, "worker-1", signal.SIGTERM)
    finished(job, 75)
    saved = files.find(str(tmp_path / "m"))[0]
    saved.manifest.worker_steps[1] = 4  # that worker has none left of this epoch
    saved.manifest.write(f"{saved.name}.json")
    again = finished(own(tmp_path, *options, "--late", 0.5, workers=2)).text()
    assert "Resumed from" in again and again.count("momenta and the like") == 1
    assert len(set(END.findall(again))) == 1
    saved, ended = mx.nd.load(str(tmp_path / "m-0003.params")), np.load(tmp_path / "m.npz")
    for name in ended.files:  # also what worker 1 has pushed after worker 0's last step
        assert (saved[name.replace("judge.", "", 1)].asnumpy() == ended[name]).all(), name


def test_one_worker_that_raises_ends_the_job_and_what_was_saved_stays(tmp_path):
    job = own(tmp_path, "--fail", 1, workers=2)
    finished(job, 1)
    assert "RuntimeError: as told" in job.text()
    assert [entry.epoch for entry in files.find(str(tmp_path / "m"))] == [1]
    assert not list(tmp_path.glob(".*.saving"))


def test_workers_that_make_different_calls_at_the_end_of_an_epoch_are_told(tmp_path):
    job = own(tmp_path, "one", "plain", "--asks", 0, workers=2)
    finished(job, 1)
    text = "worker 0 calls get of the metric loss, worker 1 the end of epoch 0 in Checkpoint.epochs"
    assert text in job.text()


def test_a_second_job_with_another_network_is_refused_with_a_line(tmp_path):
    finished(own(tmp_path, "one", "--num-epochs", "1"))
    job = finished(own(tmp_path, "one", "--outputs", "4"), status=2)
    assert "Traceback" not in job.text() and "has the shape (3, 64), which is (4, 0) here" in (
        job.text()
    )


# In this process.


def make(optimizer="adam", outputs=2, ctx=None, in_units=0, **layers):
    mx.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=in_units), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(outputs))
    for layer in layers.values():
        net.add(layer)
    net.initialize(ctx=ctx or mx.cpu())
    net.hybridize()
    return net, gd.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})


def loader(batch_size=6, seed=0):
    x = np.random.RandomState(0).normal(size=(20, 3)).astype("float32")
    return gd.DataLoader(gluon.data.ArrayDataset(x, x[:, :1]), batch_size, seed=seed)


def train(job, net, trainer, num_epochs=3, act=None, batches=None):
    """Train; ``act(job, epoch, step)`` disturbs. Return the parameters."""
    ctx = net[0].weight.list_ctx()
    for epoch in job.epochs(num_epochs):
        for step, batch in enumerate(job.steps(batches or loader())):
            if act:
                act(job, epoch, step)
            with mx.autograd.record():
                losses = [((net(x) - y) ** 2).sum() for x, y in batch.split(ctx)]
            gd.backward(losses)
            trainer.step(batch.global_size)
    return values(net)


def values(net):
    ctx = net[0].weight.list_ctx()[0]
    return b"".join(p.data(ctx).asnumpy().tobytes() for p in net.collect_params().values())


def start(prefix, keep=None, **options):
    net, trainer = make(**options)
    return gd.Checkpoint(prefix, net, trainer, keep), net, trainer


def at(disturb, moment=(1, 1)):
    """Do something in one step of one epoch."""

    def act(job, *now):
        if now == moment:
            disturb(job)

    return act


def ask(job):
    """A thread takes the request."""
    os.kill(os.getpid(), signal.SIGUSR1)
    while not job._session.stopper.is_requested:
        time.sleep(0.001)


def interrupt(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("optimizer", ["adam", "nag", "adamax"])
def test_it_goes_on_within_an_epoch_to_the_last_bit(tmp_path, optimizer, devices):
    options = {"optimizer": optimizer, "ctx": [mx.cpu(i + 1) for i in range(devices)]}
    expected = train(*start(tmp_path / "a", **options))
    with pytest.raises(SystemExit, match="75"):
        train(*start(tmp_path / "b", **options), act=at(ask))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert train(*start(tmp_path / "b", in_units=3, **options)) == expected  # as known shapes


def test_a_loop_that_was_interrupted_and_runs_again_in_the_process_goes_on(tmp_path):
    expected = train(*start(tmp_path / "a"))
    job, net, trainer = start(tmp_path / "b")
    for act in (at(interrupt), at(interrupt)):
        with pytest.raises(KeyboardInterrupt) as held:  # with its frames, as in a notebook
            train(job, net, trainer, act=act)
    assert train(job, net, trainer) == expected and held
    again, net, trainer = start(tmp_path / "b")
    assert train(again, net, trainer) == expected
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert not list(tmp_path.glob(".*"))


def test_a_finished_training_goes_on_to_more_epochs_and_keeps_the_newest(tmp_path):
    expected = train(*start(tmp_path / "a"), num_epochs=4)
    job, net, trainer = start(tmp_path / "b", keep=2)
    train(job, net, trainer)
    assert train(job, net, trainer, num_epochs=4) == expected
    assert [entry.epoch for entry in files.find(str(tmp_path / "b"))] == [4, 3]
    plain = make()[0]
    plain.load_parameters(str(tmp_path / "b-0004.params"))
    assert values(plain) == expected


def test_a_loop_after_a_restore_by_hand_loads_nothing_again(tmp_path, capsys):
    job, net, trainer = start(tmp_path / "a")
    train(job, net, trainer)
    job.restore()
    capsys.readouterr()
    train(job, net, trainer, num_epochs=4)
    assert "Resumed" not in capsys.readouterr().out


def test_loops_of_ones_own_save_by_hand_and_keep_their_facts(tmp_path):
    job, net, _ = start(tmp_path / "a")
    assert job.restore() == (0, 0) and not job.should_stop()
    net(mx.nd.ones((2, 3)))
    job.facts["best"] = 0.5
    job.save(2, 7, rates=[1, 2])
    ask(job)
    assert job.should_stop()
    job.close()
    other, again, _ = start(tmp_path / "a")
    assert other.restore() == (2, 7) and values(again) == values(net)
    assert other.facts == {"best": 0.5, "rates": [1, 2]}
    with pytest.raises(TypeError, match=r"facts: .*float32 is not JSON"):
        other.save(3, best=np.float32(1))
    assert other.facts["best"] == 0.5
    other.close()


def test_what_is_saved_after_a_break_is_what_the_network_is_now(tmp_path):
    job, net, trainer = start(tmp_path / "a")
    train(job, net, trainer, num_epochs=1)
    for _ in job.epochs(5):
        net[0].weight.set_data(mx.nd.ones((4, 3)))
        break
    job.save(2)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    other, again, _ = start(tmp_path / "a")
    assert other.restore() == (2, 0) and (again[0].weight.data().asnumpy() == 1).all()
    other.close()


def test_save_before_restore_is_refused(tmp_path):
    job, *_ = start(tmp_path / "a")
    with pytest.raises(RuntimeError, match=r"save: call restore\(\)"):
        job.save(1)


def test_shared_parameters_are_put_back(tmp_path):
    first = nn.Dense(2, in_units=2)
    layers = {"a": first, "b": nn.Dense(2, in_units=2, params=first.params)}
    expected = train(*start(tmp_path / "a", **layers))
    first = nn.Dense(2, in_units=2)
    layers = {"a": first, "b": nn.Dense(2, in_units=2, params=first.params)}
    job, net, _ = start(tmp_path / "a", **layers)
    assert job.restore() == (3, 0) and values(net) == expected
    job.close()


def test_whole_numbers_are_saved_and_put_back(tmp_path):
    for begun in (1, 2):
        layer = nn.Dense(2, in_units=2)
        layer.counts = layer.params.get_constant("counts", mx.nd.full(3, begun, dtype="int32"))
        layer.initialize()
        job = gd.Checkpoint(tmp_path / "a", layer, gd.Trainer(layer.collect_params(), "sgd"))
        job.restore()
        job.save(1)
        job.close()
    assert layer.counts.data().dtype == np.int32
    assert layer.counts.data().asnumpy().tolist() == [1] * 3


def test_statistics_find_their_layers_however_many_were_made_before(tmp_path):
    def made(prefix, before):
        with mx.name.NameManager():
            layers = [nn.BatchNorm() for _ in range(before + 2)]
            return start(tmp_path / prefix, a=layers[-2], b=layers[-1])

    expected = train(*made("whole", 8))
    with pytest.raises(SystemExit):
        train(*made("a", 8), act=at(ask))
    assert train(*made("a", 9)) == expected  # batchnorm10 stands before batchnorm9


def test_statistics_of_an_older_version_are_in_the_order_of_names():
    net = nn.Sequential()
    with mx.name.NameManager():
        net.add(*[nn.BatchNorm(in_channels=1) for _ in range(11)][8:])
    net.initialize()
    restore_statistics(net, {"statistics": np.arange(6).reshape(1, 1, 6)}, 0)
    assert [layer.running_mean.data().asscalar() for layer in net] == [2, 4, 0]


@pytest.fixture
def saved(tmp_path):
    """A folder with checkpoints of two epochs, and one within the third."""
    with pytest.raises(SystemExit):
        train(*start(tmp_path / "a"), act=at(ask, (2, 1)))
    return tmp_path


@pytest.mark.parametrize("ending", ["json", "params", "state"])
@pytest.mark.parametrize("damage", ["flip", "gone"])
def test_a_damaged_checkpoint_is_told_and_the_one_before_is_taken(saved, capsys, damage, ending):
    expected = train(*start(saved / "b"))
    (path,) = saved.glob(f"a-0002-*.{ending}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if damage == "gone":
        path.unlink()
    assert train(*start(saved / "a")) == expected
    said = capsys.readouterr()
    assert "a-0002: 2 epochs done" in said.out
    assert (path.name in said.err) == ((damage, ending) != ("gone", "json"))


def refusal(prefix, **options):
    job, net, trainer = start(prefix, **options)
    with pytest.raises(UsageError) as error:
        train(job, net, trainer)
    with pytest.raises(UsageError):  # and it does not begin anew the second time
        job.restore()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    return str(error.value)


def test_what_does_not_fit_is_refused_in_a_line_that_names_it(saved):
    kept = {path.name: path.read_bytes() for path in saved.iterdir()}
    assert "3.weight has the shape (2, 4), which is (5, 0) here" in refusal(saved / "a", outputs=5)
    assert "it has no 4.weight" in refusal(saved / "a", more=nn.Dense(1))
    net, trainer = make()
    job = gd.Checkpoint(saved / "a", {"maker": net}, {"maker": trainer})
    with pytest.raises(UsageError, match="of one trainer without a name, and here is"):
        job.restore()
    job, net, trainer = start(saved / "a")
    with pytest.raises(UsageError, match="whose batch size was 6, which is 5 here"):
        train(job, net, trainer, batches=loader(5))
    job, net, trainer = start(saved / "a")
    with pytest.raises(UsageError, match="whose seed was 0, which is 1 here"):
        train(job, net, trainer, batches=loader(seed=1))
    assert {path.name: path.read_bytes() for path in saved.glob("a*")} == kept


def test_checkpoints_and_parameters_of_other_programs_are_refused(tmp_path):
    earlier = PROGRAMS.parent / "checkpoint" / "of_an_earlier_version" / "plain"
    for path in earlier.glob("model-*"):
        shutil.copy(path, tmp_path)
    assert "another program saved it" in refusal(tmp_path / "model")
    mx.nd.save(str(tmp_path / "own-0001.params"), {"0.weight": mx.nd.ones((4, 3))})
    assert "own-0001.params has no manifest" in refusal(tmp_path / "own")


def test_another_optimizer_begins_anew_and_says_so(saved, capsys):
    job, *_ = start(saved / "a", optimizer="sgd")
    job.restore()
    assert "the optimizer is SGD, and Adam was saved: it begins anew" in capsys.readouterr().err
    job.close()


def test_a_parameter_that_no_network_has_is_named(tmp_path):
    net, trainer = make()
    with pytest.raises(ValueError, match=r"batchnorm.*: a trainer has it, and it is in no network"):
        gd.Checkpoint(tmp_path / "a", net[0], trainer)
