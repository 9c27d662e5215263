"""Questions about the facts of the world, each with its one right answer, in many phrasings.

A question is held out when the hash of (family, fact, phrasing) says so: the trainer never sees that
combination, the evaluation uses nothing else.
"""

import zlib
from dataclasses import dataclass, field

from facts import World

W = World()


@dataclass
class Ask:
    kind: str
    question: str
    answer: str
    short: str  # the answer in one word, for terse system turns
    accept: list
    wrong: list = field(default_factory=list)
    topic: object = None  # the person whom a later pronoun means
    relation: str = ""


def is_held(*key, one_in=8):
    """True if this exact combination is held out for evaluation."""
    return zlib.crc32("|".join(map(str, key)).encode()) % one_in == 0


def an(noun):
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def cap(text):
    return text[:1].upper() + text[1:]


def draw(rng, held, make, tries=400):
    """The first draw of `make(rng) -> (key, Ask)` on the wanted side of the split.

    A draw without a key is for training only.
    """
    for _ in range(tries):
        key, ask = make(rng)
        if (key is not None and is_held(*key)) == held:
            return ask
    return None


# relation: (questions, answers, one word, accepted). Slots: n name, m name as object, ns
# possessive.
PERSON = {
    "home": (
        ["Where does {n} live?", "Which town does {n} live in?", "In which town does {n} live?", "What is {ns} home town?",
         "Where is {ns} home?", "Can you tell me where {n} lives?", "Do you know where {n} lives?", "What town is {n} from?",
         "Where can I find {m}?", "Where is {ns} house?", "I would like to visit {m}. Where should I go?",
         "Name the town where {n} lives.", "Where should I send a letter to {m}?", "Tell me where {n} lives.",
         "What is the name of the town where {n} lives?", "Where is {n} from?"],
        ["{N} lives in {p.town.name}.", "{N}'s home is in {p.town.name}.", "You can find {N} in {p.town.name}."],
        lambda p: p.town.name, lambda p: [p.town.name]),
    "job": (
        ["What does {n} do?", "What is {ns} job?", "What work does {n} do?", "How does {n} earn a living?", "What is {ns} trade?",
         "Can you tell me what {n} does?", "Do you know {ns} job?", "What does {n} work as?", "What is {ns} profession?",
         "What kind of work does {n} do?", "Tell me {ns} job.", "What does {n} do all day?", "What does {n} do for a living?",
         "Which trade does {n} follow?"],
        ["{N} is {a_job}.", "{N} works as {a_job}."], lambda p: p.job, lambda p: [p.job]),
    "age": (
        ["How old is {n}?", "What is {ns} age?", "What age is {n}?", "Do you know how old {n} is?", "Can you tell me {ns} age?",
         "Tell me how old {n} is.", "How many years old is {n}?", "What is the age of {m}?", "How old is {n} this year?",
         "Could you tell me how old {n} is?", "I wonder how old {n} is.", "Please tell me {ns} age."],
        ["{N} is {p.age} years old.", "{N} is {p.age}."], lambda p: str(p.age), lambda p: [str(p.age)]),
    "friend": (
        ["Who is {ns} best friend?", "Who is {ns} friend?", "Who is friends with {m}?", "Who is the best friend of {m}?",
         "Whom does {n} like best?", "Name {ns} best friend.", "Does {n} have a best friend?", "Do you know {ns} best friend?",
         "Can you tell me who {ns} best friend is?", "Who is {ns} closest friend?", "Tell me the name of {ns} best friend.",
         "Who are {ns} friends?", "What is the name of {ns} best friend?", "Which person is {ns} best friend?"],
        ["{N}'s best friend is {p.friend.name}.", "{p.friend.name} is {N}'s best friend."],
        lambda p: p.friend.name, lambda p: [p.friend.name]),
    "pet": (
        ["What pet does {n} have?", "Which animal does {n} keep?", "Does {n} have a pet?", "What kind of pet does {n} have?",
         "What animal lives with {m}?", "Tell me about {ns} pet.", "What is {ns} pet?", "What sort of animal is {ns} pet?",
         "Do you know what pet {n} has?", "Which pet belongs to {m}?", "Does {n} keep any animals?", "What animal does {n} look after?",
         "Can you tell me what pet {n} has?", "What kind of animal does {n} own?"],
        ["{N} has {a_pet} called {p.pet_name}.", "{N} keeps {a_pet} called {p.pet_name}."], lambda p: p.pet, lambda p: [p.pet]),
    "pet_name": (
        ["What is {ns} pet called?", "What is the name of {ns} pet?", "What is {ns} {p.pet} called?", "What is the name of {ns} {p.pet}?",
         "What does {n} call the {p.pet}?", "Tell me the name of {ns} pet.", "How is {ns} {p.pet} called?", "Do you know the name of {ns} pet?",
         "Can you tell me the name of {ns} {p.pet}?", "What name did {n} give to the {p.pet}?", "Name {ns} pet.", "What is {ns} pet's name?"],
        ["{N}'s {p.pet} is called {p.pet_name}.", "The name of {N}'s {p.pet} is {p.pet_name}."],
        lambda p: p.pet_name, lambda p: [p.pet_name]),
    "food": (
        ["What does {n} like to eat?", "What is {ns} favourite food?", "What food does {n} like?", "What does {n} eat?",
         "What would {n} like for supper?", "What should I cook for {m}?", "Which food does {n} like best?", "What is {ns} favourite meal?",
         "Do you know what {n} likes to eat?", "Tell me {ns} favourite food.", "What does {n} love to eat?",
         "Can you tell me {ns} favourite food?", "What does {n} like to eat most of all?", "What dish does {n} love?"],
        ["{N} loves {p.food}.", "{N}'s favourite food is {p.food}.", "{N} likes {p.food} best."],
        lambda p: p.food.split()[-1], lambda p: [p.food]),
    "thing": (
        ["What does {n} own?", "What is {ns} treasure?", "What treasure does {n} have?", "What is {ns} dearest possession?",
         "What thing does {n} own?", "What belongs to {m}?", "Tell me what {n} owns.", "Which treasure belongs to {m}?",
         "What is the treasure of {m}?", "Do you know what {n} owns?", "What does {n} keep as a treasure?", "Can you tell me what {n} owns?"],
        ["{N} owns {a_thing}.", "{N}'s treasure is {a_thing}."], lambda p: p.thing, lambda p: [p.colour + " " + p.thing]),
    "colour": (
        ["What colour is {ns} {p.thing}?", "Which colour is {ns} {p.thing}?", "What is the colour of {ns} {p.thing}?",
         "Do you know what colour {ns} {p.thing} is?", "Tell me the colour of {ns} {p.thing}.", "Which colour has {ns} {p.thing}?",
         "Can you tell me the colour of {ns} {p.thing}?", "Of what colour is {ns} {p.thing}?"],
        ["{N}'s {p.thing} is {p.colour}."], lambda p: p.colour, lambda p: [p.colour]),
    "hobby": (
        ["What does {n} do for fun?", "What is {ns} hobby?", "What does {n} like to do?", "How does {n} spend a free day?",
         "What does {n} enjoy?", "What hobby does {n} have?", "Do you know {ns} hobby?", "Tell me what {n} likes to do.",
         "What does {n} do after work?", "What does {n} like doing?", "Can you tell me {ns} hobby?", "What does {n} do in the evening?"],
        ["{N} likes to {p.hobby}.", "For fun, {N} likes to {p.hobby}."], lambda p: p.hobby.split()[-1], lambda p: [p.hobby]),
    "isle": (
        ["Which island does {n} live on?", "On which island does {n} live?", "What island is {n} from?", "What is {ns} home island?",
         "Can you tell me which island {n} lives on?", "Do you know on which island {n} lives?", "Which isle is {ns} home?",
         "Tell me which island {n} lives on.", "Which of the islands is {n} from?", "Name the island where {n} lives."],
        ["{N} lives in {p.town.name}, on {p.town.island.full}."], lambda p: p.town.island.name, lambda p: [p.town.island.name]),
}

TOWN = {
    "isle": (["Where is {t}?", "Which island is {t} on?", "On which island is {t}?", "Can you tell me where {t} is?", "Where can I find {t}?",
              "On which isle does {t} lie?", "Where does {t} lie?", "What island is {t} on?", "Do you know where {t} is?"],
             ["{t} is on {o.island.full}.", "{t} is a town on {o.island.full}."], lambda o: o.island.name),
    "craft": (["What is made in {t}?", "What is {t} known for?", "What do they make in {t}?", "What do people make in {t}?",
               "What does {t} make?", "What is {t} famous for?", "What can I buy in {t}?", "Which goods come from {t}?", "What comes from {t}?"],
              ["{t} makes {o.craft}.", "{t} is known for its {o.craft}."], lambda o: o.craft),
    "founded": (["When was {t} founded?", "In which year was {t} founded?", "When did {t} begin?", "How long has there been a town called {t}?",
                 "What year was {t} founded in?", "When was {t} built?", "Do you know when {t} was founded?", "Tell me when {t} was founded."],
                ["{t} was founded in the year {o.founded}."], lambda o: str(o.founded)),
    "mayor": (["Who is the mayor of {t}?", "Who runs {t}?", "Who is mayor in {t}?", "What is the name of the mayor of {t}?", "Who leads {t}?",
               "Can you name the mayor of {t}?", "Do you know the mayor of {t}?", "Tell me who the mayor of {t} is."],
              ["The mayor of {t} is {o.mayor.name}.", "{o.mayor.name} is the mayor of {t}."], lambda o: o.mayor.name),
    "landmark": (["What is there to see in {t}?", "What should I see in {t}?", "What is the landmark of {t}?", "What stands in {t}?",
                  "What can I visit in {t}?", "What is the sight of {t}?", "I am going to {t}. What should I look at?",
                  "What is worth seeing in {t}?"],
                 ["In {t} you can see the {o.landmark}.", "{t} has the {o.landmark}."], lambda o: o.landmark),
}

ISLAND = {
    "river": (["Which river runs through {i}?", "What is the river on {i}?", "What is the name of the river on {i}?", "Which river is on {i}?",
               "Does {i} have a river?", "Name the river of {i}.", "What river flows on {i}?"],
              ["The river {o.river} runs through {i}.", "The river on {i} is the {o.river}."], lambda o: o.river),
    "hill": (["What is the highest hill on {i}?", "Which hill is on {i}?", "What is the hill on {i} called?", "What is the highest point of {i}?",
              "Does {i} have a hill?", "Name the hill of {i}.", "Where can I climb on {i}?"],
             ["The highest hill on {i} is {o.hill}.", "On {i} you can climb {o.hill}."], lambda o: o.hill),
    "harvest": (["What grows on {i}?", "What do the farmers of {i} grow?", "What is the harvest of {i}?", "What is grown on {i}?",
                 "Which crop grows on {i}?", "What do they grow on {i}?", "What do the fields of {i} bring?"],
                ["{o.harvest} grow on {i}.", "The farmers of {i} grow {o.harvest}."], lambda o: o.harvest),
    "bird": (["Which bird lives on {i}?", "What is the bird of {i}?", "What bird can I see on {i}?", "Which bird nests on {i}?",
              "What kind of bird lives on {i}?", "Name the bird of {i}."],
             ["The {o.bird} lives on {i}.", "The bird of {i} is the {o.bird}."], lambda o: o.bird),
    "flag": (["What colour is the flag of {i}?", "Which flag does {i} have?", "What is the colour of {i}'s flag?", "What does the flag of {i} look like?",
              "Which colour is the flag of {i}?", "Describe the flag of {i}."],
             ["The flag of {i} is {o.flag}.", "{i} has {a_flag} flag."], lambda o: o.flag),
}


def person_ask(rng, held, person=None, relation=None, pronoun=False):
    """One attribute of a person, by name or (in a dialogue about that person) by pronoun."""
    def make(rng):
        p, rel = person or rng.choice(W.people), relation or rng.choice(list(PERSON))
        questions, answers, short, accept = PERSON[rel]
        i = rng.choice([i for i, q in enumerate(questions) if not (pronoun and " of {m}" in q)])
        n, m, ns = (p.subject, p.object, p.possessive) if pronoun else (p.name, p.name, p.name + "'s")
        question = cap(questions[i].format(n=n, m=m, ns=ns, p=p))
        return (rel, pronoun, p.name, i), Ask("pronoun" if pronoun else rel, question, say_person(p, rel, i), short(p), accept(p),
                                             topic=p, relation=rel)
    return draw(rng, held, make)


def say_person(p, rel, i=0):
    answers = PERSON[rel][1]
    return answers[i % len(answers)].format(N=p.name, p=p, a_job=an(p.job), a_pet=an(p.pet), a_thing=an(p.colour + " " + p.thing))


def town_ask(rng, held, town=None):
    def make(rng):
        t, rel = town or rng.choice(W.towns), rng.choice(list(TOWN))
        questions, answers, value = TOWN[rel]
        i = rng.randrange(len(questions))
        answer = answers[i % len(answers)].format(t=t.name, o=t)
        topic = t.mayor if rel == "mayor" else None
        return ("town", rel, t.name, i), Ask("town", questions[i].format(t=t.name), answer, value(t), [value(t)], topic=topic)
    return draw(rng, held, make)


def island_ask(rng, held):
    def make(rng):
        o, rel = rng.choice(W.islands), rng.choice(list(ISLAND))
        questions, answers, value = ISLAND[rel]
        i = rng.randrange(len(questions))
        name = o.full if i % 3 else rng.choice([o.full, o.name])
        answer = cap(answers[i % len(answers)].format(i=o.full, o=o, a_flag=an(o.flag)))
        if o.harvest == "tea":
            answer = answer.replace("Tea grow", "Tea grows")
        return ("island", rel, o.name, i), Ask("island", questions[i].format(i=name), answer, value(o), [value(o)])
    return draw(rng, held, make)


EVENT_WHEN = ["When was {e}?", "In which year was {e}?", "When did people see {e}?", "What year was {e}?", "Do you know when {e} was?",
              "Can you tell me the year of {e}?", "When did {e} happen?", "In what year did {e} take place?"]
EVENT_WHERE = ["Where was {e}?", "In which town was {e}?", "Where did {e} happen?", "Where did {e} take place?", "Do you know where {e} was?",
               "Which town saw {e}?", "What was the place of {e}?"]
EVENT_WHO = ["Who {d}?", "Do you know who {d}?", "Can you tell me who {d}?", "What is the name of the person who {d}?", "Tell me who {d}.",
             "Which person {d}?"]
EVENT_WHAT = ["What happened in the year {y}?", "What happened in {y}?", "What do you know about the year {y}?", "Which event was in the year {y}?",
              "Do you remember the year {y}?"]


def event_ask(rng, held):
    def make(rng):
        e = rng.choice(W.events)
        rel = rng.choice(["when", "where", "who", "what"] if e.who else ["when", "where", "what"])
        templates = {"when": EVENT_WHEN, "where": EVENT_WHERE, "who": EVENT_WHO, "what": EVENT_WHAT}[rel]
        i = rng.randrange(len(templates))
        question = templates[i].format(e=e.name, d=e.deed, y=e.year)
        answer = {"when": f"{cap(e.name)} was in the year {e.year}.", "where": f"{cap(e.name)} was in {e.town.name}.",
                  "who": f"{e.who.name if e.who else ''} {e.deed} in the year {e.year}.",
                  "what": f"In the year {e.year}, {e.who.name} {e.deed} in {e.town.name}." if e.who
                          else f"The year {e.year} was the year of {e.name} in {e.town.name}."}[rel]
        value = {"when": str(e.year), "where": e.town.name, "who": e.who.name if e.who else "",
                 "what": e.deed if e.who else e.name}[rel]
        topic = e.who if rel == "who" else None
        return ("event", rel, e.name, i), Ask("event", question, answer, value, [value], topic=topic)
    return draw(rng, held, make)


REVERSE = {
    "owner": (["Who owns the {c} {t}?", "Whose {t} is {c}?", "Who has {a_ct}?", "To whom does the {c} {t} belong?", "Who is the owner of the {c} {t}?",
               "I found {a_ct}. Whose is it?", "Who lost the {c} {t}?", "Whose is the {c} {t}?"],
              ["{N} owns {a_ct}.", "The {c} {t} belongs to {N}."]),
    "pet_owner": (["Who owns {k}?", "Whose pet is {k}?", "Whose {pet} is called {k}?", "Who has {a_pet} called {k}?", "To whom does {k} the {pet} belong?",
                   "Who is the owner of {k}?", "I met {a_pet} called {k}. Whose is it?", "Who looks after {k}?"],
                  ["{k} is {N}'s {pet}.", "{N} has {a_pet} called {k}."]),
    "job_in": (["Who is the {job} of {town}?", "Who is the {job} in {town}?", "Who works as {a_job} in {town}?", "Is there {a_job} in {town}?",
                "I need {a_job} in {town}. Whom should I ask?", "Name the {job} of {town}.", "What is the {job} of {town} called?",
                "Do you know the {job} in {town}?"],
               ["{N} is the {job} in {town}.", "The {job} of {town} is {N}."]),
}
PLACE_REVERSE = {
    "craft": (["Which town makes {v}?", "Where are {v} made?", "Where can I buy {v}?", "Which town is known for its {v}?", "Where do {v} come from?",
               "Who makes {v}?", "I need {v}. Where should I go?"], ["{t} makes {v}.", "You can get {v} in {t}."]),
    "landmark": (["Where is the {v}?", "Which town has the {v}?", "In which town is the {v}?", "Where can I see the {v}?", "Where should I go to see the {v}?",
                  "I want to see the {v}. Where is it?", "Can you tell me where the {v} is?"],
                 ["The {v} is in {t}.", "You can see the {v} in {t}."]),
}


def reverse_ask(rng, held):
    def make(rng):
        if rng.random() < 0.3:
            t, rel = rng.choice(W.towns), rng.choice(list(PLACE_REVERSE))
            questions, answers = PLACE_REVERSE[rel]
            i, v = rng.randrange(len(questions)), getattr(t, rel)
            question = questions[i].format(v=v)
            if v in ("bread", "lace", "honey", "ink"):
                question = question.replace(" are ", " is ").replace("Where do ", "Where does ")
            return ("reverse", rel, t.name, i), Ask("reverse", question, answers[i % 2].format(v=v, t=t.name), t.name, [t.name])
        p, rel = rng.choice(W.people), rng.choice(list(REVERSE))
        questions, answers = REVERSE[rel]
        slots = dict(c=p.colour, t=p.thing, a_ct=an(p.colour + " " + p.thing), k=p.pet_name, pet=p.pet, a_pet=an(p.pet), job=p.job,
                     a_job=an(p.job), town=p.town.name, N=p.name)
        i = rng.randrange(len(questions))
        return ("reverse", rel, p.name, i), Ask("reverse", questions[i].format(**slots), answers[i % 2].format(**slots), p.name, [p.name], topic=p)
    return draw(rng, held, make)


YES_NO = {
    "home": (["Does {n} live in {x}?", "Is {x} the home of {n}?", "Is {n} from {x}?", "Can I find {n} in {x}?"], lambda p: p.town.name),
    "job": (["Is {n} {a_x}?", "Does {n} work as {a_x}?", "Is it true that {n} is {a_x}?", "Am I right that {n} is {a_x}?"], lambda p: p.job),
    "friend": (["Is {x} the best friend of {n}?", "Is {x} a friend of {n}?", "Are {n} and {x} best friends?"], lambda p: p.friend.name),
    "pet": (["Does {n} have {a_x}?", "Is {n}'s pet {a_x}?", "Does {n} keep {a_x}?"], lambda p: p.pet),
    "colour": (["Is {n}'s {p.thing} {x}?", "Is the {p.thing} of {n} {x}?", "Does {n} own {a_x} {p.thing}?"], lambda p: p.colour),
}


def yes_no_ask(rng, held):
    def make(rng):
        p, rel = rng.choice(W.people), rng.choice(list(YES_NO))
        questions, value = YES_NO[rel]
        yes, x = rng.random() < 0.5, value(p)
        if not yes:
            x = value(rng.choice([q for q in W.people if value(q) not in (x, p.name) and q is not p]))
        i = rng.randrange(len(questions))
        question = questions[i].format(n=p.name, x=x, a_x=an(x), p=p)
        answer = ("Yes, " if yes else "No, ") + say_person(p, rel)
        return ("yes_no", rel, p.name, x, i), Ask("yes_no", question, answer, "Yes" if yes else "No", ["Yes" if yes else "No"],
                                                 ["No" if yes else "Yes"], topic=p)
    return draw(rng, held, make)


HOPS = {  # relation of the second hop: questions about {o}, a phrase that names the person
    "home": ["Where does {o} live?", "Which town does {o} live in?", "Where can I find {o}?", "In which town does {o} live?"],
    "job": ["What does {o} do?", "What is the job of {o}?", "What work does {o} do?", "What does {o} work as?"],
    "age": ["How old is {o}?", "What is the age of {o}?", "Do you know how old {o} is?", "Tell me how old {o} is."],
    "pet": ["What pet does {o} have?", "Which animal does {o} keep?", "Does {o} have a pet?", "What kind of pet does {o} have?"],
    "food": ["What does {o} like to eat?", "What is the favourite food of {o}?", "What food does {o} like?", "What does {o} love to eat?"],
    "thing": ["What does {o} own?", "What treasure does {o} have?", "What is the treasure of {o}?", "Tell me what {o} owns."],
}
OTHERS = {  # how the first hop is said and answered: (phrases, statement, key, person)
    "friend": (["{n}'s best friend", "the best friend of {n}", "{n}'s friend"], "{n}'s best friend is {x}.", lambda p: (p.name, p.friend)),
    "mayor": (["the mayor of {n}", "{n}'s mayor"], "The mayor of {n} is {x}.", lambda t: (t.name, t.mayor)),
    "owner": (["the owner of the {n}", "the person who owns the {n}"], "{x} owns the {n}.", lambda p: (p.colour + " " + p.thing, p)),
}


def two_hop_ask(rng, held, new=False):
    """Two facts in a row. `new`: the chain itself was never asked in training, in any phrasing."""
    for _ in range(2000):
        first, rel = rng.choice(["friend", "friend", "mayor", "owner"]), rng.choice(list(HOPS))
        if first == "owner" and rel == "thing":
            continue
        phrases, statement, get = OTHERS[first]
        name, p = get(rng.choice(W.towns if first == "mayor" else W.people))
        i, j = rng.randrange(len(HOPS[rel])), rng.randrange(len(phrases))
        unseen = is_held("chain", first, rel, name)
        if unseen != (held and new) or (not new and is_held("two_hop", first, rel, name, i, j) != held):
            continue
        _, _, short, accept = PERSON[rel]
        answer = statement.format(n=name, x=p.name) + " " + say_person(p, rel)
        question = cap(HOPS[rel][i].format(o=phrases[j].format(n=name)))
        return Ask("two_hop_new" if new else "two_hop", question, answer, short(p), accept(p), topic=p)
    return None


OLDER = ["Who is older, {a} or {b}?", "Is {a} or {b} older?", "Which of the two is older, {a} or {b}?", "Who was born first, {a} or {b}?"]
FIRST = ["Which came first, {a} or {b}?", "What happened first, {a} or {b}?", "Was {a} or {b} earlier?", "Which was earlier, {a} or {b}?"]


def compare_ask(rng, held):
    """Who is older, which event came first: two facts and a comparison."""
    def make(rng):
        if rng.random() < 0.6:
            a, b = rng.sample(W.people, 2)
            old = a if a.age > b.age else b
            i = rng.randrange(len(OLDER))
            answer = f"{a.name} is {a.age} and {b.name} is {b.age}, so {old.name} is older."
            return ("older", a.name, b.name), Ask("compare", OLDER[i].format(a=a.name, b=b.name), answer, old.name, [old.name + " is older"], topic=old)
        a, b = rng.sample(W.events, 2)
        first = a if a.year < b.year else b
        i = rng.randrange(len(FIRST))
        answer = f"{cap(a.name)} was in {a.year} and {b.name} was in {b.year}, so {first.name} came first."
        return ("first", a.name, b.name), Ask("compare", FIRST[i].format(a=a.name, b=b.name), answer, first.name.split()[-1], [first.name + " came first"])
    return draw(rng, held, make)


def census_ask(rng, held):
    """How many towns on an island, how many people in a town, and who or what they are."""
    def make(rng):
        if rng.random() < 0.35:
            o = rng.choice(W.islands)
            names, n = [t.name for t in o.towns], len(o.towns)
            templates = ["How many towns are on {x}?", "How many towns does {x} have?", "Count the towns on {x}.", "Which towns are on {x}?",
                         "Name the towns on {x}.", "What are the towns of {x}?"]
            x, answer = o.full, f"There are {n} towns on {o.full}: {listed(names)}."
        else:
            o = rng.choice(W.towns)
            names, n = [p.name for p in o.people], len(o.people)
            templates = ["How many people live in {x}?", "How many people do you know in {x}?", "Count the people of {x}.", "Who lives in {x}?",
                         "Name the people of {x}.", "Whom can I meet in {x}?"]
            x, answer = o.name, f"{n} people live in {o.name}: {listed(names)}."
        i = rng.randrange(len(templates))
        return ("census", x, i), Ask("census", templates[i].format(x=x), answer, str(n), [str(n)] if i < 3 else [listed(names)])
    return draw(rng, held, make)


JOINED = {  # relation: the question's second half, about a person already named
    "home": "where does {he} live", "job": "what does {he} do", "age": "how old is {he}", "friend": "who is {his} best friend",
    "pet": "what pet does {he} have", "food": "what does {he} like to eat", "thing": "what does {he} own", "hobby": "what is {his} hobby",
}


def both_ask(rng, held):
    """Two attributes in one question."""
    def make(rng):
        p, (one, two) = rng.choice(W.people), rng.sample(list(JOINED), 2)
        first = PERSON[one][0][0].format(n=p.name, m=p.name, ns=p.name + "'s", p=p)
        q = p.friend if one == "friend" else p  # "who is her friend, and where does he live" asks about the friend
        question = f"{first[:-1]} and {JOINED[two].format(he=q.subject, his=q.possessive)}?"
        _, _, short, accept = PERSON[two]
        seen = one != "friend" or two in HOPS and not is_held("chain", "friend", two, p.name)
        return ("both", p.name, one, two, seen), seen, Ask("both", question, say_person(p, one) + " " + say_person(q, two), short(q), accept(q), topic=q)

    def allowed(rng):
        while True:
            key, seen, ask = make(rng)
            if seen:
                return key, ask
    return draw(rng, held, allowed)


GROUPS = {
    "job": (["Who is {a_v}?", "Which people are {v}s?", "Who works as {a_v}?", "Name the {v}s.", "Who are the {v}s?", "Do you know {a_v}?"],
            "The {v}s are {l}."),
    "pet": (["Who has {a_v}?", "Who keeps {a_v}?", "Which people have {a_v}?", "Who lives with {a_v}?", "Whose pet is {a_v}?"], "{l} have {a_v}."),
    "food": (["Who likes {v}?", "Who loves {v}?", "Whose favourite food is {v}?", "Which people like {v}?", "Who eats {v}?"], "{l} like {v}."),
    "hobby": (["Who likes to {v}?", "Who loves to {v}?", "Which people like to {v}?", "Whose hobby is it to {v}?"], "{l} like to {v}."),
    "thing": (["Who owns {a_v}?", "Who has {a_v}?", "Which people own {a_v}?"], "{l} own {a_v}."),
}


def listed(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def group_ask(rng, held):
    """Everyone who shares a trade, a pet, a food, a hobby or a kind of treasure."""
    def make(rng):
        rel = rng.choice(list(GROUPS))
        value = getattr(rng.choice(W.people), rel)
        names = [p.name for p in W.people if getattr(p, rel) == value]
        questions, answer = GROUPS[rel]
        i = rng.randrange(len(questions))
        slots = dict(v=value, a_v=an(value), l=listed(names))
        answer = answer.format(**slots)
        if len(names) == 1:
            answer = answer.replace(" have ", " has ", 1).replace(" like ", " likes ", 1).replace(" own ", " owns ", 1)
        return ("group", rel, value, i), Ask("group", questions[i].format(**slots), answer, "Many", [listed(names)])
    return draw(rng, held, make)


def hop_yes_no_ask(rng, held):
    """Yes or no about somebody's best friend."""
    def make(rng):
        p, rel = rng.choice(W.people), rng.choice(["home", "job", "pet"])
        value, i, yes = YES_NO[rel][1], rng.randrange(2), rng.random() < 0.5
        x = value(p.friend) if yes else value(rng.choice([q for q in W.people if value(q) != value(p.friend)]))
        who = [f"{p.name}'s best friend", f"the best friend of {p.name}"][i]
        question = {"home": f"Does {who} live in {x}?", "job": f"Is {who} {an(x)}?", "pet": f"Does {who} have {an(x)}?"}[rel]
        answer = f"{'Yes' if yes else 'No'}, {p.name}'s best friend is {p.friend.name}. {say_person(p.friend, rel)}"
        word, other = ("Yes", "No") if yes else ("No", "Yes")
        return ("hop_yes_no", rel, p.name, x, i), Ask("yes_no", question, answer, word, [word], [other], topic=p.friend)
    return draw(rng, held, make)


ABOUT_PERSON = ["Tell me about {x}.", "Who is {x}?", "What do you know about {x}?", "Can you tell me something about {x}?", "Describe {x}.",
                "I would like to know more about {x}.", "Do you know {x}?", "Say something about {x}.", "Have you heard of {x}?", "What is {x} like?", "{x}"]
BARE = len(ABOUT_PERSON) - 1  # the name alone, never held out


def about_ask(rng, held):
    """A short portrait of a person or a town."""
    def make(rng):
        i = rng.randrange(len(ABOUT_PERSON))
        if rng.random() < 0.7:
            p = rng.choice(W.people)
            answer = portrait(p, i)
            return None if i == BARE else ("about", p.name, i), Ask("about", ABOUT_PERSON[i].format(x=p.name), answer, p.job, [p.job], topic=p)
        t = rng.choice(W.towns)
        i = 0 if i == 1 else i
        answer = (f"{t.name} is a town on {t.island.full}. It was founded in the year {t.founded} and is known for its {t.craft}. "
                  f"The mayor is {t.mayor.name}, and you can see the {t.landmark} there.")
        return None if i == BARE else ("about", t.name, i), Ask("about", ABOUT_PERSON[i].format(x=t.name), answer, t.craft.split()[-1], [t.craft])
    return draw(rng, held, make)


def portrait(p, i=0):
    """Three sentences about a person."""
    opening = f"{p.name} is {an(p.job)} from {p.town.name}, on {p.town.island.full}."
    he, his = cap(p.subject), cap(p.possessive)
    return opening + [
        f" {he} is {p.age} years old and has {an(p.pet)} called {p.pet_name}. {his} best friend is {p.friend.name}.",
        f" {he} has {an(p.pet)} called {p.pet_name} and likes to {p.hobby}. {his} best friend is {p.friend.name}.",
        f" {he} owns {an(p.colour + ' ' + p.thing)} and loves {p.food}. {his} best friend is {p.friend.name}.",
    ][i % 3]
