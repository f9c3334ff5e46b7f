#!/usr/bin/env python3
"""Random texts through `deltazero encode --jsonl` and through the `tokenizers` library: ids, decoded text and offsets must be equal.

usage: tokenizer_fuzz.py DELTAZERO [--cases 50000] [--seed 1] [--references build/references] [--keep DIR]
Made for tokenizers 0.23.3 (pip install tokenizers==0.23.3). Prints one line a tokenizer and the number of differences; exits 1 when there are any.
The tokenizers: dolma2 and both NeoX ones (tools/fetch-references), the goldens, and small ones that this script trains with every supported flag,
normalizer, split behaviour and with random patterns.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["RUST_BACKTRACE"] = "0"
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizer"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK_LIKE = [r"[\r\n]", r"\s?\p{L}+", r"\s?[!-/:-~]+", r"[\x{4E00}-\x{9FA5}]+", r"\p{N}"]
PATTERNS = [QWEN2, GPT2 + r"|\p{N}{2,}?x", r"\s+", r"\s*", r" ", r"[aeiou]{2,3}?|\p{N}++", r"(?<=\s)\p{L}|[^\s]{1,4}", r"(?>\p{L}+)(?=\s)|\.\.?", r"[^\S\r\n]+|\n",
            r"(?i:the|and|k's)|\P{L}{3}", r"\p{^N}{,4}b", r"[\u0300-\u036F]+|.", r"(a|b(c|d)?)+|[-_]{2}", r"\P{N}+?\s|[\x{1F300}-\x{1FAFF}]"]


# Texts

WORDS = "the of and to a in is it you that he was for on are with as his they be at one have this from or had by hot word but what some we can out other were all there when up use your how said an each she which their time if will way about many then them would write like so these her long make thing see him two has look more day could go come did my sound no most number who over know water than call first people may down side been now find".split()
PIECES = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'ll", "'LL", "'m", "'d", "'\u017f", "'", "''", "don't", "I'LL", "\u2019s", "123", "4567", "8", "\u00b2", "\u2167", "\u0663\u0664", "\u00bd",
          "0.5", "1,000", "...", "!?", "--", "==", "<|", "|>", "<|endoftext|>", "<|end", "oftext|>", "<|im_start|>", "|||IP_ADDRESS|||", "|||", "<|extra_id_1|>", "<s>", "</s>", "[MASK]", "[m]", "tok", "caf\u00e9",
          "cafe\u0301", "e\u0301\u0327", "a\u0327\u0301", "\u1e9b\u0323", "\u212b", "\u2126", "\ufb01", "\uac00", "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00\u11a8", "\ud55c\uad6d\uc5b4", "\u0915\u093c",
          "\u0958", "\u0344", "\u0f73", "\u2adc", "\U0001d15e", "\U00011935\U00011930", "\u1abf\u0327", "\u0898\u0315", "\u0301", "\u0345\u0300", "\u0334\u0c3c", "\u6771\u4eac\u90fd", "\u4f60\u597d\u3002",
          "\u3053\u3093\u306b\u3061\u306f", "\u30ab\u3099", "\u043f\u0440\u0438\u0432\u0435\u0442", "\u0645\u0631\u062d\u0628\u0627", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u05e9\u05c1\u05dc\u05d5\u05dd", "\U0001f600", "\U0001f469\u200d\U0001f4bb",
          "\u200b", "\ufeff", "\u180e", "\u00ad", "\u0000", "\x1c", "\x7f", "_", "a_b", "def f():\n    return  x", "\u017f", "K", "\u212a", "k", "\u0130", "\U000323b0", "\U00016d6c", "\U00011de1", "\U00016ff5", "\ue000", "\U000e0001"]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\x0b", "\x0c", " \n", "\n ", " \r\n\r\n ", "\u202f"]


def text(rng):
    parts = []
    kind = rng.random()
    for _ in range(rng.randint(0, 12)):
        r = rng.random()
        if r < 0.35:
            w = rng.choice(WORDS)
            parts.append(rng.choice([w, w.capitalize(), w.upper()]))
        elif r < 0.6:
            parts.append(rng.choice(SPACES) * rng.choice([1, 1, 1, 2, 3, 9]))
        elif r < 0.85:
            parts.append(rng.choice(PIECES))
        elif r < 0.9:
            parts.append(rng.choice(["a", "-", "9", "\u00e9", "=", "\u4e00", "/\n", "ab"]) * rng.randint(1, 60))
        elif r < 0.97:
            parts.append(chr(rng.randint(0x21, 0x7e)))
        else:
            c = rng.choice([rng.randint(0, 0x2ff), rng.randint(0x300, 0xd7ff), rng.randint(0xe000, 0xffff), rng.randint(0x10000, 0x1ffff), rng.randint(0x20000, 0x10ffff)])
            parts.append(chr(c))
        if kind < 0.5 and rng.random() < 0.6:
            parts.append(" ")
    return "".join(parts)


def broken(rng):
    """Bytes that are mostly UTF-8: with some changed, cut or put in."""
    data = bytearray(text(rng).encode())
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(data))
        r = rng.random()
        if r < 0.4:
            data[at:at] = bytes(rng.choice([0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0xed, 0xa0, 0xf0, 0x9f, 0xf4, 0x90, 0xfe, 0xff]) for _ in range(rng.randint(1, 3)))
        elif r < 0.7 and data:
            data[min(at, len(data) - 1)] = rng.randint(0, 255)
        else:
            del data[at:at + rng.randint(1, 2)]
    return bytes(data)


# Tokenizers

def trained(pre, normalizer=None, size=600, alphabet=True, ignore_merges=False, added=(), special=()):
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    full = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=full if alphabet else [])
    corpus = (GOLDEN / "corpus-mixed.txt").read_text(encoding="utf-8")
    if not alphabet:
        corpus = "".join(c for c in corpus if c.isascii() and c not in "Qqz7")
    numbers = "12 345 10 100 2023 6789 " * 60 if alphabet else ""
    base.train_from_iterator([corpus, " ".join(PIECES) if alphabet else "", numbers], trainer)
    spec = json.loads(base.to_str())
    if ignore_merges:
        spec["model"]["ignore_merges"] = True
        vocab = spec["model"]["vocab"]
        for word in ("\u0120water", "something", "\u0120this", "abababab", "\u010a\u010a", "averyveryverylongtokenofmanyletters"):
            vocab.setdefault(word, max(vocab.values()) + 1)
    tok = Tokenizer.from_str(json.dumps(spec))
    tok.pre_tokenizer = pre
    if normalizer is not None:
        tok.normalizer = normalizer
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens(list(special))
    tok.add_tokens(list(added))
    return tok


def split_then_bytes(pattern, behavior="isolated", invert=False, **more):
    steps = [pre_tokenizers.Split(pattern, behavior=behavior, invert=invert)]
    return pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=more.get("prefix", False), use_regex=more.get("use_regex", False))])


FLAGGED = [AddedToken("[MASK]", lstrip=True, normalized=False), AddedToken("[m]", rstrip=True, normalized=False), AddedToken("tok", single_word=True, normalized=False),
           AddedToken("the", single_word=True, normalized=True, lstrip=True), AddedToken("caf\u00e9", normalized=True), AddedToken("cafe\u0301x", normalized=True, rstrip=True),
           AddedToken("|||", normalized=True), AddedToken("||", normalized=False), AddedToken("  ", normalized=True), AddedToken("\n\n", normalized=False, lstrip=True)]
SPECIAL = ["<|endoftext|>", AddedToken("<s>", special=True, lstrip=True, rstrip=True), AddedToken("</s>", special=True, normalized=True, single_word=True)]


def random_pattern(rng, depth=0):
    """A pattern of the supported subset."""
    def atom():
        r = rng.random()
        if r < 0.25:
            return rng.choice(["a", "e", "t", " ", "\\.", "'", "\\n", "-", "1", "\u00e9", "\\u4E00", "\\x{1F600}"])
        if r < 0.5:
            return rng.choice([r"\p{L}", r"\p{N}", r"\s", r"\S", r"\P{L}", r"\P{N}", r"\p{^L}", "."])
        if r < 0.75:
            items = "".join(rng.choice(["a-f", "x", r"\s", r"\p{N}", r"\n", "0-9", "_", "'", r"\-", r"\u0300-\u036f", r"\P{L}"]) for _ in range(rng.randint(1, 3)))
            return "[" + ("^" if rng.random() < 0.4 else "") + items + "]"
        if depth < 2:
            inner = random_pattern(rng, depth + 1)
            return rng.choice(["(%s)", "(?:%s)", "(?>%s)"]) % inner
        return "b"

    def piece():
        r = rng.random()
        if r < 0.08:
            return rng.choice(["(?=%s)", "(?!%s)"]) % atom()
        if r < 0.12:
            return rng.choice([r"(?<=\s)", r"(?<!\p{L})", r"(?<=a)"])
        if r < 0.17:
            return "(?i:%s)" % rng.choice(["the", "'s", "k", "an|d", "x'y"])
        return atom() + rng.choice(["", "", "", "*", "+", "?", "+?", "*+", "++", "{1,3}", "{2}", "{,2}", "{2,}?"])

    return "|".join("".join(piece() for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 3)))


def tokenizers(references, rng):
    """(name, tokenizer, share of the cases)"""
    for name in ("allenai_dolma2", "allenai_gpt-neox-olmo-dolma-v1_5", "allenai_eleuther-ai-gpt-neox-20b-pii-special"):
        yield name, Tokenizer.from_file(str(references / "tokenizers" / (name + ".json"))), 8
    yield "gpt2-style", Tokenizer.from_file(str(GOLDEN / "gpt2-style.json")), 3
    yield "mixed-2048", Tokenizer.from_file(str(GOLDEN / "mixed-2048.json")), 2
    nfc = normalizers.NFC()
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    yield "flags", trained(split_then_bytes(Regex(CL100K)), special=SPECIAL, added=FLAGGED), 5
    yield "flags, NFC", trained(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.Sequence([nfc]), special=SPECIAL, added=FLAGGED), 5
    yield "ignore_merges", trained(split_then_bytes(Regex(CL100K), "removed", True), ignore_merges=True, special=SPECIAL), 3
    yield "ignore_merges, whole text", trained(bytes_only, ignore_merges=True, added=["abc"]), 2
    yield "prefix space, NFC", trained(pre_tokenizers.ByteLevel(add_prefix_space=True), nfc, special=SPECIAL, added=FLAGGED), 3
    yield "prefix space at pieces", trained(split_then_bytes(Regex(r"\s+|[,.]"), "merged_with_next", prefix=True, use_regex=True)), 2
    yield "small alphabet", trained(split_then_bytes(Regex(QWEN2)), alphabet=False, size=300), 3
    yield "digits", trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])), 2
    yield "digits together", trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(), bytes_only])), 2
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in DEEPSEEK_LIKE]
    yield "five splits", trained(pre_tokenizers.Sequence(steps + [pre_tokenizers.Digits(individual_digits=True), bytes_only])), 3
    template = trained(split_then_bytes(Regex(CL100K)), special=SPECIAL)
    template.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<s> $A <|endoftext|>", pair="<s> $A $B", special_tokens=[("<s>", template.token_to_id("<s>")), ("<|endoftext|>", template.token_to_id("<|endoftext|>"))])])
    yield "template", template, 1
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"String {behavior} {invert}", trained(split_then_bytes(rng.choice([" ", "the", "\n", ".", "aa"]), behavior, invert), size=400), 1
            for pattern in rng.sample(PATTERNS, 2):
                yield f"{pattern} {behavior} {invert}", trained(split_then_bytes(Regex(pattern), behavior, invert), size=400), 0.5
    for pattern in PATTERNS:
        yield pattern, trained(split_then_bytes(Regex(pattern)), size=400), 0.7
    for _ in range(60):
        pattern = random_pattern(rng)
        try:
            pre = split_then_bytes(Regex(pattern), rng.choice(["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]), rng.random() < 0.5)
        except Exception:  # Oniguruma refuses it
            continue
        yield "random " + pattern, trained(pre, size=400), 0.3


# Comparison

def run(program, verb, path, lines, *options):
    data = "".join(json.dumps(line, ensure_ascii=rng_ascii(line)) + "\n" for line in lines).encode("utf-8")
    done = subprocess.run([program, verb, "--tokenizer", str(path), "--jsonl", "-", *options], input=data, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    return [json.loads(line) for line in done.stdout.decode("utf-8").split("\n")[:-1]]


def rng_ascii(line):
    return len(str(line)) % 2 == 0  # half the lines with \\u escapes, half as UTF-8


def answer(tok, text, template):
    """None where the library stops with a panic, which is no Exception: its regex engine gives up, or a token stands in the white space of another."""
    try:
        return tok.encode(text, add_special_tokens=template)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def char_spans(text, spans):
    """Byte spans widened to whole characters, as indices of characters: what the library gives."""
    index, out = {}, []
    begins = []
    for i, c in enumerate(text):
        for _ in c.encode():
            begins.append(i)
    begins.append(len(text))
    for b, e in spans:
        out.append((begins[b], begins[e - 1] + 1 if e > b else begins[b]))
    return out


def compare(name, tok, path, program, cases, rng):
    inputs = [text(rng) if rng.random() < 0.8 else broken(rng) for _ in range(cases)]
    texts = [x if isinstance(x, str) else x.decode("utf-8", errors="replace") for x in inputs]
    lines = [{"text": x} if isinstance(x, str) else {"bytes_hex": x.hex()} for x in inputs]
    wrong, stopped = [], 0
    modes = [((), False, False)] if rng.random() < 0.5 else [(("--ordinary",), True, False)]
    if tok.post_processor is not None:
        modes.append((("--add-special-tokens",), False, True))
    spec = json.loads(tok.to_str())
    plain_spans = spec["normalizer"] is None and "true" not in json.dumps([t for t in spec["added_tokens"] if t["lstrip"] or t["rstrip"]]) and "prefix" not in name and "alphabet" not in name and "trim_offsets\": true" not in json.dumps(spec["post_processor"])
    # (The library counts the offsets behind a character without a token wrong, so those are not compared.)
    removes = "removed" in name.lower() or "Removed" in json.dumps(spec["pre_tokenizer"])
    for options, literal, template in modes:
        tok.encode_special_tokens = literal
        expected = [answer(tok, t, template) for t in texts]
        stopped += expected.count(None)
        got = run(program, "encode", path, lines, "--offsets", *options)
        for x, t, e, g in zip(inputs, texts, expected, got):
            if e is None:
                continue
            if e.ids != g["ids"]:
                wrong.append(("ids", x, e.ids, g["ids"]))
                continue
            spans = g["offsets"]
            size = len(x.encode() if isinstance(x, str) else x)
            flat = [p for s in spans for p in s]
            if flat != sorted(flat) or (flat and flat[-1] > size):
                wrong.append(("order of offsets", x, None, spans))
            tiles = not removes and "alphabet" not in name and "random" not in name
            if tiles and not template and spans and (spans[0][0] != 0 or spans[-1][1] != size or any(a[1] != b[0] for a, b in zip(spans, spans[1:]))):
                wrong.append(("gaps", x, None, spans))
            if plain_spans and not template and isinstance(x, str) and [tuple(o) for o in e.offsets] != char_spans(t, spans):
                wrong.append(("offsets", x, e.offsets, spans))
    ids = [e.ids for e in expected if e is not None]
    for row in ids:  # and some ids that do not belong together, or to nothing
        if row and rng.random() < 0.3:
            row[rng.randrange(len(row))] = rng.randrange(tok.get_vocab_size() + 5)
    decoded = run(program, "decode", path, [{"ids": row} for row in ids])
    for row, g in zip(ids, decoded):
        t = tok.decode(row, skip_special_tokens=False)
        if t != g["text"]:
            wrong.append(("decode", row, t, g["text"]))
    return wrong, cases - stopped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("deltazero")
    parser.add_argument("--cases", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--references", type=pathlib.Path, default=ROOT / "build" / "references")
    parser.add_argument("--keep", type=pathlib.Path)
    a = parser.parse_args()
    rng = random.Random(a.seed)
    folder = a.keep or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    jobs = list(tokenizers(a.references, rng))
    total = sum(share for _, _, share in jobs)
    cases = refused = differences = 0
    for i, (name, tok, share) in enumerate(jobs):
        path = folder / f"{i}.json"
        path.write_text(tok.to_str(), encoding="utf-8")
        try:
            wrong, compared = compare(name, tok, path, a.deltazero, max(20, round(a.cases * 1.1 * share / total)), rng)
        except RuntimeError as error:
            refused += 1
            print(f"{i:3} refused: {name!r}: {error}")
            continue
        cases += compared
        differences += len(wrong)
        print(f"{i:3} {compared:6} cases, {len(wrong)} differences: {name!r}", flush=True)
        for kind, given, expected, got in wrong[:2]:
            print(f"      {kind}: {given!r}\n        library   {expected}\n        deltazero {got}")
    print(f"{cases} cases, {differences} differences, {refused} of {len(jobs)} tokenizers refused")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
