"""The checks of the notebook for those who come from PyTorch."""

import json

import moving
import numpy as np
import pytorch_side

from checks import exercise, fault_of_parts, function

# The first weight before each of seven steps, on both sides; the rate falls after step 3.
STRANGERS_LOGS = """\
A  PyTorch  1.0000  0.9000  0.7100  0.4390  0.4046  0.3637  0.3168
   Gluon    1.0000  0.9000  0.7100  0.4390  0.1851 -0.0534 -0.2781
B  PyTorch  0.0182  0.0122  0.0008 -0.0155 -0.0175 -0.0200 -0.0228
   Gluon    0.0404  0.0324  0.0172 -0.0045 -0.0072 -0.0105 -0.0143
C  PyTorch  1.0000  0.9000  0.7100  0.4390  0.4046  0.3637  0.3168
   Gluon    1.0000  0.8000  0.4200 -0.1220 -0.1908 -0.2727 -0.3664
"""


@exercise("10", 1, like=function)
def check_set_rate(set_rate):
    """Compare the curve under a reader's ``set_rate`` with what PyTorch gave."""
    wanted = json.loads(pytorch_side.SAVED.read_text(encoding="utf-8"))["falling_rate"]["result"]
    try:
        path = moving.falling_rate(set_rate)
    except Exception as error:
        return f"your function raised {type(error).__name__}: {error}"
    ends = f"after 20 steps Gluon is at {path[-1]:.2f}, PyTorch at {wanted[-1]:.2f}"
    return "" if np.allclose(path, wanted, atol=1e-4) else ends


@exercise("10", 2)
def check_port(port):
    """Compare with what the same global batch and the same mean over it ask for."""
    hosts, gpus, batch, rate = 2, 4, 32, 0.1
    hints = {
        "-n": "a worker takes all GPUs of its host",
        "--batch-size": "it is that of a worker; the global batch stays the same",
        "--lr": "do both sides take the mean over the global batch?",
    }
    return fault_of_parts(port, {"-n": hosts, "--batch-size": batch * gpus, "--lr": rate}, hints)


@exercise("10", 3)
def check_causes(causes):
    """Compare with what was overlooked in each log."""
    wanted = {"A": "velocity", "B": "first weights", "C": "divisor"}
    hints = {
        "A": "up to which step do the two lines agree?",
        "B": "do they agree before the first step?",
        "C": "how much larger is the first step?",
    }
    return fault_of_parts(causes, wanted, hints)
