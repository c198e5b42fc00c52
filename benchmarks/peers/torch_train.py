#!/usr/bin/env python3
"""The PyTorch program that ours is compared with: one process, or DDP over gloo under torchrun.

    python torch_train.py --network resnet18 --batch-size 256 --channels-last
    torchrun --nproc-per-node 2 torch_train.py --network resnet18 --batch-size 128

It trains on one repeated batch of random images and prints, every --disp-batches batches, the same
speed line as ours. It is tuned as PyTorch's documentation advises: channels-last, bfloat16
autocast, the fused optimizer, gradients as views of DDP's buckets, a static graph.
"""

import argparse
import os
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel
from torch_networks import create_network


def parse_args():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--network", choices=("resnet18", "fast"), default="resnet18")
    parser.add_argument("--batch-size", type=int, default=256, help="of one process")
    parser.add_argument("--num-batches", type=int, default=40)
    parser.add_argument("--disp-batches", type=int, default=10)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true", help="by torch.compile, one process")
    parser.add_argument("--fp16-hook", action="store_true", help="DDP: send gradients in float16")
    parser.add_argument("--threads", type=int, help="of one process; default: all it may use")
    return parser.parse_args()


def main():
    """Train, and print speed lines."""
    args = parse_args()
    num_workers = int(os.environ.get("WORLD_SIZE", 1))
    threads = args.threads or max(1, len(os.sched_getaffinity(0)) // num_workers)
    torch.set_num_threads(threads)
    rank = 0
    if num_workers > 1:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
    torch.manual_seed(0)
    memory_format = torch.channels_last if args.channels_last else torch.contiguous_format
    net = create_network(args.network).to(memory_format=memory_format)
    learned = [p for p in net.parameters() if p.requires_grad]
    num_parameters = sum(p.numel() for p in learned)
    if args.network == "fast":
        optimizer = torch.optim.SGD(learned, lr=0.01, momentum=0.9, nesterov=True, fused=True)
        loss = nn.CrossEntropyLoss(label_smoothing=0.2)
    else:
        optimizer = torch.optim.Adam(learned, lr=0.001, fused=True)
        loss = nn.CrossEntropyLoss()
    model = torch.compile(net) if args.compile else net
    if num_workers > 1:
        model = DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph=True)
        if args.fp16_hook:
            model.register_comm_hook(None, fp16_compress_hook)
    data = torch.rand(args.batch_size, 3, 32, 32).to(memory_format=memory_format)
    label = torch.randint(0, 10, (args.batch_size,))
    start = time.time()
    for step in range(1, args.num_batches + 1):
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bfloat16"):
            error = loss(model(data), label)
        optimizer.zero_grad(set_to_none=num_workers == 1)
        error.backward()
        optimizer.step()
        if step == 1 and rank == 0:
            print(f"First batch at {time.time():.3f}", flush=True)
        if step % args.disp_batches == 0:
            seconds, start = time.time() - start, time.time()
            if rank == 0:
                speed = args.disp_batches * args.batch_size / seconds
                print(f"Batch [{step}]\tSpeed: {speed:.2f} samples/sec", flush=True)
    if rank == 0:
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"Parameters: {num_parameters}\nPeak memory: {peak_mb:.1f} MB", flush=True)
    if num_workers > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
