"""One peer: `worker.py VARIANT FOLDER` decodes every photo of FOLDER to 224 x 224 pixels once per line of input; `worker.py
onnxruntime FOLDER MODEL` goes on through a model.

It first says how many photos it has and which versions it runs, then answers each line with the CPU seconds of one
round. One thread; the files are in memory beforehand; the result is pixels in memory, as in every other variant.
"""

import io
import pathlib
import sys
import time

SHORT, CROP = 256, 224


def target(width, height):
    """torchvision's size: the short side is SHORT, the other truncated; and where the crop starts."""
    if width <= height:
        size = SHORT, int(SHORT * height / width)
    else:
        size = int(SHORT * width / height), SHORT
    return size, tuple(round((side - CROP) / 2) for side in size)


def pillow():
    import PIL
    from PIL import Image

    def one(data):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        size, (x, y) = target(*image.size)
        return image.resize(size, Image.Resampling.BILINEAR).crop((x, y, x + CROP, y + CROP))

    return one, f"Pillow {PIL.__version__}"


def opencv(interpolation):
    import cv2
    import numpy

    cv2.setNumThreads(1)
    interpolation = getattr(cv2, interpolation)

    def one(data):
        image = cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR_RGB)
        size, (x, y) = target(image.shape[1], image.shape[0])
        return numpy.ascontiguousarray(cv2.resize(image, size, interpolation=interpolation)[y : y + CROP, x : x + CROP])

    return one, f"OpenCV {cv2.__version__}"


def torchvision():
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose([v2.Resize(SHORT, antialias=True), v2.CenterCrop(CROP)])

    def one(data):
        return transform(decode_jpeg(torch.frombuffer(data, dtype=torch.uint8), mode=ImageReadMode.RGB))

    return one, f"torchvision {torchvision.__version__}, torch {torch.__version__}"


def onnxruntime(model):
    """The whole of EfficientNet-Lite0, as f16: what `model(efficientnet_lite0) | cast(f16)` gives."""
    import numpy
    import onnxruntime
    import PIL
    from PIL import Image

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def one(data):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        size, (x, y) = target(*image.size)
        image = image.resize(size, Image.Resampling.BILINEAR).crop((x, y, x + CROP, y + CROP))
        pixels = (numpy.asarray(image, numpy.float32) - 127) / 128
        (logits,) = session.run(None, {"input": pixels.transpose(2, 0, 1)[None]})
        return logits.astype(numpy.float16)

    return one, f"onnxruntime {onnxruntime.__version__}, Pillow {PIL.__version__}"


VARIANTS = {
    "pillow": pillow,
    "opencv-linear": lambda: opencv("INTER_LINEAR"),
    "opencv-area": lambda: opencv("INTER_AREA"),
    "torchvision": torchvision,
    "onnxruntime": onnxruntime,
}


def main():
    variant, folder, *further = sys.argv[1:]
    one, versions = VARIANTS[variant](*further)
    # Writable, because torch warns about buffers that are not.
    photos = [bytearray(path.read_bytes()) for path in sorted(pathlib.Path(folder).iterdir())]
    print(len(photos), versions, flush=True)
    for _ in sys.stdin:
        before = time.process_time()
        for photo in photos:
            one(photo)
        print(time.process_time() - before, flush=True)


if __name__ == "__main__":
    main()
