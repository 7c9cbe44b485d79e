"""PyTorch as a peer: reads a request per line (a function and its arguments), prints the seconds.

Device work is timed with events around `repeats` calls; round trips and graphs by the host's clock.
"""
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
device = torch.device("cuda")
cache = {}


def uniform(*shape):
    return torch.rand(*shape, device=device) - 0.5


def cached(key, make):
    """Returns the operands of a measurement, created once; only the latest are cached."""
    if key not in cache:
        cache.clear()
        torch.cuda.empty_cache()
        cache[key] = make()
    return cache[key]


def events(call, repeats):
    call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / repeats


def gemm(m, n, k, repeats):
    a, b, c = cached(("gemm", m, n, k), lambda: (uniform(m, k), uniform(k, n), uniform(m, n)))
    return events(lambda: torch.mm(a, b, out=c), repeats)


def gemm_f16(m, n, k, repeats):
    a, b, c = cached(("gemm_f16", m, n, k),
                     lambda: (uniform(m, k).half(), uniform(k, n).half(), uniform(m, n).half()))
    return events(lambda: torch.mm(a, b, out=c), repeats)


def copy(n, repeats):
    x, y = cached(("copy", n), lambda: (uniform(n), uniform(n)))
    return events(lambda: y.copy_(x), repeats)


def saxpy(n, repeats):
    x, y = cached(("saxpy", n), lambda: (uniform(n), uniform(n)))
    return events(lambda: torch.add(y, x, alpha=0.5, out=y), repeats)


def total(n, repeats):
    (x,) = cached(("sum", n), lambda: (uniform(n),))
    return events(lambda: torch.sum(x), repeats)


def round_trip(repeats):
    (x,) = cached(("round_trip",), lambda: (uniform(64),))
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        x.add_(1.0)
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def capture(nodes):
    x = uniform(256)
    x.add_(1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            x.add_(1.0)
    return graph, x


def graph(nodes, repeats):
    graph, _ = cached(("graph", nodes), lambda: capture(nodes))
    graph.replay()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        graph.replay()
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats / nodes


calls = {"gemm": gemm, "gemm_f16": gemm_f16, "copy": copy, "saxpy": saxpy, "sum": total, "round_trip": round_trip,
         "graph": graph}
print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
for line in sys.stdin:
    name, *numbers = line.split()
    print(calls[name](*map(int, numbers)), flush=True)
