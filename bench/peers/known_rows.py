"""The nets that people know, as rows: bench/known/NAME.net, and NAME in bench/known/models.py."""

from typing import NamedTuple


class Net(NamedTuple):
    name: str
    input: str  # its name in the net file
    shape: tuple  # of one sample
    tokens: int = 0  # the input is numbers below this
    constants: tuple = ()  # of the net file, "NAME=NUMBER"

    @property
    def image(self):
        return len(self.shape) == 3


class Row(NamedTuple):
    name: str
    net: Net
    train: bool
    batch: int
    rows: int = 0  # of Mica's parts of the batch, where it is told to save memory that way (mica_compile_opts.part_rows)


def picture(name, channels, side, *constants):
    return Net(name, "image", (channels, side, side), constants=constants)


MIXER, LENET = picture("mixer", 3, 224), picture("lenet5", 1, 28)
RESNET, RESNET_224 = picture("resnet18", 3, 32), picture("resnet18_224", 3, 224)
MOBILE, MOBILE_96 = picture("mobilenetv2", 3, 224), picture("mobilenetv2", 3, 96, "side=96")
UNET, VGG, VIT = picture("unet", 1, 128), picture("vgg11", 3, 32), picture("vit_tiny", 3, 224)
BERT, MINILM = Net("bert_mini", "text", (128,), 30522), Net("minilm", "text", (128,), 30522)
GPT2, LSTM = Net("gpt2", "text", (128,), 50257), Net("lstm", "text", (35,), 10000)
POLICY, DSCNN = Net("policy", "observation", (17,)), Net("dscnn", "x", (1, 49, 10))
CONTROL = Net("control", "x", (8,))  # whose latency counts

ROWS = [
    Row("mixer-train-4", MIXER, True, 4),
    Row("mixer-infer-1", MIXER, False, 1),
    Row("lenet5-train-32", LENET, True, 32),
    Row("lenet5-infer-32", LENET, False, 32),
    Row("resnet18-train-32", RESNET, True, 32),
    Row("resnet18-infer-32", RESNET, False, 32, rows=16),
    Row("resnet18-224-infer-1", RESNET_224, False, 1),
    Row("mobilenetv2-224-infer-1", MOBILE, False, 1),
    Row("mobilenetv2-224-infer-8", MOBILE, False, 8),
    Row("mobilenetv2-96-train-8", MOBILE_96, True, 8),
    Row("unet-train-4", UNET, True, 4),
    Row("unet-infer-1", UNET, False, 1),
    Row("vgg11-train-32", VGG, True, 32),
    Row("vgg11-infer-32", VGG, False, 32),
    Row("bert-mini-train-8", BERT, True, 8),
    Row("bert-mini-infer-1", BERT, False, 1),
    Row("minilm-infer-1", MINILM, False, 1),
    Row("gpt2-train-1", GPT2, True, 1),
    Row("gpt2-infer-1", GPT2, False, 1),
    Row("vit-tiny-train-4", VIT, True, 4),
    Row("vit-tiny-infer-1", VIT, False, 1),
    Row("lstm-train-20", LSTM, True, 20),
    Row("policy-train-64", POLICY, True, 64),
    Row("policy-infer-1", POLICY, False, 1),
    Row("dscnn-train-32", DSCNN, True, 32),
    Row("dscnn-infer-1", DSCNN, False, 1),
]


# ---- What they are fed: the numbers that bench/served_net.c feeds Mica ----


def numbers(index, *shape):
    """Floats from -1 to 1: states of a generator, all at once by doubling."""
    import numpy

    count, low = int(numpy.prod(shape)), numpy.uint64(0xFFFFFFFF)
    factor, term = numpy.array([1664525], numpy.uint64), numpy.array([1013904223], numpy.uint64)
    while factor.size < count:  # s[n + i] = factor[i] s[n] + term[i]
        factor, term = (
            numpy.concatenate([factor, factor * factor[-1] & low]),
            numpy.concatenate([term, (factor * term[-1] + term) & low]),
        )
    start = numpy.uint64(((index + 1) * 2654435761 + 1) & 0xFFFFFFFF)
    state = (factor[:count] * start + term[:count]) & low
    high = (state >> numpy.uint64(8)).astype(numpy.float32)
    return (high * numpy.float32(2.0**-23) - numpy.float32(1)).reshape(shape)


def integers(below, *shape):
    import numpy

    return (numpy.arange(int(numpy.prod(shape))) * 7919 % 65521 % below).astype(numpy.int32).reshape(shape)


def fed(net, batch):
    shape = (batch, *net.shape)
    return integers(net.tokens, *shape) if net.tokens else numbers(0, *shape)
