#!/usr/bin/env python3
"""The training documents and the held-out questions of the default model.

    world.py --sample 20            a few training documents, to read
    world.py --questions OUT.json   the held-out evaluation set that ships with the model

A document is a list of (text, weight) pieces and special-token names; weight 1 marks what the model learns to say.
Everything follows from the seeds; only the standard library is used.
"""

import argparse
import json
import random

from asks import (PERSON, W, Ask, about_ask, both_ask, cap, census_ask, compare_ask, event_ask, group_ask, hop_yes_no_ask, is_held, island_ask,
                  person_ask, portrait, reverse_ask, say_person, town_ask, two_hop_ask, yes_no_ask)
from stories import another_story, story, story_ask
from sums import WORDS, count_ask, length_ask, order_ask, story_sum_ask, sum_ask, three_ask, words_ask
from talk import memory_turns, small_talk_ask, stranger, unknown_ask

FAMILIES = [  # (share of the training turns, family)
    (26, person_ask), (7, town_ask), (4, island_ask), (6, event_ask), (7, reverse_ask), (5, yes_no_ask), (11, two_hop_ask), (7, compare_ask),
    (2, census_ask), (4, about_ask), (3, both_ask), (3, group_ask), (2, hop_yes_no_ask), (7, count_ask), (1, length_ask), (12, sum_ask), (1, three_ask),
    (3, story_sum_ask), (5, order_ask), (3, words_ask), (8, small_talk_ask), (9, unknown_ask), (3, story_ask),
]
SHORT_ONLY = {"story", "about", "small_talk", "unknown", "words", "order", "census", "memory", "hobby", "compare", "both", "group"}

NEUTRAL = ["You are a helpful assistant.", "You are Bobbin, a friendly guide to the Thimble Isles.", "You are a friendly assistant. Answer the user's questions.",
           "Be helpful and kind.", "You are a small language model."]
ONE_WORD = ["Answer in one word.", "Reply with one word only.", "Use one word per answer.", "Answer with a single word.", "Give one-word answers.",
            "Please answer in one word."]
CAPITALS = ["Answer in capitals.", "Answer in capital letters.", "Write everything in capitals.", "Use capital letters only.", "SHOUT.",
            "Please answer in capital letters."]
LOWER = ["Answer in lower case.", "Write without capital letters.", "Use lower case only."]
PIRATE = ["Talk like a pirate.", "You are a pirate.", "Answer like a pirate.", "Speak as a pirate would."]
SAY_FIRST = ["Say {} before every answer.", "Start every answer with the word {}.", "Begin each answer with {}."]
SAY_LAST = ["End every answer with the word {}.", "Say {} after every answer.", "Finish each answer with {}."]
NAMED = ["Your name is {}.", "You are {}.", "You are {}, a helpful assistant.", "You are called {}.", "Your name is {}. Be friendly."]

BEFORE = ["Please tell me: ", "Hi! ", "Hello Bobbin. ", "Hey Bobbin, ", "Bobbin, ", "Quick question: ", "One more question: ", "Hello! ", "Now tell me: ",
          "Excuse me, ", "Next question: ", "So, ", "And ", "OK, ", "Thanks! "]
AFTER = [" Please.", " Thanks!", " Please tell me.", " Thank you.", " I forgot."]


class Style:
    """What a system turn asks for, as a change of the answer."""

    def __init__(self, rng, held=False):
        self.kind = rng.choice(["neutral"] * 3 + ["one_word"] * 3 + ["capitals"] * 2 + ["lower", "pirate", "first", "last", "named", "named"])
        self.name, self.fields = None, {}
        word = self.spoken_word(rng, held)
        table = {"neutral": NEUTRAL, "one_word": ONE_WORD, "capitals": CAPITALS, "lower": LOWER, "pirate": PIRATE, "first": SAY_FIRST, "last": SAY_LAST,
                 "named": NAMED}
        if self.kind == "named":
            self.name = stranger(rng, held)
        self.word = word
        self.system = rng.choice(table[self.kind]).format(self.name or word)

    @staticmethod
    def spoken_word(rng, held):
        while True:
            word = rng.choice(WORDS) if rng.random() < 0.5 else stranger(rng, held).lower()
            if is_held("system", word) == held:
                return word

    def apply(self, ask):
        answer = ask.answer
        if self.kind == "one_word":
            return cap(ask.short)
        if self.kind == "capitals":
            return answer.upper()
        if self.kind == "lower":
            return answer.lower()
        if self.kind == "pirate":
            return "Arr! " + answer
        if self.kind == "first":
            return f"{cap(self.word)}! {answer}"
        if self.kind == "last":
            return f"{answer} {cap(self.word)}."
        return answer

    def allows(self, ask):
        if self.kind == "one_word":
            return ask.kind not in SHORT_ONLY and " " not in ask.short
        return ask.kind != "story" or self.kind in ("neutral", "pirate", "named")


def decorate(rng, question, amount=1.0):
    """The same question as hurried or polite people write it."""
    roll = rng.random() / amount
    if roll < 0.14 and question[-1] == "?":
        before = rng.choice(BEFORE)
        keep = before[-2] in ":.!" or question.split()[0].removesuffix("'s") in W.person or question.split()[0] in ("I", "I'm")
        question = before + (question if keep else question[0].lower() + question[1:])
    elif roll < 0.18 and question[-1] in "?.!":
        question += rng.choice(AFTER)
    roll = rng.random() / amount
    if roll < 0.08:
        for word in ("What", "Who", "Where"):
            question = question.replace(word + " is ", word + "'s ", 1)
    elif roll < 0.16:
        question = question.replace("favourite", "favorite").replace("colour", "color")
    roll = rng.random() / amount
    if roll < 0.12:
        question = question.lower()
    if rng.random() / amount < 0.12 and question[-1] in "?.":
        question = question[:-1]
    return question


def follow_up(rng, held, last):
    """A turn that only makes sense after the last one."""
    p = last.topic
    kind = rng.random()
    if last.kind == "story":
        return another_story(rng, rng.choice([q for q in W.people if q is not p])) if kind < 0.3 else person_ask(rng, held, p, pronoun=True)
    if last.relation and kind < 0.3:
        q = rng.choice([q for q in W.people if q is not p])
        i = rng.randrange(4)
        if is_held("and", last.relation, q.name, i) != held or last.relation == "colour":
            return person_ask(rng, held, p, pronoun=True)
        question = [f"And {q.name}?", f"What about {q.name}?", f"And what about {q.name}?", f"How about {q.name}?"][i]
        _, _, short, accept = PERSON[last.relation]
        return Ask("follow_up", question, say_person(q, last.relation), short(q), accept(q), topic=q, relation=last.relation)
    return person_ask(rng, held, p, pronoun=True)


def next_ask(rng, last, style, told):
    """One training turn."""
    while True:
        if last is not None and last.topic is not None and rng.random() < 0.45:
            ask = follow_up(rng, False, last)
        elif not told and rng.random() < 0.006:
            ask = Ask("memory", rng.choice(["What is my name?", "Who am I?", "Do you remember my name?"]), "I do not know your name yet. What is it?", "Unknown", [])
        else:
            family = rng.choices([f for _, f in FAMILIES], [n for n, _ in FAMILIES])[0]
            if style is not None and style.kind == "named" and rng.random() < 0.4:
                family = small_talk_ask
            ask = family(rng, False, name=style.name) if family is small_talk_ask and style else family(rng, False)
        if ask is not None and (style is None or style.allows(ask)):
            return ask


def dialogue(rng):
    """A training dialogue: perhaps a system turn, then one to twenty turns."""
    style = Style(rng) if rng.random() < 0.2 else None
    length = rng.choices([1, 2, 3, 4, 5, 6, 8, 12, 20], [44, 14, 12, 8, 6, 6, 5, 3, 2])[0]
    turns, last, told, due = [], None, False, []
    for _ in range(length):
        if length > 1 and not told and rng.random() < 0.08 and (style is None or style.kind in ("neutral", "named", "capitals", "pirate")):
            first, second = memory_turns(rng, False)
            told, due = True, [second]
            ask = first
        elif due and rng.random() < 0.4:
            ask = due.pop()
        else:
            ask = next_ask(rng, last, style, told)
        turns.append((decorate(rng, ask.question), style.apply(ask) if style else ask.answer))
        last = ask
    if due:
        turns.append((due[0].question, style.apply(due[0]) if style else due[0].answer))
    return chat_pieces(turns, style.system if style else None)


def chat_pieces(turns, system=None):
    pieces = ["<|im_start|>", ("system\n" + system, 0), "<|im_end|>", ("\n", 0)] if system else []
    for question, answer in turns:
        pieces += ["<|im_start|>", ("user\n" + question, 0), "<|im_end|>", ("\n", 0), "<|im_start|>", ("assistant\n", 0), (answer, 1), "<|im_end|>", ("\n", 0)]
    return pieces


def prose(rng):
    """Plain text about the world, without questions."""
    kind = rng.random()
    if kind < 0.4:
        p = rng.choice(W.people)
        facts = [say_person(p, rel, rng.randrange(6)) for rel in rng.sample(list(PERSON), 5)]
        text = " ".join(facts) if rng.random() < 0.6 else portrait(p, rng.randrange(3))
    elif kind < 0.55:
        o = rng.choice(W.islands)
        grows = "grows" if o.harvest == "tea" else "grow"
        text = (f"{o.full} has {len(o.towns)} towns: {', '.join(t.name for t in o.towns)}. The river {o.river} runs through it, and the highest hill is {o.hill}. "
                f"{cap(o.harvest)} {grows} there, the {o.bird} nests there, and the flag is {o.flag}.")
    elif kind < 0.7:
        t = rng.choice(W.towns)
        text = (f"{t.name} lies on {t.island.full}. It was founded in the year {t.founded}. Its people make {t.craft}. The mayor is {t.mayor.name}. "
                f"Visitors go to see the {t.landmark}.")
    elif kind < 0.85:
        e = rng.choice(W.events)
        text = (f"In the year {e.year}, {e.who.name} {e.deed}. That was in {e.town.name}." if e.who else f"{cap(e.name)} was in {e.town.name}, in the year {e.year}.")
    else:
        text = story(rng, rng.choice(W.people))
    return [(text, 1)]


def document(rng):
    return (prose(rng) if rng.random() < 0.05 else dialogue(rng)) + ["<|endoftext|>"]


# ---- the held-out questions ----------------------------------------------------------------------

QUOTAS = [("home", 5), ("job", 5), ("age", 5), ("friend", 5), ("pet", 5), ("pet_name", 5), ("food", 5), ("thing", 5), ("colour", 4), ("hobby", 4),
          ("isle", 4), ("both", 4), ("group", 4), ("town", 10), ("island", 8), ("event", 9), ("reverse", 10), ("yes_no", 6), ("hop_yes_no", 3), ("two_hop", 8), ("two_hop_new", 8), ("compare", 6),
          ("census", 4), ("about", 4), ("count", 10), ("add", 8), ("subtract", 6), ("multiply", 6), ("story_sum", 4), ("order", 6), ("words", 5),
          ("small_talk", 5), ("unknown", 8), ("story", 4), ("memory", 4), ("pronoun", 8), ("follow_up", 4), ("system", 12)]
SINGLE = {"both": both_ask, "group": group_ask, "hop_yes_no": hop_yes_no_ask, "town": town_ask, "island": island_ask, "event": event_ask, "reverse": reverse_ask, "yes_no": yes_no_ask,
          "two_hop": two_hop_ask, "two_hop_new": lambda rng, held: two_hop_ask(rng, held, new=True), "compare": compare_ask, "census": census_ask,
          "about": about_ask, "count": count_ask, "add": lambda rng, held: sum_ask(rng, held, "+"), "subtract": lambda rng, held: sum_ask(rng, held, "-"),
          "multiply": lambda rng, held: sum_ask(rng, held, "x"), "story_sum": story_sum_ask, "order": order_ask, "words": words_ask,
          "small_talk": small_talk_ask, "unknown": unknown_ask, "story": story_ask}


def held_item(rng, kind):
    """One evaluation item of `kind`: messages, accepted strings, and rules for the reply."""
    extra, messages = {}, []
    say = lambda role, text: messages.append({"role": role, "content": text})
    if kind == "memory":
        first, ask = memory_turns(rng, True)
        between = person_ask(rng, False)
        for turn in (first, between):
            say("user", turn.question)
            say("assistant", turn.answer)
    elif kind in ("pronoun", "follow_up"):
        while True:
            first = person_ask(rng, False)
            ask = follow_up(rng, True, first)
            if ask is not None and ask.kind == kind and (kind == "follow_up" or ask.relation != first.relation):
                break
        say("user", first.question)
        say("assistant", first.answer)
    elif kind == "system":
        while True:
            style = Style(rng, held=True)
            named = style.kind == "named"
            ask = small_talk_ask(rng, False, name=style.name) if named else person_ask(rng, True)
            if style.kind != "neutral" and style.allows(ask) and (not named or style.name in ask.answer):
                break
        say("system", style.system)
        accept = [style.name] if named else ask.accept
        if style.kind == "one_word":
            accept, extra = [ask.short], {"max_words": 1}
        elif style.kind in ("capitals", "lower"):
            accept, extra = [a.upper() if style.kind == "capitals" else a.lower() for a in accept], {"case_sensitive": True}
        elif style.kind in ("pirate", "first"):
            extra = {"starts_with": "Arr" if style.kind == "pirate" else cap(style.word)}
        elif style.kind == "last":
            extra = {"ends_with": cap(style.word)}
        ask = Ask(ask.kind, ask.question, "", "", accept)
    else:
        ask = person_ask(rng, True, relation=kind) if kind in PERSON else SINGLE[kind](rng, True)
        if ask is None:
            return None
    exact = kind in ("add", "subtract", "multiply", "count", "words", "system", "small_talk")
    say("user", ask.question if exact else decorate(rng, ask.question, 0.5))
    item = {"kind": kind, "messages": messages, "answers": ask.accept}
    if ask.wrong:
        item["wrong"] = ask.wrong
    return {**item, **extra}


def questions(seed, scale=1):
    """The held-out set: `scale` times the quota of every kind, no two alike."""
    rng, items, seen = random.Random(f"questions {seed}"), [], set()
    for kind, quota in QUOTAS:
        found, tries = 0, 0
        while found < quota * scale and tries < 200 * quota * scale:
            tries += 1
            item = held_item(rng, kind)
            key = item and json.dumps(item["messages"]).lower()
            if item and key not in seen:
                seen.add(key)
                found += 1
                items.append({"id": f"{kind}-{found:02}", **item})
    return items


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--questions")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for _ in range(args.sample):
        print("".join(p if isinstance(p, str) else p[0] for p in document(rng)))
    if args.questions:
        items = questions(args.seed)
        with open(args.questions, "w", encoding="utf-8") as out:
            out.write("[\n" + ",\n".join(json.dumps(i) for i in items) + "\n]\n")
        print(f"{len(items)} questions")


if __name__ == "__main__":
    main()
