#!/usr/bin/env python3
"""Writes the tables of src/text from tests/golden/tokenizer/unicode_classes.json, which was probed from the `tokenizers` library one
code point at a time.  usage: unicode_tables.py CLASSES.json classes > unicode_tables.cpp; unicode_tables.py CLASSES.json others > library_tables.cpp"""
import json
import sys

SETS = {
    "classes": (("L", "letter"), ("N", "number"), ("S", "space")),
    "others": (("word", "word"), ("numeric", "numeric"), ("nfc_trigger", "nfc_trigger"), ("nfc_base", "nfc_base")),
}
WHAT = {"classes": "Unicode 16", "others": "Unicode 16 and 17; 9 for NFC"}


def name(function):
    return "k" + "".join(part.capitalize() for part in function.split("_"))


classes = json.load(open(sys.argv[1], encoding="utf-8"))
tables = SETS[sys.argv[2]]
print(f"// Made by tools/reference/unicode_tables.py from tests/golden/tokenizer/unicode_classes.json ({WHAT[sys.argv[2]]}); not edited by hand.")
print('#include "text/unicode.h"\n\nnamespace dz::text {\nnamespace {\n')
for key, function in tables:
    items = [f"{{0x{first:X}, 0x{last:X}}}" for first, last in classes[key]["ranges"]]
    print(f"constexpr CodePointRange {name(function)}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 150:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n}};\n")
print("}  // namespace\n")
for key, function in tables:
    print(f"std::span<const CodePointRange> {function}_ranges() {{ return {name(function)}; }}")
print("\n}  // namespace dz::text")
