#!/usr/bin/env python3
"""What Python's str.strip() removes: every white-space code point, and rows of text before and after.

usage: python3 tools/reference/python_space.py > tests/golden/tokenizer/python_space.json
"""
import json
import random
import sys
import unicodedata

spaces = [c for c in range(0x110000) if chr(c).isspace()]
draw = random.Random(1)
alphabet = [chr(c) for c in spaces] + ["a", "\u00e9", "\u200b", "\ufeff", "\x00", "\u180e", "\U0001f642"]
rows = ["", " ", "\u3000\u2003", "\u3000a\u00a0", "\ufeff a", "a\u200b ", " \x00 "]
rows += ["".join(draw.choice(alphabet) for _ in range(draw.randrange(9))) for _ in range(300)]
json.dump(
    {
        "python": sys.version.split()[0],
        "unicode": unicodedata.unidata_version,
        "spaces": spaces,
        "rows": [[text, text.strip()] for text in rows],
    },
    sys.stdout,
    separators=(",", ":"),
)
sys.stdout.write("\n")
