#!/usr/bin/env python3
"""Adds to tests/golden/tokenizer/unicode_classes.json what the `tokenizers` library (0.23.3) shows of its other Unicode tables, one code point at a time:
    word         \\w in the search for added tokens with single_word
    numeric      what the pre-tokenizer Digits takes for a number
    nfc_trigger  code points that NFC may change or move: another form by themselves, a combining class, or the second of a composition
    nfc_base     code points that compose with a trigger behind them, or are compositions themselves
The last two are those of Unicode 9, which the library's NFC has: newer code points are left alone.   usage: unicode_probe.py CLASSES.json"""
import json
import sys
import unicodedata

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

EVERY = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
nfc = normalizers.NFC().normalize_str


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return {"count": len(points), "ranges": out}


def word():
    tok = Tokenizer(models.BPE(vocab={"\u0001": 0}, merges=[]))  # no letter: what the model knows would pass for no word character
    tok.add_tokens([AddedToken("xyz", single_word=True, normalized=False)])
    left = {c for c in EVERY if not tok.encode(chr(c) + "xyz").ids}
    assert left == {c for c in EVERY if not tok.encode("xyz" + chr(c)).ids}
    return left


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {c for c in EVERY if len(digits.pre_tokenize_str("a" + chr(c))) == 2}


def moves(c):
    """A combining class: the mark goes behind U+0334 (class 1) or before U+0345 (class 240)."""
    m = chr(c)
    behind = nfc("a" + m + "\u0334")
    return (c != 0x334 and len(behind) == 3 and behind[1] == "\u0334") or nfc("a\u0345" + m) == "a" + m + "\u0345"


def normalization():
    first, second, composed = set(range(0xAC00, 0xD7A4)) | set(range(0x1100, 0x1113)), set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3)), set()
    for c in EVERY:
        parts = unicodedata.decomposition(chr(c))
        pair = [int(x, 16) for x in parts.split()] if parts and parts[0] != "<" else []
        if len(pair) == 2 and nfc(chr(pair[0]) + chr(pair[1])) == chr(c):
            first.add(pair[0]), second.add(pair[1]), composed.add(c)
    trigger = {c for c in EVERY if c and (nfc(chr(c)) != chr(c) or moves(c))} | second
    return trigger, (first | composed) - trigger


path = sys.argv[1]
classes = json.load(open(path, encoding="utf-8"))
trigger, base = normalization()
classes |= {"word": ranges(word()), "numeric": ranges(numeric()), "nfc_trigger": ranges(trigger), "nfc_base": ranges(base)}
classes["source_of_the_others"] = "tools/reference/unicode_probe.py, tokenizers 0.23.3"
json.dump(classes, open(path, "w", encoding="utf-8"), separators=(",", ":"))
