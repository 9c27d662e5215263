"""The rule by which an answer is correct, and the chat format around a question."""

import re


def contains(reply, wanted, case_sensitive=False):
    """`wanted` stands in `reply` as whole words."""
    pattern = r"(?<![A-Za-z0-9])" + re.escape(wanted) + r"(?![A-Za-z0-9])"
    return re.search(pattern, reply, 0 if case_sensitive else re.IGNORECASE) is not None


def right(item, reply):
    """True if the reply has an accepted string, no wrong one, and obeys the system turn."""
    case = item.get("case_sensitive", False)
    return (any(contains(reply, a, case) for a in item["answers"]) and not any(contains(reply, a) for a in item.get("wrong", []))
            and len(reply.split()) <= item.get("max_words", 1 << 30) and reply.startswith(item.get("starts_with", ""))
            and reply.rstrip(".!").endswith(item.get("ends_with", "")))


def prompt_pieces(messages):
    """The chat template, as special tokens (plain strings) and texts (1-tuples)."""
    out = []
    for m in messages:
        out += ["<|im_start|>", (m["role"] + "\n" + m["content"],), "<|im_end|>", ("\n",)]
    return out + ["<|im_start|>", ("assistant\n",)]


def prompt_ids(tokenizer, messages):
    ids = []
    for piece in prompt_pieces(messages):
        ids += [tokenizer.special[piece]] if isinstance(piece, str) else tokenizer.encode(piece[0])
    return ids
