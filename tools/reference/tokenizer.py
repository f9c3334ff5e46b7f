#!/usr/bin/env python3
"""The tokenizer goldens against their origin: tokenizers 0.23.3 (pip install tokenizers==0.23.3).

usage: tokenizer.py tests/golden/tokenizer            retrains every tokenizer of training.json, compares SHA-256 and ids
       tokenizer.py tests/golden/tokenizer --gpt2     writes gpt2-style.json and gpt2-style-ids.json (ByteLevel with its own pattern)
"""
import hashlib
import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

folder = pathlib.Path(sys.argv[1])
golden = json.loads((folder / "training.json").read_text(encoding="utf-8"))
texts = [s["text"] for s in golden["strings"]]
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())


def read(name):
    return (folder / name).read_bytes().decode("utf-8")


def lines(text):
    """Cut behind \\n only, as the library's file reader does."""
    return [part for part in text.replace("\n", "\n\0").split("\0") if part]


def retrain(row):
    tok = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(golden["pattern"]), behavior="removed", invert=True)
    tok.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    options = {k: v for k, v in row["options"].items() if k not in ("alphabet", "special")}
    trainer = trainers.BpeTrainer(vocab_size=row["vocab_size_asked"], show_progress=False, special_tokens=row["special_tokens"],
                                  initial_alphabet=alphabet if row["initial_alphabet"] else [], **options)
    text = read(row["corpus"])
    tok.train_from_iterator(lines(text) if row["feed"] == "lines" else [text], trainer)
    return tok


def compare():
    for row in golden["tokenizers"]:
        tok = retrain(row)
        same = hashlib.sha256(tok.to_str().encode()).hexdigest() == row["sha256"]
        ids = [tok.encode(text, add_special_tokens=False).ids for text in texts[: len(row["ids"])]]
        print(row["tokenizer"], "file", "same" if same else "DIFFERENT", "ids", "same" if ids == row["ids"] else "DIFFERENT")


def gpt2():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tok.train_from_iterator([read("corpus-mixed.txt"), read("corpus-code.txt")], trainer)
    # Of the older kind: matched behind a (missing) normalizer, not special, one text inside another.
    tok.add_tokens([AddedToken("  ", normalized=True), AddedToken("    ", normalized=True), AddedToken("<x>", normalized=False), AddedToken("é<", normalized=True)])
    extra = ["a  b", "a     b", "<x>  <x>é<x>", "é< é<|endoftext|>  x", "it's IT'S we'll", "12345 6\n\n7", "x\t\ty \n z", " \u00a0x", "  "]
    rows = [{"text": text, "ids": tok.encode(text, add_special_tokens=False).ids} for text in texts + extra]
    tok.encode_special_tokens = True
    for row in rows:
        literal = tok.encode(row["text"], add_special_tokens=False).ids
        if literal != row["ids"]:
            row["ids_special_as_text"] = literal
    for row in rows:
        row["decoded"] = tok.decode(row["ids"], skip_special_tokens=False)
    tok.save(str(folder / "gpt2-style.json"), pretty=True)
    (folder / "gpt2-style-ids.json").write_text(json.dumps({"rows": rows}, ensure_ascii=False), encoding="utf-8")


gpt2() if "--gpt2" in sys.argv else compare()
