#!/usr/bin/env python3
"""PyTorch's side of the benchmark: the network of a Darknet .cfg, trained for a few steps as `step` trains
it.

    peer_torch.py CFG --data PREFIX [--rules pjreddie|alexeyab] [--device cpu|cuda]
                  [--dtype f32|tf32|bf16|fp16] [--threads N] [--warmup N] [--iters N] [--seconds N]
                  [--phases N] [--subdivisions N] [--compile]

PREFIX.weights, PREFIX.input and PREFIX.truth come from `step CFG --batch N --dump PREFIX`, so that weights,
images and boxes are Darknet's, and so must the losses be: they are printed for every step. It is what a
PyTorch user would run for speed on a CPU: channels_last, torch.autocast for bf16, SGD with momentum,
gradients set to None. YOLO's gradient is vectorised and written in closed form, with no more of it computed
than is needed, and what depends on the boxes alone is computed once, outside the measured steps: the loss
costs PyTorch less here than it costs Darknet.

With --device cuda it is what a user would run there: channels_last, cudnn.benchmark, autocast, GradScaler for
fp16; images and labels lie in pinned memory and are copied in every step. f32 is true fp32; tf32 allows TF32
to cuDNN and cuBLAS. A step ends when the device has done all of it; --phases are more steps, with clocks that
wait for the device around each part.

--subdivisions passes, of the same images, are one step; --phases are of one pass and an update. --compile has
torch.compile make forward and backward.

Prints one JSON object on one line, with the keys that `step` prints."""
import argparse
import json
import os
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


# ---- the .cfg ----

def read_cfg(path):
    """[(section name, {key: value})], without [amp], which is not PyTorch's business."""
    sections = []
    with open(path) as lines:
        for line in lines:
            line = "".join(line.split())
            if not line or line[0] in "#;":
                continue
            if line[0] == "[":
                sections.append((line.strip("[]"), {}))
            else:
                key, _, value = line.partition("=")
                sections[-1][1][key] = value
    return [s for s in sections if s[0] != "amp"]


def numbers(text):
    return [float(x) for x in text.split(",") if x]


# ---- layers ----

ACTIVATIONS = {
    "linear": lambda: nn.Identity(),
    "leaky": lambda: nn.LeakyReLU(0.1, inplace=True),
    "relu": lambda: nn.ReLU(inplace=True),
    "logistic": lambda: nn.Sigmoid(),
    "mish": lambda: nn.Mish(inplace=True),
    "swish": lambda: nn.SiLU(inplace=True),
}


class Convolutional(nn.Module):
    def __init__(self, options, channels, epsilon):
        super().__init__()
        size = int(options.get("size", 1))
        padding = size // 2 if int(options.get("pad", 0)) else int(options.get("padding", 0))
        normalize = int(options.get("batch_normalize", 0))
        self.channels = int(options.get("filters", 1))
        self.conv = nn.Conv2d(channels, self.channels, size, int(options.get("stride", 1)), padding,
                              groups=int(options.get("groups", 1)), bias=not normalize)
        self.norm = nn.BatchNorm2d(self.channels, eps=epsilon, momentum=0.01) if normalize else nn.Identity()
        self.activation = ACTIVATIONS[options.get("activation", "logistic")]()

    def forward(self, x):
        return self.activation(self.norm(self.conv(x)))

    def load(self, take):
        if isinstance(self.norm, nn.BatchNorm2d):
            for tensor in (self.norm.bias, self.norm.weight, self.norm.running_mean, self.norm.running_var):
                take(tensor)
        else:
            take(self.conv.bias)
        take(self.conv.weight)


class MaxPool(nn.Module):
    """Darknet pads by `padding` rows and columns in all, half of them (rounded down) before; windows that
    start inside are kept."""

    def __init__(self, options):
        super().__init__()
        self.stride = int(options.get("stride", 1))
        self.size = int(options.get("size", self.stride))
        self.padding = int(options.get("padding", self.size - 1))

    def forward(self, x):
        before = self.padding // 2
        edges = []
        for length in (x.shape[3], x.shape[2]):
            out = (length + self.padding - self.size) // self.stride + 1
            edges += [before, max(0, (out - 1) * self.stride + self.size - before - length)]
        if any(edges):
            x = F.pad(x, edges, value=float("-inf"))
        return F.max_pool2d(x, self.size, self.stride)


def add_shortcut(x, other):
    """Darknet adds the channels that both have, and of a larger `other` every n-th row and column."""
    if other.shape == x.shape:
        return x + other
    stride = max(1, other.shape[3] // x.shape[3])
    other = other[:, :x.shape[1], ::stride, ::stride]
    if other.shape[2:] != x.shape[2:]:
        raise SystemExit("peer_torch: a shortcut from a smaller layer is not written here")
    return x + F.pad(other, (0, 0, 0, 0, 0, x.shape[1] - other.shape[1]))


class Softmax:
    """Darknet's softmax layer with its loss, cross-entropy: delta is truth minus probability, the cost is
    summed over the batch."""

    def __init__(self, options):
        if (int(options.get("groups", 1)) != 1 or float(options.get("temperature", 1)) != 1
                or "tree" in options):
            raise SystemExit("peer_torch: softmax with groups, temperature or a tree is not written here")

    def prepare(self, truth, device):
        self.truth = truth.to(device)

    @torch.no_grad()
    def delta(self, raw):
        logarithms = F.log_softmax(raw.float().flatten(1), 1)
        delta = self.truth - logarithms.exp()
        return delta.view(raw.shape), -(logarithms * self.truth).sum()


def pull_of_ciou(box, label):
    """AlexeyAB's gradient of the complete IoU by a box's x, y, w, h, which is no true one
    (plugin/backend/yolo_rules.h), and the IoU. box, label: (n, 4)."""
    (middle, size), (label_middle, label_size) = box.split(2, 1), label.split(2, 1)
    low, high = middle - size / 2, middle + size / 2
    first, last = label_middle - label_size / 2, label_middle + label_size / 2
    shared = torch.minimum(high, last) - torch.maximum(low, first)
    whole = torch.maximum(high, last) - torch.minimum(low, first)
    way = label_middle - middle
    meet = (shared > 0).all(1, keepdim=True)
    both, diagonal = shared.prod(1, True), whole.square().sum(1, True)
    union = size.prod(1, True) + label_size.prod(1, True) - both
    distance = way.square().sum(1, True)
    other, other_shared = size.flip(1), shared.flip(1)
    both_low, both_high = -(low > first).float() * other_shared, (high < last).float() * other_shared
    low_part = (union * both_low + both * (other + both_low)) / union.square()
    high_part = (union * both_high - both * (other - both_high)) / union.square()
    whole_low, whole_high = -(low < first).float(), (high > last).float()
    four = 4 / torch.pi ** 2
    angle = (label_size[:, :1] / label_size[:, 1:]).atan() - (size[:, :1] / size[:, 1:]).atan()
    shape, iou = four * angle.square(), both / union
    turn = shape / (1 - iou + shape + 1e-6) * 2 * four * angle
    to_middle = 2 * (way * diagonal - whole * (whole_high + whole_low) * distance) / diagonal.square()
    to_size = (whole * (whole_high - whole_low) * distance / diagonal.square()
               + turn * other * torch.tensor([1., -1.], device=box.device))
    return torch.cat(((low_part + high_part) * meet + to_middle,
                      (high_part - low_part) * meet + to_size), 1), iou.clamp(min=0) * meet


class Yolo:
    """Darknet's yolo layer: delta is minus the gradient. Where labels share a box, pjreddie's last one counts
    and AlexeyAB's add up."""

    def __init__(self, options, net_width, net_height, rules):
        self.anchors = torch.tensor(numbers(options["anchors"])).view(-1, 2)
        self.mask = ([int(m) for m in options["mask"].split(",")] if "mask" in options
                     else list(range(len(self.anchors))))
        self.classes = int(options.get("classes", 20))
        self.max_boxes = int(options.get("max", 90))
        self.ignore = float(options.get("ignore_thresh", 0.5))
        self.alexeyabs = rules == "alexeyab"
        own = options if self.alexeyabs else {"iou_normalizer": 1}
        self.by_ciou = own.get("iou_loss", "mse") == "ciou"
        self.box_weight = float(own.get("iou_normalizer", 0.75))
        self.object_weight = float(own.get("obj_normalizer", 1))
        self.stretch = float(own.get("scale_x_y", 1))
        self.most = float(own.get("max_delta", "inf"))
        self.iou_thresh = float(own.get("iou_thresh", 1))
        usual = {"truth_thresh": 1, "cls_normalizer": 1, "new_coords": 0, "objectness_smooth": 0,
                 "label_smooth_eps": 0, "focal_loss": 0}
        wrong = [key for key, value in usual.items() if float(options.get(key, value)) != value]
        wrong += [key for key in ("counters_per_class", "iou_thresh_kind", "map") if key in own]
        wrong += [] if self.by_ciou or own.get("iou_loss", "mse") == "mse" else ["iou_loss"]
        if wrong:
            raise SystemExit(f"peer_torch: {wrong[0]}={options[wrong[0]]} of [yolo] is not written here")
        self.net_size = torch.tensor([net_width, net_height], dtype=torch.float32)

    def own_boxes(self, w, h):
        """Which of a cell's boxes learn a label of this size."""
        prior = self.anchors / self.net_size
        both = torch.minimum(prior[:, 0], torch.tensor(w)) * torch.minimum(prior[:, 1], torch.tensor(h))
        iou = both / (prior.prod(1) + w * h - both)
        return [k for k, a in enumerate(self.mask)
                if a == int(iou.argmax()) or (self.iou_thresh < 1 and iou[a] > self.iou_thresh)]

    def prepare(self, truth, height, width, device):
        """What the boxes alone decide. truth: (batch, boxes, 5 or more)."""
        truth = truth[:, :self.max_boxes]
        used = [int((row[:, 0] == 0).nonzero()[0]) if (row[:, 0] == 0).any() else len(row) for row in truth]
        truth = truth[:, :max(used)]
        self.box = truth[..., :4].clone()
        for b, count in enumerate(used):
            self.box[b, count:] = 0
        self.grid = torch.stack(torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy"), -1)
        self.grid = self.grid.float()[:, :, None]  # (height, width, 1, 2)
        self.grid_size = torch.tensor([width, height], dtype=torch.float32)
        self.prior = self.anchors[self.mask] / self.net_size
        cells = {}  # the labels of each box that has any
        for b, count in enumerate(used):
            for x, y, w, h, kind in truth[b, :count, :5].tolist():
                for k in self.own_boxes(w, h):
                    labels = cells.setdefault((b, int(y * height), int(x * width), k), [])
                    labels.append((x, y, w, h, int(kind)))
        self.index = tuple(torch.tensor([key[k] for key in cells], dtype=torch.long) for k in range(4))
        self.target = torch.zeros(len(cells), 5 + self.classes)
        self.several = torch.ones(len(cells), 1)
        rows, label = [], []
        for n, labels in enumerate(cells.values()):
            self.target[n, 4] = 1
            self.target[n, [5 + kind for *_, kind in labels]] = 1  # the classes of all
            if self.iou_thresh < 1:
                self.several[n] = self.target[n, 5:].sum()
            for at in labels if self.alexeyabs else labels[-1:]:
                rows.append(n)
                label.append(at[:4])
        self.rows, self.label = torch.tensor(rows, dtype=torch.long), torch.tensor(label).view(-1, 4)
        cell = torch.stack((self.index[2], self.index[1]), 1)[self.rows]
        self.goal = torch.cat((self.label[:, :2] * self.grid_size - cell,
                               (self.label[:, 2:] / self.prior[self.index[3]][self.rows]).log()), 1)
        self.scale = 2 - self.label[:, 2:].prod(1, keepdim=True)
        self.index = tuple(i.to(device) for i in self.index)
        for name in ("box", "grid", "grid_size", "prior", "target", "several", "rows", "label", "goal",
                     "scale"):
            setattr(self, name, getattr(self, name).to(device))

    @torch.no_grad()
    def delta(self, raw):
        """raw: (N, C, H, W) → delta of raw, of the same shape, and the cost."""
        batch, _, height, width = raw.shape
        out = raw.float().permute(0, 2, 3, 1).reshape(batch, height, width, len(self.mask), 5 + self.classes)
        place = out[..., 0:2].sigmoid()
        if self.stretch != 1:
            place = place.mul_(self.stretch).sub_((self.stretch - 1) / 2)
        center = (place + self.grid) / self.grid_size
        size = out[..., 2:4].exp() * self.prior
        low, high = (center - size / 2).unsqueeze(-2), (center + size / 2).unsqueeze(-2)
        box = self.box[:, None, None, None]  # (batch, 1, 1, 1, boxes, 4)
        box_low, box_high = box[..., :2] - box[..., 2:] / 2, box[..., :2] + box[..., 2:] / 2
        both = (torch.minimum(high, box_high) - torch.maximum(low, box_low)).clamp_(min=0).prod(-1)
        iou = both / (size.prod(-1, keepdim=True) + box[..., 2:].prod(-1) - both)
        ignored = iou.amax(-1) > self.ignore
        if self.alexeyabs:  # and where the box is sure of a class: its logistic is above 0.25
            ignored &= out[..., 5:].amax(-1) > -1.0986123
        delta = torch.zeros_like(out)
        delta[..., 4] = out[..., 4].sigmoid().neg_().masked_fill_(ignored, 0)
        chosen = out[self.index]
        learnt = self.target - chosen.sigmoid()
        learnt[:, :4] = 0
        guess = torch.cat((place[self.index], chosen[:, 2:4]), 1)[self.rows]
        if self.by_ciou:
            pull, like = pull_of_ciou(torch.cat((center, size), -1)[self.index][self.rows], self.label)
            pull[:, 2:] *= guess[:, 2:].exp()
        else:
            pull = self.scale * (self.goal - guess)
        if self.alexeyabs:
            pull = (pull * self.box_weight).nan_to_num_(0, 0, 0).clamp_(-self.most, self.most)
        learnt[:, :4] = learnt[:, :4].index_add(0, self.rows, pull) / self.several
        delta[self.index] = learnt
        if self.object_weight != 1:
            delta[..., 4] *= self.object_weight
        cost = delta.square().sum()
        if self.by_ciou:
            cost = (self.object_weight * (cost - learnt[:, :4].square().sum())
                    + self.box_weight * (1 - like).sum() / max(len(self.rows), 1))
        return delta.view(batch, height, width, -1).permute(0, 3, 1, 2), cost


# ---- the network ----

LOSSES = ("yolo", "softmax")


class Network(nn.Module):
    def __init__(self, sections, rules):
        super().__init__()
        name, self.options = sections[0]
        if name not in ("net", "network"):
            raise SystemExit("peer_torch: the .cfg does not begin with [net]")
        self.width, self.height = int(self.options["width"]), int(self.options["height"])
        self.layers = nn.ModuleList()
        self.plan = []  # (kind, what it needs besides its module)
        channels = [int(self.options.get("channels", 3))]
        for index, (kind, options) in enumerate(sections[1:]):
            absolute = lambda text: [int(n) + index if int(n) < 0 else int(n) for n in text.split(",")]
            module, extra, out = nn.Identity(), None, channels[-1]
            if kind in ("convolutional", "conv"):
                module = Convolutional(options, channels[-1], 1e-5 if rules == "alexeyab" else 1e-6)
                out = module.channels
            elif kind in ("maxpool", "max"):
                module = MaxPool(options)
            elif kind == "upsample":
                module = nn.Upsample(scale_factor=int(options.get("stride", 2)), mode="nearest")
            elif kind == "route":
                groups = int(options.get("groups", 1))
                extra = absolute(options["layers"]), groups, int(options.get("group_id", 0))
                out = sum(channels[n + 1] for n in extra[0]) // groups
            elif kind == "shortcut":
                extra = absolute(options["from"])[0]
                module = ACTIVATIONS[options.get("activation", "linear")]()
            elif kind == "avgpool":
                module = nn.AdaptiveAvgPool2d(1)
            elif kind == "softmax":
                extra = Softmax(options)
            elif kind == "yolo":
                extra = Yolo(options, self.width, self.height, rules)
            else:
                raise SystemExit(f"peer_torch: [{kind}] is not written here")
            self.layers.append(module)
            self.plan.append((kind, extra))
            channels.append(out)

    def forward(self, x):
        """The raw inputs of the yolo and softmax layers, in order."""
        outputs, heads = [], []
        for (kind, extra), layer in zip(self.plan, self.layers):
            if kind == "route":
                layers, groups, part = extra
                parts = [outputs[n].chunk(groups, 1)[part] if groups > 1 else outputs[n] for n in layers]
                x = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
            elif kind == "shortcut":
                x = layer(add_shortcut(x, outputs[extra]))
            elif kind in LOSSES:
                heads.append(x)
            else:
                x = layer(x)
            outputs.append(x)
        return heads

    def losses(self):
        return [extra for kind, extra in self.plan if kind in LOSSES]

    @torch.no_grad()
    def load(self, path):
        values = torch.from_file(path, size=os.path.getsize(path) // 4, dtype=torch.float32)
        at = 5  # major, minor, revision, and `seen` in 8 bytes

        def take(tensor):
            nonlocal at
            tensor.copy_(values[at:at + tensor.numel()].view(tensor.shape))
            at += tensor.numel()

        for layer in self.layers:
            if isinstance(layer, Convolutional):
                layer.load(take)
        if at != len(values):
            raise SystemExit(f"peer_torch: {path} holds {len(values)} floats, but the network takes {at}")


def blas():
    """The BLAS in use: 1x1 convolutions of f32 go to it at one thread and small batches, in some versions."""
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps}
    return sorted(f for f in files if os.path.basename(f).startswith(("libblas", "libopenblas", "libmkl_rt")))


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def cpu_ms():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3


class Gradients:
    """GradScaler where it is needed, nothing elsewhere: one way to write the step."""

    def __init__(self, optimizer, scaled):
        self.optimizer = optimizer
        self.scaler = torch.cuda.amp.GradScaler() if scaled else None

    def scale(self, delta):
        return self.scaler.scale(delta) if self.scaler else delta

    def step(self):
        if not self.scaler:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()


class FreeMemory:
    """The most of a CUDA device's memory that was taken since this was made, as gpu_parts.c counts it: also
    by what is no tensor."""

    def __init__(self):
        torch.cuda.synchronize()
        self.start = self.least = torch.cuda.mem_get_info()[0]

    def look(self):
        self.least = min(self.least, torch.cuda.mem_get_info()[0])

    def peak_mb(self):
        return round((self.start - self.least) / 2 ** 20, 1)


def load_batch(options, net, detector):
    shape = (int(net.options.get("channels", 3)), net.height, net.width)
    count = os.path.getsize(options.data + ".input") // 4
    batch = count // (shape[0] * shape[1] * shape[2])
    images = torch.from_file(options.data + ".input", size=count).clone().view(batch, *shape)
    images = images.contiguous(memory_format=torch.channels_last)
    truth = torch.from_file(options.data + ".truth", size=os.path.getsize(options.data + ".truth") // 4)
    return images, truth.clone().view((batch, -1, 6 if options.rules == "alexeyab" else 5) if detector
                                      else (batch, -1))


def make_optimizer(net, options):
    decayed = [layer.conv.weight for layer in net.layers if isinstance(layer, Convolutional)]
    others = [p for p in net.parameters() if not any(p is d for d in decayed)]
    return torch.optim.SGD([{"params": decayed, "weight_decay": float(net.options.get("decay", 1e-4))},
                            {"params": others}],
                           lr=options.lr, momentum=float(net.options.get("momentum", 0.9)))


def read_arguments():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("cfg")
    arguments.add_argument("--data", required=True)
    arguments.add_argument("--rules", choices=("pjreddie", "alexeyab"), default="pjreddie",
                           help="whose yolo layer, batch norm and labels")
    arguments.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments.add_argument("--dtype", choices=("f32", "tf32", "bf16", "fp16"), default="f32")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--size", type=int, default=0)
    arguments.add_argument("--warmup", type=int, default=1)
    arguments.add_argument("--iters", type=int, default=5)
    arguments.add_argument("--seconds", type=int, default=0,
                           help="measure for about so long instead of --iters steps")
    arguments.add_argument("--phases", type=int, default=1)
    arguments.add_argument("--subdivisions", type=int, default=1)
    arguments.add_argument("--compile", action="store_true")
    arguments.add_argument("--lr", type=float, default=1e-4, help="what step.c writes into its .cfg")
    options = arguments.parse_args()
    if options.device == "cpu" and options.dtype in ("tf32", "fp16"):
        arguments.error(f"--dtype {options.dtype} is for --device cuda")
    if options.device == "cuda" and not torch.cuda.is_available():
        arguments.error("this PyTorch sees no CUDA device")
    return options


def main():
    options = read_arguments()
    on_gpu = options.device == "cuda"
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)  # as -Ofast does for Darknet's process
    if on_gpu:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.dtype != "f32"
        memory = FreeMemory()

    sections = read_cfg(options.cfg)
    if options.size:
        sections[0][1].update(width=str(options.size), height=str(options.size))
    net = Network(sections, options.rules)
    net.load(options.data + ".weights")
    net = net.to(options.device, memory_format=torch.channels_last).train()
    detector = any(kind == "yolo" for kind, _ in net.plan)
    images, truth = load_batch(options, net, detector)
    batch = len(images)
    if on_gpu:
        images, labels = images.pin_memory(), truth.pin_memory()

    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.dtype)
    autocast = torch.autocast(options.device, dtype=half or torch.bfloat16, enabled=half is not None)
    gradients = Gradients(make_optimizer(net, options), options.dtype == "fp16")
    with torch.no_grad(), autocast:
        net.eval()  # the shapes of the heads, without touching the statistics
        for loss, head in zip(net.losses(), net(images[:1].to(options.device))):
            loss.prepare(*((truth, head.shape[2], head.shape[3]) if detector else (truth,)), options.device)
        net.train()
    network = torch.compile(net) if options.compile else net

    def clock(wait):
        if on_gpu and wait:
            torch.cuda.synchronize()
        return time.perf_counter()

    def train_pass(times, wait):
        """One subdivision's cost; adds the clock after input, forward, loss and backward to times."""
        x = images
        if on_gpu:
            x = images.to("cuda", non_blocking=True)
            labels.to("cuda", non_blocking=True)
        times.append(clock(wait))
        with autocast:
            heads = network(x)
        times.append(clock(wait))
        deltas, costs = zip(*(loss.delta(head) for loss, head in zip(net.losses(), heads)))
        times.append(clock(wait))
        share = -batch * options.subdivisions
        torch.autograd.backward(heads,
                                [gradients.scale(d / share).to(h.dtype) for d, h in zip(deltas, heads)])
        times.append(clock(wait))
        return sum(costs) / len(costs)

    def step(wait=False):
        """The cost, the step's milliseconds, and those of input, forward, loss, backward and update. wait:
        the device's too, and of one pass."""
        passes = 1 if wait else options.subdivisions
        times = [clock(wait)]
        gradients.optimizer.zero_grad(set_to_none=True)
        costs = [train_pass(times, wait) for _ in range(passes)]
        gradients.step()
        times.append(clock(True))
        cost = float(sum(costs)) / passes
        return cost, (times[-1] - times[0]) * 1e3, [(b - a) * 1e3 for a, b in zip(times, times[1:])]

    results = []
    for _ in range(options.warmup):
        results.append(step())
        if on_gpu:
            memory.look()
    iters = options.iters
    if options.seconds and results:
        iters = min(500, max(3, int(1e3 * options.seconds / results[-1][1])))
    cpu = cpu_ms()
    measured = [step() for _ in range(iters)]
    cpu = (cpu_ms() - cpu) / iters
    results += measured
    times = [ms for _, ms, _ in measured]
    line = {
        "side": "pytorch", "version": torch.__version__, "blas": blas(), "config": options.cfg,
        "dtype": options.dtype,
        "threads": options.threads, "batch": batch, "width": net.width, "height": net.height, "iters": iters,
        "ms": round(median(times), 2), "ms_min": round(min(times), 2), "ms_max": round(max(times), 2),
        "cpu_ms": round(cpu, 2), "first_ms": round(results[0][1], 2),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "applied": len(results)}
    if on_gpu:
        line.update(device_mb=memory.peak_mb(),
                    allocated_mb=round(torch.cuda.max_memory_allocated() / 2 ** 20, 1),
                    cudnn=torch.backends.cudnn.version())
    if options.phases:
        phases = [median(p) for p in zip(*(step(wait=True)[2] for _ in range(options.phases)))]
        if not on_gpu:  # there the loss counts as forward, as it does for step.c
            phases = [None, phases[1] + phases[2], None, phases[3], phases[4]]
        line.update((name + "_ms", round(ms, 3)) for name, ms in
                    zip(("input", "forward", "loss", "backward", "update"), phases) if ms is not None)
    line["losses"] = [float("%.6g" % cost) if cost == cost and abs(cost) != float("inf") else None
                      for cost, _, _ in results]
    print(json.dumps(line))


if __name__ == "__main__":
    sys.exit(main())
