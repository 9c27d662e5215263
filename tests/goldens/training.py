"""Training goldens: losses, gradients and AdamW trajectories of a transformers model in float64.

Everything is computed in float64 within `runs.wide`, the inverse frequencies of rope too; only the weights are float32
values. The parameters are either the factors of an adapter that PEFT adds, or all parameters of the model.
"""

import contextlib
import copy
import dataclasses
import json

import numpy as np
import peft
import safetensors.torch
import torch
from runs import cutoff_margin, router_margin, wide
from torch.nn import functional

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
DENSE = ["gate_proj", "up_proj", "down_proj"]
STEPS, RATE, BETAS, EPS, DECAY = 10, 2e-3, (0.9, 0.999), 1e-8, 0.01
# The norm that gradients are cut to, by the name of the trajectory; 0 for none.
CLIPS = {"adamw": 0, "adamw_clip1": 1.0}
# What rounding must not change: an expert's choice, the sign of a gate.
ROUTER_MARGIN, CUTOFF_MARGIN = 1e-4, 1e-5
# How far float32 may be from float64, in relative L2 of a tensor: a tenth of the bound for implementations.
ROUNDING = 1e-5
# No fault of an implementation is as small as this difference from finite differences.
DIFFERENCE = 1e-7


@dataclasses.dataclass
class Training:
    """One folder of `train`: which parameters of which model are trained. Rank 0 trains all of them."""

    base: str
    targets: list = dataclasses.field(default_factory=lambda: ATTENTION + DENSE)
    rank: int = 4
    alpha: float = 8
    rank_stabilized: bool = False
    weighted: bool = False  # whether targets have weights other than 1
    trajectories: bool = False
    first_seed: int = 1


# The batch.


def batch(ids, first, weighted):
    """Three documents of a prompt: its start, a piece of its middle, and one with an id that repeats. `first` is what
    every document starts with, the marker of a beginning or nothing. Some targets are masked."""
    sequences = [ids[:37], first + ids[46:68], first + ids[70:74] + [ids[74]] * 5]
    kept = [[n >= 5 and not 20 <= n < 25 for n in range(37)], [n >= 3 for n in range(99)], [True] * 99]
    targets = [[t if keep else -100 for t, keep in zip([*s[1:], -100], k)] for s, k in zip(sequences, kept)]
    made = {"sequences": sequences, "labels": [[-100, *t[:-1]] for t in targets], "targets": targets}
    made["n_targets"] = sum(t >= 0 for row in targets for t in row)
    if weighted:
        made["weights"] = [[[1.0, 0.5, 2.0][(n + t) % 3] for n in range(len(row))] for t, row in enumerate(targets)]
    return made


# The loss and its gradients.


def losses(model, data):
    """The mean over all targets, weighted, and the loss of every target: 0 where there is none."""
    total, weight, each = 0, 0, []
    for n, (ids, targets) in enumerate(zip(data["sequences"], data["targets"])):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0]
        nll = functional.cross_entropy(logits, torch.tensor(targets), reduction="none", ignore_index=-100)
        weights = torch.tensor(data["weights"][n] if "weights" in data else [1.0] * len(ids), dtype=nll.dtype)
        weights = weights * (torch.tensor(targets) >= 0)
        total, weight = total + (nll * weights).sum(), weight + weights.sum()
        each.append(nll.detach())
    return total / weight, each


@contextlib.contextmanager
def embedding(model, look):
    """Within it, `look` gets the input of the first layer and returns what takes its place."""
    found = [m for name, m in model.named_modules() if name.endswith("embed_tokens")]
    assert len(found) == 1, found
    hook = found[0].register_forward_hook(lambda _, inputs, output: look(output))
    yield
    hook.remove()


def trained(model):
    """The trained parameters by the names of transformers or PEFT."""
    return {name.replace(".default.", "."): p for name, p in model.named_parameters() if p.requires_grad}


def gradients(model, data):
    """Loss, loss of every target, gradient by name, and the gradient by the input of the first layer by document."""
    inputs = []

    def keep(output):
        output = output if output.requires_grad else output.requires_grad_()
        output.retain_grad()
        inputs.append(output)
        return output

    model.zero_grad()
    with embedding(model, keep):
        loss, each = losses(model, data)
    loss.backward()
    found = {name: p.grad.clone() for name, p in trained(model).items()}
    return loss.item(), each, found, [h.grad[0] for h in inputs]


def norm(tensors):
    return torch.stack([(t**2).sum() for t in tensors]).sum().sqrt().item()


def differences(model, data, found, inputs, step):
    """How far the gradients are, relatively, from central differences of fourth order in random directions: by the
    parameters, by the input of the first layer."""
    draw = torch.Generator().manual_seed(5)
    parameters = trained(model)
    along = {name: torch.randn(p.shape, generator=draw, dtype=p.dtype) for name, p in parameters.items()}
    at = [torch.randn(h.shape, generator=draw, dtype=h.dtype) for h in inputs]
    start = {name: p.detach().clone() for name, p in parameters.items()}

    def by_parameters(far):
        with torch.no_grad():
            for name, p in parameters.items():
                p.copy_(start[name] + far * along[name])
            return losses(model, data)[0].item()

    def by_input(far):
        document = iter(at)
        with torch.no_grad(), embedding(model, lambda output: output + far * next(document)):
            return losses(model, data)[0].item()

    def relative(loss, derivative):
        far = [loss(n * step) for n in (1, -1, 2, -2)]
        slope = (8 * (far[0] - far[1]) - (far[2] - far[3])) / (12 * step)
        return abs(slope - derivative) / abs(derivative)

    apart = {"parameters": relative(by_parameters, sum((found[name] * d).sum() for name, d in along.items()).item())}
    by_parameters(0)
    apart["h0"] = relative(by_input, sum((h * d).sum() for h, d in zip(inputs, at)).item())
    return apart


def margins(model, data):
    """The smallest margins of discrete choices over the batch, by name; empty for models that make none."""
    found = {}
    for name, margin in [("min_router_margin", router_margin), ("min_cutoff_margin", cutoff_margin)]:
        all_of = [margin(model, ids) for ids in data["sequences"]]
        if None not in all_of:
            found[name] = min(all_of)
    return found


def clear(found):
    """True if rounding in float32 changes no choice."""
    return found.get("min_router_margin", 1) >= ROUTER_MARGIN and found.get("min_cutoff_margin", 1) >= CUTOFF_MARGIN


def trajectory(model, data, clip):
    """Ten steps of AdamW on the batch: what golden.json keeps of them, and the parameters behind them. The model gets
    its parameters back."""
    parameters = trained(model)
    start = {name: p.detach().clone() for name, p in parameters.items()}
    optimizer = torch.optim.AdamW(parameters.values(), lr=RATE, betas=BETAS, eps=EPS, weight_decay=DECAY)
    found, smallest = {"losses": [], "grad_norms": []}, {}
    for _ in range(STEPS):
        loss, _, by_name, _ = gradients(model, data)
        found["losses"].append(loss)
        found["grad_norms"].append(norm(by_name.values()))
        factor = min(1.0, clip / (found["grad_norms"][-1] + 1e-6)) if clip else 1.0
        for p in parameters.values():
            p.grad.mul_(factor)
        optimizer.step()
        smallest = {name: min(m, smallest.get(name, m)) for name, m in margins(model, data).items()}
    with torch.no_grad():
        found["loss_after"] = losses(model, data)[0].item()
        final = {name: p.detach().clone() for name, p in parameters.items()}
        for name, p in parameters.items():
            p.copy_(start[name])
    return {**found, **smallest}, final


# How far float32 is.


def apart(got, expected):
    """The relative L2 difference."""
    return (norm([got.double() - expected.double()]) / norm([expected.double()])) if expected.abs().max() > 0 else norm([got.double()])


def measured(model, data, reference):
    """How far the same computation in float32 is from the reference."""
    loss, each, found, inputs = gradients(model, data)
    expected_loss, expected_each, expected, expected_inputs = reference
    largest = [((found[n] - g).abs().max() / g.abs().max()).item() for n, g in expected.items()]
    return {
        "loss_abs": abs(loss - expected_loss),
        "nll_max_abs": max((a - b).abs().max().item() for a, b in zip(each, expected_each)),
        "grad_max_rel_per_tensor": max(largest),
        "grad_max_rel_l2_per_tensor": max(apart(found[n], g) for n, g in expected.items()),
        "grad_h0_rel_l2": apart(torch.cat(inputs), torch.cat(expected_inputs)),
    }


def measured_steps(model, data, how, clip, reference):
    """The same of a trajectory: how far losses are, and the parameters behind it, relatively to how far they moved."""
    kept, final = trajectory(model, data, clip)
    expected_kept, expected = reference
    start = trained(model)
    wrong = torch.cat([(final[n].double() - p).flatten() for n, p in expected.items()])
    moved = torch.cat([(p - start[n].detach().double()).flatten() for n, p in expected.items()])
    return {
        f"losses_{how}_max_rel": max(abs(a / b - 1) for a, b in zip(kept["losses"], expected_kept["losses"])),
        f"final_{how}": {
            "max_abs": wrong.abs().max().item(),
            "rms": norm([wrong]) / wrong.numel() ** 0.5,
            "rel_l2_of_update": norm([wrong]) / norm([moved]),
            # Adam turns the sign of a gradient near zero into a whole step.
            "rel_l2_of_update_without_worst_8": norm([wrong.abs().sort().values[:-8]]) / norm([moved]),
        },
    }


# The files.


def widened(model):
    """A copy that computes in float64 within `wide`, where it must be made: rope's frequencies are computed again."""
    model = copy.deepcopy(model).double()
    for module in model.modules():
        if hasattr(module, "rotary_emb"):
            module.rotary_emb = type(module.rotary_emb)(module.config)
            assert all(b.dtype == torch.float64 for b in module.rotary_emb.buffers())
    return model


def adapted(model, training, seed):
    """The model with an adapter of random factors on its targets, or with all parameters to train."""
    model = copy.deepcopy(model)
    if training.rank == 0:
        return model.requires_grad_()
    config = peft.LoraConfig(
        r=training.rank, lora_alpha=training.alpha, target_modules=sorted(training.targets), use_rslora=training.rank_stabilized,
        lora_dropout=0.0, bias="none", task_type="CAUSAL_LM",
    )
    model = peft.get_peft_model(model, config).eval()
    draw = np.random.default_rng(seed)
    with torch.no_grad():
        for _, p in sorted(trained(model).items()):
            p.copy_(torch.tensor(draw.normal(0, 0.05, tuple(p.shape)), dtype=torch.float32))
    return model


def save_adapter(model, training, folder):
    model.save_pretrained(folder)
    for path in folder.iterdir():
        if path.name not in ("adapter_config.json", "adapter_model.safetensors"):
            path.unlink()
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = training.base
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2) + "\n")


def save(path, tensors):
    safetensors.torch.save_file({name: t.to(torch.float).contiguous() for name, t in sorted(tensors.items())}, path)


def find(model, training, data):
    """The first seed whose adapter leaves every choice clear, on the whole trajectory, and whose gradients float32 can
    hold: (seed, float32 model, float64 model, its gradients, trajectories by name)."""
    for seed in range(training.first_seed, training.first_seed + 500):
        narrow = adapted(model, training, seed)
        with wide():
            exact = widened(narrow)
            if not clear(margins(exact, data)):
                continue
            reference = gradients(exact, data)
        if measured(narrow, data, reference)["grad_max_rel_l2_per_tensor"] > ROUNDING:
            continue
        with wide():
            steps = {how: trajectory(exact, data, clip) for how, clip in CLIPS.items() if training.trajectories}
        if all(clear(found) for found, _ in steps.values()):
            return seed, narrow, exact, reference, steps
    raise SystemExit("no seed makes clear choices")


def make(name, training, model, data, root):
    """Writes the folder of one training golden."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    seed, narrow, exact, reference, steps = find(model, training, data)
    loss, each, found, inputs = reference
    with wide():
        choices = margins(exact, data)
        # No direction may cross the point where a choice changes.
        finite = differences(exact, data, found, inputs, 1e-6 if choices else 3e-5)
    assert all(g.dtype == torch.float64 for g in [*found.values(), *inputs]), "float64 was lost on the way"
    assert all(g.abs().max() > 0 for g in found.values()), "a gradient is zero"
    assert max(finite.values()) < DIFFERENCE, f"finite differences: {finite}"
    golden = {
        "model": training.base,
        "base_gguf": f"{training.base}/{training.base}-F16.gguf",
        "trained": "adapter" if training.rank else "all",
        "seed": seed,
        "loss": loss,
        "n_targets": data["n_targets"],
        "nll_sum_per_sequence": [nll.sum().item() for nll in each],
        "nll": [nll.tolist() for nll in each],
        "grad_global_norm": norm(found.values()),
        "finite_difference_relative": finite,
        **choices,
        **{f"trajectory_{how}": kept for how, (kept, _) in steps.items()},
        "measured_f32_vs_f64": measured(narrow, data, reference),
    }
    for how, step in steps.items():
        golden["measured_f32_vs_f64"].update(measured_steps(narrow, data, how, CLIPS[how], step))
    if training.rank:
        save_adapter(narrow, training, folder / "adapter_init")
    save(folder / "grads.safetensors", found)
    for how, (_, final) in steps.items():
        save(folder / f"final_{how}.safetensors", final)
    for n, h in enumerate(inputs):
        np.save(folder / f"grad_h0_{n}.npy", h.to(torch.float).numpy())
    (folder / "batch.json").write_text(json.dumps(data) + "\n")
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"train/{name}: seed {seed}, loss {loss:.6f}, norm {golden['grad_global_norm']:.4f}, {len(found)} gradients, {finite} {choices}")
    print("   float32:", golden["measured_f32_vs_f64"])
    for how, (kept, _) in steps.items():
        print(f"   {how}: {kept['losses'][0]:.4f} to {kept['loss_after']:.4f}, margins {[v for k, v in kept.items() if k.startswith('min')]}")


# The check of the method.


def validate(folder, model):
    """Compares with a folder that others made in the same way: (what, difference, bound)."""
    data, golden = (json.loads((folder / f"{name}.json").read_text()) for name in ("batch", "golden"))
    narrow = peft.PeftModel.from_pretrained(model, folder / "adapter_init", is_trainable=True).eval()
    with wide():
        exact = widened(narrow)
        loss, each, found, inputs = gradients(exact, data)
        steps = {how: trajectory(exact, data, clip) for how, clip in CLIPS.items()}
    stored = safetensors.torch.load_file(folder / "grads.safetensors")
    assert stored.keys() == found.keys(), "other gradients"
    yield "loss, relative", abs(loss / golden["loss"] - 1), 1e-10
    yield "loss of a target", max(np.abs(np.array(e) - np.array(a)).max() for e, a in zip(golden["nll"], each)), 1e-10
    yield "norm, relative", abs(norm(found.values()) / golden["grad_global_norm"] - 1), 1e-10
    # These are stored in float32, whose rounding is 6e-8.
    yield "gradient, worst tensor", max(apart(found[n], g) for n, g in stored.items()), 6e-8
    h0 = [torch.from_numpy(np.load(folder / f"grad_h0_{n}.npy")) for n in range(len(inputs))]
    yield "grad_h0", apart(torch.cat(inputs), torch.cat(h0)), 6e-8
    for how, (kept, final) in steps.items():
        expected = golden[f"trajectory_{how}"]
        for part in ("losses", "grad_norms"):
            yield f"{how}, {part}", np.abs(np.array(kept[part]) / np.array(expected[part]) - 1).max(), 1e-10
        stored = safetensors.torch.load_file(folder / f"final_{how}.safetensors")
        yield f"{how}, final, worst tensor", max(apart(final[n], t) for n, t in stored.items()), 6e-8
