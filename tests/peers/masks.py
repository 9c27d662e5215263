"""What is learnt of chats, beside TRL."""

import json
import random

import numpy as np

# Words of characters that every tokenizer of `make.py` has.
WORDS = ["looms", "are old", "7 + 8", "why?", "the cat", "No.", "a\nb", "  two", "it's", "{x}", "caf\u00e9"]


def chats(seed, count=6):
    """Conversations of one to three turns; each ends with an answer."""
    chosen = random.Random(seed)
    text = lambda: " ".join(chosen.choices(WORDS, k=chosen.randint(1, 4)))
    roles = ["user", "assistant"]
    return [[{"role": roles[n % 2], "content": text()} for n in range(2 * chosen.randint(1, 3))] for _ in range(count)]


def tokenizer(golden):
    """The tokenizer of a drawn model as transformers has it."""
    from transformers import PreTrainedTokenizerFast

    own = golden.tokenizer()
    if not hasattr(own, "fast"):
        return None
    made = PreTrainedTokenizerFast(tokenizer_object=own.fast(), eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.chat_template = own.TEMPLATE
    return made


def by_trl(case, conversations, folder):
    """(ids, which of them are learnt) of each conversation: its last answer is the completion, the rest the prompt."""
    from datasets import Dataset, disable_progress_bars
    from trl import SFTConfig, SFTTrainer

    disable_progress_bars()
    made = tokenizer(case.golden)
    rows = [{"prompt": turns[:-1], "completion": turns[-1:]} for turns in conversations]
    config = SFTConfig(output_dir=str(folder), max_length=None, report_to=[], use_cpu=True, bf16=False, completion_only_loss=True)
    trainer = SFTTrainer(case.model, config, train_dataset=Dataset.from_list(rows), processing_class=made)
    return [(row["input_ids"], [label != -100 for label in row["labels"]]) for row in trainer.train_dataset], made


def check(case, report):
    """The text that is learnt of chats, and the whole text. Behind the token that ends a turn TRL learns what the template
    writes there, too; here that token is the last one."""
    if tokenizer(case.golden) is None:
        return report.note(f"masks      {case.name}", "left out: the tokenizer has no form for transformers")
    conversations = chats(case.name)
    rows, made = by_trl(case, conversations, case.folder / "trl")
    lines = case.folder / "chats.jsonl"
    apart = 0
    for turns, (ids, mask) in zip(conversations, rows):
        theirs = made.decode([i for i, learnt in zip(ids, mask) if learnt]).rstrip("\n")
        lines.write_text(json.dumps({"messages": turns}) + "\n")
        told = json.loads(case.run("train", case.base, "--data", lines, "--dry-run", "--json", "--device", "cpu"))
        pieces = [piece for document in told["examples"] for piece in document]
        answers = [piece["text"] for piece in pieces if piece["learnt"]]
        # Every answer is learnt; TRL takes the last one as the completion.
        ours = answers[-1] if len(answers) == len(turns) // 2 else ""
        whole = "".join(piece["text"] for piece in pieces)
        apart += ours != theirs or whole.rstrip("\n") != made.decode(ids).rstrip("\n")
        if ours != theirs:
            report.note(f"masks      {case.name}", f"ours {ours!r}, theirs {theirs!r}")
    report.line(f"masks      {case.name}, other answers of {len(rows)}", float(apart), 0.0)
    assert np.any([any(mask) for _, mask in rows])
