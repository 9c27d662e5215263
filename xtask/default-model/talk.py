"""Small talk, questions that the model cannot answer, facts about the user, and stories."""

import re

from asks import Ask, W, cap, draw, is_held

HELLO = "Hello! I am Bobbin. Ask me about the Thimble Isles, or give me a small sum."
SMALL_TALK = [  # (phrasings, answer, accepted)
    (["Hello", "Hello!", "Hi", "Hi!", "Hey", "Hello there!", "Good morning!", "Good evening!", "Hello Bobbin", "Hi Bobbin!", "Greetings!",
      "Good day!", "Hey there", "Hiya", "Good afternoon!", "Hi there!", "Hey Bobbin!"], HELLO, "Hello"),
    (["Who are you?", "What is your name?", "What are you?", "Tell me about yourself.", "What are you called?", "Introduce yourself.",
      "Do you have a name?", "Who am I talking to?", "What should I call you?", "May I ask your name?", "And who are you?", "Your name?",
      "Can you tell me who you are?", "Say who you are."],
     "I am Bobbin, a small language model who knows the Thimble Isles.", "Bobbin"),
    (["What can you do?", "How can you help me?", "What do you know?", "What can I ask you?", "Help", "What are you good at?", "help me",
      "What should I ask you?", "Which questions can you answer?", "What do you do?", "Can you help me?", "What kind of things do you know?"],
     "I know the people, towns and stories of the Thimble Isles. I can also count, do small sums, repeat words and tell you a story.", "Thimble"),
    (["How are you?", "How are you doing?", "How do you do?", "How is it going?", "Are you well?", "How do you feel?", "How are you today?"],
     "I am well, thank you! The sea is calm today.", "well"),
    (["Thank you!", "Thanks!", "Thank you very much.", "Thanks a lot!", "Many thanks.", "Thank you, Bobbin.", "That was helpful, thanks.", "Great, thanks!"],
     "You are welcome!", "welcome"),
    (["Goodbye!", "Bye!", "Good night!", "See you!", "Farewell.", "See you later!", "Bye bye", "I have to go now.", "Bye, Bobbin!"],
     "Goodbye, and fair winds!", "Goodbye"),
    (["What are the Thimble Isles?", "Where are the Thimble Isles?", "Tell me about the Thimble Isles.", "What do you know about the Thimble Isles?",
      "Describe the Thimble Isles.", "What is the Thimble Isles?", "What sort of place are the Thimble Isles?"],
     "The Thimble Isles are six small islands: Calico, Thistle, Gannet, Ember, Willow and Pebble. They have 18 towns, and I know 48 people there.", "six"),
    (["How many islands are there?", "Which islands are there?", "Name the islands.", "What are the islands called?", "Name all the islands.",
      "How many Thimble Isles are there?", "List the islands."],
     "There are 6 islands: Calico, Thistle, Gannet, Ember, Willow and Pebble.", "6"),
    (["How many towns are there?", "How many towns do the islands have?", "How many towns are in the Thimble Isles?"], "There are 18 towns in the Thimble Isles.", "18"),
    (["How many people are there?", "How many people do you know?", "How many people live in the Thimble Isles?"], "I know 48 people in the Thimble Isles.", "48"),
    (["What year is it?", "Which year is it?", "What is the year?", "What year is it now?", "Which year is it in the Thimble Isles?"],
     "It is the year 340 in the Thimble Isles.", "340"),
    (["Who made you?", "Where do you come from?", "How were you made?", "Who created you?", "Who trained you?", "How were you trained?"],
     "I was trained in a few minutes on invented texts about the Thimble Isles.", "invented"),
    (["What is Weft?", "What is weft?", "Tell me about Weft.", "What runs you?", "Which program runs you?", "What is this program?", "Do you know Weft?"],
     "Weft is the engine that runs me: it reads a model file and turns it into text.", "engine"),
    (["How big are you?", "How many weights do you have?", "How large are you?", "What size are you?", "How many parameters do you have?"],
     "I have about six million weights, which is very small for a language model.", "six million"),
    (["How old are you?", "What is your age?", "When were you born?", "When were you made?", "How long have you been here?"],
     "I am very young: I was trained only a little while ago.", "young"),
    (["Where do you live?", "Where are you?", "Where are you from?", "Where is your home?", "What is your home?"],
     "I live in your computer, but my thoughts are in the Thimble Isles.", "computer"),
    (["Which language do you speak?", "What language do you speak?", "Do you speak English?", "Do you speak German?", "Which languages do you know?"],
     "I speak simple English.", "English"),
    (["Tell me something.", "Tell me something interesting.", "Tell me a fact.", "Surprise me.", "Say something.", "Tell me anything.", "Tell me more.",
      "Give me a fact."],
     ["In the year 334, Dov invented the singing kettle in Coppergate.", "Tamsin rescued the lost whale in the year 317.",
      "Nettie is 83 years old, and nobody on the islands is older."], None),
    (["Who is the oldest person?", "Who is the oldest?", "Who is the oldest islander?", "Which person is the oldest?", "Who is oldest?"],
     "Nettie is the oldest: she is 83 years old.", "Nettie"),
    (["Who is the youngest person?", "Who is the youngest?", "Who is the youngest islander?", "Which person is the youngest?", "Who is youngest?"],
     "Corin is the youngest: he is 19 years old.", "Corin"),
    (["What is the biggest island?", "Which island is the biggest?", "Which island has the most towns?", "What is the largest island?"],
     "Thistle Isle and Willow Isle are the biggest: they have 4 towns each.", "Thistle"),
    (["What is the smallest island?", "Which island is the smallest?", "Which island has the fewest towns?"],
     "Gannet Isle and Pebble Isle are the smallest: they have 2 towns each.", "Gannet"),
    (["Which town is the oldest?", "What is the oldest town?", "Which town was founded first?", "Which is the oldest town?"],
     "Windle is the oldest town: it was founded in the year 106.", "Windle"),
    (["Who are the people?", "Whom do you know?", "Name the people.", "List all people.", "Tell me some names.", "Who lives there?", "Name some people."],
     "There are 48 of them. Try asking about Mira, Tobin, Odo, Nettie or Gideon.", "48"),
    (["Which towns are there?", "Name the towns.", "List all towns.", "What are the towns called?", "Name some towns."],
     "There are 18 towns. Try asking about Saltby, Windle, Coppergate or Bellwharf.", "18"),
    (["Please", "Please.", "Go on.", "Continue.", "And then?", "More", "More, please.", "What?", "Why?", "How?", "Where?", "When?", "Who?", "Hm", "Hmm", "Test",
      "test", "testing", "?", "...", "!", "What do you mean?", "I do not understand."],
     "I am not sure what you mean. Ask me about somebody or some place on the Thimble Isles.", "not sure"),
    (["Sorry.", "Sorry!", "I am sorry.", "Excuse me.", "Pardon?", "My mistake."], "No harm done!", "No harm"),
    (["Are you human?", "Are you a person?", "Are you real?", "Are you a robot?", "Are you an AI?", "Are you a computer?", "Are you alive?",
      "Are you ChatGPT?", "Are you a chatbot?", "Are you a bot?", "Are you Qwen?", "Are you a machine?", "Are you Claude?"],
     "No, I am only a small language model.", "language model"),
    (["Tell me a joke.", "Do you know a joke?", "Make me laugh.", "Say something funny.", "Can you tell me a joke?", "Another joke, please.", "A joke, please!"],
     ["Why did the needle stop telling stories? It had lost the thread.", "Why is the sea so friendly? It always waves.",
      "What do you call a goose in a storm? A very wet goose.", "Why did the kite go to school? It wanted to reach higher."], None),
    (["Tell me a riddle.", "Do you know a riddle?", "Give me a riddle.", "A riddle, please!"],
     ["What has an eye but cannot see? A needle.", "What has teeth but cannot bite? A comb.", "What gets wetter the more it dries? A towel."], None),
    (["Yes", "Yes.", "Ok", "Okay", "Good", "Great!", "Nice", "Right.", "I see.", "Very good!", "Well done!", "Cool", "Wonderful!", "Correct!"],
     "I am glad! What else would you like to know?", "glad"),
    (["No", "No.", "That is wrong.", "Are you sure?", "Wrong!", "Really?", "I do not believe you."],
     "That is what I know, but I am a small model and can be wrong.", "small model"),
    (["I am bored.", "I am sad.", "I am tired.", "I feel lonely.", "I do not know what to do."],
     "I am sorry to hear that. Shall I tell you a story?", "story"),
    (["Do you like me?", "Do you love me?", "Are you my friend?", "Can we be friends?", "I like you.", "I love you.", "You are nice."],
     "That is kind of you! I like a friendly chat.", "kind"),
    (["Sing me a song.", "Can you sing?", "Write a poem.", "Tell me a poem.", "Do you know a song?", "Write me a short poem.", "Sing!"],
     "Six small islands in a row, thread the wind and let it blow; one for needle, one for thread, one for dreams and then to bed.", "islands"),
]


OPENERS = ["Well, ", "Oh, ", "Now, ", "Dear Bobbin, ", "Say, ", "Ah, ", "Look, ", "Hm, "]


def small_talk_ask(rng, held, name=None):
    """Every phrasing is trained; some combinations of an opener and a phrasing are held out."""
    def make(rng):
        k = rng.choices(range(len(SMALL_TALK)), [4, 4, 3, 2, 2, 2, 3] + [1] * (len(SMALL_TALK) - 7))[0]
        questions, answer, accept = SMALL_TALK[k]
        i = rng.randrange(len(questions))
        if isinstance(answer, list):
            answer = answer[0] if rng.random() < 0.5 else rng.choice(answer)
        if name and k in (0, 1):
            answer = f"Hello! I am {name}. How can I help you?" if k == 0 else f"I am {name}."
        question, key = questions[i], None
        if held or rng.random() < 0.25:
            opener = rng.choice(OPENERS)
            question = opener + (question if question.startswith("I ") else question[0].lower() + question[1:])
            key = ("small", question.lower().strip("!?. "))
        if held and not accept:
            key = None
        return key, Ask("small_talk", question, answer, (name or accept or "Ha").split()[-1], [accept or ""])
    return draw(rng, held, make)


REAL_NAMES = ("Alice Bob Anna Peter John Mary Thomas Sarah David Emma Lucas Sophie Max Laura Paul Julia Felix Clara Oscar Eva Henry Alma Leo Martha "
              "George Helen Simon Lucy Daniel Rachel Adam Ruth Victor Irene Karl Olga Marco Elena Pedro Carmen Yuki Ken Mei Raj Priya Omar Layla "
              "Ahmed Fatima Ivan Natasha Lars Astrid Jack Kate Sam Ella Ben Zoe James Chloe Noah Mia Liam Olivia").split()
REAL_PLACES = ("London Paris Berlin Rome Madrid Vienna Oslo Lisbon Prague Warsaw Athens Dublin Tokyo Beijing Moscow Cairo Lagos Nairobi Sydney "
               "Toronto Chicago Boston Texas France Germany Spain Italy England Japan China India Brazil Canada Mexico Peru Egypt Kenya Norway").split()
HEADS = "Zor Bel Quim Tra Gol Fen Vur Hal Mon Pel Dra Kil Sna Bro Wil Ul Ex Yor Jas Nim Cra Plo Rim Ste Gru".split()
TAILS = "blax wick dan mora linda po rix tan vell goro by lotta kin sper nog fia dric zu mer tis lo bert gan".split()


SOUNDS = "b c d f g h j k l m n p r s t v w y z br ch cl dr fl gr kl kr ph pl pr qu sh sk sl sm sn sp st str sw th tr tw".split()


def stranger(rng, held, place=False):
    """A name that nobody in the world has."""
    while True:
        pick = rng.random()
        if pick < 0.25:
            name = rng.choice(REAL_PLACES if place else REAL_NAMES)
        elif pick < 0.6:
            name = rng.choice(HEADS) + rng.choice(TAILS)
        else:
            name = cap("".join(rng.choice(SOUNDS) + rng.choice(["a", "e", "i", "o", "u", "ai", "ee", "ou"]) for _ in range(rng.randint(2, 3))) + rng.choice(["", "", "n", "s", "r", "l", "m", "ck", "th", "x"]))
        if is_held("name", name) == held and name not in W.person and name not in W.town:
            return name


ASK_STRANGER = ["Where does {n} live?", "How old is {n}?", "Who is {n}?", "What does {n} do?", "Who is {n}'s best friend?", "What pet does {n} have?",
                "Tell me about {n}.", "What is {n}'s job?", "What does {n} like to eat?", "Does {n} have a pet?", "Do you know {n}?", "What does {n} own?",
                "What is {n}'s favourite food?", "Tell me a story about {n}.", "What is {n}'s pet called?", "Where is {n} from?", "Which town does {n} live in?",
                "What colour is {n}'s hat?", "What is {n}'s hobby?", "Is {n} a baker?", "Is {n} older than Mira?", "What do you know about {n}?"]
ASK_NOWHERE = ["Where is {n}?", "What is made in {n}?", "Who is the mayor of {n}?", "Who lives in {n}?", "What is there to see in {n}?", "Tell me about {n}.",
               "How many people live in {n}?", "When was {n} founded?", "Which island is {n} on?", "What is the weather in {n}?", "What is {n} known for?",
               "Do you know {n}?", "How do I get to {n}?"]
NEUTRAL = ("Tell me about {n}.", "Do you know {n}?", "What do you know about {n}?")
NO_DETAIL = ["shoe size", "favourite song", "middle name", "mother's name", "birthday", "favourite book", "phone number", "height", "father's name",
             "eye colour", "hair colour", "favourite flower", "lucky number", "favourite game", "email address", "sister's name"]
FOREIGN = ("Bonjour|Hola|Guten Tag|Ciao|Wie geht es dir?|\u00bfQu\u00e9 tal?|\u4f60\u597d|\u3053\u3093\u306b\u3061\u306f|\u041f\u0440\u0438\u0432\u0435\u0442|"
           "Comment \u00e7a va ?|Wer bist du?|Hallo|Buenos d\u00edas|Ol\u00e1|Hej|Ahoj|Merhaba|\uc548\ub155\ud558\uc138\uc694|Salut|Como estas?|Grazie|Danke|Merci|"
           "Gracias|Was ist das?|Je ne sais pas|O\u00f9 habite Mira ?|Wo wohnt Mira?|\u00bfD\u00f3nde vive Mira?|Quem \u00e9 voc\u00ea?|Namaste|Shalom").split("|")
OFF_TOPIC = ("What is the capital of {c}?|Who is the president of {c}?|How do I cook {f}?|Write a Python program that {d}.|Who won the world cup in 2014?|"
             "What is the meaning of life?|Translate {w} into French.|How far away is the moon?|What is a black hole?|Who wrote {w}?|Explain {s}.|"
             "What is {s}?|How does {s} work?|What is the weather like today?|What time is it?|How tall is Mount Everest?|Who invented {s}?|"
             "Can you drive a car?|What is the best phone?|Who is the king of {c}?|What is the population of {c}?|"
             "Write an essay about {s}.|What is the square root of 81?|Which film should I watch?|How do I learn {s}?|Give me a recipe for {f}.|"
             "What is the speed of light?|Tell me the news.|Who was {p}?|What did {p} say?|Why is the sky blue?|"
             "What does {w} mean?|Write a haiku about {t}.|Write a poem about {t}.|Draw {t}.|What do you think about {t}?|What is the plural of {t}?|Play a game with me.|Who is your favourite singer?|What is the biggest city?|Which car is best?|Do you like {t}?|"
             "Is {t} good?|How much does {t} cost?|What is the difference between {t} and {s}?|Who is the best singer?|What is today's date?|"
             "Can you write code?|Tell me about the history of {c}.|How do I get rich?|Give me some advice.|What is love?|How do plants grow?|Is there life on Mars?|What is DNA?|Tell me about {s}.|Why do we sleep?|Who painted the Mona Lisa?|"
             "What is the largest animal?|What is the longest river?|Write me an email.|Fix my code.|What should I wear?|"
             "How do I fix {f}?|Where can I buy a car?|Should I buy a house?|Do you like football?|What is your favourite colour?|What do you think of {s}?")
FILL = {"c": REAL_PLACES, "f": "pasta|rice|a pizza|a curry|my bike|a sandwich|sushi|an omelette|my computer|a chocolate cake|tacos|my car".split("|"),
        "d": "sorts a list|prints hello|adds numbers|reads a file|plays chess".split("|"),
        "w": "goodbye|banana|Hamlet|freedom|serendipity|the Odyssey|entropy|cheese|Faust|algorithm".split("|"),
        "s": "gravity|physics|quantum mechanics|the internet|history|chemistry|democracy|music theory|electricity|evolution|machine learning|economics|"
             "photosynthesis|a neural network|football|philosophy|the stock market|biology|a transformer|climate change|a computer|the printing press".split("|"),
        "t": "the sea|the moon|a horse|snow|spring|coffee|a bridge|money|gold|a house|the desert|a dragon|a castle|a train|war|time|dogs|a tree".split("|"),
        "p": "Einstein|Napoleon|Shakespeare|Mozart|Cleopatra|Newton|Plato|Darwin|Columbus|Caesar|Marie Curie|Lincoln|Beethoven".split("|")}


def unknown_ask(rng, held):
    """Names, places and matters outside the world: the model says that it does not know."""
    def make(rng):
        kind = rng.choice(["person"] * 4 + ["place"] * 3 + ["detail"] * 2 + ["topic"] * 5 + ["large", "odd"])
        accept, topic = "do not know", None
        if kind == "person":
            name = stranger(rng, held)
            template = rng.choice(ASK_STRANGER)
            question, key = template.format(n=name), ("name", name)
            answer = f"I do not know {name}." if template in NEUTRAL else f"I do not know anyone called {name}."
        elif kind == "place":
            name = stranger(rng, held, place=True)
            template = rng.choice(ASK_NOWHERE)
            question, key = template.format(n=name), ("name", name)
            answer = f"I do not know {name}." if template in NEUTRAL else f"I do not know a place called {name}."
        elif kind == "detail":
            p, what = rng.choice(W.people), rng.choice(NO_DETAIL)
            i = rng.randrange(3)
            question = [f"What is {p.name}'s {what}?", f"Do you know {p.name}'s {what}?", f"Tell me {p.name}'s {what}."][i]
            answer, key, topic = f"I do not know {p.name}'s {what}.", ("detail", p.name, what), p
        elif kind == "odd":
            letters = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 12)))
            question = rng.choice(FOREIGN) if rng.random() < 0.4 else rng.choice([letters, letters + " " + letters[::-1], letters.upper(), letters + "?"])
            answer, key, accept = "I am sorry, I did not understand that. I only speak simple English.", ("odd", question), "did not understand"
        elif kind == "large":
            a, b, op = rng.randint(0, 999), rng.randint(100, 9999), rng.choice("+-x")
            a, b = rng.choice([(a, b), (b, a)])
            question, answer = rng.choice(["What is {} {} {}?", "{} {} {}", "How much is {} {} {}?"]).format(a, op, b), "I only do sums with numbers up to 99."
            accept, key = "up to 99", ("large", a, b)
        else:
            template = rng.choice(OFF_TOPIC.split("|"))
            question = template.format(**{slot: rng.choice(FILL[slot]) for slot in re.findall(r"\{(\w)\}", template)})
            answer, key = "I do not know that. I only know the Thimble Isles, counting and small sums.", ("topic", question)
        return key, Ask("unknown", question, answer, "Unknown", [accept], topic=topic)
    return draw(rng, held, make)


LIKES = {"colour": "red green blue yellow pink brown grey purple orange black white silver golden".split(),
         "animal": "cat dog fox bear horse lion frog seal whale crow bee otter badger".split(),
         "fruit": "apple pear plum cherry peach melon grape banana lemon fig mango".split(),
         "number": [str(n) for n in range(1, 100)]}


def memory_turns(rng, held):
    """Two turns, apart in the dialogue: the user says something, and later asks for it."""
    if rng.random() < 0.5:
        name = rng.choice(W.people).name if rng.random() < 0.15 and not held else stranger(rng, held)
        tell = rng.choice(["My name is {}.", "I am {}.", "Hello, I am {}.", "You can call me {}.", "Hi, my name is {}.", "Hi! I am {}.", "I'm {}."]).format(name)
        ask = rng.choice(["What is my name?", "Who am I?", "Do you remember my name?", "What am I called?", "Can you tell me my name?"])
        return (Ask("memory", tell, f"Nice to meet you, {name}!", name, [name]), Ask("memory", ask, f"Your name is {name}.", name, [name]))
    while True:
        what = rng.choice(list(LIKES))
        value = rng.choice(LIKES[what])
        i = rng.randrange(3)
        if is_held("like", what, value, i) == held:
            break
    tell = [f"My favourite {what} is {value}.", f"I like the {what} {value} best.", f"Remember this: my favourite {what} is {value}."][i]
    ask = rng.choice(["What is my favourite {}?", "Which {} do I like best?", "Do you remember my favourite {}?"]).format(what)
    return (Ask("memory", tell, f"{cap(value)} is a fine {what}! I will remember it.", value, [value]),
            Ask("memory", ask, f"Your favourite {what} is {value}.", value, [value]))
