#!/bin/sh
# Install the GPU packages and use them on this machine, with a stand-in for NVIDIA's driver:
#   sh tests/gpu_install/run.sh [PYTHON]
# `make test-gpu-install` runs it. Needs gcc; 2 GB to download, 5 GB of disk below build/.
set -eu
here=$(dirname "$0")
root=$here/../..
build=$root/build/gpu-install

"${1:-python3}" "$root/tools/make_venv.py" --device gpu --venv "$build/venv"
${CC:-gcc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$build/libcuda.so.1" "$here/libcuda.c"
LD_LIBRARY_PATH=$build "$build/venv/bin/python" "$here/check.py"
