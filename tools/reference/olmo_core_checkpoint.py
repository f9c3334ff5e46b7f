"""Checks tools/olmo-core-to-safetensors against OLMo-core's own reading of the same checkpoint, bit for bit, and its placing of chunks against numpy.

usage: python3 tools/reference/olmo_core_checkpoint.py STEP_DIRECTORY OUT      (OUT: what the tool wrote)
ai2-olmo-core 2.4.0, which wrote the checkpoint; torch 2.15.0, safetensors 0.8.0, numpy 2.4.6
"""
import importlib.machinery
import importlib.util
import os
import sys

import numpy
import torch
import torch.distributed.checkpoint as dcp
from olmo_core.distributed.checkpoint import RemoteFileSystemReader
from safetensors.torch import load_file
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

loader = importlib.machinery.SourceFileLoader("tool", os.path.join(os.path.dirname(__file__), "..", "olmo-core-to-safetensors"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("tool", loader))
loader.exec_module(tool)


def check_tensors(step, out):
    reader = RemoteFileSystemReader(os.path.join(step, "model_and_optim"))
    entries = reader.read_metadata().state_dict_metadata
    state = {k: torch.empty(e.size, dtype=e.properties.dtype) for k, e in entries.items() if isinstance(e, TensorStorageMetadata)}
    dcp.load(state, storage_reader=reader)
    compared = 0
    for file, key in (("model", "model.{}"), ("exp_avg", "optim.state.{}.exp_avg"), ("exp_avg_sq", "optim.state.{}.exp_avg_sq")):
        ours = load_file(os.path.join(out, file + ".safetensors"))
        names = {tool.hugging_face_name(k[6:]): k[6:] for k in entries if k.startswith("model.")}
        assert set(ours) == set(names), (file, set(ours) ^ set(names))
        for hf, core in names.items():
            theirs = state[key.format(core)].float()
            assert torch.equal(ours[hf].view(torch.int32), theirs.view(torch.int32)), (file, hf)
            compared += 1
    print(f"{compared} tensors equal, bit for bit")


def check_placing():
    r = numpy.random.default_rng(1)
    for _ in range(200):
        shape = tuple(int(n) for n in r.integers(1, 6, size=r.integers(1, 4)))
        whole = r.standard_normal(shape).astype("<f4")
        axis = int(r.integers(0, len(shape)))
        cuts = sorted({0, shape[axis], *(int(c) for c in r.integers(0, shape[axis] + 1, size=2))})
        out = bytearray(whole.nbytes)
        for begin, end in zip(cuts, cuts[1:]):
            start = [0] * len(shape)
            start[axis] = begin
            chunk = whole.take(range(begin, end), axis)
            tool.place(out, shape, chunk.tobytes(), chunk.shape, tuple(start))
        assert bytes(out) == whole.tobytes(), (shape, axis, cuts)
    print("200 splittings placed right")


check_placing()
check_tensors(*sys.argv[1:])
