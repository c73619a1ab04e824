#!/usr/bin/env python3
"""Writes golden/map.txt: detections and ground truths with the AP that pycocotools and PASCAL VOC's
definition (voc.py) give them.

For developers: the tests only replay the file, which holds every sixtieth case of each name;
test_average_precision_golden replays all with AMP_GOLDEN set to the folder that map.txt was written to. Needs
pycocotools (pip install pycocotools, in a virtual environment).
usage: tests/oracles/map_oracle.py --sample > tests/golden/map.txt
       tests/oracles/map_oracle.py > FOLDER/map.txt

Boxes stand on a grid of 1/16, so that no rounding can decide whether an overlap reaches a threshold in one
implementation and not in the other. A case is

    case <name> <classes> <ground truths> <detections>
    t <image> <class> <x> <y> <w> <h> <difficult>  centre and size, in sixteenths
    d <image> <class> <score in thousandths> <x> <y> <w> <h>
    ap <class> <points> <AP at .5> ... <at .95>    "a*n" is n times a; classes without objects have none
    at .25 <points> <true positives> <false positives>   at IoU .5, of detections above this score; and the
                                                         mAP is the mean of the classes above

pycocotools knows difficult objects as those whose area is outside the range that is evaluated: `_ignore`
without iscrowd. maxDets, by which it drops all but the best 100 detections of an image and class, is set
beyond reach.
"""
import collections
import contextlib
import io
import itertools
import random
import sys

from voc import voc_ap, voc_counts

BEYOND_RANGE, MANY = 1e11, 1000000


# ---- cases: (classes, truths, detections) ----
# A truth is (image, class, box, difficult), a detection (image, class, score, box).

def random_box(rng):
    w, h = 2 * rng.randint(1, 12), 2 * rng.randint(1, 12)  # even: the corners stay on the grid
    return rng.randint(0, 64), rng.randint(0, 64), w, h


def near(rng, box):
    x, y, w, h = box
    move = lambda: rng.choice((0, 0, 0, 1, -1, 2))
    return x + move(), y + move(), max(2, w + 2 * move()), max(2, h + 2 * move())


def scene(rng, images, classes, truths, detections, difficult=0., flat=0.,
          score=lambda rng: rng.randint(1, 9) * 100):
    """Objects anywhere, detections near them, or anywhere, or of another class."""
    def flatten(box):
        return ((box[0], box[1], *rng.choice(((0, 0), (0, box[3]), (box[2], 0)))) if rng.random() < flat
                else box)
    known = [(rng.randrange(images), rng.randrange(classes), flatten(random_box(rng)),
              int(rng.random() < difficult))
             for _ in range(truths)]
    found = []
    for _ in range(detections):
        if known and rng.random() < .75:
            image, class_id, box, _ = rng.choice(known)
            if rng.random() < .1:
                class_id = rng.randrange(classes)
            found.append((image, class_id, score(rng), flatten(near(rng, box))))
        else:
            found.append((rng.randrange(images), rng.randrange(classes), score(rng),
                          flatten(random_box(rng))))
    return classes, known, found


def small(rng, **more):
    return scene(rng, rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 10), rng.randint(0, 16), **more)


def duplicates(rng):
    """The same boxes again, of the same and of other scores; objects twice in one place."""
    classes, truths, found = small(rng, difficult=.2)
    truths = truths + rng.choices(truths, k=rng.randint(0, 3))
    if found:
        for image, class_id, score, box in rng.choices(found, k=6):
            found.insert(rng.randrange(len(found) + 1),
                         (image, class_id, rng.choice((score, score, 100)), box))
    exact = [(i, c, 500, box) for i, c, box, _ in rng.choices(truths, k=3)]
    return classes, truths, found + exact


def at_thresholds(rng):
    """Detections inside objects: 9/20 to 20/20 of them, so that overlaps are equal to thresholds."""
    truths, found = [], []
    for n in range(rng.randint(2, 6)):
        h, x, y = 2 * rng.randint(1, 6), 60 * n, rng.randint(0, 40)
        truths.append((0, 0, (x, y, 40, h), int(rng.random() < .2)))
        for _ in range(rng.randint(1, 3)):
            w = 2 * rng.randint(9, 20)
            found.append((0, 0, rng.randint(1, 9) * 100, (x + rng.choice((-1, 1)) * (20 - w // 2), y, w, h)))
    return 1, truths, found


def rivals(rng):
    """Objects so close that detections reach several, difficult ones among them, and equally well."""
    truths, found = [], []
    for image in range(rng.randint(1, 2)):
        for n in range(rng.randint(2, 5)):
            truths.append((image, rng.randrange(2), (20 + 2 * rng.randint(-2, 2), 20, 24, 24),
                           int(rng.random() < .4)))
        for n in range(rng.randint(2, 8)):
            found.append((image, rng.randrange(2), rng.randint(1, 5) * 100,
                          (20 + rng.randint(-5, 5), 20, 24, 24)))
    rng.shuffle(truths)
    return 2, truths, found


def cases():
    rng = random.Random(2018)
    fine = lambda rng: rng.randint(1, 999)
    same = lambda rng: 500
    yield "nothing", (2, [], [])
    yield "no-object", (2, [], [(0, 0, 900, (8, 8, 4, 4)), (0, 1, 100, (8, 8, 4, 4))])
    yield "no-detection", (3, [(0, 1, (8, 8, 4, 4), 0), (2, 2, (8, 8, 4, 4), 1)], [])
    yield "only-difficult", (1, [(0, 0, (8, 8, 4, 4), 1)],
                             [(0, 0, 900, (8, 8, 4, 4)), (0, 0, 800, (8, 8, 4, 4))])
    for n in range(100):
        yield "small", small(rng)
    for n in range(60):
        yield "difficult", small(rng, difficult=.3, score=rng.choice((fine, fine, same)))
    for n in range(30):
        yield "ties", small(rng, score=same)
    for n in range(30):
        yield "flat", small(rng, flat=.3)
    for n in range(40):
        yield "duplicates", duplicates(rng)
    for n in range(60):
        yield "thresholds", at_thresholds(rng)
    for n in range(50):
        yield "rivals", rivals(rng)
    # Recalls of k/10 and k/20: whether a point is reached is a matter of rounding.
    for objects in (7, 10, 20, 30):
        for hits in range(1, objects, 2):
            truths = [(0, 0, (12 * n, 0, 10, 10), 0) for n in range(objects)]
            if objects < 30 or hits % 3 == 0:
                yield "recalls", (1, truths, [(0, 0, 900 - n, truths[n][2]) for n in range(hits)])


# ---- pycocotools ----

def coco_box(box):
    x, y, w, h = box
    return [x - w / 2, y - h / 2, w, h]


def coco_evaluation(images, classes, truths, detections):
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
    coco = COCO()
    coco.dataset = {
        "info": {},
        "images": [{"id": i + 1} for i in range(images)],
        "categories": [{"id": c + 1} for c in range(classes)],
        "annotations": [{"id": n + 1, "image_id": i + 1, "category_id": c + 1, "bbox": coco_box(box),
                         "area": BEYOND_RANGE if difficult else box[2] * box[3], "iscrowd": 0}
                        for n, (i, c, box, difficult) in enumerate(truths)],
    }
    coco.createIndex()
    found = coco.loadRes([{"image_id": i + 1, "category_id": c + 1, "score": s / 1000, "bbox": coco_box(box)}
                          for i, c, s, box in detections])
    evaluation = COCOeval(coco, found, "bbox")
    evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
    evaluation.params.maxDets = [MANY]
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation


def coco_ap(classes, truths, detections):
    """ap[threshold][class], each the mean over the 101 recall points, None for a class without truths; and
    the counts."""
    if not detections:  # loadRes refuses an empty list
        none = [0. if any(t[1] == c and not t[3] for t in truths) else None for c in range(classes)]
        return [none] * 10, (0, 0)
    images = 1 + max(i for i, *_ in itertools.chain(truths, detections))
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = coco_evaluation(images, classes, truths, detections)
    precision = evaluation.eval["precision"]  # threshold, recall, class, area, most detections
    ap = [[None if precision[t, 0, c, 0, 0] < 0 else precision[t, :, c, 0, 0].mean() for c in range(classes)]
          for t in range(10)]
    true = false = 0
    for image in filter(None, evaluation.evalImgs):
        for score, taken, ignored in zip(image["dtScores"], image["dtMatches"][0], image["dtIgnore"][0]):
            true += bool(score > .25 and taken and not ignored)
            false += bool(score > .25 and not taken and not ignored)
    return ap, (true, false)


# ---- writing ----

def runs(values):
    for value, group in itertools.groupby(f"{v:.8g}" for v in values):
        n = len(list(group))
        yield value if n == 1 else f"{value}*{n}"


def write_scores(points, classes, ap, counts):
    counted = [c for c in range(classes) if ap[0][c] is not None]
    for c in counted:
        print("ap", c, points, *runs([ap[t][c] for t in range(10)]))
    print("at .25", points, *counts)


def write_case(name, classes, truths, detections):
    print("case", name, classes, len(truths), len(detections))
    for i, c, box, difficult in truths:
        print("t", i, c, *box, difficult)
    for i, c, score, box in detections:
        print("d", i, c, score, *box)
    write_scores(101, classes, *coco_ap(classes, truths, detections))
    counts = voc_counts(classes, truths, detections)
    for points in (11, 0):
        write_scores(points, classes, voc_ap(classes, truths, detections, points), counts)


def main():
    print("# Written by tests/oracles/map_oracle.py, which says how to read it.")
    step, seen = 60 if sys.argv[1:] == ["--sample"] else 1, collections.Counter()
    for name, case in cases():
        if seen[name] % step == 0:
            write_case(name, *case)
        seen[name] += 1


if __name__ == "__main__":
    main()
