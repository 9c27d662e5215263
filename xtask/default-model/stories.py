"""Short stories about the islanders, 60 to 150 tokens long, true to the facts."""

import re

from asks import Ask, W, an, cap, is_held

OPENINGS = [
    "{One morning|One day|On a windy morning} {n} the {job} woke up early in {town}.",
    "{Once|Long ago|Last spring}, in the town of {town}, {n} the {job} heard a knock at the door.",
    "{It was a quiet evening|It was a grey morning|It was market day} in {town}, and {n} the {job} was at home.",
]
PLOTS = [
    "{His} {pet} {pet_name} was gone! {n} looked under the bed, behind the stove and in the {colour} {thing}. Then {he} walked to the {landmark}. "
    "There sat {pet_name}, eating {food} with {friend}. \"{We were hungry|We could not wait|You are just in time},\" said {friend}. "
    "{n} laughed and sat down with them.",
    "The wind had taken {his} {colour} {thing}, and it was flying over {isle}. {n} and {pet_name} the {pet} ran after it, past the {landmark} and along "
    "the river {river}. At last {friend} caught it {with both hands|with a net|in a hat}. That night they all ate {food}, and the wind was quiet.",
    "At the door stood {friend}, {wet from the rain|out of breath|with a big smile}. \"Come quickly, there is a light near the {landmark}!\" They took the "
    "{colour} {thing} and the {pet} {pet_name} and went to look. It was only the moon in a puddle. They sat down beside it and shared some {food}.",
    "{n} wanted to {hobby}, but {pet_name} the {pet} had other plans. {pet_name} pulled {him} all the way to the {landmark}, where {friend} was waiting with "
    "{food}. It was {his} birthday, and {n} had {forgotten it|not remembered|lost count of the days}. It was the best day on {isle} for many years.",
    "{n} found a letter with no name on it. \"Meet me at the {landmark},\" it said. So {n} took {his} {colour} {thing} and went there with {pet_name} the {pet}. "
    "It was {friend}, who had cooked {food} for everyone. They ate until {the stars came out|the sun went down|the boats came home}.",
    "A small {bird} had fallen from its nest on {hill}. {n} put it in {his} {colour} {thing} and fed it {food}. {pet_name} the {pet} kept it warm, and {friend} "
    "sang to it. After {three days|a week|five days} it flew away over {isle}, and every spring it comes back to say hello.",
]
ENDINGS = ["And that is how {n} tells it to this day.", "From that day on, {n} and {friend} met there every week.", "And {pet_name} slept very well that night.",
           "If you go to {town}, you can ask {him} about it."]
REQUESTS = ["Tell me a story about {n}.", "Can you tell me a story about {n}?", "Could you tell me a story about {n}?", "I would like a story about {n}.",
            "Do you know a story about {n}?", "Write a short story about {n}.", "A story about {n}, please.", "Tell a story with {n} in it."]
ANY = ["Tell me a story.", "Can you tell me a story?", "Tell me a short story.", "I would like to hear a story.", "A story, please!", "Write a story.",
       "Please tell me a story.", "Do you know a story?"]
MORE = ["Another one, please.", "Another story, please.", "Tell me another story.", "One more story!", "Tell me one more."]


def pick(rng, options):
    """The first option half of the time, so that a greedy reader has a clear way through."""
    return options[0] if rng.random() < 0.5 else rng.choice(options)


def story(rng, p, plot=None):
    slots = dict(n=p.name, he=p.subject, his=p.possessive, him=p.object, His=cap(p.possessive), job=p.job, town=p.town.name, isle=p.town.island.full,
                 river=p.town.island.river, hill=p.town.island.hill, bird=p.town.island.bird, landmark=p.town.landmark, friend=p.friend.name, pet=p.pet,
                 pet_name=p.pet_name, colour=p.colour, thing=p.thing, food=p.food, hobby=p.hobby)
    text = pick(rng, OPENINGS) + " " + (PLOTS[plot] if plot is not None else rng.choice(PLOTS)) + " " + pick(rng, ENDINGS)
    text = re.sub(r"\{([^{}]*\|[^{}]*)\}", lambda m: pick(rng, m.group(1).split("|")), text)
    return text.format(**slots)


def story_ask(rng, held):
    for _ in range(400):
        p, kind = rng.choice(W.people), rng.random()
        i = rng.randrange(len(REQUESTS))
        if held or kind < 0.65:
            key, question = ("story", p.name, i), REQUESTS[i].format(n=p.name)
        elif kind < 0.8:
            p = W.people[0] if rng.random() < 0.4 else p
            key, question = None, rng.choice(ANY)
        elif kind < 0.92:
            key, question = None, rng.choice(["Tell me a story about {}.", "Can you tell me a story with {} in it?", "A story about {}, please."]).format(an(p.pet))
            p = next(q for q in W.people if q.pet == p.pet) if rng.random() < 0.6 else p
        else:
            key, question = None, rng.choice(["Tell me a story set in {}.", "Tell me a story from {}.", "Is there a story about {}?"]).format(p.town.name)
            p = p.town.mayor if rng.random() < 0.6 else p
        if held and not is_held(*key) or not held and key and is_held(*key):
            continue
        return Ask("story", question, story(rng, p, plot_of(rng, p)), p.name, [p.town.name], topic=p)


def plot_of(rng, p):
    """Mostly the same plot for the same person, so that the greedy choice is clear."""
    home = sum(map(ord, p.name)) % len(PLOTS)
    return home if rng.random() < 0.6 else rng.randrange(len(PLOTS))


def another_story(rng, p):
    return Ask("story", rng.choice(MORE), story(rng, p, plot_of(rng, p)), p.name, [p.town.name], topic=p)
