"""PyTorch as a peer of tensors and graphs: reads a request per line, prints the seconds of a call.

A request is a function, a number of calls, and sizes. The calls are timed with one wait at their end.
"""
import sys
import time

import torch
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_grad_enabled(False)
device = torch.device("cuda")
cache = {}


def cached(key, make):
    """Returns the call of a measurement, created and warmed up once; only the latest is cached."""
    if key not in cache:
        cache.clear()
        torch.cuda.empty_cache()
        cache[key] = make()
        for _ in range(5):
            cache[key]()
        torch.cuda.synchronize()
    return cache[key]


def compiled(function):
    """Compiles without CUDA graphs, which would copy the large input to memory of their own."""
    return torch.compile(function, mode="max-autotune-no-cudagraphs", fullgraph=True)


def chain(elements):
    x = torch.rand(elements, device=device)

    def function(x):
        for n in range(8):
            x = torch.clamp_min((x + 0.125) * 0.75, 0.01 * n)
        return x

    function = compiled(function)
    return lambda: function(x)


def special(elements):
    x = torch.rand(elements, device=device)

    def function(x):
        for _ in range(4):
            x = torch.exp(torch.tanh(x))
        return x

    function = compiled(function)
    return lambda: function(x)


def graphed(function):
    """Returns a replay of a CUDA graph of the function."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = function()
    replay = graph.replay
    replay_and_keep = lambda: (replay(), kept)[0]
    return replay_and_keep


def softmax(rows, columns):
    x = torch.randn(rows, columns, device=device)
    return graphed(lambda: torch.softmax(x, -1))


def layer_norm(rows, columns):
    x = torch.randn(rows, columns, device=device)
    return graphed(lambda: F.layer_norm(x, (columns,), None, None, 1e-5))


weights = {}


def layers(count, model, hidden):
    """Returns the weights of all layers, created once."""
    if not weights:
        def weight(outputs, inputs):
            w = torch.randn(outputs, inputs, device=device, dtype=torch.bfloat16)
            return w * (0.1 * inputs**-0.5)
        weights["all"] = [
            (weight(hidden, model), weight(hidden, model), weight(model, hidden)) for _ in range(count)
        ]
    return weights["all"]


class FeedForward(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        parameter = lambda weight: torch.nn.Parameter(weight, requires_grad=False)
        self.layers = torch.nn.ModuleList(
            torch.nn.ParameterList([parameter(weight) for weight in layer]) for layer in weights
        )

    def forward(self, x):
        for gate, up, down in self.layers:
            x = x + F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
        return x


def ffn_inputs(count, model, hidden, batch):
    x = torch.randn(batch, model, device=device, dtype=torch.bfloat16)
    return FeedForward(layers(count, model, hidden)).eval(), x


def ffn(*sizes):
    module, x = ffn_inputs(*sizes)
    return graphed(lambda: module(x))


def compiled_ffn(*sizes):
    """With CUDA graphs: the parameters of a module are not copied."""
    module, x = ffn_inputs(*sizes)
    module = torch.compile(module, mode="max-autotune", fullgraph=True)
    return lambda: module(x)


calls = {
    "chain": chain,
    "special": special,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "ffn": ffn,
    "compiled_ffn": compiled_ffn,
}
print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
for line in sys.stdin:
    name, count, *numbers = line.split()
    count, numbers = int(count), tuple(map(int, numbers))
    call = cached((name, numbers), lambda: calls[name](*numbers))
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    print((time.perf_counter() - start) / count, flush=True)
