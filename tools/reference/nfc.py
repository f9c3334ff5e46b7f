#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/nfc.json: SHA-256 of what NFC of the `tokenizers` library 0.23.3 makes of each code point alone and among others.
usage: nfc.py > tests/golden/tokenizer/nfc.json"""
import hashlib
import json
import random
import unicodedata

from tokenizers import normalizers

nfc = normalizers.NFC().normalize_str
EVERY = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
FORMS = [("", ""), ("a", "\u0334"), ("a\u0345", ""), ("e\u0327", "\u0301"), ("\u1100", "\u11a8"), ("\uac00", ""), ("\u0915", "\u093c"), ("\u212b", "\u0323")]


def digest(texts):
    sha = hashlib.sha256()
    for text in texts:
        sha.update(nfc(text).encode() + b"\n")
    return sha.hexdigest()


# Pairs of Unicode 14 that compose, and marks in random order.
pairs = []
for c in EVERY:
    parts = unicodedata.decomposition(chr(c)).split()
    if len(parts) == 2 and "<" not in parts[0]:
        pairs.append("".join(chr(int(x, 16)) for x in parts))
rng = random.Random(1)
pool = [p for pair in pairs for p in pair] + [chr(c) for c in EVERY if unicodedata.combining(chr(c))]
mixed = ["".join(rng.choice(pool) for _ in range(rng.randint(2, 9))) for _ in range(4000)]
rows = [{"before": a, "behind": b, "sha256": digest(a + chr(c) + b for c in EVERY)} for a, b in FORMS]
print(json.dumps({"every_code_point": rows, "texts": [{"text": t, "nfc": nfc(t)} for t in mixed if nfc(t) != t][:1500], "pairs_sha256": digest(pairs), "pairs": pairs}, separators=(",", ":")))
