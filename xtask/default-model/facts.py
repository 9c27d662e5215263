"""The Thimble Isles: every person, town, island and event, from one seed."""

import random

NOW = 340  # the year in which every age holds

HE = "Tobin Ansel Odo Calder Bram Fitch Corin Elric Dov Ivo Rufus Marlow Alder Lorcan Hugo Jory Emrys Gideon Kester Milo Percy Silas Rowan Bertil".split()
SHE = "Mira Juniper Petra Wren Linnea Hazel Maud Tamsin Sorrel Nettie Greta Opal Vesna Pia Bettany Saffi Orla Della Ines Lulu Nora Rosalind Thea Ada".split()

ISLANDS = "Calico Thistle Gannet Ember Willow Pebble".split()
TOWNS = ("Saltby Needlewick Puddlemere Fernhollow Coppergate Oatfield Gullhaven Dimity Marrowby Tansybridge "
         "Larkspur Quillport Rookstone Silverwade Hemlow Otterden Bellwharf Windle").split()
TOWNS_PER_ISLAND = (3, 4, 2, 3, 4, 2)
RIVERS = "Spool Dapple Murmur Ribbon Tumble Glint".split()
HILLS = "Crumb Hill|Old Kettle|the Sleeping Bear|Bonnet Peak|Mount Wick|Goose Hill".split("|")
HARVESTS = "oats plums tea pumpkins apples onions".split()
BIRDS = "puffin heron gannet owl swallow magpie".split()
FLAGS = "blue yellow white red green purple".split()

CRAFTS = ("lanterns|needles|umbrellas|blankets|kettles|bread|sails|lace|honey|bridges|candles|ink|bricks|spoons|baskets|"
          "fishing nets|bells|windmills")
LANDMARKS = ("lighthouse|stone whale|frog pond|hollow oak|copper gate|wind organ|gull tower|lace market|giant marrow|long bridge|"
             "glass garden|ink well|rook castle|silver mill|moss maze|otter slide|great bell|sundial")

JOBS = ("baker weaver potter sailor teacher doctor gardener fisher carpenter clockmaker beekeeper librarian blacksmith painter "
        "cook lamplighter tailor miller shepherd postman singer glazier cobbler mapmaker").split()
PETS = "cat dog goat rabbit parrot tortoise hedgehog duck pony mouse owl frog".split()
PET_NAMES = ("Soot Biscuit Pickle Button Pepper Mustard Noodle Waffles Dumpling Turnip Clover Bramble Marble Tuppence Whisker Domino "
             "Pudding Rascal Sprout Velvet Ginger Muffin Captain Duchess Smudge Patch Tinker Acorn Crumpet Barnaby Mossy Jelly Figgy "
             "Sixpence Truffle Pumpernickel Nibbles Snowy Treacle Bubbles Cinders Doodle Radish Zephyr Gravy Inky Wobble Custard").split()
FOODS = ("plum cake|onion soup|apple pie|pancakes|fish stew|cheese toast|oat porridge|pumpkin bread|honey buns|mushroom pie|"
         "roast carrots|ginger biscuits|dumplings|pea soup|seaweed crisps|cherry jam")
THINGS = "kite lantern boat hat drum bicycle teapot telescope umbrella violin compass scarf clock ladder basket flute".split()
COLOURS = "red green blue yellow white black purple orange".split()
HOBBIES = ("paint shells|fly kites|play the fiddle|collect buttons|skip stones|read maps|carve spoons|watch the stars|dance jigs|"
           "grow roses|tell riddles|swim at dawn|fold paper boats|whistle tunes|bake tarts|climb trees")

SOLO_EVENTS = [  # (the event as a noun phrase, how the sentence goes on after the person)
    ("the first kite race", "won the first kite race"), ("the rescue of the lost whale", "rescued the lost whale"),
    ("the longest swim", "made the longest swim"), ("the baking of the giant pie", "baked the giant pie"),
    ("the discovery of the moss cave", "discovered the moss cave"), ("the building of the night ferry", "built the night ferry"),
    ("the invention of the singing kettle", "invented the singing kettle"), ("the planting of the plum orchard", "planted the plum orchard"),
    ("the mending of the great bell", "mended the great bell"), ("the painting of the harbour wall", "painted the harbour wall"),
    ("the theft of the golden thimble", "stole the golden thimble"), ("the taming of the storm goose", "tamed the storm goose"),
]
TOWN_EVENTS = ["the great storm", "the night of falling stars", "the summer of frogs", "the long winter", "the feast of a hundred soups",
               "the lantern parade", "the button flood", "the visit of the moon circus", "the apple war", "the silent market",
               "the day of two rainbows", "the onion fair"]


class Person:
    """One islander; every attribute is a plain value that a question can ask for."""

    def __init__(self, name, he):
        self.name, self.he = name, he
        self.subject, self.possessive, self.object = ("he", "his", "him") if he else ("she", "her", "her")


class Town:
    def __init__(self, name, island):
        self.name, self.island, self.people = name, island, []


class Island:
    def __init__(self, name):
        self.name, self.towns = name, []
        self.full = name + " Isle"


class Event:
    def __init__(self, name, year, town, who=None, deed=None):
        self.name, self.year, self.town, self.who, self.deed = name, year, town, who, deed


class World:
    """All facts. The same seed always gives the same world."""

    def __init__(self, seed=7):
        rng = random.Random(seed)
        self._places(rng)
        self._people(rng)
        self._events(rng)

    def _places(self, rng):
        self.islands = [Island(n) for n in ISLANDS]
        columns = [rng.sample(v, len(v)) for v in (RIVERS, HILLS, HARVESTS, BIRDS, FLAGS)]
        for i, island in enumerate(self.islands):
            island.river, island.hill, island.harvest, island.bird, island.flag = (c[i] for c in columns)
        homes = [island for island, n in zip(self.islands, TOWNS_PER_ISLAND) for _ in range(n)]
        names, crafts, marks = (rng.sample(v, 18) for v in (TOWNS, CRAFTS.split("|"), LANDMARKS.split("|")))
        years = rng.sample(range(101, 260), 18)
        self.towns = [Town(n, isle) for n, isle in zip(names, homes)]
        for town, craft, mark, year in zip(self.towns, crafts, marks, years):
            town.craft, town.landmark, town.founded = craft, mark, year
            town.island.towns.append(town)

    def _people(self, rng):
        self.people = [Person(n, True) for n in HE] + [Person(n, False) for n in SHE]
        rng.shuffle(self.people)
        towns = self.towns * 2 + rng.sample(self.towns, len(self.people) - 2 * len(self.towns))
        jobs = rng.sample(JOBS, len(JOBS)) + rng.sample(JOBS, len(JOBS))
        treasures = rng.sample([(c, t) for c in COLOURS for t in THINGS], len(self.people))
        pet_names = rng.sample(PET_NAMES, len(self.people))
        ages = rng.sample(range(19, 84), len(self.people))
        foods, hobbies = FOODS.split("|") * 3, HOBBIES.split("|") * 3
        rng.shuffle(foods)
        rng.shuffle(hobbies)
        taken = set()
        for i, p in enumerate(self.people):
            p.town = towns[i]
            p.town.people.append(p)
            swap = next(j for j in range(i, len(jobs)) if (jobs[j], p.town.name) not in taken)
            jobs[i], jobs[swap] = jobs[swap], jobs[i]
            taken.add((jobs[i], p.town.name))
            p.job, p.age, p.food, p.hobby = jobs[i], ages[i], foods[i], hobbies[i]
            p.pet, p.pet_name = PETS[(i * 5) % len(PETS)], pet_names[i]
            p.colour, p.thing = treasures[i]
        order = rng.sample(self.people, len(self.people))
        for a, b in zip(order[::2], order[1::2]):
            a.friend, b.friend = b, a
        for town in self.towns:
            town.mayor = max(town.people, key=lambda p: p.age)
        self.person = {p.name: p for p in self.people}
        self.town = {t.name: t for t in self.towns}

    def _events(self, rng):
        years = rng.sample(range(262, NOW), len(SOLO_EVENTS) + len(TOWN_EVENTS))
        towns = rng.sample(self.towns, 12) + rng.sample(self.towns, 12)
        actors = rng.sample(self.people, len(SOLO_EVENTS))
        self.events = []
        for (name, deed), who in zip(SOLO_EVENTS, actors):
            year = rng.choice([y for y in range(NOW - who.age + 16, NOW) if y not in {e.year for e in self.events}])
            self.events.append(Event(name, year, towns.pop(), who, deed))
        used = {e.year for e in self.events}
        free = [y for y in years if y not in used]
        for name in TOWN_EVENTS:
            self.events.append(Event(name, free.pop(), towns.pop()))
