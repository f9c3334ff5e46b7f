# Copies a .safetensors golden without the tensors that no test reads, float64 as float32 where asked: goldens are kept small.
# Standard library only. usage: python3 thin_golden.py IN OUT [--drop NAME ...] [--f32]
import argparse
import array
import json
import struct

parser = argparse.ArgumentParser()
parser.add_argument("source")
parser.add_argument("target")
parser.add_argument("--drop", nargs="*", default=[])
parser.add_argument("--f32", action="store_true", help="F64 tensors as F32, rounded to nearest even")
arguments = parser.parse_args()

with open(arguments.source, "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    data = file.read()
kept, out = {"__metadata__": header.pop("__metadata__", {"format": "pt"})}, b""
for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    if name in arguments.drop:
        continue
    begin, end = entry["data_offsets"]
    values, dtype = data[begin:end], entry["dtype"]
    if arguments.f32 and dtype == "F64":
        values, dtype = array.array("f", array.array("d", values)).tobytes(), "F32"
    kept[name] = {"dtype": dtype, "shape": entry["shape"], "data_offsets": [len(out), len(out) + len(values)]}
    out += values
text = json.dumps(kept, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
with open(arguments.target, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + out)
