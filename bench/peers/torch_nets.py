"""Optimizers and whole networks in PyTorch, each in the ways that may be its fastest."""

import torch
import torch.nn.functional as F
from torch import nn
from torch_way import COMPILES, Way, compiled, numbers

# ---- Optimizers ----


def parameters_with_gradients(count, tensors):
    for _ in range(tensors):
        one = nn.Parameter(torch.randn(count))
        one.grad = torch.full((count,), 0.01)
        yield one


def step_of(optimizer, **options):
    """The optimizer over all parameters at once, tensor by tensor, and as one kernel where PyTorch has that."""

    def maker(count, tensors):
        for name in ("foreach", "single tensors", "fused"):
            extra = {"fused": {"fused": True}, "foreach": {"foreach": True}}.get(name, {"foreach": False})
            leaves = list(parameters_with_gradients(count, tensors))
            try:
                step = optimizer(leaves, lr=1e-6, **extra, **options).step
            except (TypeError, RuntimeError):
                continue  # this version has it not, or not for processors
            yield Way(name, step, grad=True)
            if COMPILES and name == "foreach":
                yield Way("foreach, compiled", compiled(step), grad=True)

    return maker


def sgd(count, tensors):
    yield from step_of(torch.optim.SGD)(count, tensors)
    leaves = [one.detach() for one in parameters_with_gradients(count, tensors)]
    grads = [torch.full((count,), 0.01) for _ in leaves]
    yield Way("_foreach_add_", lambda: torch._foreach_add_(leaves, grads, alpha=-1e-6))


# ---- The convolutional net ----


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


FORMATS = (("channels first", torch.contiguous_format), ("channels last", torch.channels_last))


def training_step(net, loss_of, optimizer, clip=None):
    leaves = list(net.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(net)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(leaves, clip)
        optimizer.step()
        return loss

    return step


def optimizers(kind, groups, **options):
    for name, extra in (("fused", {"fused": True}), ("foreach", {"foreach": True}), ("single", {"foreach": False})):
        try:
            yield name, kind(groups(), **extra, **options)
        except (TypeError, RuntimeError):
            continue


def cnn_step(batch):
    labels = torch.arange(batch) % 10
    for layout, form in FORMATS:
        images = (torch.arange(batch * 784) % 17 * 0.05).view(batch, 1, 28, 28).contiguous(memory_format=form)
        loss_of = lambda net, images=images: F.cross_entropy(net(images), labels)
        net = cnn().to(memory_format=form)
        for name, optimizer in optimizers(torch.optim.Adam, net.parameters):
            yield Way(f"{layout}, {name}", training_step(net, loss_of, optimizer), grad=True)
        if COMPILES:
            net = cnn().to(memory_format=form)
            _, optimizer = next(optimizers(torch.optim.Adam, net.parameters))
            yield Way(f"{layout}, compiled", training_step(compiled(net), loss_of, optimizer), grad=True)


def cnn_infer(batch):
    for layout, form in FORMATS:
        images = (torch.arange(batch * 784) % 17 * 0.05).view(batch, 1, 28, 28).contiguous(memory_format=form)
        net = cnn().to(memory_format=form).eval()
        yield Way(layout, lambda net=net, images=images: net(images))
        yield from inferences(layout, net, images)


def inferences(name, net, x):
    """A net for inference alone: traced with its weights frozen; compiled."""
    with torch.no_grad():
        traced = torch.jit.freeze(torch.jit.trace(net, x))
    yield Way(f"{name}, traced", lambda: traced(x))
    with torch.no_grad():
        packed = torch.jit.optimize_for_inference(torch.jit.trace(net, x))
    yield Way(f"{name}, traced for inference", lambda: packed(x))
    if COMPILES:
        import torch._inductor.config as inductor

        inductor.freezing = True  # weights are packed when it is compiled
        quick = compiled(net)
        yield Way(f"{name}, compiled", lambda: quick(x))
        inductor.freezing = False


# ---- Transformers ----


class Block(nn.Module):
    def __init__(self, width, heads, approximate):
        super().__init__()
        self.heads, self.approximate = heads, approximate
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.out(self.attention(self.norm1(x)))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=self.approximate))

    def attention(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q * (width // self.heads) ** -0.5) @ k.transpose(-2, -1)
            y = torch.softmax(scores + self.mask(tokens), -1) @ v
        return y.transpose(1, 2).reshape(batch, tokens, width)

    def mask(self, tokens):
        if not hasattr(self, "hidden"):
            self.hidden = torch.full((tokens, tokens), float("-inf")).triu(1)
        return self.hidden


def block_fwd(batch, tokens, width, heads):
    x, net = numbers(0, batch, tokens, width), Block(width, heads, "none").eval()
    net(x)
    yield Way("eager", lambda: net(x))
    yield from inferences("eager", net, x)


def block_both(batch, tokens, width, heads):
    x, target = numbers(0, batch, tokens, width), numbers(1, batch, tokens, width)
    net = Block(width, heads, "none")
    leaves = list(net.parameters())

    def both(run):
        return lambda: torch.autograd.grad(F.mse_loss(run(x), target), leaves)

    yield Way("eager", both(net), grad=True)
    if COMPILES:
        yield Way("compiled", both(compiled(net)), grad=True)


class Gpt(nn.Module):
    def __init__(self, tokens, width, heads, layers, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, "tanh") for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("place", torch.arange(tokens))

    def forward(self, x):
        h = self.tokens(x) + self.positions(self.place)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def gpt_step(batch, tokens, width, heads, layers, vocabulary):
    x, target = ((torch.arange(batch * tokens) * 7 + i) % vocabulary for i in range(2))
    x = x.view(batch, tokens)

    def loss_of(net):
        return F.cross_entropy(net(x).view(-1, vocabulary), target)

    def made():
        net = Gpt(tokens, width, heads, layers, vocabulary)
        leaves = list(net.parameters())
        groups = lambda: [
            {"params": [p for p in leaves if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in leaves if p.dim() < 2], "weight_decay": 0.0},
        ]
        return net, groups

    net, groups = made()
    for name, optimizer in optimizers(torch.optim.AdamW, groups, lr=1e-4):
        yield Way(f"eager, {name}", training_step(net, loss_of, optimizer, clip=1.0), grad=True)
    if COMPILES:
        net, groups = made()
        _, optimizer = next(optimizers(torch.optim.AdamW, groups, lr=1e-4))
        yield Way("compiled", training_step(compiled(net), loss_of, optimizer, clip=1.0), grad=True)


KINDS = {
    "sgd": sgd,
    "adam": step_of(torch.optim.Adam),
    "adamw": step_of(torch.optim.AdamW, weight_decay=0.0),
    "cnn_step": cnn_step,
    "cnn_infer": cnn_infer,
    "block_fwd": block_fwd,
    "block_both": block_both,
    "gpt_step": gpt_step,
}
