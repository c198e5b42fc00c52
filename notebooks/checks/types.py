"""The checks of the notebook on mixed precision."""

import json

import numpy as np
from sixteen_bits import follow_scale

from checks import exercise, fault_of_parts, function

# One line a step of a training in float16 on four workers, as a stranger kept it.
STRANGERS_LOG = """\
step 409: scale 8192, own loss: rank 0 1.92, rank 1 1.88, rank 2 1.95, rank 3 1.90
step 410: scale 8192, own loss: rank 0 1.89, rank 1 1.93, rank 2 1.87, rank 3 1.91
step 411: scale 8192, own loss: rank 0 1.90, rank 1 1.86, rank 2 nan, rank 3 1.94, skipped
step 412: scale 8192, own loss: rank 0 1.91, rank 1 1.90, rank 2 nan, rank 3 1.88, skipped
step 413: scale 4096, own loss: rank 0 1.90, rank 1 1.92, rank 2 nan, rank 3 1.93, skipped
step 425: scale 1, own loss: rank 0 1.91, rank 1 1.89, rank 2 nan, rank 3 1.90, skipped
step 426: scale 0.5, own loss: rank 0 1.88, rank 1 1.93, rank 2 nan, rank 3 1.91, skipped
"""


@exercise("09", 3)
def check_diagnosis(answer):
    """Check ``{"rank": …, "first_step": …, "cause": …}`` against the stranger's log."""
    rows = [line for line in STRANGERS_LOG.splitlines() if "nan" in line]
    wanted = {"rank": 2, "first_step": int(rows[0].split()[1].rstrip(":")), "cause": "data"}
    hints = {
        "rank": "whose own loss is not a number?",
        "first_step": "in which step does that begin?",
        "cause": "would a smaller scale not have cured it? The loss itself is computed in float32",
    }
    return fault_of_parts(answer, wanted, hints)


@exercise("09", 2)
def check_skips(answer):
    """Check ``{gradient: predicted skips}`` by running MXNet's scaler."""
    wanted = {size: int(sum(follow_scale(size, 1500)[1])) for size in (0.5, 40, 5000)}
    hint = "MXNet's scaler skips another number of steps"
    return fault_of_parts(answer, wanted, lambda size: hint)


@exercise("09", 1, like=function)
def check_scaled_step(scaled_step):
    """Check a step of SGD with a loss scale, against NumPy."""
    good = ([2e-5, -2, 1], 1024.0, 0.1), ([3, -1, 2], 2.0, 0.5)
    bad = ([np.inf, 1, 0], 65536.0, 0.1), ([np.nan, 0, 1], 2.0, 0.1), ([0, 1, -np.inf], 8.0, 0.1)
    for numbers, scale, lr in good + bad:
        weight, gradient = np.array([0, 0, 1], "float32"), np.array(numbers, "float16")
        wanted, next_scale = weight - lr * gradient.astype("float32") / scale, scale
        if not np.isfinite(gradient).all():
            wanted, next_scale = weight, scale / 2
        case = f"gradient {json.dumps([str(g) for g in gradient])}, scale {scale:g}, lr {lr:g}"
        try:
            new, new_scale = scaled_step(weight.copy(), gradient.copy(), lr, scale)
        except Exception as error:
            return f"{case}: {type(error).__name__}: {error}"
        if np.shape(new) != (3,) or not np.allclose(new, wanted, rtol=1e-3, atol=0):
            return f"{case}: the weight should become {wanted}, not {new}"
        if np.ndim(new_scale) or new_scale != next_scale:
            return f"{case}: the next scale should be {next_scale:g}, not {new_scale!r}"
    return ""
