"""Boxes that another program finds in an image, against those that `detector test -out` wrote of it.

same_boxes.py CFG WEIGHTS IMAGE JSON THRESH: those of OpenCV's dnn. The image has the network's size, so that
nothing is resized.
"""
import json
import sys

NEAR, OVERLAP = 1e-3, .45  # detector test drops boxes that overlap a better one of their class by OVERLAP


def overlap(a, b):
    sides = [min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) - max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2)
             for i in (0, 1)]
    both = max(sides[0], 0) * max(sides[1], 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def same(a, b):
    return a[0] == b[0] and max(abs(x - y) for x, y in zip(a[1] + [a[2]], b[1] + [b[2]])) < NEAR


def check(theirs, found, thresh):
    """theirs: (name, [x, y, w, h], score) of each box, as parts of the image; found: the JSON's name."""
    places = ("center_x", "center_y", "width", "height")
    ours = [(o["name"], [o["relative_coordinates"][k] for k in places], o["confidence"])
            for o in json.load(open(found))[0]["objects"]]
    for box in ours:
        assert any(same(box, t) for t in theirs), f"only Darknet finds {box}"
    for box in theirs:  # the others are below the threshold, or overlap one that Darknet found
        assert box[2] < thresh + NEAR or any(
            same(box, o) or o[0] == box[0] and o[2] > box[2] - NEAR and overlap(o[1], box[1]) > OVERLAP - NEAR
            for o in ours), f"only the other one finds {box}"
    assert len(ours) >= 10, f"only {len(ours)} boxes"
    print(len(ours), "boxes are the same")


def main():
    import cv2
    cfg, weights, image, found, thresh = sys.argv[1:]
    thresh = float(thresh)
    net = cv2.dnn.readNetFromDarknet(cfg, weights)
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    pixels = cv2.imread(image)
    height, width = pixels.shape[:2]
    net.setInput(cv2.dnn.blobFromImage(pixels, 1 / 255, (width, height), swapRB=True))
    check([(("round", "square")[c], row[:4], score)
           for out in net.forward(net.getUnconnectedOutLayersNames())
           for row in out.tolist() for c, score in enumerate(row[5:]) if score > thresh - NEAR],
          found, thresh)


if __name__ == "__main__":
    main()
