"""Ways to break a file: bits, ends, chunks, numbers, headers; of packed arrays and JSON also what is inside."""

import json
import random
import re
import struct
import zipfile
from io import BytesIO

TEXTS = ["1e308", "-1e308", "1e309", "nan", "inf", "-0", "9" * 25, "1e-320", "", "x", "0x10", "-9223372036854775808",
         "1e12", "1e-300", '"', "\x00", "'", "<script>", "1,1", "é", "-1"]  # fmt: skip
WORDS = [
    *(struct.pack(kind, value) for kind in ("<d", ">d", "<f") for value in (float("nan"), float("inf"), 1e38, -1e-38)),
    *(
        struct.pack(kind, value)
        for kind in ("<i", ">i", "<q", ">q")
        for value in (0, 1, -1, 2**31 - 1, -(2**31), 10**6)
    ),
    *(struct.pack(kind, value) for kind in ("<q", ">q") for value in (2**63 - 1, -(2**63), 10**12)),
]
VALUES = [None, True, 0, -1, 2, 10**30, 1e308, -1e308, float("nan"), float("inf"), "", "x", "<script>", [], {}, [[]],
          [None], [1, 2], [[0, 1], [1, 0]], {"a": 1}, "1", 0.5, 10**6]  # fmt: skip


def mutated(whole: bytes, rng: random.Random, text: bool = False) -> bytes:
    """One to three things go wrong."""
    found = bytearray(whole)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = rng.choice([*_ANYWHERE, *([_number] * 4 if text else [_word] * 3)])(found, rng)
    return bytes(found)


def _flip(found: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice((1, 1, 2, 8))):
        if found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return found


def _cut(found: bytearray, rng: random.Random) -> bytearray:
    return found[: rng.randrange(len(found) + 1)]


def _chunk(found: bytearray, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(found) + 1)
    return start, min(start + rng.choice((1, 8, 64, 1024)), len(found))


def _duplicate(found: bytearray, rng: random.Random) -> bytearray:
    start, stop = _chunk(found, rng)
    return found[:stop] + found[start:stop] * rng.choice((1, 1, 5)) + found[stop:]


def _remove(found: bytearray, rng: random.Random) -> bytearray:
    start, stop = _chunk(found, rng)
    return found[:start] + found[stop:]


def _blank(found: bytearray, rng: random.Random) -> bytearray:
    start, stop = _chunk(found, rng)
    return found[:start] + bytes([rng.choice((0, 255, 32))]) * (stop - start) + found[stop:]


def _noise(found: bytearray, rng: random.Random) -> bytearray:
    start, stop = _chunk(found, rng)
    return found[:start] + rng.randbytes(stop - start) + found[stop:]


def _header(found: bytearray, rng: random.Random) -> bytearray:
    if found:
        found[rng.randrange(min(len(found), 128))] = rng.randrange(256)
    return found


def _word(found: bytearray, rng: random.Random) -> bytearray:
    """A number somewhere becomes an extreme; mostly near the start, where sizes stand."""
    new = rng.choice(WORDS)
    if len(found) < len(new):
        return found
    start = rng.randrange(min(len(found) - len(new) + 1, rng.choice((64, 600, 10**9)))) // 4 * 4
    found[start : start + len(new)] = new
    return found


def _number(found: bytearray, rng: random.Random) -> bytearray:
    places = list(re.finditer(rb"-?\d+(\.\d+)?(e[-+]?\d+)?", bytes(found)))
    if not places:
        return found
    one = rng.choice(places)
    return found[: one.start()] + rng.choice(TEXTS).encode() + found[one.end() :]


_ANYWHERE = (_flip, _cut, _duplicate, _remove, _blank, _noise, _header)


def mutated_npz(whole: bytes, rng: random.Random) -> bytes:
    """Broken from outside; or packed again with sound checksums around broken arrays, missing ones, more of them."""
    if rng.random() < 0.4:
        return mutated(whole, rng)
    with zipfile.ZipFile(BytesIO(whole)) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    name = rng.choice(list(members))
    way = rng.randrange(5)
    if way == 0:
        del members[name]
    elif way == 1:
        members[rng.choice(("../../x.npy", "/etc/x.npy", "extra.npy", "leaf_0001.npy", "x" * 300))] = members[name]
    elif way == 2:
        members[name] = members[rng.choice(list(members))]
    elif members[name][128:129] == b"{":
        members[name] = members[name][:128] + json.dumps(mutated_json(json.loads(members[name][128:]), rng)).encode()
    else:
        members[name] = mutated(members[name], rng, text=rng.random() < 0.5)
    out = BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as packed:
        for one, content in members.items():
            packed.writestr(one, content)
    return out.getvalue()


def mutated_json(known, rng: random.Random):
    """A value somewhere becomes another one, or goes."""
    if isinstance(known, dict) and known and rng.random() < 0.95:
        key = rng.choice(list(known))
        changed = dict(known)
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = mutated_json(known[key], rng)
        return changed
    if isinstance(known, list) and known and rng.random() < 0.8:
        place = rng.randrange(len(known))
        return [*known[:place], mutated_json(known[place], rng), *known[place + 1 :]][
            : rng.choice((10**6, len(known) - 1))
        ]
    return rng.choice(VALUES)
