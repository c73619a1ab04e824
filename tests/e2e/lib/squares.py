# squares.py LABELS_FOLDER: 300 images of one rectangle each, red or green on dark, in images/, their labels
# in LABELS_FOLDER, and train.txt. Three images, which are printed, have forty wrong labels each.
import os
import random
import sys

labels = sys.argv[1]
random.seed(1)
wrong = (57, 140, 233)
side = 32
with open("train.txt", "w") as train:
    for i in range(300):
        pixels = bytearray([random.randrange(40)] * (3 * side * side))
        w, h = random.randrange(8, 17), random.randrange(8, 17)
        x, y = random.randrange(side - w), random.randrange(side - h)
        for j in range(y, y + h):
            for k in range(x, x + w):
                pixels[3 * (j * side + k) + i % 2] = 250
        boxes = [(i % 2, (x + w / 2) / side, (y + h / 2) / side, w / side, h / side)]
        if i in wrong:
            draw = random.uniform
            boxes = [(random.randrange(2), draw(.1, .9), draw(.1, .9), draw(.02, .9), draw(.02, .9))
                     for _ in range(40)]
            print(f"{i}.jpg")
        with open(f"images/{i}.jpg", "wb") as image:
            image.write(b"P6\n%d %d\n255\n" % (side, side) + pixels)
        with open(f"{labels}/{i}.txt", "w") as text:
            text.writelines("%d %.4f %.4f %.4f %.4f\n" % box for box in boxes)
        train.write(f"{os.getcwd()}/images/{i}.jpg\n")
