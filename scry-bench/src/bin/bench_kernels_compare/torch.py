"""PyTorch as a peer of the kernel library: reads a request per line, prints the seconds.

A request is the state of the caches (`flushed`, or `used` by the same call), a function, an element type
and sizes. One call is timed with events.
"""
import sys

import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
device = torch.device("cuda")
types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
flush = torch.empty(256 << 20, dtype=torch.uint8, device=device)
WARM_UPS = 4
cache = {}


def uniform(dtype, *shape):
    return (torch.rand(*shape, device=device) * 2 - 1).to(types[dtype])


def cached(key, make):
    """Returns the call of a measurement, created and warmed up once; only the latest is cached."""
    if key not in cache:
        cache.clear()
        torch.cuda.empty_cache()
        cache[key] = make()
        cache[key]()
    return cache[key]


def timed(call, caches):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if caches == "flushed":
        flush.fill_(1)
    else:
        for _ in range(WARM_UPS):
            call()
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / getattr(call, "count", 1)


def gemm(dtype, m, n, k):
    a, b, c = uniform(dtype, m, k), uniform(dtype, k, n), uniform(dtype, m, n)
    return lambda: torch.mm(a, b, out=c)


class chain:
    """A graph of dependent products with alternating weights; the time is that of one product."""

    def __init__(self, dtype, m, n, k, copies):
        a, c = uniform(dtype, m, k), uniform(dtype, m, n)
        b = [uniform(dtype, k, n) for _ in range(copies)]
        rounds = -(-400 // copies)
        self.operands, self.count, self.graph = (a, b, c), rounds * copies, torch.cuda.CUDAGraph()
        torch.mm(a, b[0], out=c)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            for index in range(self.count):
                torch.mm(a, b[index % copies], out=c)

    def __call__(self):
        self.graph.replay()


def softmax(dtype, rows, length):
    x = uniform(dtype, rows, length)
    return lambda: torch.softmax(x, -1)


def layer_norm(dtype, rows, length):
    x, weight, bias = (uniform(dtype, *shape) for shape in ((rows, length), (length,), (length,)))
    return lambda: F.layer_norm(x, (length,), weight, bias, 1e-5)


def attention(dtype, batch, heads, length, head_dim, causal):
    q, k, v = (uniform(dtype, batch, heads, length, head_dim) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal != 0)


def transpose(dtype, rows, columns):
    x, y = uniform(dtype, rows, columns), uniform(dtype, columns, rows)
    return lambda: y.copy_(x.t())


def total(dtype, count):
    x = uniform(dtype, count)
    return lambda: torch.sum(x)


def conv2d(dtype, inputs, outputs, height, width, side):
    x, weights = uniform(dtype, 1, inputs, height, width), uniform(dtype, outputs, inputs, side, side)
    return lambda: F.conv2d(x, weights, padding=side // 2)


def cdist(dtype, count, dim):
    a, b = uniform(dtype, count, dim), uniform(dtype, count, dim)
    return lambda: torch.cdist(a, b)


def knn(dtype, points, dim, queries, k):
    p, q = uniform(dtype, points, dim), uniform(dtype, queries, dim)
    return lambda: torch.topk(torch.cdist(q, p), k, largest=False)


def cumsum(dtype, count):
    x = uniform(dtype, count)
    return lambda: torch.cumsum(x, 0)


def sort(dtype, count):
    x = torch.randint(-(2**31), 2**31 - 1, (count,), dtype=torch.int32, device=device)
    return lambda: torch.sort(x, stable=True)


calls = {"cumsum": cumsum, "sort": sort, "transpose": transpose, "sum": total, "cdist": cdist, "knn": knn, "conv2d": conv2d, "gemm": gemm, "chain": chain, "softmax": softmax, "layer_norm": layer_norm, "attention": attention}
print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
for line in sys.stdin:
    caches, name, dtype, *numbers = line.split()
    numbers = tuple(map(int, numbers))
    with torch.no_grad():
        call = cached((name, dtype, numbers), lambda: calls[name](dtype, *numbers))
        print(timed(call, caches), flush=True)
