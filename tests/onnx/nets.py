"""The nets that make_models.py exports, in plain torch.nn: the usual architectures, with seeded random weights."""
import json
import math

import torch
import torch.nn.functional as F
from torch import nn


# ---- Convolutional ----

class ResidualBlock(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride != 1 or before != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


def resnet18(classes=1000):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for stage, channels in enumerate([64, 128, 256, 512]):
        for block in range(2):
            layers.append(ResidualBlock(before, channels, 2 if stage and not block else 1))
            before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class InvertedResidual(nn.Module):
    def __init__(self, before, channels, expansion, stride):
        super().__init__()
        inner = before * expansion
        layers = []
        if expansion != 1:
            layers += [nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        layers += [nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
                   nn.Conv2d(inner, channels, 1, bias=False), nn.BatchNorm2d(channels)]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and before == channels

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


def mobilenetv2(classes=1000):
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    before = 32
    for expansion, channels, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                               (6, 160, 3, 2), (6, 320, 1, 1)]:
        for number in range(count):
            layers.append(InvertedResidual(before, channels, expansion, stride if number == 0 else 1))
            before = channels
    layers += [nn.Conv2d(before, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes))


def settle(net, shape, rounds=3):
    """Batch norm statistics of data, and scales and shifts that are not 1 and 0."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.6, 1.4)
            nn.init.normal_(module.bias, std=0.1)
    net.train()
    with torch.no_grad():
        for _ in range(rounds):
            net(torch.randn(8, *shape))
    return net.eval()


# ---- Transformers ----

class Attention(nn.Module):
    """By F.scaled_dot_product_attention, from one projection, or written out, from three, as BERT's usually is."""

    def __init__(self, features, heads, written_out):
        super().__init__()
        self.heads, self.written_out = heads, written_out
        if written_out:
            self.query, self.key, self.value = (nn.Linear(features, features) for _ in range(3))
        else:
            self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None):
        batch, length, features = x.shape
        if self.written_out:
            q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            scores = q @ k.transpose(-1, -2) / math.sqrt(features // self.heads)
            if mask is not None:
                scores = scores + mask
            y = torch.softmax(scores, -1) @ v
            return self.out(y.permute(0, 2, 1, 3).reshape(batch, length, features))
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, features // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, features))


class EncoderBlock(nn.Module):
    def __init__(self, features, heads, first_norm, activation, eps=1e-5):
        super().__init__()
        self.attention = Attention(features, heads, written_out=not first_norm)
        self.norm1, self.norm2 = nn.LayerNorm(features, eps), nn.LayerNorm(features, eps)
        self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
        self.first_norm, self.activation = first_norm, activation

    def inner(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.activation))

    def forward(self, x, mask=None):
        if self.first_norm:
            x = x + self.attention(self.norm1(x))
            return x + self.inner(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.inner(x))


class ViT(nn.Module):
    def __init__(self, features=192, heads=3, layers=12, classes=1000, size=224, patch=16):
        super().__init__()
        self.patches = nn.Conv2d(3, features, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, features) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, features) * 0.02)
        self.blocks = nn.ModuleList(EncoderBlock(features, heads, True, "none") for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(features), nn.Linear(features, classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Bert(nn.Module):
    """MiniLM: the hidden states of all tokens, and their mean, normalized, as sentence-transformers computes it."""

    def __init__(self, vocabulary=30522, features=384, heads=12, layers=6, positions=512, eps=1e-12):
        super().__init__()
        self.words = nn.Embedding(vocabulary, features)
        self.positions = nn.Embedding(positions, features)
        self.types = nn.Embedding(2, features)
        self.norm = nn.LayerNorm(features, eps)
        self.blocks = nn.ModuleList(EncoderBlock(features, heads, False, "none", eps) for _ in range(layers))

    def forward(self, input_ids, attention_mask, token_type_ids):
        place = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.norm(self.words(input_ids) + self.types(token_type_ids) + self.positions(place))
        mask = (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for block in self.blocks:
            x = block(x, mask)
        weight = attention_mask[:, :, None].float()
        mean = (x * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return x, F.normalize(mean, dim=1)


def minilm(folder):
    """With the weights of a Hugging Face folder."""
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    given = load_file(folder / "model.safetensors")
    net = Bert(config["vocab_size"], config["hidden_size"], config["num_attention_heads"], config["num_hidden_layers"],
               config["max_position_embeddings"], config["layer_norm_eps"])
    names = {"words": "embeddings.word_embeddings", "positions": "embeddings.position_embeddings",
             "types": "embeddings.token_type_embeddings", "norm": "embeddings.LayerNorm"}
    for number in range(config["num_hidden_layers"]):
        here, there = f"blocks.{number}.", f"encoder.layer.{number}."
        names |= {here + "attention." + one: there + "attention.self." + one for one in ("query", "key", "value")}
        names |= {here + "attention.out": there + "attention.output.dense",
                  here + "norm1": there + "attention.output.LayerNorm", here + "up": there + "intermediate.dense",
                  here + "down": there + "output.dense", here + "norm2": there + "output.LayerNorm"}
    prefix = "bert." if any(name.startswith("bert.") for name in given) else ""
    net.load_state_dict({name: given[prefix + names[name.rsplit(".", 1)[0]] + "." + name.rsplit(".", 1)[1]].float()
                         for name in net.state_dict()})
    return net.eval()


# ---- Recurrent ----

class Tagger(nn.Module):
    """A bidirectional LSTM that gives every word of a sentence a tag."""

    def __init__(self, words=5000, features=100, hidden=128, tags=17):
        super().__init__()
        self.embed = nn.Embedding(words, features)
        self.lstm = nn.LSTM(features, hidden, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, words):
        return self.head(self.lstm(self.embed(words))[0])
