#!/usr/bin/python3
"""Makes the images of this folder with Debian's python3-pil: JPEG files, and beside each the pixels that Pillow reads
from it, as PPM or PGM."""
import math
import os

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT = 21, 14  # no multiples of the 8 or 16 pixels of a block


def wave(x, y, step):
    return int(127.5 + 127.5 * math.sin((x + step * y) / (3 + step)))


def picture(channels):
    image = Image.new("RGB" if channels == 3 else "L", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            value = [wave(x, y, step) for step in range(channels)]
            image.putpixel((x, y), tuple(value) if channels == 3 else value[0])
    return image


def save(name, image, **options):
    path = os.path.join(HERE, name)
    image.save(path + ".jpg", **options)
    read = Image.open(path + ".jpg")
    read.convert("L" if read.mode == "L" else "RGB").save(path + (".pgm" if read.mode == "L" else ".ppm"))


save("grey", picture(1), quality=90)
save("colour", picture(3), quality=90, subsampling=0)
save("halved", picture(3), quality=85, subsampling=2)
save("progressive", picture(3), quality=85, subsampling=2, progressive=True)
save("grey_progressive", picture(1), quality=85, progressive=True)
save("inks", picture(3).convert("CMYK"), quality=95)
