"""PyTorch as a peer: reads one measurement a line, answers with its seconds.

Device work is timed with events round `repeats` calls, round trips and graphs by the host's clock.
"""
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
device = torch.device("cuda")
kept = {}


def uniform(*shape):
    return torch.rand(*shape, device=device) - 0.5


def keep(key, make):
    """What a measurement works on, made once; only the latest is kept."""
    if key not in kept:
        kept.clear()
        torch.cuda.empty_cache()
        kept[key] = make()
    return kept[key]


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
    a, b, c = keep(("gemm", m, n, k), lambda: (uniform(m, k), uniform(k, n), uniform(m, n)))
    return events(lambda: torch.mm(a, b, out=c), repeats)


def gemm_f16(m, n, k, repeats):
    a, b, c = keep(("gemm_f16", m, n, k),
                   lambda: (uniform(m, k).half(), uniform(k, n).half(), uniform(m, n).half()))
    return events(lambda: torch.mm(a, b, out=c), repeats)


def copy(n, repeats):
    x, y = keep(("copy", n), lambda: (uniform(n), uniform(n)))
    return events(lambda: y.copy_(x), repeats)


def saxpy(n, repeats):
    x, y = keep(("saxpy", n), lambda: (uniform(n), uniform(n)))
    return events(lambda: torch.add(y, x, alpha=0.5, out=y), repeats)


def total(n, repeats):
    (x,) = keep(("sum", n), lambda: (uniform(n),))
    return events(lambda: torch.sum(x), repeats)


def round_trip(repeats):
    (x,) = keep(("round_trip",), lambda: (uniform(64),))
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        x.add_(1.0)
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def captured(nodes):
    x = uniform(256)
    x.add_(1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            x.add_(1.0)
    return graph, x


def graph(nodes, repeats):
    graph, _ = keep(("graph", nodes), lambda: captured(nodes))
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
