#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cpp from tests/golden/tokenizer/unicode_classes.json, which was probed from the regex engine of the
`tokenizers` library one code point at a time.  usage: unicode_tables.py CLASSES.json > unicode_tables.cpp"""
import json
import sys

classes = json.load(open(sys.argv[1], encoding="utf-8"))
print("// Made by tools/reference/unicode_tables.py from tests/golden/tokenizer/unicode_classes.json (Unicode 16); not edited by hand.")
print('#include "text/unicode.h"\n\nnamespace dz::text {\nnamespace {\n')
for key, name in (("L", "kLetters"), ("N", "kNumbers"), ("S", "kSpaces")):
    items = [f"{{0x{first:X}, 0x{last:X}}}" for first, last in classes[key]["ranges"]]
    print(f"constexpr CodePointRange {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 150:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n}};\n")
print("}  // namespace\n")
for function, name in (("letter", "kLetters"), ("number", "kNumbers"), ("space", "kSpaces")):
    print(f"std::span<const CodePointRange> {function}_ranges() {{ return {name}; }}")
print("\n}  // namespace dz::text")
