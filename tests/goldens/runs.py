"""Runs of a transformers model: logits, hidden states, continuations, and how near its discrete choices are."""

import contextlib
import copy
from unittest import mock

import numpy as np
import torch

PREFIX, CONTINUATION = 48, 24


@contextlib.contextmanager
def wide():
    """Within it, all that transformers casts to float32 (in norms, rope and softmax) is cast to float64 instead."""
    types, narrow = {"float32": torch.float64, "float": torch.float64}, torch.float32
    normal = torch.distributions.normal.Normal
    icdf = normal.icdf

    def rounded(self, value):
        """A quantile as gemma3n's files state it."""
        return icdf(self, value.to(narrow)).to(value.dtype)

    floats = mock.patch.object(torch.Tensor, "float", torch.Tensor.double)
    with mock.patch.multiple(torch, **types), floats, mock.patch.object(normal, "icdf", rounded):
        yield


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def logits_f64(model, ids):
    """The logits of the same model computed in float64 throughout."""
    with wide():
        return logits(copy.deepcopy(model).double(), ids)


def hidden(model, ids):
    """The scaled embedding, every layer's output but the last's, and what follows the final norm: [L + 1, T, D]. Of
    gemma3n's streams, the active one."""
    found = []

    def look(_, inputs, output):
        output = output[0] if isinstance(output, tuple) else output
        found.append(output[getattr(model.config, "altup_active_idx", 0)] if output.ndim == 4 else output[0])

    inner = model.model
    hooks = [m.register_forward_hook(look) for m in [inner.embed_tokens, *inner.layers[:-1], inner.norm]]
    logits(model, ids)
    for hook in hooks:
        hook.remove()
    return torch.stack([h.reshape(len(ids), -1) for h in found]).numpy()


def router_margin(model, ids):
    """The smallest gap, over tokens and layers, between the last expert chosen and the first one left out."""
    smallest = []

    def look(router, _, found):
        # Gemma 4's router returns probabilities; the others return logits.
        gemma = type(router).__name__ == "Gemma4TextRouter"
        count = router.config.top_k_experts if gemma else router.top_k
        best = (found[0] if gemma else torch.softmax(found[0].double(), -1)).sort(-1, descending=True).values
        smallest.append((best[:, count - 1] - best[:, count]).min().item())

    routers = [m for m in model.modules() if type(m).__name__.endswith(("TopKRouter", "TextRouter"))]
    hooks = [router.register_forward_hook(look) for router in routers]
    logits(model, ids)
    for hook in hooks:
        hook.remove()
    return min(smallest, default=None)


def cutoff_margin(model, ids):
    """The smallest distance, in deviations of its row, of a gate from the cutoff of gemma3n's sparse activation."""
    sparse = [m for m in model.modules() if getattr(m, "activation_sparsity", 0) > 0]
    if not sparse:
        return None
    smallest, original = [], type(sparse[0])._gaussian_topk

    def look(mlp, gates):
        normal = torch.distributions.normal.Normal(0, 1)
        cutoff = normal.icdf(torch.tensor(mlp.activation_sparsity, dtype=gates.dtype))
        units = (gates - gates.mean(-1, keepdim=True)) / gates.std(-1, keepdim=True, unbiased=False)
        smallest.append((units - cutoff).abs().min().item())
        return original(mlp, gates)

    with mock.patch.object(type(sparse[0]), "_gaussian_topk", look):
        logits(model, ids)
    return min(smallest)


def greedy(model, ids):
    """The ids that follow the prefix, and the smallest gap between the two best logits on the way."""
    ids, gaps = ids[:PREFIX], []
    for _ in range(CONTINUATION):
        second, best = np.sort(logits(model, ids)[-1])[-2:]
        gaps.append(float(best - second))
        ids = ids + [int(logits(model, ids)[-1].argmax())]
    return ids[PREFIX:], min(gaps)
