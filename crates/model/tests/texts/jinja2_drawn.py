#!/usr/bin/env python3
"""Draws Jinja templates and writes the text that Python's jinja2 3.1.6 gives for each.

    python3 crates/model/tests/texts/jinja2_drawn.py [NUMBER [SEED [FILE]]]

By default 800 drawings to `jinja2_drawn.json` beside this script, which the test
`drawn_expressions_print_as_in_python` reads; other templates are compared with

    WEFT_JINJA2=FILE cargo test -p model --test texts drawn_expressions

Not drawn is what the engine does in another way, and templates of models do not: ranges that are
printed, `unique` of lists, undefined numbers that are compared, `else` of a loop whose turns were
all continued, text that is added to escaped text, several tests in a row, `{:>9}` for letters of
more than one byte, `swapcase`, `casefold` and `wordcount`.
"""

import json
import random
import sys
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment

VALUES = {
    "text": "it's a test-case of the WORLD", "lines": "one\n\ntwo\nthree\n", "long": "the quick brown fox jumps over the lazy dog",
    "words": "a,b,,c", "spaces": "  a  b c  ", "empty": "", "accent": "ÉCOLE été ßa", "quotes": "a \"b\" 'c' \\ \n\t<&>", "number": "42",
    "float": " 1.5 ", "n": 7, "zero": 0, "negative": -7, "third": 0.3333333333333333, "tiny": 1e-07, "large": 1e16, "whole": 3.0,
    "yes": True, "no": False, "null": None, "numbers": [3, 1, 2, 10, -4], "names": ["b", "a", "C", "a", "ß"], "mixed": [1, "a", None, True, 2.5],
    "map": {"b": 2, "a": 1, "c": {"d": [1, 2]}}, "people": [{"name": "Wren", "age": 3, "role": "user"}, {"name": "ash", "age": 1},
    {"name": "Bo", "age": 3, "role": "tool"}], "nested": [[1, 2], [3], []], "none": [],
}  # fmt: skip
TEXTS = "text lines long words spaces empty accent quotes number float".split()
NUMBERS = "n zero negative third tiny large whole".split()
LITERALS = ["'a'", "''", "' '", "'\\n'", "'x,y'", "'é'", "\"it's\"", "'%'", "'A b'", "'<think>'", "'1e3'", "'-0x1f'"]


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    """Jinja as transformers sets it up for chat templates."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = tojson
    return made


class Draw:
    def __init__(self, rng):
        self.rng = rng

    def of(self, *options):
        return self.rng.choice(options)

    def small(self):
        return self.of("0", "1", "2", "3", "-1", "-2", "5", "12", "40")

    def slice(self):
        end = lambda: self.of("", "", self.small())  # noqa: E731
        return self.of(f"{end()}:{end()}", f"{end()}:{end()}", f"{end()}:{end()}:2", "::-1")

    def text(self, depth):
        if depth == 0:
            return self.of(*TEXTS, *LITERALS)
        t, s = self.text(depth - 1), self.of(*LITERALS)
        match self.rng.randrange(24):
            case 0:
                return f"({t} {self.of('+', '~')} {self.text(depth - 1)})"
            case 1:
                return f"({t} ~ {self.any(depth - 1)})"
            case 2 | 3:
                return f"({t} | {self.of('upper', 'lower', 'title', 'capitalize', 'trim', 'string', 'reverse', 'tojson')})"
            case 4:
                return f"{t}.{self.of('upper', 'lower', 'title', 'capitalize', 'strip', 'lstrip', 'rstrip')}()"
            case 5:
                return f"{t}.{self.of('strip', 'lstrip', 'rstrip')}({s})"
            case 6:
                return f"{t}{self.of('.replace(', ' | replace(')}{s}, {self.of(*LITERALS)}{self.of('', '', ', 1')})"
            case 7 | 8:
                return f"{t}[{self.slice()}]"
            case 9:
                return f"({t} | center({self.small()}))"
            case 10:
                return f"{t}.{self.of('ljust', 'rjust', 'center')}({self.small()}{self.of('', ', %s' % self.of(*LITERALS))})"
            case 11:
                return f"{t}.zfill({self.small()})"
            case 12:
                return f"{s}.join({self.texts(depth - 1)})"
            case 13:
                return f"({self.list(depth - 1)} | join{self.of('', f'({s})')})"
            case 14:
                return f"({t} | truncate({self.of('9', '12', '20, true', '9, false, %s' % s, '5, true, s, 0'.replace('s', s))}))"
            case 15:
                return f"({t} | indent({self.of('', '2', '3, true', 'first=true', 'width=1, blank=true', s)}))"
            case 16:
                return f"({self.of('%s', '%5s|', '%-6s|', '%.2s', '%r', 'a%sb')!r} % {self.any(depth - 1)})"
            case 17:
                return f"({self.of('%d', '%5d', '%05d', '%x', '%.2f', '%8.3f', '%e', '%g', '%+d', '%%%d')!r} % {self.number(depth - 1)})"
            case 18:
                return f"('%s-%s' | format({self.any(depth - 1)}, {t}))"
            case 19:
                return f"'{self.of('{}', '{0}-{0}', '<{}>')}'.format({t})" if self.rng.random() < 0.5 else f"'{self.of('{:>5}', '{:<4}|', '{:03}')}'.format(n)"
            case 20:
                return f"({self.any(depth - 1)} | {self.of('string', 'tojson', 'tojson(indent=2)', 'tojson(sort_keys=true)', 'tojson(ensure_ascii=true)')})"
            case 21:
                return f"({t} if {self.bool(depth - 1)} else {self.text(depth - 1)})"
            case 22:
                return f"({t} | default({s}{self.of('', ', true')}))"
            case _:
                return f"{t}.{self.of('removeprefix', 'removesuffix')}({s})"

    def texts(self, depth):
        """A list of texts."""
        t = self.text(max(depth - 1, 0))
        return self.of(
            "names", f"{t}.split({self.of('', '', *LITERALS)})", f"{t}.rsplit({self.of(*LITERALS)}, {self.small()})", f"{t}.split(none, 1)",
            f"{t}.splitlines({self.of('', 'true')})", f"({t} | list)", f"(people | map(attribute='name') | list)", f"{t}.partition({self.of(*LITERALS)})",
            f"{t}.rpartition({self.of(*LITERALS)})",
        )  # fmt: skip

    def number(self, depth):
        if depth == 0:
            return self.of(*NUMBERS, self.small(), "0.5", "1e3", "10")
        a, b = self.number(depth - 1), self.number(depth - 1)
        match self.rng.randrange(10):
            case 0 | 1:
                return f"({a} {self.of('+', '-', '*', '/', '//', '%')} {b})"
            case 2:
                return f"({self.text(depth - 1)} | {self.of('int', 'float', 'length', 'int(-1)', 'int(base=16)')})"
            case 3:
                return f"({a} | {self.of('abs', 'int', 'float', 'round', 'round(2)', 'round(1, %r)' % self.of('floor', 'ceil'))})"
            case 4:
                return f"{self.text(depth - 1)}.{self.of('find', 'rfind', 'count')}({self.of(*LITERALS)})"
            case 5:
                return f"({self.of('numbers', 'numbers', 'none')} | {self.of('sum', 'min', 'max', 'length', 'first', 'last', 'count')})"
            case 6:
                return f"(people | sum(attribute='age'))"
            case 7:
                return f"-{a}"
            case 8:
                return f"numbers[{self.of('0', '1', '-1', '-2')}]"
            case _:
                return f"({a} if {self.bool(depth - 1)} else {b})"

    def list(self, depth):
        if depth == 0:
            return self.of("numbers", "names", "mixed", "nested", "none", "people", "[]", "[1, 'a']", "(range(4) | list)")
        inner = self.list(depth - 1)
        match self.rng.randrange(16):
            case 0:
                return f"[{self.any(depth - 1)}, {self.any(depth - 1)}]"
            case 1:
                return self.texts(depth)
            case 2:
                return f"({inner} | list)[{self.slice()}]"
            case 3:
                return f"({inner} | {self.of('reverse', 'list', 'batch(2)', 'slice(2)', 'batch(2, 0)')} | list)"
            case 4:
                return f"({self.of('numbers', 'names')} | sort{self.of('', '(reverse=true)', '(case_sensitive=true)')})"
            case 5:
                return f"(people | sort(attribute={self.of('age', 'name', 'age,name')!r}) | map(attribute='name') | list)"
            case 6:
                return f"(people | {self.of('selectattr', 'rejectattr')}({self.of('role', 'age')!r}{self.of('', ', %r' % 'defined')}) | list)"
            case 7:
                return f"(people | selectattr('age', {self.of('==', 'equalto', '>', 'lt')!r}, {self.small()}) | map(attribute='name') | list)"
            case 8:
                return f"({inner} | {self.of('select', 'reject')}{self.of('', '(%r)' % self.of('string', 'number', 'none', 'defined'))} | list)"
            case 9:
                return f"(({self.of('names', 'names | unique')}) | map({self.of('upper', 'length', 'title', 'capitalize', 'list')!r}) | list)"
            case 10:
                return f"(map{self.of(' | items', ' | dictsort', '.items()', '.keys()', '.values()')} | list)"
            case 11:
                return f"({inner} + {self.of('[1]', 'names', '[]')})"
            case 12:
                return f"(people | groupby('age') | map('first') | list)"
            case 13:
                return f"(range({self.small()}, {self.small()}) | list)"
            case 14:
                return f"(people | map(attribute='role', default={self.of(*LITERALS)}) | list)"
            case _:
                return f"({self.any(depth - 1)}, {self.any(depth - 1)})"

    def bool(self, depth):
        any_ = self.any(max(depth - 1, 0))
        match self.rng.randrange(11):
            case 0:
                return f"({any_} is {self.of('', 'not ')}{self.of('string', 'number', 'mapping', 'sequence', 'iterable', 'none', 'defined', 'boolean', 'integer', 'float', 'true', 'false')})"
            case 1:
                return f"({self.text(0)} in {self.text(max(depth - 1, 0))})"
            case 2:
                return f"({self.any(0)} {self.of('in', 'not in')} {self.list(max(depth - 1, 0))})"
            case 3:
                return f"({any_} {self.of('==', '!=')} {self.any(0)})"
            case 4:
                return f"({self.number(depth // 2)} {self.of('<', '<=', '>', '>=')} {self.number(0)})"
            case 5:
                return f"({self.text(0)} {self.of('<', '<=', '>', '>=')} {self.text(0)})"
            case 6:
                return f"{self.text(0)}.{self.of('startswith', 'endswith')}({self.of(*LITERALS)})"
            case 7:
                return f"{self.text(0)}.{self.of('isdigit', 'isalpha', 'isspace', 'isupper', 'islower', 'isalnum')}()"
            case 8:
                return f"({any_} {self.of('and', 'or')} {self.any(0)})"
            case 9:
                return f"({self.number(0)} is {self.of('odd', 'even', 'divisibleby(3)', 'eq(7)', 'gt(1)', 'in([1, 7])')})"
            case _:
                return f"(not {any_})"

    def any(self, depth):
        match self.rng.randrange(8):
            case 0 | 1:
                return self.number(depth)
            case 2:
                return self.list(depth)
            case 3:
                return self.bool(depth)
            case 4:
                return self.of("null", "map", "map.c.d", "missing", "map.missing", "people[0]", "people[1].role", "map['a']", "{'k': 1.0}")
            case _:
                return self.text(depth)

    def statement(self, depth):
        end = self.of("{% else %}none", "")
        body = self.of("{{ x }}", "{{ loop.index }}{{ x }}", "{{ x }}{{ ',' if not loop.last }}", "[{{ loop.index0 }}/{{ loop.length }}]",
                       "{{ loop.previtem }}-{{ loop.nextitem }};")  # fmt: skip
        if not end and self.rng.random() < 0.2:
            # Jinja's `else` also runs if every turn was continued.
            body = "{% if loop.first %}first{% continue %}{% endif %}{{ x }}"
        match self.rng.randrange(6):
            case 0:
                return f"{{% for x in {self.list(depth)} %}}{body}{end}{{% endfor %}}"
            case 1:
                return f"{{% for x in {self.text(depth)} %}}{body}{{% endfor %}}"
            case 2:
                return f"{{% if {self.any(depth)} %}}yes{{% elif {self.bool(depth)} %}}perhaps{{% else %}}no{{% endif %}}"
            case 3:
                return f"{{% set x = {self.any(depth)} %}}\n  {{%- if x %}} {{{{ x }}}} {{% endif -%}}\n"
            case 4:
                return f"{{% set x %}}{{{{ {self.any(depth)} }}}}!{{% endset %}}{{{{ x | upper }}}}"
            case _:
                return f"{{% macro m(a, b={self.any(0)}) %}}<{{{{ a }}}}|{{{{ b }}}}>{{% endmacro %}}{{{{ m({self.any(depth)}) }}}}"

    def template(self):
        depth = self.rng.randrange(4)
        if self.rng.random() < 0.2:
            return self.statement(min(depth, 2))
        if self.rng.random() < 0.05:
            # Its result would escape what is added to it.
            return f"{{{{ {self.text(depth)} | {self.of('e', 'escape')} }}}}"
        return f"{{{{ {self.any(depth)} }}}}"


def expected(made, source):
    try:
        return [source, made.from_string(source).render(**VALUES)]
    except Exception as error:  # as many kinds as templates have mistakes
        return [source, None, f"{type(error).__name__}: {error}"]


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    path = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(__file__).with_suffix(".json")
    made, draw = environment(), Draw(random.Random(seed))
    sources = sorted({draw.template() for _ in range(number)})
    cases = [expected(made, source) for source in sources]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases if " object at 0x" not in str(case[1]))
    path.write_text(f'{{"values": {json.dumps(VALUES, ensure_ascii=False)},\n"cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} templates, {sum(case[1] is None for case in cases)} with an error")


if __name__ == "__main__":
    main()
