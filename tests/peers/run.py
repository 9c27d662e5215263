#!/usr/bin/env python3
"""Training beside other implementations, on models that a seed draws.

    run.py --weft PATH [--seed N] [--models N] [--only CHECK ...] [--keep DIR]

Every line is a comparison: its name, how far both are apart, and the bound. The exit code is 1 if one is beyond its bound.
Checks: gradients and steps (torch and PEFT, in float64), adapters and merges (PEFT), masks (TRL), llama (llama.cpp through
llama-cpp-python, if that is installed).
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "goldens")]

import draw
import gguf
import make
import masks
import numpy as np
import peft
import safetensors.torch
import torch
import training
import transformers
from runs import logits_f64, wide
from training import DENSE, Training

# Bounds. Ours compute in float32, theirs in float64. llama.cpp computes in float32 too, but for GELU, which it reads from a table in f16.
GRADIENTS, LOSSES, FACTORS, LOGITS, WEIGHTS, GELU = 2e-5, 1e-5, 1e-3, 2e-5, 1e-6, 1e-3
STEPS, RATE = 30, 2e-3


class Report:
    """Prints comparisons, and counts those that are beyond their bounds."""

    def __init__(self):
        self.lines, self.beyond, self.began = 0, 0, time.monotonic()

    def line(self, name, number, bound):
        self.lines += 1
        holds = number <= bound
        self.beyond += not holds
        print(f"{name:<44} {number:9.2e}  bound {bound:.0e}{'' if holds else '  BEYOND'}", flush=True)

    def note(self, name, text):
        print(f"{name:<44} {text}", flush=True)


class Case:
    """A drawn model with an adapter of random factors and a batch; the files that weft reads."""

    def __init__(self, weft, folder, architecture, seed):
        self.weft, self.folder, self.name = weft, folder, f"{architecture.__name__} seed {seed}"
        folder.mkdir(parents=True, exist_ok=True)
        self.golden, self.model = draw.model(architecture, seed)
        self.base, self.init = folder / "base.gguf", folder / "init"
        make.write(self.base, self.golden, self.model, gguf.GGMLQuantizationType.F16)
        random = np.random.default_rng([seed, 99])
        linear = training.ATTENTION + DENSE
        targets = [name for name in linear if random.random() < 0.7] or linear
        self.lora = Training(
            base=architecture.__name__, targets=targets, rank=int(random.integers(1, 9)), alpha=float(random.integers(1, 17)),
            rank_stabilized=bool(random.integers(2)), weighted=bool(random.integers(2)),
        )
        self.data = draw.documents(self.golden, random, int(random.integers(2, 7)), self.lora.weighted)
        self.narrow = training.adapted(self.model, self.lora, seed)
        training.save_adapter(self.narrow, self.lora, self.init)
        self.lines = folder / "batch.jsonl"
        rows = zip(self.data["sequences"], self.data["targets"], self.data.get("weights", [None] * 99))
        objects = [{"ids": ids, "targets": targets} | ({"weights": w} if w else {}) for ids, targets, w in rows]
        self.lines.write_text("".join(json.dumps(line) + "\n" for line in objects))

    def run(self, *words):
        """What weft prints."""
        words = [str(word) for word in (self.weft, *words)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def logits(self, model, ids, *more):
        """The logits that weft computes for ids."""
        out = self.folder / "logits.npy"
        self.run("logits", model, "--device", "cpu", "--tokens", ",".join(map(str, ids)), "-o", out, *more)
        return np.load(out)

    @property
    def ids(self):
        return max(self.data["sequences"], key=len)


def gradients(case, report):
    """Loss and gradients by the factors, beside torch in float64."""
    with wide():
        loss, _, expected, _ = training.gradients(training.widened(case.narrow), case.data)
    out = case.folder / "gradients.safetensors"
    count = len(case.data["sequences"])
    words = ["--data", case.lines, "--init", case.init, "--batch", count, "-o", out, "--device", "cpu", "--json"]
    ours = json.loads(case.run("gradients", case.base, *words))
    found = safetensors.torch.load_file(out)
    assert found.keys() == expected.keys(), sorted(found.keys() ^ expected.keys())
    report.line(f"gradients  {case.name}, loss", abs(ours["loss"] / loss - 1), GRADIENTS)
    apart = max(training.apart(found[name], of) for name, of in expected.items())
    report.line(f"gradients  {case.name}, worst tensor", apart, GRADIENTS)


def steps(case, report):
    """30 steps of AdamW from the same factors: every loss, and how far the factors are behind them."""
    trained = case.folder / "trained"
    training.STEPS, training.RATE = STEPS, RATE
    with wide():
        kept, final = training.trajectory(training.widened(case.narrow), case.data, 1.0)
    count = len(case.data["sequences"])
    words = ["--data", case.lines, "--init", case.init, "-o", trained, "--batch", count, "--steps", STEPS, "--lr", RATE]
    words += ["--schedule", "constant", "--warmup", 0, "--clip", 1, "--no-shuffle", "--device", "cpu", "--json", "--force"]
    losses = [json.loads(line)["loss"] for line in case.run("train", case.base, *words).splitlines()[:-1]]
    assert len(losses) == STEPS, losses
    worst = max(abs(a - b) for a, b in zip(losses, kept["losses"]))
    report.line(f"steps      {case.name}, worst loss of {STEPS}", worst / kept["losses"][0], LOSSES)
    found = safetensors.torch.load_file(trained / "adapter_model.safetensors")
    start = training.trained(case.narrow)
    wrong = training.norm([found[name].double() - of for name, of in final.items()])
    moved = training.norm([of - start[name].detach().double() for name, of in final.items()])
    # Adam turns the sign of a gradient near zero into a whole step.
    report.line(f"steps      {case.name}, factors of their way", wrong / moved, FACTORS)


def adapters(case, report):
    """The adapter that weft trained, loaded by PEFT."""
    trained = case.folder / "trained"
    if not trained.exists():
        return report.note(f"adapters   {case.name}", "left out: the check steps makes the adapter")
    with warnings.catch_warnings():
        # A missing or an unexpected tensor is a warning of PEFT's.
        warnings.simplefilter("error", UserWarning)
        tuned = peft.PeftModel.from_pretrained(draw_again(case), trained).eval()
    theirs, plain = logits_f64(tuned, case.ids), logits_f64(case.model, case.ids)
    for form in [trained, trained / "adapter.gguf"]:
        ours = case.logits(case.base, case.ids, "--lora", form)
        apart = np.abs(ours - theirs).max() / np.abs(theirs).max()
        report.line(f"adapters   {case.name}, logits by {'PEFT' if form == trained else 'GGUF'}", apart, LOGITS)
    assert np.abs(theirs - plain).max() > 1e-2, "the adapter changes nothing"


def merges(case, report):
    """`weft merge` beside PEFT's `merge_and_unload`: every tensor, and the logits of the file."""
    merged = case.folder / "merged.gguf"
    case.run("merge", case.base, case.init, "-o", merged, "--type", "F32")
    tuned = peft.PeftModel.from_pretrained(draw_again(case), case.init).eval()
    theirs = tuned.merge_and_unload()
    stored = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(merged).tensors}
    expected = {name: values for name, values, _ in make.tensors(theirs, case.golden)}
    assert stored.keys() == expected.keys(), sorted(stored.keys() ^ expected.keys())
    relative = lambda name: np.abs(stored[name].reshape(expected[name].shape) - expected[name].numpy()).max() / np.abs(stored[name]).max()
    report.line(f"merges     {case.name}, worst tensor", max(relative(name) for name in expected), WEIGHTS)
    ours, theirs = case.logits(merged, case.ids), logits_f64(theirs, case.ids)
    report.line(f"merges     {case.name}, logits", np.abs(ours - theirs).max() / np.abs(theirs).max(), LOGITS)


def llama(case, report):
    """Logits of a merged file, and of the adapter in GGUF, by llama.cpp. All matrices are F32: for others it rounds activations."""
    if importlib.util.find_spec("llama_cpp") is None:
        return report.note(f"llama      {case.name}", "left out: pip install llama-cpp-python (it builds llama.cpp)")
    from llama_cpp import Llama

    def by_llama(path, **more):
        model = Llama(model_path=str(path), logits_all=True, n_ctx=512, type_k=0, type_v=0, verbose=False, **more)
        model.eval(case.ids)
        return np.array(model.scores[: len(case.ids)])

    base, merged, adapter = (case.folder / name for name in ["base-f32.gguf", "merged-f32.gguf", "trained/adapter.gguf"])
    if not adapter.exists():
        return report.note(f"llama      {case.name}", "left out: the check steps makes the adapter")
    make.write(base, case.golden, case.model, gguf.GGMLQuantizationType.F32)
    case.run("merge", base, adapter.parent, "-o", merged, "--type", "F32")
    bound = GELU if case.lora.base.startswith("gemma") else LOGITS
    for path, more, ours in [(merged, {}, []), (base, {"lora_path": str(adapter)}, ["--lora", adapter])]:
        theirs, ours = by_llama(path, **more), case.logits(path, case.ids, *ours)
        kind = "adapter" if more else "merged"
        report.line(f"llama      {case.name}, logits, {kind}", np.abs(ours - theirs).max() / np.abs(theirs).max(), bound)


def draw_again(case):
    """The model of a case, without its adapter."""
    return draw.model(next(a for a in draw.ARCHITECTURES if a.__name__ == case.lora.base), int(case.name.split()[-1]))[1]


# In this order: later checks use the files of earlier ones.
CHECKS = {"gradients": gradients, "steps": steps, "adapters": adapters, "merges": merges, "llama": llama, "masks": masks.check}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True, type=pathlib.Path, help="the program to test")
    parser.add_argument("--seed", type=int, default=1, help="the first seed of models")
    parser.add_argument("--models", type=int, default=2, help="models of each architecture")
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=list(CHECKS), help="these checks")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the files, which stay")
    args = parser.parse_args()
    # The program under test has the other core.
    torch.set_num_threads(1)
    # Notes of the libraries about their own future.
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        root = args.keep or pathlib.Path(scratch)
        for seed in range(args.seed, args.seed + args.models):
            for architecture in draw.ARCHITECTURES:
                case = Case(args.weft, root / f"{architecture.__name__}-{seed}", architecture, seed)
                for name in args.only:
                    CHECKS[name](case, report)
    print(f"{report.lines} comparisons, {report.beyond} beyond, {time.monotonic() - report.began:.0f} s")
    return report.beyond == 0 and report.lines > 0


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
