"""What importing MXNet and its companions changes of the process: no more than is known."""

import json
import os
import subprocess
import sys

from launching import PROGRAMS, ROOT

TIME_BUDGET_S = 8
# Set by gluon_dist; by tensorboardX; by OpenCV and GluonCV, of use to nothing here.
OURS = {"$OMP_NUM_THREADS", "$MXNET_SETUP_THREADS", "$MXNET_USE_NUM_CORES_OPERATOR_TUNING"}
THEIRS = {"$CRC32C_SW_MODE", "$KMP_DUPLICATE_LIB_OK"}
OPENCV = {"$LD_LIBRARY_PATH", "$QT_QPA_FONTDIR", "$QT_QPA_PLATFORM_PLUGIN_PATH"}
# GluonCV lets Pillow pass half pictures (records.py forbids it again); MXNet prints a stack trace
# when it crashes.
KNOWN = {"half pictures", "native signal handlers"}


def test_imports_change_of_the_process_only_what_is_known():
    modules = ("gluon_dist", "mxnet", "tensorboardX", "onnx", "gluoncv")
    program = [sys.executable, PROGRAMS / "what_imports_change.py", *modules]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist")}
    for name in OURS | THEIRS | OPENCV:
        env.pop(name[1:], None)
    changed = set(json.loads(subprocess.run(program, env=env, stdout=subprocess.PIPE).stdout))
    assert "half pictures" in changed
    assert changed <= OURS | THEIRS | OPENCV | KNOWN
