"""The files in examples/, submitted as they are to the real systems, on the cluster."""

import pytest

from launching import ROOT, accuracies, cluster, why_no_cluster

TIME_BUDGET_S = 60
SHARES = "batch systems"
WHY_NOT = why_no_cluster("slurm", "sge")
pytestmark = [pytest.mark.long, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]
SMALL = "--data synthetic --num-examples 512 --network resnet --num-layers 8 --batch-size 64"


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2", "--with", "slurm,sge")
    yield
    cluster("down")


@pytest.mark.parametrize(
    "submit",
    [
        "sbatch --wait --gres=none --cpus-per-task=1 {out} examples/cifar10.sbatch",
        "sbatch --wait --gres=gpu:2 {out} examples/cifar10.sbatch",
        "qsub -sync y -l gpu=2 {out} examples/cifar10.qsub",
    ],
)
def test_an_example_trains_on_two_hosts(tmp_path, submit):
    """Only what this cluster has less of is changed, by options of sbatch and qsub."""
    out = tmp_path / "out"
    command = submit.format(out=f"-o {out}")
    small = f"{SMALL} --num-epochs 1 --model-prefix {tmp_path}/model"
    done = cluster("ssh", "d1", f"cd {ROOT} && {command} {small}", check=False)
    said = out.read_text()
    assert done.returncode == 0, said + done.stderr
    ((first, second),) = accuracies(said)  # of both workers, in one epoch
    assert first == second and "[worker 1 d2] Epoch 0: Test_acc" in said
