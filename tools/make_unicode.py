#!/usr/bin/env python3
"""Writes src/text/unicode_classes.c and unicode_pairs.c: categories, lower case, canonical decompositions.

    tools/make_unicode.py src/text

Needs unicodedata of Unicode 16: Python 3.14's own, or the package unicodedata2 16.0.0. Another version is refused, as
the classes of Hugging Face's tokenizers (0.23) are those of Unicode 16, and each new version adds letters.
"""
import sys

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

VERSION = "16.0.0"
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "Cn Cc Cf Co Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()

# BertNormalizer and BertPreTokenizer of Hugging Face have tables of Unicode 8: to them these marks, punctuation and
# format characters, which came later, are nothing in particular.
LATER_THAN_8 = """61d 7fd 890-891 897-89f 8ca-8e2 9fd 9fe a76 afa-aff b55 c04 c3c c77 c84 d00 d3b-d3c d81 eba ece 180f
1885-1886 1abf-1ace 1b4e-1b4f 1b7d-1b7f 1df6-1dfb 2e43-2e4f 2e52-2e5d a82c a8c5 a8ff a9bd 10d24-10d27 10d69-10d6e
10eab-10ead 10efc-10eff 10f46-10f50 10f55-10f59 10f82-10f89 11070 11073-11074 110c2 110cd 111cf 1123e 11241 1133b
113bb-113c0 113ce 113d0 113d2 113d4-113d5 113d7-113d8 113e1-113e2 11438-1143f 11442-11444 11446 1144b-1144f
1145a-1145b 1145d-1145e 11660-1166c 116b9 1182f-11837 11839-1183b 1193b-1193c 1193e 11943-11946 119d4-119d7
119da-119db 119e0 119e2 11a01-11a0a 11a33-11a38 11a3b-11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a9c
11a9e-11aa2 11b00-11b09 11be1 11c30-11c36 11c38-11c3d 11c3f 11c41-11c45 11c70-11c71 11c92-11ca7 11caa-11cb0
11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 11d90-11d91 11d95 11d97 11ef3-11ef4
11ef7-11ef8 11f00-11f01 11f36-11f3a 11f40 11f42-11f4f 11f5a 11fff 12ff1-12ff2 13430-13440 13447-13455 1611e-16120
16129 1612d-1612f 16d6d-16d6f 16e97-16e9a 16f4f 16fe2 16fe4 1cf00-1cf2d 1cf30-1cf46 1e000-1e006 1e008-1e018
1e01b-1e021 1e023-1e024 1e026-1e02a 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef 1e5ff 1e944-1e94a
1e95e-1e95f"""

# Its decompositions are those of Unicode 12.
LATER_DECOMPOSITIONS = "105c9 105e4 11383 11385 1138e 11391 113c5 113c7-113c8 11938 16121-16128 16d68-16d6a"

# Lower case that Python's str.lower may not know yet (first, last, what to add).
LATER_LOWER = [(0x1C89, 0x1C89, 1), (0xA7CB, 0xA7CB, 0x264 - 0xA7CB), (0xA7CC, 0xA7CC, 1), (0xA7CE, 0xA7CE, 1),
               (0xA7D2, 0xA7D2, 1), (0xA7D4, 0xA7D4, 1), (0xA7DA, 0xA7DA, 1), (0xA7DC, 0xA7DC, 0x19B - 0xA7DC),
               (0x10D50, 0x10D65, 0x20), (0x16EA0, 0x16EB8, 0x1B)]


def ranges_of(text):
    for word in text.split():
        first, _, last = word.partition("-")
        yield int(first, 16), int(last or first, 16)


def begin(folder, name):
    sys.stdout = open(f"{folder}/{name}", "w", encoding="ascii")
    print(f"/* Unicode {VERSION}. Made by tools/make_unicode.py: do not edit. */")
    print("/* clang-format off */")
    print('#include "text/unicode_table.h"')


def put(kind, name, words):
    print(f"\nconst {kind} {name}[] = {{")
    line = "   "
    for word in words:
        if len(line) + len(word) + 2 > 118:
            print(line)
            line = "   "
        line += f" {word},"
    print(line)
    print("};")
    print(f"const size_t {name}_count = sizeof {name} / sizeof {name}[0];")


def categories():
    before = None
    for code in range(0x110000):
        # Surrogates are no characters: they cannot come up, and count with what is around them.
        category = before if 0xD800 <= code < 0xE000 else unicodedata.category(chr(code))
        if category != before:
            yield f"{code << 5 | CATEGORIES.index(category):#x}"
        before = category


def ascii_classes():
    for code in range(128):
        space = code in (*range(9, 14), 32)
        yield f"{1 << CATEGORIES.index(unicodedata.category(chr(code))) | space << 31:#x}"


def lower():
    """first, last, step, what to add: runs of characters that change alike."""
    pairs = {c: ord(chr(c).lower()) for c in CODES if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)}
    for first, last, add in LATER_LOWER:
        pairs.update({c: c + add for c in range(first, last + 1)})
    pairs[0x130] = ord("i")  # and a dot above, which unicode.c adds
    runs = []
    for code in sorted(pairs):
        add = pairs[code] - code
        if runs and runs[-1][3] == add:
            first, last, step, _ = runs[-1]
            if code - last == (step or code - last) and code - last <= 2:
                runs[-1] = [first, code, code - last, add]
                continue
        runs.append([code, code, 0, add])
    for first, last, step, add in runs:
        yield f"{{{first:#x}, {last:#x}, {max(step, 1)}, {add}}}"


def decompositions():
    """code, first, second (0: none), whether NFC composes it again; sorted by code."""
    left_out = {c for first, last in ranges_of(LATER_DECOMPOSITIONS) for c in range(first, last + 1)}
    for code in CODES:
        parts = unicodedata.decomposition(chr(code)).split()
        if not parts or parts[0].startswith("<") or code in left_out:
            continue
        first, second = int(parts[0], 16), int(parts[1], 16) if len(parts) > 1 else 0
        again = unicodedata.normalize("NFC", chr(code)) == chr(code)
        yield code, first, second, again


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"Unicode {unicodedata.unidata_version}: expected {VERSION}")
    table = list(decompositions())
    composed = sorted((i for i, entry in enumerate(table) if entry[3]), key=lambda i: table[i][1:3])
    classes = [(c, unicodedata.combining(chr(c))) for c in CODES if unicodedata.combining(chr(c))]
    runs = []
    for code, number in classes:
        if runs and runs[-1][1] == code - 1 and runs[-1][2] == number:
            runs[-1][1] = code
        else:
            runs.append([code, code, number])
    begin(sys.argv[1], "unicode_classes.c")
    put("uint32_t", "mica_unicode_categories", categories())
    put("uint32_t", "mica_unicode_ascii", ascii_classes())
    put("mica_unicode_lower_run", "mica_unicode_lower_runs", lower())
    put("mica_unicode_class_run", "mica_unicode_classes", (f"{{{a:#x}, {b:#x}, {n}}}" for a, b, n in runs))
    put("mica_unicode_range", "mica_unicode_later", (f"{{{a:#x}, {b:#x}}}" for a, b in ranges_of(LATER_THAN_8)))
    begin(sys.argv[1], "unicode_pairs.c")
    put("mica_unicode_pair", "mica_unicode_pairs", (f"{{{c:#x}, {a:#x}, {b:#x}}}" for c, a, b, _ in table))
    put("uint16_t", "mica_unicode_composed", map(str, composed))


main()
