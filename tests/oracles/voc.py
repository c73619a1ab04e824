"""PASCAL VOC's average precision by its definition, in exact arithmetic. For map_oracle.py, which says what a
truth and a detection are.

Everingham et al., "The PASCAL Visual Object Classes Challenge", 3.4 and 4.2, and the 2007 and 2010
development kits' description: detections of a class are taken by falling confidence; each is assigned to the
object of its image and class that it overlaps most; it is a hit if that overlap reaches the threshold and the
object has not been hit before, is left out if the object is difficult, and is false otherwise. Interpolated
precision at a recall is the highest precision at that or any higher recall; AP is its mean at recall 0, .1,
..., 1 (2007), or the area under it (2010).
"""
from fractions import Fraction


def corners(box):
    x, y, w, h = box
    return x - w // 2, y - h // 2, x - w // 2 + w, y - h // 2 + h


def overlap(a, b):
    al, at, ar, ab = corners(a)
    bl, bt, br, bb = corners(b)
    shared = max(0, min(ar, br) - max(al, bl)) * max(0, min(ab, bb) - max(at, bt))
    both = a[2] * a[3] + b[2] * b[3] - shared
    return Fraction(shared, both) if shared else Fraction(0)


def outcomes(truths, detections, class_id, threshold):
    """(score, True or False) of each detection of the class that counts, by falling score."""
    mine = [d for d in detections if d[1] == class_id]
    mine.sort(key=lambda d: (-d[2], d[0]))  # stable: the last ties by their order
    found, result = set(), []
    for image, _, score, box in mine:
        rivals = [(overlap(box, t[2]), -n, n) for n, t in enumerate(truths)
                  if t[0] == image and t[1] == class_id]
        best, _, n = max(rivals, default=(Fraction(0), 0, None))
        if n is None or best == 0 or best < threshold:
            result.append((score, False))
        elif not truths[n][3]:
            result.append((score, n not in found))
            found.add(n)
    return result


def average_precision(hits, objects, points):
    """hits: True or False by falling score; points: 11, or 0 for the area."""
    curve, true = [], 0
    for rank, hit in enumerate(hits, 1):
        true += hit
        curve.append((Fraction(true, objects), Fraction(true, rank)))

    def interpolated(recall):
        return max((p for r, p in curve if r >= recall), default=Fraction(0))

    if points == 11:
        return sum(interpolated(Fraction(k, 10)) for k in range(11)) / 11
    area, before = Fraction(0), Fraction(0)
    for recall in sorted({r for r, _ in curve}):
        area += (recall - before) * interpolated(recall)
        before = recall
    return area


def voc_ap(classes, truths, detections, points):
    """ap[threshold][class]; None for a class without objects."""
    table = []
    for t in range(10):
        row = []
        for c in range(classes):
            objects = sum(1 for truth in truths if truth[1] == c and not truth[3])
            hits = [hit for _, hit in outcomes(truths, detections, c, Fraction(50 + 5 * t, 100))]
            row.append(float(average_precision(hits, objects, points)) if objects else None)
        table.append(row)
    return table


def voc_counts(classes, truths, detections):
    """True and false positives at IoU .5 among detections of a score above 250 thousandths."""
    hits = [hit for c in range(classes)
            for score, hit in outcomes(truths, detections, c, Fraction(1, 2)) if score > 250]
    return sum(hits), len(hits) - sum(hits)
