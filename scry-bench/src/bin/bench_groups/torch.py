"""PyTorch as a peer: one process for each GPU, which make the same calls with NCCL.

Rank 0 reads a request per line (a function and its arguments), passes it on to the other ranks, and
prints the seconds.
"""
import os
import sys
import time

WORLD = int(os.environ["BENCH_WORLD"])
os.environ["MASTER_ADDR"] = "127.0.0.1"
os.environ["MASTER_PORT"] = os.environ["BENCH_PORT"]
os.environ["WORLD_SIZE"] = str(WORLD)

# The ranks are forked before CUDA is used.
pipes = [os.pipe() for _ in range(WORLD - 1)]
rank = 0
for other in range(1, WORLD):
    if os.fork() == 0:
        rank = other
        break
os.environ["RANK"] = str(rank)
requests = sys.stdin if rank == 0 else os.fdopen(pipes[rank - 1][0])
for index, (reader, writer) in enumerate(pipes):
    if rank != 0:
        os.close(writer)
    if index != rank - 1:
        os.close(reader)
writers = [os.fdopen(writer, "w") for _, writer in pipes] if rank == 0 else []

import torch
import torch.distributed as dist

torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
dist.init_process_group("nccl", device_id=device)
torch.manual_seed(rank)
cache = {}


def cached(key, make):
    """Returns the operands of a measurement, created once; only the latest are cached."""
    if key not in cache:
        cache.clear()
        torch.cuda.empty_cache()
        cache[key] = make()
    return cache[key]


def timed(call, repeats):
    """Returns the seconds of a call, of `repeats` calls one after the other without a wait."""
    for _ in range(3):
        call()
    dist.barrier()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def zeros(n):
    return cached(("zeros", n), lambda: torch.zeros(n, device=device))


def all_reduce(n, repeats):
    x = zeros(n)
    return timed(lambda: dist.all_reduce(x), repeats)


def all_reduce_wait(n, repeats):
    x = zeros(n)

    def call():
        dist.all_reduce(x)
        torch.cuda.synchronize()

    return timed(call, repeats)


def all_reduce_graph(n, repeats):
    """Seconds of one of ten calls in a graph."""
    def make():
        x = torch.zeros(n, device=device)
        dist.all_reduce(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(10):
                dist.all_reduce(x)
        return x, graph

    _, graph = cached(("graph", n), make)
    return timed(graph.replay, repeats) / 10


def matmul(n, repeats):
    """The rows of a product, which stay where they are."""
    rows = n // WORLD
    random = lambda m: (torch.rand(m, n, device=device) - 0.5).bfloat16()
    a, b, c = cached(("matmul", n), lambda: (random(rows), random(n), random(rows)))
    return timed(lambda: torch.mm(a, b, out=c), repeats)


def matmul_gather(n, repeats):
    """The rows of a product, gathered on all ranks."""
    rows = n // WORLD
    random = lambda m: (torch.rand(m, n, device=device) - 0.5).bfloat16()
    a, b, c, all_rows = cached(
        ("gather", n), lambda: (random(rows), random(n), random(rows), random(n)))

    def call():
        torch.mm(a, b, out=c)
        dist.all_gather_into_tensor(all_rows, c)

    return timed(call, repeats)


if rank == 0:
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    print(f"PyTorch {torch.__version__}, NCCL {nccl}, {torch.cuda.get_device_name()}", flush=True)
while line := requests.readline():
    for writer in writers:
        writer.write(line)
        writer.flush()
    name, *numbers = line.split()
    seconds = torch.tensor([globals()[name](*map(int, numbers))], device=device)
    # The slowest rank counts.
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(seconds.item(), flush=True)
