"""Digests of made-up states, computed from the words of docs/checkpoints.md with the Python xxhash package (4.1.0) and numpy (2.4.6).

usage: python3 tools/reference/state_digest.py > tests/golden/digest/state_digest.json

Element i of a tensor has the bits (i * 2654435761 + seed) mod 2**32, so NaNs of every kind occur.
"""
import json
import struct

import numpy
import xxhash

BLOCK = 4096


def xxh(data):
    """(hex as printed: high word first, bytes as combined: low word first)"""
    number = xxhash.xxh3_128_intdigest(data)
    return "%032x" % number, struct.pack("<QQ", number & (2**64 - 1), number >> 64)


def tensor_digest(name, shape, seed):
    count = 1
    for size in shape:
        count *= size
    bits = ((numpy.arange(count, dtype=numpy.uint64) * 2654435761 + seed) % 2**32).astype("<u4")
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    bits[nan] = 0x7FC00000
    data = struct.pack("<I", len(name.encode())) + name.encode() + struct.pack("<I", len(shape))
    data += b"".join(struct.pack("<q", size) for size in shape)
    for begin in range(0, count, BLOCK):
        data += xxh(bits[begin:begin + BLOCK].tobytes())[1]
    return xxh(data)


def state(tensors):
    digests = {name: tensor_digest(name, shape, seed) for name, shape, seed in tensors}
    order = sorted(digests, key=lambda name: name.encode())
    total = xxh(b"".join(digests[name][1] for name in order))[0]
    return {
        "tensors": [{"name": n, "shape": s, "seed": x, "digest": digests[n][0]} for n, s, x in tensors],
        "total": total,
    }


CASES = [
    [],
    [("scalar", [], 7)],
    [("empty", [0, 3], 1)],
    [("block", [4096], 0x3F800000)],
    [("block_and_one", [4097], 3)],
    [("matrix", [3, 5000], 11)],
    [("model.layers.10.w", [5, 7], 1), ("model.layers.2.w", [5, 7], 2), ("model.norm", [33], 3), ("exp_avg.é", [2, 2, 2], 4)],
    [("large", [300, 4100], 99), ("Large", [8193], 98)],
]

print(json.dumps([state(case) for case in CASES], indent=1, ensure_ascii=False))
