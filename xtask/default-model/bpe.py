"""Byte-level BPE as in Qwen2: the pre-tokenizer's pattern, a trainer, an encoder and a decoder."""

from collections import Counter, defaultdict

import regex

SPLIT = regex.compile(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_letters():
    """GPT-2's printable letter for every byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in plain}
    for b in range(256):
        table.setdefault(b, chr(256 + len(table) - len(plain)))
    return [table[b] for b in range(256)]


def train(texts, size):
    """The merges (pairs of byte strings) of a vocabulary of `size` bytes, merges and specials."""
    counts = Counter(piece for text in texts for piece in SPLIT.findall(text))
    words = [([bytes([b]) for b in w.encode()], n) for w, n in sorted(counts.items())]
    pairs, where = Counter(), defaultdict(set)
    for k, (word, n) in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += n
            where[pair].add(k)
    merges = []
    while len(merges) < size - 256 - len(SPECIALS):
        best = max(pairs, key=lambda p: (pairs[p], p))
        if pairs[best] < 2:
            raise ValueError(f"the text holds only {len(merges)} merges")
        merges.append(best)
        for k in sorted(where.pop(best)):
            word, n = words[k]
            for pair in zip(word, word[1:]):
                pairs[pair] -= n
            word = merged(word, best)
            words[k] = (word, n)
            for pair in zip(word, word[1:]):
                pairs[pair] += n
                where[pair].add(k)
        del pairs[best]
    return merges


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


class Tokenizer:
    """Ids: the 256 bytes, the merges in order, then the special tokens."""

    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.tokens = [bytes([b]) for b in range(256)] + [a + b for a, b in self.merges]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.special = {s: len(self.tokens) + i for i, s in enumerate(SPECIALS)}
        self.size = len(self.tokens) + len(SPECIALS)
        self.cache = {}

    def piece(self, piece):
        word = [bytes([b]) for b in piece.encode()]
        while len(word) > 1:
            best = min(zip(word, word[1:]), key=lambda p: self.rank.get(p, 1 << 30))
            if best not in self.rank:
                break
            word = merged(word, best)
        return [self.ids[t] for t in word]

    def encode(self, text):
        out = []
        for piece in SPLIT.findall(text):
            ids = self.cache.get(piece)
            if ids is None:
                ids = self.piece(piece)
                if len(self.cache) < 200_000:
                    self.cache[piece] = ids
            out += ids
        return out

    def decode(self, ids):
        return b"".join(self.tokens[i] for i in ids if i < len(self.tokens)).decode(errors="replace")

    def to_json(self):
        letters = byte_letters()
        spell = lambda t: "".join(letters[b] for b in t)
        return {"tokens": [spell(t) for t in self.tokens] + SPECIALS, "merges": [f"{spell(a)} {spell(b)}" for a, b in self.merges]}

    @classmethod
    def from_json(cls, data):
        back = {c: b for b, c in enumerate(byte_letters())}
        return cls([tuple(bytes(back[c] for c in part) for part in m.split(" ")) for m in data["merges"]])
