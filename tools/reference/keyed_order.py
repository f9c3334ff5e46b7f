#!/usr/bin/env python3
"""The data order of docs/data.md, "Order", a second time: Philox 4x32-10 and the Feistel walk in plain integers, XXH3 from the xxhash package.

Usage: keyed_order.py > tests/golden/data/keyed_order.json     (Python 3.11, xxhash 4.1.0)
"""
import json

import xxhash

MASK32 = 0xFFFFFFFF
ROUNDS = 10


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK32, (a >> 32) ^ c[3] ^ k[1], a & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


# Random123 1.09, kat_vectors.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def draw(seed, name, index):
    key = xxhash.xxh3_64_intdigest(seed.to_bytes(8, "little") + name.encode())
    words = philox([index & MASK32, index >> 32, 0, 0], [key & MASK32, key >> 32])
    return words[1] << 32 | words[0]


def permute(position, size, seed, epoch):
    half = 1
    while 1 << (2 * half) < size:
        half += 1
    mask = (1 << half) - 1
    value = position
    while True:
        left, right = value >> half, value & mask
        for r in range(ROUNDS):
            left, right = right, left ^ (draw(seed, f"data order, epoch {epoch}, round {r}", right) & mask)
        value = left << half | right
        if value < size:
            return value


def batch(step, size, count, seed):
    positions = range((step - 1) * count, step * count)
    return [permute(p % size, size, seed, p // size) for p in positions]


CASES = [(1, 1, 0, 1), (2, 1, 0, 3), (11, 3, 5, 1), (11, 3, 5, 4), (12, 12, 1234, 2), (80412, 8, 0, 1), (80412, 8, 2**64 - 1, 10052),
         (2**33 + 7, 4, 42, 2**31)]

if __name__ == "__main__":
    rows = [{"instances": n, "batch": b, "seed": s, "step": t, "ids": batch(t, n, b, s)} for n, b, s, t in CASES]
    print(json.dumps({"rows": rows}, indent=1))
