#!/usr/bin/env python3
"""Reads the packed file with gguf-py and checks it in f32 on the CPU.

The forward pass is implemented here, with a KV cache.

    check.py MODEL.gguf QUESTIONS.json [--greedy OUT.json]      held-out accuracy; greedy ids of five prompts
    check.py MODEL.gguf --ask "Where does Mira live?" ...        one reply per argument
"""

import argparse
import json

import gguf
import torch
import torch.nn.functional as F

import bpe
import judge

REFERENCE = ["home-01", "two_hop-01", "count-01", "system-01", "story-01"]


class Reader:
    """The file's tensors, dequantized to f32, and its tokenizer."""

    def __init__(self, path):
        file = gguf.GGUFReader(path)
        get = lambda key: file.fields[key].contents()
        self.heads, self.kv, self.dim = get("qwen3.attention.head_count"), get("qwen3.attention.head_count_kv"), get("qwen3.attention.key_length")
        self.layers, self.eps, self.base = get("qwen3.block_count"), get("qwen3.attention.layer_norm_rms_epsilon"), get("qwen3.rope.freq_base")
        self.eos = get("tokenizer.ggml.eos_token_id")
        self.tokenizer = bpe.Tokenizer.from_json({"merges": get("tokenizer.ggml.merges")})
        expected = self.tokenizer.to_json()["tokens"]
        if get("tokenizer.ggml.tokens") != expected:
            raise ValueError("the merges do not make the tokens")
        self.w = {t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()) for t in file.tensors}

    def norm(self, x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.w[name + ".weight"]

    def rotate(self, x, start):
        """Rotary embedding of pairs (i, i + dim / 2); `x` [heads, T, dim] from position `start`."""
        inv = self.base ** (-torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)
        angle = torch.outer(torch.arange(start, start + x.shape[1], dtype=torch.float64), inv)
        cos, sin = angle.cos().float(), angle.sin().float()
        a, b = x.split(self.dim // 2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    def step(self, ids, cache):
        """Logits [V] after `ids`; `cache` holds the keys and values of all earlier tokens."""
        t, start = len(ids), cache[0][0].shape[1] if cache else 0
        h = self.w["token_embd.weight"][ids]
        if not cache:
            cache += [[torch.zeros(self.kv, 0, self.dim)] * 2 for _ in range(self.layers)]
        mask = torch.ones(t, start + t, dtype=torch.bool).tril(start)
        for l in range(self.layers):
            b = f"blk.{l}."
            x = self.norm(h, b + "attn_norm")
            q, k, v = ((x @ self.w[f"{b}attn_{n}.weight"].T).view(t, -1, self.dim).transpose(0, 1) for n in "qkv")
            q, k = (self.rotate(self.norm(y, f"{b}attn_{n}_norm"), start) for y, n in ((q, "q"), (k, "k")))
            cache[l] = [torch.cat((old, new), 1) for old, new in zip(cache[l], (k, v))]
            k, v = (y.repeat_interleave(self.heads // self.kv, 0) for y in cache[l])
            scores = (q @ k.transpose(1, 2) * self.dim ** -0.5).masked_fill(~mask, -torch.inf)
            h = h + (scores.softmax(-1) @ v).transpose(0, 1).reshape(t, -1) @ self.w[b + "attn_output.weight"].T
            x = self.norm(h, b + "ffn_norm")
            h = h + (F.silu(x @ self.w[b + "ffn_gate.weight"].T) * (x @ self.w[b + "ffn_up.weight"].T)) @ self.w[b + "ffn_down.weight"].T
        return self.norm(h[-1], "output_norm") @ self.w["token_embd.weight"].T

    @torch.no_grad()
    def greedy(self, prompt, limit=200):
        """Greedy ids with the end token, and the smallest difference of the two best logits."""
        cache, out, ids, margin = [], [], prompt, float("inf")
        while len(out) < limit and (not out or out[-1] != self.eos):
            best = self.step(ids, cache).topk(2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            ids = [int(best.indices[0])]
            out += ids
        return out, margin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("questions", nargs="?")
    parser.add_argument("--greedy")
    parser.add_argument("--system")
    parser.add_argument("--ask", nargs="*", default=[])
    args = parser.parse_args()
    m = Reader(args.model)
    system = [{"role": "system", "content": args.system}] if args.system else []
    for text in args.ask:
        ids, margin = m.greedy(judge.prompt_ids(m.tokenizer, system + [{"role": "user", "content": text}]))
        print(f"> {text}\n{m.tokenizer.decode(ids)}   [{len(ids)} tokens, margin {margin:.2f}]")
    if not args.questions:
        return
    kinds, reference, margins, lengths = {}, [], [], []
    for item in json.load(open(args.questions)):
        prompt = judge.prompt_ids(m.tokenizer, item["messages"])
        ids, margin = m.greedy(prompt)
        reply = m.tokenizer.decode(ids)
        ok = judge.right(item, reply)
        kinds.setdefault(item["kind"], []).append(ok)
        margins.append(margin)
        lengths.append((len(prompt), len(ids)))
        if not ok:
            print(f"wrong: {item['id']} | {item['messages'][-1]['content']} | {reply} | wanted {item['answers']}")
        if item["id"] in REFERENCE:
            reference.append({"id": item["id"], "messages": item["messages"], "prompt_ids": prompt, "reply_ids": ids, "reply": reply,
                              "min_margin": round(margin, 4)})
    total = [ok for v in kinds.values() for ok in v]
    print("  ".join(f"{k} {sum(v)}/{len(v)}" for k, v in kinds.items()))
    print(f"{sum(total)}/{len(total)} = {100 * sum(total) / len(total):.2f}%, margins: min {min(margins):.3f}, 5th lowest {sorted(margins)[4]:.3f}; "
          f"{sum(p for p, _ in lengths)} prompt and {sum(n for _, n in lengths)} reply tokens")
    if args.greedy:
        with open(args.greedy, "w") as out:
            out.write("[\n" + ",\n".join(json.dumps(r) for r in reference) + "\n]\n")


if __name__ == "__main__":
    main()
