"""Questions that need no fact: counting, small sums, order, and words to repeat."""

from asks import Ask, cap, draw

NOUNS = ("apple pear plum shell button thimble kite spoon bell pebble carrot egg feather candle star boat hat cup key ribbon "
         "lantern acorn turnip drum").split()
WORDS = NOUNS + "moon river window garden harbour goose thread needle basket cloud stone lamp honey island winter summer".split()


def count_ask(rng, held):
    """How often one word stands in a short list."""
    def make(rng):
        word, length = rng.choice(NOUNS), rng.randint(2, 9)
        others = rng.sample([n for n in NOUNS if n != word], rng.randint(1, 3))
        n = rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])
        items = [word] * min(n, length) + [rng.choice(others) for _ in range(length - min(n, length))]
        n = min(n, length)
        rng.shuffle(items)
        listing = rng.choice([" ", ", ", ", "]).join(items)
        template = rng.choice(["Count the {w}s in: {l}", "Count the {w}s: {l}", "How many {w}s are in this list: {l}?", "How many {w}s are there: {l}?",
                               "How many {w}s do you see: {l}?", "Here is a list: {l}. How many {w}s are in it?", "How many times does {w} appear in: {l}?",
                               "{l}. How many {w}s is that?", "Look at this: {l}. Count the {w}s."])
        answer = f"There is 1 {word}." if n == 1 else f"There are {n} {word}s."
        return ("count", word, *items), Ask("count", cap(template.format(w=word, l=listing)), answer, str(n), [str(n)])
    return draw(rng, held, make)


def length_ask(rng, held):
    def make(rng):
        items = [rng.choice(WORDS) for _ in range(rng.randint(1, 8))]
        template = rng.choice(["How many words are in: {l}", "How many words are in this list: {l}?", "Count the words: {l}", "How many things are in this list: {l}?"])
        n = len(items)
        answer = "There is 1 word." if n == 1 else f"There are {n} words."
        return ("length", *items), Ask("count", template.format(l=rng.choice([" ", ", "]).join(items)), answer, str(n), [str(n)])
    return draw(rng, held, make)


SIGNS = {"+": ("plus", "add", "and"), "-": ("minus", "take away", "less"), "x": ("times", "multiplied by", "times")}


DIGITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
          "twenty").split()


def sum_ask(rng, held, sign=None):
    """Addition and subtraction within 0..99, and the table up to 12 x 12. Number pairs are held out."""
    def make(rng):
        op = sign or rng.choice("++++---xx")
        if op == "x":
            a, b = rng.randint(0, 12), rng.randint(0, 12)
        else:
            top = rng.choice([9, 20, 99, 99, 99])
            a, b = rng.randint(0, top), rng.randint(0, top)
            if op == "-" and a < b and (held or rng.random() < 0.8):
                a, b = b, a
        total = {"+": a + b, "-": a - b, "x": a * b}[op]
        i = rng.randrange(12)
        if i == 11 and (op == "x" or max(a, b) > 20 or min(a, b) < 0):
            i = 0
        say = SIGNS[op][0] if i % 2 else SIGNS[op][1 if op != "+" else 2]
        question = [f"What is {a} {op} {b}?", f"What is {a} {say} {b}?", f"How much is {a} {op} {b}?", f"How much is {a} {say} {b}?", f"{a} {op} {b}",
                    f"{a} {say} {b}", f"Compute {a} {op} {b}.", f"{a} {op} {b} = ?", f"What does {a} {op} {b} make?", f"Can you work out {a} {say} {b}?",
                    f"{a}{op}{b}",
                    f"What is {DIGITS[a % 21]} {SIGNS[op][0]} {DIGITS[b % 21]}?"][i]
        if op == "x" and i == 10:
            question = f"{a} * {b}"
        answer = f"{a} {op} {b} = {total}."
        key = ("table", a, b, i) if op == "x" else ("sum", op, a, b)
        trivial = str(total) in (str(a), str(b))
        return (None if held and trivial else key), Ask("multiply" if op == "x" else "add" if op == "+" else "subtract", question, answer,
                                                                   str(total), [str(total)])
    return draw(rng, held, make)


def three_ask(rng, held):
    """Three small numbers in a row."""
    def make(rng):
        a, b, c = (rng.randint(0, 9) for _ in range(3))
        question = rng.choice([f"What is {a} + {b} + {c}?", f"{a} + {b} + {c}", f"How much is {a} plus {b} plus {c}?"])
        return ("three", a, b, c), Ask("add", question, f"{a} + {b} + {c} = {a + b + c}.", str(a + b + c), [str(a + b + c)])
    return draw(rng, held, make)


NAMES = "Mira Tobin Odo Wren Hugo Nora Silas Petra Milo Greta Bram Orla".split()


def story_sum_ask(rng, held):
    """A sum told as a little story; the pairs share the split of `sum_ask`."""
    def make(rng):
        name, noun, a, b = rng.choice(NAMES), rng.choice(NOUNS), rng.randint(1, 20), rng.randint(1, 20)
        if rng.random() < 0.55:
            op, total = "+", a + b
            text = rng.choice(["{n} has {a} {x}s and finds {b} more. How many {x}s is that?", "{n} has {a} {x}s and buys {b} more. How many {x}s does {n} have now?",
                               "There are {a} {x}s on the table and {b} in the basket. How many {x}s are there?",
                               "I have {a} {x}s and get {b} more. How many {x}s do I have?"])
        else:
            a, b = max(a, b), min(a, b)
            op, total = "-", a - b
            text = rng.choice(["{n} has {a} {x}s and loses {b}. How many {x}s are left?", "{n} has {a} {x}s and gives away {b}. How many {x}s does {n} have now?",
                               "There were {a} {x}s on the table and {n} took {b}. How many {x}s are left?",
                               "I have {a} {x}s and lose {b}. How many {x}s are left?", "I had {a} {x}s and gave {b} away. How many {x}s do I have now?"])
        noun_out = noun if total == 1 else noun + "s"
        answer = f"{a} {op} {b} = {total}, so that is {total} {noun_out}."
        plural = text.format(n=name, a=a, b=b, x=noun).replace(f" 1 {noun}s", f" 1 {noun}")
        return ("sum", op, a, b), Ask("story_sum", plural, answer, str(total), [str(total) + " " + noun_out])
    return draw(rng, held, make)


def order_ask(rng, held):
    """Bigger, smaller, next, before, counting up and down, putting in order."""
    def make(rng):
        kind = rng.choice(["bigger", "bigger", "sort", "sort", "next", "before", "to", "down", "than"])
        a, b, c = rng.sample(range(100), 3)
        if kind == "bigger":
            big, i = rng.random() < 0.5, rng.randrange(3)
            word = ("bigger" if i else "larger") if big else "smaller"
            question = [f"Which is {word}, {a} or {b}?", f"Which number is {word}, {a} or {b}?", f"Is {a} or {b} {word}?"][i]
            x, y = (max(a, b), min(a, b)) if big else (min(a, b), max(a, b))
            return (kind, a, b), Ask("order", question, f"{x} is {word} than {y}.", str(x), [f"{x} is {word}"])
        if kind == "sort":
            question = rng.choice(["Put these numbers in order: {}", "Sort these numbers: {}", "Sort: {}", "Order these from small to large: {}"])
            done = ", ".join(map(str, sorted((a, b, c))))
            return (kind, a, b, c), Ask("order", question.format(f"{a}, {b}, {c}"), f"In order: {done}.", done, [done])
        if kind == "than":
            big = rng.random() < 0.5
            word = "bigger" if big else "smaller"
            yes = (a > b) == big
            return (kind, a, b), Ask("order", f"Is {a} {word} than {b}?", f"{'Yes' if yes else 'No'}, {a} is {'bigger' if a > b else 'smaller'} than {b}.",
                                     "Yes" if yes else "No", ["Yes" if yes else "No"], ["No" if yes else "Yes"])
        if kind in ("next", "before"):
            i, n = rng.randrange(4), a + 1 if kind == "next" else a - 1
            word = "after" if kind == "next" else "before"
            question = [f"What comes {word} {a}?", f"Which number comes {word} {a}?", f"What number is {word} {a}?", f"Tell me the number {word} {a}."][i]
            return (kind, a, i), Ask("order", question, f"{n} comes {word} {a}.", str(n), [f"{n} comes"])
        start, n = rng.choice([1, 1, 1, rng.randint(2, 20)]), rng.randint(2, 12)
        run = list(range(start, start + n))
        if kind == "down":
            run = list(range(n, 0, -1))
            question = rng.choice([f"Count down from {n}.", f"Count backwards from {n}.", f"Count from {n} to 1."])
        else:
            question = rng.choice([f"Count from {start} to {run[-1]}.", f"Please count from {start} to {run[-1]}."] + [f"Count to {n}."] * 2 * (start == 1))
        done = ", ".join(map(str, run))
        return (kind, question), Ask("order", question, done + ".", done, [done])
    return draw(rng, held, make)


def words_ask(rng, held):
    """Repeat, reverse, or pick one of a few words."""
    def make(rng):
        words = rng.sample(WORDS, rng.randint(2, 5))
        sep = rng.choice([" ", " ", ", "])
        text, kind = sep.join(words), rng.choice(["repeat", "reverse", "first", "last", "second", "has"])
        if kind == "repeat":
            question = rng.choice(["Repeat after me: {}", "Say this: {}", "Repeat: {}", "Please say: {}"])
            answer, accept = cap(text) + ".", text
        elif kind == "reverse":
            answer, accept = cap(sep.join(words[::-1])) + ".", sep.join(words[::-1])
            question = rng.choice(["Say these words backwards: {}", "Reverse this list: {}", "Say this in reverse order: {}"])
        elif kind == "has":
            word = rng.choice(words) if rng.random() < 0.5 else rng.choice(WORDS)
            yes = word in words
            question = f"Is the word {word} in this list: {{}}?"
            answer = f"Yes, {word} is in the list." if yes else f"No, {word} is not in the list."
            accept = "Yes" if yes else "No"
        else:
            word = words[{"first": 0, "second": 1, "last": -1}[kind]]
            question = rng.choice([f"What is the {kind} word of: {{}}", f"Which word is {kind} in: {{}}", f"Tell me the {kind} word: {{}}"])
            answer, accept = f"The {kind} word is {word}.", word
        return (kind, *words), Ask("words", question.format(text), answer, accept.split()[-1], [accept])
    return draw(rng, held, make)
