#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/cases.json: small tokenizers with each supported flag, normalizer and split behaviour, and what the `tokenizers`
library 0.23.3 makes of some texts.   usage: tokenizer_cases.py > tests/golden/tokenizer/cases.json"""
import json
import random

from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors

import tokenizer_fuzz as fuzz

rng = random.Random(20)
nfc = normalizers.NFC()
bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
SIZE = 300


def made(pre, normalizer=None, size=SIZE, **more):
    return fuzz.trained(pre, normalizer, size=size, **more)


def tokenizers():
    yield "flags of added tokens", made(fuzz.split_then_bytes(Regex(fuzz.CL100K)), special=fuzz.SPECIAL, added=fuzz.FLAGGED)
    yield "flags of added tokens behind NFC", made(pre_tokenizers.ByteLevel(add_prefix_space=False), nfc, special=fuzz.SPECIAL, added=fuzz.FLAGGED)
    yield "ignore_merges", made(fuzz.split_then_bytes(Regex(fuzz.CL100K), "removed", True), ignore_merges=True, special=fuzz.SPECIAL)
    yield "prefix space", made(pre_tokenizers.ByteLevel(add_prefix_space=True), special=fuzz.SPECIAL, added=fuzz.FLAGGED)
    yield "prefix space at pieces", made(fuzz.split_then_bytes(Regex(r"\s+|[,.]"), "merged_with_next", prefix=True, use_regex=True))
    yield "small alphabet", made(fuzz.split_then_bytes(Regex(fuzz.QWEN2)), alphabet=False)
    yield "digits one by one", made(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), size=700)
    yield "digits together", made(pre_tokenizers.Sequence([pre_tokenizers.Digits(), bytes_only]), size=700)
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in fuzz.DEEPSEEK_LIKE]
    yield "several splits", made(pre_tokenizers.Sequence(steps + [bytes_only]))
    template = made(fuzz.split_then_bytes(Regex(fuzz.CL100K)), special=fuzz.SPECIAL)
    ids = [(t, template.token_to_id(t)) for t in ("<s>", "<|endoftext|>")]
    template.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<s> $A <|endoftext|>", pair="<s> $A $B", special_tokens=ids)])
    yield "template", template
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"Regex {behavior} {invert}", made(fuzz.split_then_bytes(Regex(r"\s|\p{N}{2}"), behavior, invert))
            yield f"String {behavior} {invert}", made(fuzz.split_then_bytes(" t", behavior, invert))


def byte_spans(text, spans):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[b], at[e]] for b, e in spans]


TEXTS = ["", " ", "a  b", "the tok [MASK] x [m]  y", "tok toks _tok the theme  the\u00e9 ", "cafe\u0301 caf\u00e9 cafe\u0301x  |||", "e\u0301\u0327 \u1100\u1161\u11a8 \u212b\u0958", "12 345 6789 \u0663\u0664 \u00bd \U00011de1",
         "<s>  a </s> x</s>y  <s> <|endoftext|>", "water something  this\n\n abababab averyveryverylongtokenofmanyletters", "a\n\n\n b [m] \n\n", "\U00011935\U00011930\u1abf\u0327", "i \u2b62 j"]


def main():
    out = []
    for name, tok in tokenizers():
        rows = []
        spec = json.loads(tok.to_str())
        for text in TEXTS + [fuzz.text(rng) for _ in range(25)]:
            tok.encode_special_tokens = False
            e = tok.encode(text, add_special_tokens=False)
            row = {"text": text, "ids": e.ids, "decoded": tok.decode(e.ids, skip_special_tokens=False)}
            if spec["normalizer"] is None and "flags" not in name and "prefix" not in name and "alphabet" not in name:
                row["char_bytes"] = byte_spans(text, e.offsets)
            if name == "template":
                row["ids_with_template"] = tok.encode(text, add_special_tokens=True).ids
            tok.encode_special_tokens = True
            literal = tok.encode(text, add_special_tokens=False).ids
            if literal != e.ids:
                row["ids_special_as_text"] = literal
            rows.append(row)
        out.append({"name": name, "tokenizer": spec, "rows": rows})
    print(json.dumps(out, separators=(",", ":")))


main()
