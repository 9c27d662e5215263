#!/usr/bin/env python3
"""Checks that PEFT loads an adapter that this project wrote, and gives the logits of `weft logits --kv f32`.

    peft_loads.py BASE.gguf ADAPTER LOGITS.npy ID,ID,..

BASE is a file of a model of qwen3, or of gemma4 without experts, in any type. PEFT takes the folder ADAPTER as it is, on top of transformers with the weights of
BASE, in float32 on the CPU. Needs what `make.py` needs.
"""

import pathlib
import sys
import warnings

import numpy as np
import peft
from make import of_file
from runs import logits

# Two float32 computations of the same logits differ by less.
BOUND = 2e-4


def main():
    base, adapter, ours, ids = sys.argv[1:]
    ids = [int(n) for n in ids.split(",")]
    model = of_file(pathlib.Path(base)).eval()
    plain = logits(model, ids)
    with warnings.catch_warnings():
        # A missing or an unexpected tensor is a warning of PEFT's.
        warnings.simplefilter("error", UserWarning)
        tuned = peft.PeftModel.from_pretrained(model, adapter).eval()
    theirs, ours = logits(tuned, ids), np.load(ours)
    largest, moved = np.abs(theirs - ours).max(), np.abs(theirs - plain).max()
    layers = sum(isinstance(m, peft.tuners.lora.LoraLayer) for m in tuned.modules())
    print(f"{adapter}: {layers} layers with factors move logits by {moved:.4f}; largest difference {largest:.2e}, bound {BOUND:.0e}")
    return largest <= BOUND and moved > 100 * BOUND


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
