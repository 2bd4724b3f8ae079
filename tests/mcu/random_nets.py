"""Random net files, small enough for a board: text(seed)."""

import random

ACTIVATIONS = ["relu", "tanh", "sigmoid", "leaky_relu", "gelu", "silu", "elu", "softplus", "relu6", "hard_swish"]


def activation(draw):
    return draw.choice(["", *ACTIVATIONS[:3], draw.choice(ACTIVATIONS)])


def image_layers(draw):
    """Of a picture: side and channels are kept to know what fits."""
    side, channels = draw.choice([8, 9, 12]), draw.choice([1, 2, 3])
    lines = [f"input x [{channels}, {side}, {side}]"]
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(["conv", "conv", "depthwise", "residual", "pool"])
        if kind == "conv":
            channels, stride = draw.choice([3, 4, 6, 8]), draw.choice([1, 1, 2])
            lines.append(f"conv {channels} 3x3 pad=1 stride={stride} {activation(draw)}")
            side = (side - 1) // stride + 1
        elif kind == "depthwise":
            lines.append(f"depthwise_conv 3x3 pad=1 {activation(draw)}")
        elif kind == "residual":
            lines += ["residual relu {", f"    conv {channels} 3x3 pad=1 {activation(draw)}",
                      f"    conv {channels} 1x1", "}"]
        elif side >= 4:
            lines.append(draw.choice(["max_pool 2x2", "avg_pool 2x2"]))
            side //= 2
    return lines + [draw.choice(["global_avg_pool", "flatten"])]


def signal_layers(draw):
    channels, length = draw.choice([1, 3]), draw.choice([16, 20, 32])
    lines = [f"input x [{channels}, {length}]"]
    for _ in range(draw.randint(1, 2)):
        lines.append(f"conv {draw.choice([4, 6])} {draw.choice([3, 5])} stride={draw.choice([1, 2])} {activation(draw)}")
    return lines + ["global_avg_pool"]


def table_layers(draw):
    lines = [f"input x [{draw.randint(2, 20)}]"]
    if draw.random() < 0.5:
        lines += [f"dense {draw.randint(3, 16)} {activation(draw)}", "layer_norm"]
    return lines


def text(seed):
    draw = random.Random(seed)
    lines = draw.choice([image_layers, image_layers, signal_layers, table_layers])(draw)
    lines.append(f"dense {draw.randint(4, 12)} {activation(draw)}")
    outputs = draw.randint(2, 5)
    loss = draw.choice(["cross_entropy", "mse", "bce_logits", "huber"])
    lines += [f"dense {outputs} name=result", f"loss {loss}"]
    return "\n".join(lines) + "\n"
