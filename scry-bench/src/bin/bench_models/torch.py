"""PyTorch and transformers as peers of models: writes the models to FOLDER, then reads a request per
line, and prints the seconds of a call.

The program sets FOLDER and LAYERS before this text.
"""
import functools
import json
import pathlib
import subprocess
import sys
import time

import torch

torch.manual_seed(1)
torch.set_grad_enabled(False)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
folder = pathlib.Path(FOLDER)


def synchronize():
    if device.type == "cuda":
        torch.cuda.synchronize()


def write_encoder():
    """Saves a BERT of MiniLM's shape with random weights, and what sentence-transformers adds."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, max_position_embeddings=512, hidden_act="gelu",
        layer_norm_eps=1e-12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    for name, weight in model.named_parameters():
        # The initial weights are so small that layers hardly matter.
        if weight.dim() == 2 and "embeddings" not in name:
            weight.mul_(2.5)
    path = folder / "encoder"
    model.save_pretrained(path, safe_serialization=True)
    (path / "1_Pooling").mkdir(exist_ok=True)
    (path / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (path / "modules.json").write_text('[{"type": "sentence_transformers.models.Normalize"}]')
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    special = lambda name, id: {"id": name, "ids": [id], "tokens": [name]}
    token = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    single = [token("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, token("[SEP]")]
    vocabulary = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "text": 1000}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
        "post_processor": {
            "type": "TemplateProcessing", "single": single, "pair": single,
            "special_tokens": {"[CLS]": special("[CLS]", 101), "[SEP]": special("[SEP]", 102)},
        },
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))


def tokens(batch, length):
    """The tokens that the program uses, too: a function of the position."""
    at = torch.arange(batch * length).reshape(batch, length)
    return (at * 7919 + 13) % 30522


class Embed(torch.nn.Module):
    """The pipeline of sentence-transformers: the mean of the tokens' vectors, with length 1."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        weights = mask[..., None].float()
        mean = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=-1)


def encoder(batch, length, is_compiled):
    from transformers import BertModel

    model = BertModel.from_pretrained(
        folder / "encoder", add_pooling_layer=False, dtype=torch.float16
    ).eval().to(device)
    embed = Embed(model)
    if is_compiled:
        embed = torch.compile(embed, mode="max-autotune", fullgraph=False)
    ids = tokens(batch, length).to(device)
    mask = torch.ones_like(ids)

    def call():
        torch.compiler.cudagraph_mark_step_begin()
        with torch.inference_mode():
            return embed(ids, mask)

    if not is_compiled:
        vectors = call().float().cpu().numpy().astype("<f4")
        (folder / f"vectors-{batch}-{length}.bin").write_bytes(vectors.tobytes())
    return call


def encoder_eager(batch, length):
    return encoder(batch, length, False)


def encoder_compiled(batch, length):
    return encoder(batch, length, True)


@functools.lru_cache(maxsize=1)
def decoder_model(context, is_compiled):
    """The model of a context. Long and short generations share it, so that transformers reuses the
    static cache of the long one, and compiles once."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.compiler.reset()
    config = LlamaConfig(
        vocab_size=49152, hidden_size=576, num_hidden_layers=LAYERS, num_attention_heads=9,
        num_key_value_heads=3, intermediate_size=1536, max_position_embeddings=8192,
        rms_norm_eps=1e-5, rope_theta=100000.0, tie_word_embeddings=True,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval().to(device, torch.bfloat16)


def decoder(context, steps, is_compiled):
    """Generation; if compiled, with a cache of fixed size and by transformers' own means."""
    model = decoder_model(context, is_compiled)
    ids = (torch.arange(context)[None] * 7919 + 13) % 49152
    ids = ids.to(device)
    options = dict(
        do_sample=False, min_new_tokens=steps, max_new_tokens=steps, use_cache=True,
        attention_mask=torch.ones_like(ids),
    )
    if is_compiled:
        # transformers compiles the forward of a static cache itself.
        options["cache_implementation"] = "static"

    def call():
        with torch.inference_mode():
            return model.generate(ids, **options)

    return call


def decoder_eager(context, steps):
    return decoder(context, steps, False)


def decoder_compiled(context, steps):
    return decoder(context, steps, True)


COLD = """
import time
start = time.perf_counter()
import torch
from transformers import BertModel
torch.set_grad_enabled(False)
model = BertModel.from_pretrained({path!r}, add_pooling_layer=False, dtype=torch.float16).eval().cuda()
if {compiled}:
    model = torch.compile(model, mode="max-autotune")
ids = torch.full((1, 16), 1000).cuda()
with torch.inference_mode():
    hidden = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.float()
    vector = torch.nn.functional.normalize(hidden.mean(1), dim=-1)
    vector.cpu()
print(time.perf_counter() - start)
"""


def cold(is_compiled):
    """Seconds of a new process until its first vector. Its caches are those of earlier ones."""
    program = COLD.format(path=str(folder / "encoder"), compiled=bool(is_compiled))
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    lines = result.stdout.split()
    if result.returncode or not lines:
        sys.stderr.write(result.stderr[-2000:])
        return float("nan")
    return float(lines[-1])


cache = {}


def cached(name, arguments):
    """Returns the call of a measurement, created and warmed up once; only the latest is kept."""
    key = (name, arguments)
    if key not in cache:
        cache.clear()
        call = globals()[name](*arguments)
        # A generation is hundreds of calls of a model.
        for _ in range(1 if name.startswith("decoder") else 4):
            call()
        synchronize()
        cache[key] = call
    return cache[key]


import transformers

write_encoder()
name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {name}", flush=True)
for line in sys.stdin:
    name, calls, *arguments = line.split()
    calls, arguments = int(calls), tuple(int(it) for it in arguments)
    try:
        if name == "cold":
            seconds = cold(*arguments)
        else:
            call = cached(name, arguments)
            start = time.perf_counter()
            for _ in range(calls):
                call()
            synchronize()
            seconds = (time.perf_counter() - start) / calls
    except Exception as error:
        sys.stderr.write(f"{name}{arguments}: {error}\n")
        seconds = float("nan")
    print(seconds, flush=True)
