"""What notebook 10 does in PyTorch, where it is installed, and a file of its results beside it.

PyTorch wants a newer NumPy than MXNet, so it lives in an environment of its own:

    python3 -m venv .venv-peers && .venv-peers/bin/pip install torch==2.13.0 numpy
    .venv-peers/bin/python notebooks/programs/pytorch_side.py NAME ARGUMENT ...   # one, as JSON
    .venv-peers/bin/python notebooks/programs/pytorch_side.py save                # keep all

``from_gluon`` needs a file that the notebook writes, so its result is not saved. The notebook
imports this file without PyTorch, to show its functions.
"""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
SAVED = HERE.with_suffix(".json")
sys.path.append(str(HERE.parents[2] / "benchmarks" / "peers"))
try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
    from torch_networks import create_network
except ImportError:
    torch = None


def examples():
    """21 examples of 4 numbers, their classes (0, 1, 2), and the first weights, shape (3, 4)."""
    draw = np.random.RandomState(0)
    x, first = draw.randn(21, 4).astype("float32"), draw.randn(3, 4).astype("float32")
    return x, draw.randint(0, 3, 21), first


def drawn(shapes):
    """Draw the arrays of a network, by PyTorch's names; BatchNorm's scales are 1."""
    draw, arrays = np.random.RandomState(0), {}
    for name, shape in shapes.items():
        if name.endswith("running_var"):
            arrays[name] = draw.uniform(0.5, 1.5, shape)
        elif name.endswith("weight") and len(shape) == 1:
            arrays[name] = np.ones(shape)
        else:
            arrays[name] = draw.randn(*shape) / np.sqrt(np.prod(shape[1:]))
        arrays[name] = arrays[name].astype("float32")
    return arrays


def one_device():
    x, y, first = map(torch.from_numpy, examples())
    net = nn.Linear(4, 3)
    net.load_state_dict({"weight": first, "bias": torch.zeros(3)})
    loss = nn.CrossEntropyLoss()  # one number: the mean over the batch
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for data, label in zip(x.split(8), y.split(8)):  # batches of 8, 8 and 5
        optimizer.zero_grad()
        error = loss(net(data), label)
        error.backward()
        optimizer.step()
        losses.append(error.item())
    return {"losses": losses, "weight": net.weight.tolist()}


def falling_rate():
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    path = []
    for step in range(20):
        optimizer.param_groups[0]["lr"] = 0.1 if step < 10 else 0.01
        weight.grad = torch.ones(1)  # the same slope in every step
        optimizer.step()
        path.append(weight.item())
    return path


def batchnorm():
    norm = nn.BatchNorm2d(1)
    norm(torch.tensor([0.0, 1.0, 2.0, 3.0]).reshape(4, 1, 1, 1))  # one batch, in training mode
    found = {"momentum": norm.momentum, "eps": norm.eps}
    return dict(found, mean=norm.running_mean.item(), var=norm.running_var.item())


def first_weights():
    torch.manual_seed(0)
    layers = {"dense": nn.Linear(1000, 100), "convolution": nn.Conv2d(64, 100, 3)}
    return {
        name: {"std": layer.weight.std().item(), "bias": layer.bias.abs().max().item()}
        for name, layer in layers.items()
    }


def split(length, count):
    samplers = [DistributedSampler(range(length), count, r, shuffle=False) for r in range(count)]
    return [list(sampler) for sampler in samplers]


def data_parallel_steps():
    dist.init_process_group("gloo")  # rank, world size and address: from torchrun
    x, y, first = map(torch.from_numpy, examples())
    net = nn.Linear(4, 3)
    net.load_state_dict({"weight": first, "bias": torch.zeros(3)})
    model = DistributedDataParallel(net)
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    data_set = TensorDataset(x, y)
    sampler = DistributedSampler(data_set, shuffle=False)
    weights = []
    for data, label in DataLoader(data_set, batch_size=4, sampler=sampler):
        optimizer.zero_grad()
        loss(model(data), label).backward()  # gradients are averaged over the ranks here
        optimizer.step()
        weights.append(net.weight.tolist())
    return weights


def scores_of_drawn_weights():
    net = create_network("fast")
    shapes = {k: list(v.shape) for k, v in net.state_dict().items() if "num_batches" not in k}
    net.load_state_dict({k: torch.from_numpy(v) for k, v in drawn(shapes).items()}, strict=False)
    images = np.random.RandomState(1).randn(4, 3, 32, 32).astype("float32")
    with torch.no_grad():
        scores = net.eval()(torch.from_numpy(images))
    return {"shapes": shapes, "scores": scores.tolist()}


def from_gluon(path):
    file = np.load(path)
    arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    images, expected = arrays.pop("images"), arrays.pop("scores")  # Gluon's, of these images
    net = create_network("fast")
    missing = net.load_state_dict(arrays, strict=False)
    assert not missing.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in missing.missing_keys)
    with torch.no_grad():
        scores = net.eval()(images)
    return {
        "largest difference": (scores - expected).abs().max().item(),
        "largest score": expected.abs().max().item(),
        "images": len(images),
        "same class": (scores.argmax(1) == expected.argmax(1)).sum().item(),
    }


ON_TWO = [data_parallel_steps]
SAVABLE = [one_device, falling_rate, batchnorm, first_weights, split, *ON_TWO]
SAVABLE += [scores_of_drawn_weights]
ARGUMENTS = {split: (21, 2)}


def python_of_pytorch():
    """Return the path of a Python that has PyTorch, or None if there is none.

    It is looked for in ``.venv-peers``, where ``make bench`` puts it, or where the environment
    variable ``TUTORIAL_PYTORCH`` says: the path of a Python.
    """
    python = os.environ.get("TUTORIAL_PYTORCH", HERE.parents[2] / ".venv-peers" / "bin" / "python")
    return python if Path(python).exists() else None


def in_pytorch(function, *arguments):
    """Return what a function gives in PyTorch: now if it is installed, else what was saved."""
    python = python_of_pytorch()
    if python:
        answer = _ask(python, function, *arguments)
        print(f"PyTorch {answer['version']}, run now")
    else:
        answer = json.loads(SAVED.read_text(encoding="utf-8"))[function.__name__]
        print(f"PyTorch {answer['version']}, as saved on {answer['date']}")
    return answer["result"]


def _ask(python, function, *arguments):
    words = [python, HERE, function.__name__, *map(str, arguments)]
    if function in ON_TWO:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        words[1:1] = launcher
    environ = dict(os.environ, OMP_NUM_THREADS="1")
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        words, env=environ, capture_output=True, encoding="utf-8", errors="replace", timeout=120
    )
    if done.returncode:
        raise RuntimeError(f"{function.__name__} failed in {python}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(name, *arguments):
    """Print one result as JSON, or save all."""
    if name == "save":
        kept = {
            function.__name__: _ask(sys.executable, function, *ARGUMENTS.get(function, ()))
            for function in SAVABLE
        }
        SAVED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        return
    function = next(one for one in [*SAVABLE, from_gluon] if one.__name__ == name)
    words = [int(word) if word.isdigit() else word for word in arguments]
    result = function(*words)
    if not dist.is_initialized() or dist.get_rank() == 0:
        facts = {"version": torch.__version__.partition("+")[0]}
        facts["date"] = datetime.date.today().isoformat()
        print(json.dumps(dict(facts, result=result)))
    if dist.is_initialized():
        dist.barrier()  # a rank that is still connected aborts if the other one has gone
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
