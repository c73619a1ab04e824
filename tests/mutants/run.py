#!/usr/bin/env python3
"""Proof that the tests can fail: breaks a behaviour of the plugin on purpose, as an entry of table.txt says,
and runs the test that the entry names, which must fail, having passed before.

    tests/mutants/run.py [NN | NAME ...]   all entries, or those whose names begin so
    tests/mutants/run.py --check           only: does each entry name a test that there is, and does its text
                                           stand in its file exactly once? Does each line of files.txt?

generate.py makes mutants that no one has chosen. Both work on a copy of the tree in build/mutants
(MUTANTS_DIR), with Darknet's source from DARKNET_SOURCE_DIR or from a build that is there; what the copy has
built is kept for the next time. Exit status 1: a mutant survived, an entry does not fit its file, or a test
fails without any mutant.
"""
import collections
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
WORK = os.environ.get('MUTANTS_DIR') or os.path.join(SOURCE, 'build', 'mutants')
TREE, BUILD, LOG = (os.path.join(WORK, name) for name in ('tree', 'build', 'log'))

# test: how the names of its tests begin; old, new: the texts, of whole lines
Mutant = collections.namedtuple('Mutant', 'name test file old new')


def read_table():
    mutants = []
    with open(os.path.join(HERE, 'table.txt'), encoding='utf-8') as table:
        entries = re.split(r'^\[(.+)\]\n', table.read(), flags=re.M)[1:]
    for name, text in zip(entries[::2], entries[1::2]):
        file, old, new = None, '', ''
        for line in text.rstrip('\n').split('\n'):
            if line.startswith('file '):
                file = line[5:]
            elif line[:1] in ('-', '+', ' ') and file:
                old += line[1:] + '\n' if line[0] != '+' else ''
                new += line[1:] + '\n' if line[0] != '-' else ''
            else:
                sys.exit(f"mutants: table.txt, [{name}]: cannot read '{line}'")
        mutants.append(Mutant(name, f'behaviour_{name[:2]}_', file, old, new))
    return mutants


def test_files(tree, test):
    """The files below tests/ that hold a test whose name begins so."""
    tests = os.path.join(tree, 'tests')
    found = []
    for path in sorted(glob.glob(tests + '/**/test_*.c', recursive=True) + glob.glob(tests + '/e2e/*.sh')):
        with open(path, encoding='utf-8') as file:
            if re.search(r'(?<![a-z_0-9])' + re.escape(test), file.read()):
                found.append(path)
    return found


def broken(tree, mutant):
    """The text of the mutant's file with the change made; None if the old text is not there exactly once."""
    try:
        with open(os.path.join(tree, mutant.file), encoding='utf-8') as file:
            text = '\n' + file.read()
    except OSError:
        return None
    if not mutant.old or mutant.old == mutant.new or text.count('\n' + mutant.old) != 1:
        return None
    return text.replace('\n' + mutant.old, '\n' + mutant.new)[1:]


def check(mutants):
    complaints, seen = [], set()
    for m in mutants:
        if m.name in seen:
            complaints.append(f'[{m.name}] stands in table.txt twice')
        seen.add(m.name)
        if not test_files(SOURCE, m.test):
            complaints.append(f'[{m.name}] names no test that there is')
        if broken(SOURCE, m) is None:
            complaints.append(f'[{m.name}] does not apply: its text must stand in {m.file} exactly once')
    with open(os.path.join(HERE, 'files.txt'), encoding='utf-8') as table:
        for line in table:
            name = line.split(':')[0]
            if not line.startswith('#') and not os.path.exists(os.path.join(SOURCE, name)):
                complaints.append(f'files.txt: there is no {name}')
    for complaint in complaints:
        print(complaint)
    return not complaints


def darknet_source():
    """pjreddie's Darknet: given, or what another build of this tree was made from."""
    if os.environ.get('DARKNET_SOURCE_DIR'):
        return os.environ['DARKNET_SOURCE_DIR']
    for cache in glob.glob(os.path.join(SOURCE, 'build', '*', 'CMakeCache.txt')):
        with open(cache, encoding='utf-8') as file:
            given = re.search(r'^DARKNET_SOURCE_DIR:PATH=(.+)$', file.read(), re.M)
        found = given[1] if given else os.path.join(os.path.dirname(cache), 'darknet', 'source')
        if os.path.exists(os.path.join(found, 'examples', 'detector.c')):  # AlexeyAB's has none there
            return found
    return ''


def copy_tree():
    """Only files that differ are written, so that only they are compiled again."""
    def files(root):
        for folder, folders, names in os.walk(root):
            if folder == root:
                folders[:] = [f for f in folders if f not in ('build', '.git')]
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)
    ours = set(files(SOURCE))
    for name in ours:
        to = os.path.join(TREE, name)
        if not os.path.exists(to) or not filecmp.cmp(os.path.join(SOURCE, name), to, shallow=False):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, name), to)
    for name in set(files(TREE)) - ours:
        os.remove(os.path.join(TREE, name))


def logged(*command, seconds=3600):
    with open(LOG, 'w', encoding='utf-8') as log:
        try:
            return subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            return 1


def keep_log(name):
    path = os.path.join(WORK, name + '.log')
    shutil.copy(LOG, path)
    return path


def prepare():
    """Copies the tree and configures its build."""
    os.makedirs(TREE, exist_ok=True)
    copy_tree()
    launchers = [f'-DCMAKE_{x}_COMPILER_LAUNCHER=ccache' for x in ('C', 'CXX') if shutil.which('ccache')]
    if logged('cmake', '-S', TREE, '-B', BUILD, f'-DDARKNET_SOURCE_DIR={darknet_source()}',
              '-DDARKNET_AMP_BUILD_STOCK=OFF', *launchers):
        sys.exit(f'mutants: the copy could not be configured: {LOG}')


def build(tests):
    """Builds what the tests need (scripts only need darknet); returns whether that failed."""
    jobs = os.environ.get('JOBS') or str(os.cpu_count())
    programs = [test for test in tests if not test.startswith('e2e_')]
    return logged('cmake', '--build', BUILD, '-j', jobs, '--target', 'darknet', *programs)


def fails(test):
    """Runs one of CTest's tests as a whole."""
    return logged('ctest', '--test-dir', BUILD, '-R', f'^{test}$', '-V', '--timeout', '590', seconds=600)


def run(test, path):
    """Builds and runs: 'passed', 'failed' or 'not built'. A script runs as a whole."""
    name = os.path.splitext(os.path.basename(path))[0]
    script = path.endswith('.sh')
    targets = [] if script else [name]
    if name == 'cpu_support': # these need headers of CUDA, or a tree of AlexeyAB's
        there = subprocess.run(['cmake', '--build', BUILD, '--target', 'help'], capture_output=True)
        targets = {'darknet-on-doubles', 'darknet-alexeyab'} & set(there.stdout.decode().split())
    if build(targets):
        return 'not built'
    status = fails(f"{'e2e_' if script else ''}{name}")
    if script:
        return 'failed' if status else 'passed'
    with open(LOG, encoding='utf-8', errors='replace') as log:
        text = log.read()
    # CMocka says of each test that it ran and that it is OK; one that ends the program is never OK.
    started, ok = (text.count(f'[{mark}] {test}') for mark in (' RUN      ', '       OK '))
    return 'passed' if started and started == ok else 'failed'


passing = set()  # what passed as things are: (beginning of names, file), and ('', file) for scripts


def judge(mutant):
    """In words, what came of it; those of a caught mutant begin with 'caught'."""
    files = test_files(TREE, mutant.test)
    if not files:
        return 'has no test'
    for path in files:
        key = ('' if path.endswith('.sh') else mutant.test, path)
        if key not in passing and run(mutant.test, path) != 'passed':
            return f'has a test that fails without it: {keep_log(mutant.test)}'
        passing.add(key)
    text = broken(TREE, mutant)
    if text is None:
        return f'does not apply: its text must stand in {mutant.file} exactly once'
    with open(os.path.join(TREE, mutant.file), 'w', encoding='utf-8') as file:
        file.write(text)
    verdict = 'SURVIVED'
    for path in files:
        result = run(mutant.test, path)
        if result == 'not built':
            verdict = f'does not compile: {keep_log(mutant.name)}'
        elif result == 'failed':
            verdict = f'caught by {mutant.test}... in {os.path.basename(path)}'
        if result != 'passed':
            break
    copy_tree()  # which takes the change back
    return verdict


def main(arguments):
    mutants = read_table()
    if arguments == ['--check']:
        return 0 if check(mutants) else 1
    for begin in arguments:
        if not any(m.name.startswith(begin) for m in mutants):
            sys.exit(f'mutants: no entry of table.txt begins with {begin}')
    chosen = [m for m in mutants if not arguments or m.name.startswith(tuple(arguments))]
    prepare()
    caught = 0
    for m in chosen:
        verdict = judge(m)
        caught += verdict.startswith('caught')
        print(f'{m.name:50} {verdict}', flush=True)
    print(f'mutants: {caught} of {len(chosen)} caught')
    return 0 if caught == len(chosen) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
