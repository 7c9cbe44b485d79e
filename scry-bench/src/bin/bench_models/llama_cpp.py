"""llama.cpp as the peer of decoders on processors: the C library inside of the Python package
`xllamacpp`, called with ctypes.

As a peer, the program sets FILE and THREADS before this text, then reads a request per line and
prints the seconds of a call. Alone, `llama_cpp.py FILE PROMPTS` prints the logits and the greedy
tokens of the prompts of a JSON file: the data of tests of scry-models.
"""
import ctypes
import importlib.metadata
import importlib.util
import json
import struct
import sys
import time

VERSION = importlib.metadata.version("xllamacpp")
PACKAGE = importlib.util.find_spec("xllamacpp").submodule_search_locations[0]
library = ctypes.CDLL(f"{PACKAGE}/xllamacpp.abi3.so")


class ModelParameters(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 0x50)]


class ContextParameters(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 0xA8)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32)] + [
        (name, ctypes.c_void_p)
        for name in ("tokens", "embeddings", "positions", "counts", "sequences", "logits")
    ]


# Offsets of `llama_context_params`: CONTEXT, BATCH and so on are numbers of 32 bits.
CONTEXT, MICRO_BATCH, DECODE_THREADS, THREADS_OF_BATCH, FLASH, KEYS, VALUES = (
    0x00, 0x08, 0x1C, 0x20, 0x34, 0x68, 0x6C,
)

pointer = ctypes.c_void_p
for name, result, arguments in [
    ("llama_model_default_params", ModelParameters, []),
    ("llama_context_default_params", ContextParameters, []),
    ("llama_model_load_from_file", pointer, [ctypes.c_char_p, ModelParameters]),
    ("llama_init_from_model", pointer, [pointer, ContextParameters]),
    ("llama_model_get_vocab", pointer, [pointer]),
    ("llama_vocab_n_tokens", ctypes.c_int32, [pointer]),
    ("llama_get_memory", pointer, [pointer]),
    ("llama_memory_clear", None, [pointer, ctypes.c_bool]),
    ("llama_decode", ctypes.c_int32, [pointer, Batch]),
    ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_int32]),
    ("llama_log_set", None, [pointer, pointer]),
    ("llama_backend_init", None, []),
]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments

# Messages of loading are long.
quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, pointer)(lambda *_: None)
library.llama_log_set(ctypes.cast(quiet, pointer), None)
library.llama_backend_init()


class Model:
    def __init__(self, file, threads, is_exact):
        """With `is_exact` the cache is f32, and attention is computed without its fused kernel."""
        model = library.llama_model_load_from_file(
            str(file).encode(), library.llama_model_default_params()
        )
        if not model:
            sys.exit(f"llama.cpp cannot load {file}")
        self.vocabulary = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))
        parameters = library.llama_context_default_params()
        number = lambda at: struct.unpack_from("<i", parameters.bytes, at)[0]
        # The defaults: 4 threads, flash attention if it is supported, and a cache of f16.
        found = [number(at) for at in (DECODE_THREADS, THREADS_OF_BATCH, FLASH, KEYS, VALUES)]
        if found != [4, 4, -1, 1, 1]:
            sys.exit(f"xllamacpp {VERSION} has other parameters than 2026.10.11549: {found}")
        changes = {CONTEXT: 2048, DECODE_THREADS: threads, THREADS_OF_BATCH: threads}
        if is_exact:
            changes |= {FLASH: 0, KEYS: 0, VALUES: 0}
        for at, value in changes.items():
            struct.pack_into("<i", parameters.bytes, at, value)
        self.context = library.llama_init_from_model(model, parameters)
        if not self.context:
            sys.exit("llama.cpp cannot create a context")

    def clear(self):
        library.llama_memory_clear(library.llama_get_memory(self.context), True)

    def decode(self, tokens):
        """Adds tokens to the context, and returns the logits after the last one."""
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        batch = Batch(count=len(tokens), tokens=ctypes.addressof(array))
        if library.llama_decode(self.context, batch) != 0:
            sys.exit("llama_decode failed")
        return library.llama_get_logits_ith(self.context, -1)


def measure(action):
    """Returns the seconds of an action by the clock, and keeps those of the processor."""
    global processor
    start, before = time.perf_counter(), time.process_time()
    action()
    processor = time.process_time() - before
    return time.perf_counter() - start


def prompt(count):
    model.clear()
    tokens = [(at * 7919 + 13) % model.vocabulary for at in range(count)]
    return measure(lambda: model.decode(tokens))


def steps(context, count):
    """Tokens are given, so that none has to be found among the logits."""
    prompt(context)
    return measure(lambda: [model.decode([(at * 31 + 7) % 4096]) for at in range(count)])


def processor_of_last():
    return processor


def print_logits(file, prompts):
    model = Model(file, 1, True)
    rows = []
    for ids in (entry["ids"] for entry in json.load(open(prompts))["prompts"]):
        model.clear()
        row = model.decode(ids)[: model.vocabulary]
        best = sorted(range(len(row)), key=lambda token: -row[token])[:20]
        entry = {
            "ids": ids,
            "top": [[token, round(row[token], 3)] for token in best],
            "every_997th": [round(it, 3) for it in row[::997]],
            "greedy": [],
            "margins": [],
        }
        for _ in range(24):
            second, first = sorted(range(len(row)), key=row.__getitem__)[-2:]
            entry["greedy"].append(first)
            entry["margins"].append(round(row[first] - row[second], 3))
            row = model.decode([first])[: model.vocabulary]
        rows.append(entry)
    print(json.dumps({"source": f"llama.cpp in xllamacpp {VERSION}", "prompts": rows}))


if len(sys.argv) == 3:
    print_logits(*sys.argv[1:])
else:
    model = Model(FILE, THREADS, False)
    print(f"llama.cpp in xllamacpp {VERSION}, {THREADS} threads", flush=True)
    for line in sys.stdin:
        name, *numbers = line.split()
        print(globals()[name](*map(int, numbers)), flush=True)
