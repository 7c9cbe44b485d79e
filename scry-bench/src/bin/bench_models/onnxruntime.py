"""onnxruntime as the peer of encoders on processors: exports the encoder in FOLDER by PyTorch, then
reads a request per line, and prints the seconds of a call.

The program sets FOLDER and THREADS before this text.
"""
import pathlib
import sys
import time

import numpy
import onnxruntime
import torch
from transformers import BertModel

folder = pathlib.Path(FOLDER)


class Pooled(torch.nn.Module):
    """The mean of the tokens' vectors, with length 1."""

    def __init__(self):
        super().__init__()
        self.model = BertModel.from_pretrained(
            folder / "encoder", attn_implementation="eager", add_pooling_layer=False
        )

    def forward(self, tokens, mask):
        hidden = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state
        weights = mask[..., None].float()
        return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)


def export(path):
    example = torch.ones((1, 8), dtype=torch.int64)
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(
        Pooled().eval(), (example, example), path, input_names=["tokens", "mask"],
        output_names=["vectors"], dynamic_axes={"tokens": axes, "mask": axes}, dynamo=False,
    )


def inputs(length):
    """The tokens that the program uses, too: a function of the position."""
    tokens = (numpy.arange(length, dtype=numpy.int64)[None] * 7919 + 13) % 30522
    return {"tokens": tokens, "mask": numpy.ones_like(tokens)}


def vector(length):
    vectors = session.run(None, inputs(length))[0]
    (folder / f"vectors-1-{length}.bin").write_bytes(vectors.astype("<f4").tobytes())
    return 0.0


def embed(calls, length):
    values = inputs(length)
    start = time.perf_counter()
    for _ in range(calls):
        session.run(None, values)
    return (time.perf_counter() - start) / calls


with torch.inference_mode():
    export(str(folder / "encoder.onnx"))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = THREADS
session = onnxruntime.InferenceSession(
    str(folder / "encoder.onnx"), options, providers=["CPUExecutionProvider"]
)
print(f"onnxruntime {onnxruntime.__version__}, {THREADS} threads", flush=True)
for line in sys.stdin:
    name, *numbers = line.split()
    print(globals()[name](*map(int, numbers)), flush=True)
