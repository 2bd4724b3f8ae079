# Text models with fewer bits: mica quantize. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

# small.gguf: a layer with rows of 256 values, one with rows of 96, a norm; bad.gguf: the same with an infinity
python3 - "$folder" <<'PYTHON'
import struct, sys

def text(s):
    return struct.pack("<Q", len(s)) + s.encode()

def write(name, odd):
    tensors = [("token_embd.weight", 256, 4), ("blk.0.ffn_up.weight", 256, 4), ("blk.0.ffn_down.weight", 96, 4),
               ("blk.0.ffn_norm.weight", 256, 1)]
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 2)
    head += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    head += text("llama.block_count") + struct.pack("<II", 4, 1)
    data = b""
    for tensor, row, rows in tensors:
        head += text(tensor) + struct.pack("<IQQIQ", 2, row, rows, 0, len(data))
        values = [((i * 7919) % 201 - 100) / 100 for i in range(row * rows)]
        if tensor == "blk.0.ffn_up.weight":
            values[300] = odd
        data += struct.pack(f"<{row * rows}f", *values)
    head += bytes(-len(head) % 32)
    open(f"{sys.argv[1]}/{name}", "wb").write(head + data)

write("small.gguf", 0.5)
write("bad.gguf", float("inf"))
PYTHON

ends 0 quantize "$folder/small.gguf" "$folder/q4.gguf" --type Q4_K_M
says "q4.gguf: Q4_K_M, "
says " bits per value"
says "q4_k        1 tensors"
says "q6_k        1 tensors"
complains "1 tensors have rows that are not a multiple of 256: they fell back"
ends 0 quantize "$folder/small.gguf" "$folder/q4.gguf" --type Q4_K_M -q
[ -z "$err" ] || complain "-q should silence notices"
ends 0 quantize "$folder/small.gguf" --type Q6_K --dry-run
says "blk.0.ffn_down.weight                    f32 [4, 96]              -> q8_0"
says "blk.0.ffn_norm.weight                    f32 [1, 256]"
ends 0 quantize "$folder/small.gguf" "$folder/q3.gguf" --type Q3_K_S --json -q
says_json '{t["name"]: t["to"] for t in data["tensors"]} == {"token_embd.weight": "q6_k", "blk.0.ffn_up.weight": "q3_k", "blk.0.ffn_down.weight": "q4_0", "blk.0.ffn_norm.weight": "f32"}'
says_json 'data["type"] == "Q3_K_S" and data["bytes"] == sum(t["bytes"] for t in data["tensors"]) == 4 * 210 + 4 * 110 + 12 * 18 + 1024'
ends 0 quantize "$folder/small.gguf" "$folder/pure.gguf" --type Q4_K_M --pure --json -q
says_json 'data["tensors"][0]["to"] == "q4_k"'
ends 0 quantize "$folder/q4.gguf" "$folder/f16.gguf" --type F16
complains "3 tensors were already quantized: the errors add up"
complains "3 of them now take more bits"
cp "$folder/q4.gguf" "$folder/before"
ends 3 quantize "$folder/bad.gguf" "$folder/q4.gguf" --type Q5_0
silent
complains "tensor blk.0.ffn_up.weight, row 1: a value is not finite, or too large for q5_0"
cmp -s "$folder/q4.gguf" "$folder/before" || complain "a failure should leave the old file"
[ ! -e "$folder/q4.gguf.tmp" ] || complain "a failure should leave no other file"
ends 3 quantize "$folder/none.gguf" "$folder/q4.gguf" --type Q5_0
complains "none.gguf"
ends 3 quantize "$folder/before.csv" "$folder/q4.gguf" --type Q5_0
ends 1 quantize "$folder/small.gguf" "$folder/no/such/folder.gguf" --type Q5_0
complains "folder.gguf"
ends 2 quantize "$folder/small.gguf" --type Q5_0
complains "which file, and where to?"
ends 2 quantize "$folder/small.gguf" "$folder/q4.gguf"
complains "to what? Give --type, Q4_K_M for instance"
ends 0 quantize "$folder/small.gguf" --type Q4_K --dry-run
says "small.gguf: Q4_K_M, "
ends 2 quantize "$folder/small.gguf" "$folder/q4.gguf" --type Q4_K_X
complains 'not "Q4_K_X"; did you mean Q4_K'
ends 0 quantize "$folder/small.gguf" --type q8_0 --dry-run
says "small.gguf: Q8_0, "

# The file that is read is not written over, also not through a link.
ln -s small.gguf "$folder/link.gguf"
for out in small.gguf link.gguf; do
    ends 2 quantize "$folder/small.gguf" "$folder/$out" --type Q8_0
    complains "is the file to read"
done
