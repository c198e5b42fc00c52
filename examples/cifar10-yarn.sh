#!/bin/bash
# Train on YARN: two containers, each with a worker, which uses all GPUs that it gets, and a server.
# From the folder of this repository, after `make setup`, on a disk that the nodes share:
#
#     examples/cifar10-yarn.sh                                        # CIFAR-10
#     examples/cifar10-yarn.sh --data synthetic --num-epochs 4        # no network needed
#     GPUS=0 MEMORY=1g CORES=1 examples/cifar10-yarn.sh               # smaller, no GPUs
#
# The job ends with this script, so start it where it can stay (tmux). Ctrl-C lets the workers save;
# started again, with the same OUT, it goes on from its checkpoint.

OUT=${OUT:-out/cifar10-yarn}    # logs and checkpoints
GPUS=${GPUS:-4}                 # of each container; the cluster must count them (yarn.io/gpu)
MEMORY=${MEMORY:-8g}            # of a worker; its server needs three times its weights
CORES=${CORES:-8}

exec .venv/bin/python tools/launch.py -n 2 --launcher yarn --jobname cifar10 --max-restarts 3 \
    --worker-memory "$MEMORY" --server-memory 1g --worker-cores "$CORES" --job-dir "$OUT" \
    $([[ $GPUS == 0 ]] || echo "--launcher-option=-container_resources=yarn.io/gpu=$GPUS") \
    .venv/bin/python cifar10_dist/cifar10_dist.py --num-epochs 20 \
    --model-prefix "$OUT/model" --resume auto "$@"
