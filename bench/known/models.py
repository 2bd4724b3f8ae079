"""The nets of bench/known/*.net as PyTorch modules, layer by layer in the same order, by which parameters are handed
over."""

import torch
import torch.nn.functional as F
from torch import nn


def normed(inputs, channels, kernel, stride=1, pad=0, groups=1, act=nn.ReLU):
    """A convolution, batch norm and an activation."""
    conv = nn.Conv2d(inputs, channels, kernel, stride, pad, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(channels), *([act()] if act else [])]


# ---- Pictures ----


class Skip(nn.Module):
    """Two convolutions beside x, or beside what brings x to their shape."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        if stride != 1:
            self.side = nn.Sequential(*normed(inputs, channels, 1, stride, act=None))
        else:
            self.side = nn.Identity()
        self.main = nn.Sequential(
            *normed(inputs, channels, 3, stride, 1), *normed(channels, channels, 3, 1, 1, act=None)
        )

    def forward(self, x):
        return F.relu(self.main(x) + self.side(x))


def resnet18(stem, classes):
    layers, inputs = list(stem), 64
    for stage, channels in enumerate([64, 128, 256, 512]):
        layers += [Skip(inputs, channels, 2 if stage else 1), Skip(channels, channels, 1)]
        inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Inverted(nn.Module):
    def __init__(self, inputs, channels, wider, stride):
        super().__init__()
        hidden = inputs * wider
        layers = normed(inputs, hidden, 1, act=nn.ReLU6) if wider != 1 else []
        layers += normed(hidden, hidden, 3, stride, 1, hidden, nn.ReLU6)
        self.main = nn.Sequential(*layers, *normed(hidden, channels, 1, act=None))
        self.adds = stride == 1 and inputs == channels

    def forward(self, x):
        return x + self.main(x) if self.adds else self.main(x)


MOBILE = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenetv2():
    layers, inputs = normed(3, 32, 3, 2, 1, act=nn.ReLU6), 32
    for wider, channels, count, stride in MOBILE:
        for i in range(count):
            layers.append(Inverted(inputs, channels, wider, stride if i == 0 else 1))
            inputs = channels
    layers += normed(320, 1280, 1, act=nn.ReLU6)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def vgg11():
    layers, inputs = [], 3
    for channels in [64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0]:
        if channels:
            layers += [nn.Conv2d(inputs, channels, 3, 1, 1), nn.ReLU()]
            inputs = channels
        else:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))


def lenet5():
    images = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    images += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    dense = [nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*images, nn.Flatten(), *dense)


def twice(inputs, channels):
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, 1, 1), nn.ReLU(), nn.Conv2d(channels, channels, 3, 1, 1), nn.ReLU()
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([twice(1, 32), twice(32, 64), twice(64, 128)])
        self.bottom = twice(128, 256)
        self.up = nn.ModuleList()
        for channels in (128, 64, 32):
            self.up.append(nn.ConvTranspose2d(2 * channels, channels, 2, 2))
            self.up.append(twice(2 * channels, channels))
        self.mask = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        levels = []
        for one in self.down:
            levels.append(one(x))
            x = F.max_pool2d(levels[-1], 2)
        x = self.bottom(x)
        for i in range(3):
            x = self.up[2 * i + 1](torch.cat([self.up[2 * i](x), levels[2 - i]], 1))
        return self.mask(x)


def dscnn():
    layers = normed(1, 64, (10, 4), 2, (5, 1))
    for _ in range(4):
        layers += normed(64, 64, 3, 1, 1, 64) + normed(64, 64, 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


# ---- Tokens ----


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def mlp(width, hidden, form="none"):
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(approximate=form), nn.Linear(hidden, width))


class NormFirst(nn.Module):
    def __init__(self, width, heads, causal=False, form="none"):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, causal)
        self.norm2, self.mlp = nn.LayerNorm(width), mlp(width, 4 * width, form)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class NormLast(nn.Module):
    def __init__(self, width, heads, eps):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads, False), nn.LayerNorm(width, eps=eps)
        self.mlp, self.norm2 = mlp(width, 4 * width), nn.LayerNorm(width, eps=eps)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Positions(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, width))

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class Encoder(nn.Module):
    """BERT's: its tokens' mean, or the first pooled for classes."""

    def __init__(self, width, heads, blocks, eps, classes=0):
        super().__init__()
        self.words, self.positions = nn.Embedding(30522, width), Positions(512, width)
        self.norm = nn.LayerNorm(width, eps=eps)
        self.blocks = nn.Sequential(*[NormLast(width, heads, eps) for _ in range(blocks)])
        self.end = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, classes)) if classes else None

    def forward(self, x):
        x = self.blocks(self.norm(self.positions(self.words(x))))
        return x.mean(1) if self.end is None else self.end(x[:, 0])


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50257, 768), Positions(1024, 768)
        self.blocks = nn.Sequential(*[NormFirst(768, 12, True, "tanh") for _ in range(12)])
        self.norm = nn.LayerNorm(768)

    def forward(self, x):
        return F.linear(self.norm(self.blocks(self.positions(self.words(x)))), self.words.weight)


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.positions = nn.Conv2d(3, 192, 16, 16), Positions(197, 192)
        self.blocks = nn.Sequential(*[NormFirst(192, 3) for _ in range(12)])
        self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, 1000)

    def forward(self, x):
        x = F.pad(self.patches(x).flatten(2).transpose(1, 2), (0, 0, 1, 0))
        return self.head(self.norm(self.blocks(self.positions(x)))[:, 0])


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.patches = nn.LayerNorm(512), mlp(49, 256)
        self.norm2, self.features = nn.LayerNorm(512), mlp(512, 2048)

    def forward(self, x):
        x = x + self.patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.features(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 512, 32, 32)
        self.blocks = nn.Sequential(*[Mix() for _ in range(8)])
        self.norm, self.head = nn.LayerNorm(512), nn.Linear(512, 1000)

    def forward(self, x):
        x = self.blocks(self.patches(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(1))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10000, 650)
        self.lstm = nn.LSTM(650, 650, 2, batch_first=True)
        self.head = nn.Linear(650, 10000)

    def forward(self, x):
        return self.head(self.lstm(self.words(x))[0])


# ---- Small ones ----


def dense(act, *sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), act()]
    return nn.Sequential(*layers[:-1])


def stem_224():
    return [*normed(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]


MAKERS = {
    "mixer": Mixer,
    "lenet5": lenet5,
    "resnet18": lambda: resnet18(normed(3, 64, 3, 1, 1), 10),
    "resnet18_224": lambda: resnet18(stem_224(), 1000),
    "mobilenetv2": mobilenetv2,
    "unet": UNet,
    "vgg11": vgg11,
    "bert_mini": lambda: Encoder(256, 4, 4, 1e-12, 2),
    "minilm": lambda: Encoder(384, 12, 6, 1e-5),
    "gpt2": GPT2,
    "vit_tiny": ViT,
    "lstm": LanguageModel,
    "policy": lambda: dense(nn.Tanh, 17, 64, 64, 6),
    "control": lambda: dense(nn.ReLU, 8, 64, 64, 4),
    "dscnn": dscnn,
}
LOSSES = {"unet": F.binary_cross_entropy_with_logits, "policy": F.mse_loss, "control": F.mse_loss}


def cross_entropy(logits, target):
    return F.cross_entropy(logits.flatten(0, -2), target.flatten().long())


def loss_of(name):
    return LOSSES.get(name, cross_entropy)
