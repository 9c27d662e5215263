#!/usr/bin/env python3
"""Trains the tokenizer and the default model, with the shipped quantization in the loop at the end.

    train.py --out DIR [--steps N] [--minutes M] [--device cuda]

Writes tokenizer.json, config.json, weights.npz (the quantized blocks and F32 norms that pack.py wraps), master_f16.npz
and report.json. Needs PyTorch, numpy and regex; nothing is downloaded.
"""

import argparse
import dataclasses
import json
import math
import multiprocessing
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

import bpe
import judge
import quant
import world
from model import Config, Model, kind_of

SEED = 20_011
USER_WEIGHT = 0.05  # share of the loss on what the user says


def train_tokenizer(size, documents=50_000):
    rng = random.Random(f"tokenizer {SEED}")
    texts = (p[0] for _ in range(documents) for p in world.document(rng) if not isinstance(p, str))
    return bpe.Tokenizer(bpe.train(texts, size))


def rows(job):
    """Batch `job` of the endless training text: ids u16 [B, T + 1], weights u8 (percent) alike."""
    index, batch, length = job
    rng, tok = random.Random(f"batch {SEED} {index}"), rows.tokenizer
    ids, weights = np.zeros((batch, length + 1), np.uint16), np.zeros((batch, length + 1), np.uint8)
    for r in range(batch):
        line, mass = [], []
        while len(line) < length + 1:
            weight = 0
            for piece in world.document(rng):
                if isinstance(piece, str):
                    line.append(tok.special[piece])
                    mass.append(100 if weight else 0)
                else:
                    more, weight = tok.encode(piece[0]), piece[1]
                    line += more
                    mass += [100 if weight else int(100 * USER_WEIGHT)] * len(more)
        ids[r], weights[r] = line[:length + 1], mass[:length + 1]
    return ids, weights


class Rounding:
    """Uses the quantized weights for one forward and backward pass (straight-through)."""

    def __init__(self, model):
        self.groups = {}
        for name, p in model.named():
            if kind_of(name) != "F32":
                self.groups.setdefault(kind_of(name), []).append(p)
        self.kept = None

    @torch.no_grad()
    def __enter__(self):
        self.kept = []
        for kind, params in self.groups.items():
            flat = torch.cat([p.reshape(-1, 256) for p in params])
            new = quant.rounded(flat, kind).split([p.numel() // 256 for p in params])
            for p, q in zip(params, new):
                self.kept.append((p, p.detach().clone()))
                p.copy_(q.view_as(p))

    @torch.no_grad()
    def __exit__(self, *_):
        for p, old in self.kept:
            p.copy_(old)


@torch.no_grad()
def answers(model, tok, items, device):
    """Greedy replies in f32, in batches; every step recomputes them from the start."""
    limit = 170 if device == "cuda" else 20
    prompts = [judge.prompt_ids(tok, i["messages"]) for i in items]
    replies = [[] for _ in items]
    order = sorted(range(len(items)), key=lambda i: len(prompts[i]))
    for start in range(0, len(order), 512):
        live = order[start:start + 512]
        while live:
            seqs = [prompts[i] + replies[i] for i in live]
            width = -(-max(map(len, seqs)) // 32) * 32
            ids = torch.tensor([s + [0] * (width - len(s)) for s in seqs], device=device)
            last = torch.tensor([len(s) - 1 for s in seqs], device=device)
            best = model(ids, last).argmax(-1).tolist()
            for i, token in zip(live, best):
                replies[i].append(token)
            live = [i for i, token in zip(live, best) if token != tok.special["<|im_end|>"] and len(replies[i]) < limit
                    and len(prompts[i]) + len(replies[i]) < model.c.context_length]
    return [tok.decode(r) for r in replies]


def evaluate(model, tok, items, device, title, show=0):
    """Accuracy per kind and overall; prints the wrong answers up to `show`."""
    kinds = {}
    for item, reply in zip(items, answers(model, tok, items, device)):
        ok = judge.right(item, reply)
        kinds.setdefault(item["id"].rsplit("-", 1)[0], []).append(ok)
        if not ok and show > 0:
            show -= 1
            print("   wrong:", item["id"], "|", item["messages"][-1]["content"], "|", reply, "| wanted", item["answers"])
    total = sum(sum(v) for v in kinds.values()) / sum(len(v) for v in kinds.values())
    table = {k: f"{sum(v)}/{len(v)}" for k, v in kinds.items()}
    print(f"{title}: {100 * total:.2f}%  " + "  ".join(f"{k} {v}" for k, v in table.items() if len(set(v.split("/"))) > 1), flush=True)
    return {"accuracy": total, "kinds": table}


def export(model, tok, out):
    blocks = {n: (quant.to_bytes(p, kind_of(n)) if kind_of(n) != "F32" else p.detach().float().cpu().numpy()) for n, p in model.named()}
    np.savez(os.path.join(out, "weights.npz"), **blocks)
    np.savez(os.path.join(out, "master_f16.npz"), **{n: p.detach().half().cpu().numpy() for n, p in model.named()})
    with open(os.path.join(out, "tokenizer.json"), "w") as f:
        json.dump(tok.to_json(), f)
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump(dataclasses.asdict(model.c), f)


def learning_rate(progress, step, peak):
    """Linear warm-up over 100 steps, flat to 40%, cosine to 1% of the peak."""
    fall = max(0.0, (progress - 0.4) / 0.6)
    return peak * min(1.0, (step + 1) / 100) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, fall))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=10_600)
    parser.add_argument("--minutes", type=float, default=30, help="upper limit of the schedule's duration, independent of --steps")
    parser.add_argument("--batch", type=int, default=64, help="rows of 1024 tokens")
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--round-from", type=float, default=0.6, help="share of the run after which the weights are quantized in the loop")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--layers", type=int, default=Config.block_count)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dry", action="store_true", help="a check of this script on a CPU: few questions, short replies")
    args = parser.parse_args()
    begin = time.time()
    os.makedirs(args.out, exist_ok=True)
    rows.tokenizer = tok = train_tokenizer(Config.vocab_size)
    print(f"tokenizer: {tok.size} tokens, {time.time() - begin:.1f} s", flush=True)
    jobs = multiprocessing.get_context("fork").Pool(args.workers)
    stream = jobs.imap(rows, ((i, args.batch, args.length) for i in range(args.steps)))

    torch.manual_seed(SEED)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = Model(Config(vocab_size=tok.size, block_count=args.layers)).to(args.device)
    print(f"{sum(p.numel() for p in model.parameters()):,} weights")
    matrices, vectors = [p for p in model.parameters() if p.dim() > 1], [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}], lr=args.lr, betas=(0.9, 0.98),
                                  fused=args.device == "cuda")
    cuda = args.device == "cuda"

    def loss_of(ids, weights):
        with torch.autocast(args.device, torch.bfloat16, enabled=cuda):
            logits = model(ids[:, :-1])
        each = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        mass = weights[:, 1:].flatten()
        return (each * mass).sum() / mass.sum()

    step_loss = torch.compile(loss_of) if cuda else loss_of
    rounding, quick, seen, mark = Rounding(model), world.questions(1)[::40 if args.dry else 1], 0, time.time()
    checks = [0.3, 0.59]
    for step in range(args.steps):
        progress = max(step / args.steps, (time.time() - begin) / (60 * args.minutes))
        if progress >= 1:
            break
        ids, weights = (torch.from_numpy(a.astype(t)).to(args.device, non_blocking=True) for a, t in zip(next(stream), (np.int64, np.float32)))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(progress, step, args.lr)
        if progress >= args.round_from:
            with rounding:
                loss = step_loss(ids, weights)
                loss.backward()
        else:
            loss = step_loss(ids, weights)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        seen += ids.numel()
        if step % 250 == 0 or step < 3:
            print(f"step {step:5}  loss {loss.item():.4f}  {seen / 1e6:.0f} M tokens  {seen / (time.time() - mark) / 1e6:.2f} M tokens/s  "
                  f"{time.time() - begin:.0f} s  {100 * progress:.0f}%", flush=True)
        if checks and progress > checks[0]:
            checks.pop(0)
            evaluate(model, tok, quick, args.device, f"step {step}, f32")
    jobs.terminate()
    report = {"steps": step + 1, "tokens": seen, "seconds": round(time.time() - begin), "device": torch.cuda.get_device_name() if cuda else "cpu"}
    export(model, tok, args.out)
    report["f32"] = evaluate(model, tok, quick, args.device, "shipped questions, f32")
    with rounding:
        report["quantized"] = evaluate(model, tok, quick, args.device, "shipped questions, quantized", show=20)
        if not args.dry:
            report["wide"] = evaluate(model, tok, world.questions(2, scale=8), args.device, "eight times as many, quantized", show=60)
    with open(os.path.join(args.out, "report.json"), "w") as f:
        json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
