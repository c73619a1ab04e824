#!/usr/bin/env python3
"""Mutants that no one has chosen: changes one operator, number, call or pair of arguments in a file that
files.txt lists, and runs the tests of that file, one of which must fail.

    tests/mutants/generate.py COUNT [--seed N] [FILE ...]   COUNT mutants, drawn from these files or from all
    tests/mutants/generate.py --list [FILE ...]             prints every mutant that there is

A mutant that no test catches either shows a test that is missing, or changes nothing: then equivalent.txt
says why, and it is not drawn again. Exit status 1: a mutant survived that is not listed there. The copy of
the tree is run.py's.
"""
import argparse
import collections
import os
import random
import re
import sys

import run

# place: FILE:LINE; old, new: the whole line
Change = collections.namedtuple('Change', 'file number old new')

SWAPS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&',
         '+': '-', '-': '+', '*': '/', '/': '*', '+=': '-=', '-=': '+='}
OPERATOR = re.compile(r' (<=|>=|==|!=|&&|\|\||\+=|-=|[<>+*/-]) ')
OFF_BY_ONE = re.compile(r' [+-] 1(?![\w.])')
NUMBER = re.compile(r'(?<![\w.])([0-9]+)(?![\w.])')
CALL = re.compile(r'^\s+(?:\(void\))?(?!\w*free\()[a-z_]\w*\([^;{}]*\);$') # a leak is the sanitizers' to find
ARGUMENTS = re.compile(r'(?<=\()([a-z_]\w*(?:(?:->|\.)\w+)*), ([a-z_]\w*(?:(?:->|\.)\w+)*)(?=[,)])')


def code_lines(text):
    """Number and text of the lines that hold code alone; lines with a string or a comment are left out."""
    inside = False
    for number, line in enumerate(text.split('\n'), 1):
        plain = not inside and not re.search(r'/\*|//|"|\'|^#|^(typedef|struct|enum|static const)\b', line)
        inside = line.rfind('/*') > line.rfind('*/') or (inside and '*/' not in line)
        if plain and line.startswith(' '):
            yield number, line


def changed_lines(line):
    """The line with each change that the operators allow."""
    for found in OPERATOR.finditer(line):
        yield line[:found.start(1)] + SWAPS[found[1]] + line[found.end(1):]
    for found in OFF_BY_ONE.finditer(line):
        yield line[:found.start()] + line[found.end():]
    for found in NUMBER.finditer(line):
        yield line[:found.start()] + ('0' if found[1] == '1' else str(int(found[1]) + 1)) + line[found.end():]
    if CALL.match(line):
        yield re.match(r'\s*', line)[0] + ';'
    for found in ARGUMENTS.finditer(line):
        if found[1] != found[2]:
            yield f'{line[:found.start()]}{found[2]}, {found[1]}{line[found.end():]}'


def read(name):
    """The lines of a file beside this one that are neither empty nor comments."""
    with open(os.path.join(run.HERE, name), encoding='utf-8') as file:
        return [line.rstrip('\n') for line in file if line.strip() and not line.startswith('#')]


def all_changes(files):
    known = {tuple(part.strip() for part in line.split(' | ')[:3]) for line in read('equivalent.txt')}
    for name in files:
        with open(os.path.join(run.SOURCE, name), encoding='utf-8') as file:
            text = file.read()
        for number, old in code_lines(text):
            for new in dict.fromkeys(changed_lines(old)):
                if (name, old.strip(), new.strip()) not in known:
                    yield Change(name, number, old, new)


def caught_by(change, tests):
    """The test that fails, 'the compiler', or None."""
    path = os.path.join(run.TREE, change.file)
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    lines[change.number - 1] = change.new
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines))
    found = None
    for test in tests:
        found = 'the compiler' if run.build([test]) else test if run.fails(test) else None
        if found:
            break
    run.copy_tree()  # takes the change back
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('count', nargs='?', type=int, default=0)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('files', nargs='*')
    options = parser.parse_args()
    tests = {line.split(':')[0]: line.split(':')[1].split() for line in read('files.txt')}
    for name in set(options.files) - set(tests):
        sys.exit(f'mutants: {name} is not in files.txt')
    changes = list(all_changes(options.files or tests))
    if options.list:
        for change in changes:
            print(f'{change.file}:{change.number} {change.old.strip()} -> {change.new.strip()}')
        return 0
    if options.count < 1:
        parser.error('how many mutants? There are ' + str(len(changes)))
    drawn = random.Random(options.seed).sample(changes, min(options.count, len(changes)))
    run.prepare()
    needed = sorted({test for change in drawn for test in tests[change.file]})
    failing = ['the build'] if run.build(needed) else [test for test in needed if run.fails(test)]
    if failing:
        sys.exit(f'mutants: these fail without a mutant: {" ".join(failing)}: {run.LOG}')
    survived = 0
    for change in drawn:
        test = caught_by(change, tests[change.file])
        survived += not test
        print(f'{change.file}:{change.number} {change.old.strip()} -> {change.new.strip()}: '
              f'{"caught by " + test if test else "SURVIVED"}', flush=True)
    print(f'mutants: {len(drawn) - survived} of {len(drawn)} caught')
    return 1 if survived else 0


if __name__ == '__main__':
    sys.exit(main())
