"""Draw the pictures of the notebooks: python notebooks/images/draw.py [FOLDER].

Workers, devices and servers have their colours, and what is added up has the servers' (see
../colours.py). Where one device works, the parts of a step have theirs. A pull is dashed.
"""

import sys
from pathlib import Path

from card import BLUE, GREEN, GREY, ORANGE, PAPER, PURPLE, SKY, VERMILLION, WORKERS, Card

from colours import PARTS

FORWARD, BACKWARD, UPDATE = (PARTS[part] for part in ("forward", "backward", "update"))
OWN = WORKERS[:2]
PULL, TELLS = "7 4", "2 5"  # dashes of what comes from a server, and from the scheduler
# Heights of bars: four weights, their gradients on two devices, and what an update takes off.
WEIGHTS, GRADIENTS = (46, 30, 52, 38), ((10, 18, 24, 6), (20, 6, 14, 18))
SUM = [sum(both) for both in zip(*GRADIENTS)]
TAKEN = [0.4 * gradient for gradient in SUM]
NEW_WEIGHTS = [old - less for old, less in zip(WEIGHTS, TAKEN)]
# epoch_permutation(21, seed=0, epoch=0) of sampler.py
ORDER = (10, 16, 3, 2, 19, 12, 20, 15, 13, 8, 18, 7, 4, 0, 6, 11, 1, 17, 14, 5, 9)
# Sizes by key of two convolutions and a dense layer: a Trainer sorts by name, bias before weight.
SIZES = (32, 864, 64, 18_432, 100, 1_638_400)
PICTURES = []


def picture(height, title):
    """Make a function a picture: it draws on the Card it gets, and its docstring tells of it."""
    return lambda draw: PICTURES.append((draw, height, title)) or draw


@picture(376, "One command starts all processes of a job")
def one_command(card):
    """The launcher starts a scheduler, two servers and two workers, on this machine or on several
    hosts. Workers send gradients to the servers and get the sums back. The launcher shows what all
    of them print, and ends all of them when one fails."""
    card.node(28, 143, 190, 90, SKY, "launcher", "tools/launch.py")
    card.panel(356, 28, 516, 320, GREY, "this machine, or your hosts", 0.06)
    card.arrow((218, 170), (356, 170), colour=SKY)
    card.text(287, 154, "starts, ends", size=15)
    card.arrow((356, 206), (218, 206), dash="6 5")
    card.text(287, 232, "what they print", size=15)
    card.node(376, 154, 150, 68, GREY, "scheduler", "who is where")
    for i, x in enumerate((566, 726)):
        for j, far in enumerate((566, 726)):
            here, there = x + 36 + 34 * j, far + 36 + 34 * i
            card.arrow((here, 148), (there, 250), colour=OWN[i])
            card.arrow((there + 14, 250), (here + 14, 148), colour=GREEN, dash=PULL)
        card.node(x, 80, 130, 68, OWN[i], f"worker {i}", "trains")
        card.node(x, 250, 130, 68, GREEN, f"server {i}", "adds up")


@picture(430, "One training step on one device")
def one_device(card):
    """A loop. Forward: a batch of images passes through the network, which gives scores. The loss
    compares them with the labels. Backward: each weight gets a gradient. The Trainer takes a share
    of the gradients off the weights, and the next batch meets new weights."""
    card.box(28, 92, 140, 156, GREY, 0.06)
    for i, digit in enumerate((4, 1, 7)):
        card.image(44, 108 + i * 44, digit, GREY)
        card.bold(134, 132 + i * 44, str(digit))
    card.text(62, 274, "images")
    card.text(134, 274, "labels")
    card.arrow((168, 170), (266, 170), colour=FORWARD)
    card.text(216, 156, "forward")
    card.arrow((134, 92), (134, 44), (756, 44), (756, 92))
    card.box(266, 92, 240, 156, FORWARD)
    card.bold(386, 120, "network")
    card.code(386, 144, "scores = net(images)")
    card.bars(386, 218, "weights", (WEIGHTS, GREY, 1))
    card.arrow((506, 170), (650, 170), colour=FORWARD)
    card.text(578, 156, "scores")
    card.box(650, 92, 212, 156, FORWARD)
    card.bold(756, 132, "loss")
    card.code(756, 158, "loss(scores, labels)")
    card.text(756, 190, "how far the scores\nare from the labels", size=14)
    card.arrow((756, 248), (756, 302), colour=BACKWARD)
    card.text(740, 280, "backward", anchor="end")
    card.panel(650, 302, 212, 100, BACKWARD, "gradients")
    card.text(664, 356, "one for\neach weight", size=14, anchor="start")
    card.bars(806, 384, "", (SUM, BACKWARD, 1))
    card.arrow((650, 352), (506, 352), colour=BACKWARD)
    card.code(578, 338, "trainer.step")
    card.panel(266, 302, 240, 100, UPDATE, "Trainer")
    card.text(280, 356, "takes a share\nof them off", size=14, anchor="start")
    card.bars(444, 384, "", (NEW_WEIGHTS, GREY, 1), (TAKEN, BACKWARD, 0.15))
    card.arrow((386, 302), (386, 248), colour=UPDATE)
    card.text(402, 280, "new weights", anchor="start")


@picture(440, "One training step on two devices")
def data_parallel_step(card):
    """A batch of twelve images is cut in two. Each device has a copy of the weights and computes
    the gradient of its six images. The two gradients are added, both devices receive the sum and
    make the same update, so the copies of the weights stay equal."""
    headings = "one batch", "forward, backward", "gradients added", "the same update"
    for x, words in zip((92, 340, 584, 782), headings):
        card.bold(x, 48, words)
    card.box(40, 78, 104, 324, GREY, 0.06)
    card.line((28, 240), (156, 240), dash="5 5")
    card.box(528, 180, 112, 120, GREEN)
    card.bars(584, 264, "sum", (GRADIENTS[0], BLUE, 1), (GRADIENTS[1], ORANGE, 1))
    for device, (own, y, digits) in enumerate(zip(OWN, (78, 266), ("417268", "095316"))):
        middle = y + 68
        for i, digit in enumerate(digits):
            card.image(55 + i % 2 * 39, middle - 56.5 + i // 2 * 39, int(digit), own)
        card.arrow((144, middle), (206, middle), colour=own)
        card.panel(206, y, 268, 136, own, f"device {device}")
        card.bars(268, y + 106, "weights", (WEIGHTS, GREY, 1))
        card.arrow((324, y + 82), (354, y + 82), colour=own)
        card.bars(410, y + 106, "gradient", (GRADIENTS[device], own, 1))
        card.arrow((474, middle), (584, middle), (584, (180, 300)[device]), colour=own)
        card.arrow((640, 240), (674, 240), (674, middle), (712, middle), colour=GREEN)
        card.panel(712, y, 140, 136, own, f"device {device}")
        card.bars(782, y + 106, "new weights", (NEW_WEIGHTS, GREY, 1), (TAKEN, GREEN, 0.15))
    for x in 268, 782:
        card.text(x, 247, "=", size=22, font_weight="bold")


@picture(480, "The processes of a job on two hosts")
def parameter_server(card):
    """Each host runs a worker and a server, the first host the scheduler too. Every worker pushes
    gradients to every server and pulls the sums from it. The scheduler tells all of them who is
    where; no gradients pass through it."""
    card.panel(28, 28, 472, 424, GREY, "host 1", 0.06)
    card.panel(560, 28, 312, 424, GREY, "host 2", 0.06)
    for x in 370, 716:
        for y, end in ((94, 120), (414, 388)):
            card.arrow((118, 254), (118, y), (x, y), (x, end), dash=TELLS)
    card.node(48, 220, 140, 68, GREY, "scheduler", "on the first host")
    card.text(132, 160, "who is where", size=15, anchor="start")
    for i, (x, keys) in enumerate(((270, "0, 2"), (616, "1, 3"))):
        for j, far in enumerate((270, 616)):
            here, there = x + 40 + 100 * j, far + 40 + 100 * i
            card.arrow((here, 188), (there, 320), colour=OWN[i])
            card.arrow((there + 24, 320), (here + 24, 188), colour=GREEN, dash=PULL)
        card.node(x, 120, 200, 68, OWN[i], f"worker {i}", "a copy of the network")
        card.node(x, 320, 200, 68, GREEN, f"server {i}", f"adds up keys {keys}, …")
    card.text(298, 250, "push\ngradients", size=15, anchor="end")
    card.text(792, 250, "pull\nsums", size=15, anchor="start")


@picture(416, "An epoch of 21 examples, split over two workers")
def split_data(card):
    """All workers put the examples into the same random order. It is cut into global batches of
    eight, the last of five. Each batch is cut into near-equal parts, four and four, the last three
    and two, one for each worker. A step divides by the size of its own batch."""
    lanes = 250, 310
    for step in range(3):
        whole = ORDER[8 * step : 8 * step + 8]
        left, size = 122 + 294 * step, len(whole)
        cut, middle = (size + 1) // 2, left + 17 * size - 2
        for example, x in zip(whole, range(left, 900, 34)):
            worker = int(x >= left + 34 * cut)
            for at in (144 + 34 * example, 44), (x, 170), (x, lanes[worker]):
                card.cell(*at, 30, 30, OWN[worker], str(example), size=14)
        for own, x, lane in zip(OWN, (middle - 17 * (size - cut), middle + 17 * cut), lanes):
            card.arrow((x, 206), (x, lane - 4), colour=own)
        card.text(middle, 150, f"step {step}: {size} examples")
        card.text(middle, 386, f"gradient sum ÷ {size}")
        for y in 160, 362:
            card.line((left, y), (left + 34 * size - 4, y))
    card.arrow((499, 80), (499, 126))
    card.text(514, 108, "shuffled, on every worker alike", size=15, anchor="start")
    for y, words in ((65, "data set"), (191, "epoch 0"), (271, "worker 0"), (331, "worker 1")):
        card.bold(28, y, words, anchor="start")


@picture(452, "Which server adds up which array")
def keys_on_servers(card):
    """Six arrays with keys 0 to 5, and two servers. An array of fewer than 1,000,000 numbers goes
    whole to server (key * 9973) % 2: keys 0, 2 and 4 to server 0, keys 1 and 3 to server 1. The
    array of key 5 has 1,638,400 numbers and is cut into halves, one for each server."""
    for server, x in enumerate((28, 692)):
        card.box(x, 28, 180, 396, GREEN)
        card.bold(x + 90, 58, f"server {server}")
    card.text(450, 54, "fewer than 1,000,000 numbers: whole, to", size=15)
    card.code(450, 78, "server (key * 9973) % 2")
    card.text(450, 332, "1,000,000 or more: cut, a part to each server", size=15)
    for key, size in enumerate(SIZES):
        large = size >= 1_000_000
        y, height, half = (354, 54, 180) if large else (96 + 42 * key, 32, 75)
        words = "" if large else f"key {key}: {('bias', 'weight')[key % 2]}"
        card.cell(450 - half, y, 2 * half, height, SKY, words)
        for server in (0, 1) if large else (key * 9973 % 2,):
            side, middle = (-1, 1)[server], y + height / 2
            share = f"{size // (1 + large):,} numbers"
            card.arrow((450 + side * half, middle), (450 + side * 256, middle))
            card.cell(450 + side * 332 - 76, y, 152, height, SKY, share)
            if large:
                words = f"key {key}: {('first', 'second')[server]} half"
                card.text(450 + side * 90, middle + 5, words, size=15)
    card.line((450, 344), (450, 418), dash="5 5")


@picture(322, "A killed job goes on from its last checkpoint")
def restart(card):
    """Time runs to the right. The first try trains epoch 0 and epoch 1 and saves a checkpoint after
    each. It is killed within epoch 2: the steps since checkpoint 2 are lost. The second try reads
    checkpoint 2, trains all of epoch 2 again and goes on."""
    for words, y in (("first try", 72), ("files", 157), ("second try", 242)):
        card.bold(28, y, words, anchor="start")
    for epoch, x in enumerate((130, 290)):
        card.cell(x, 45, 160, 44, BLUE, f"epoch {epoch}")
        card.arrow((x + 160, 89), (x + 160, 130), colour=GREEN)
        card.cell(x + 90, 130, 140, 44, GREEN, f"checkpoint {epoch + 1}")
    card.cell(450, 45, 84, 44, VERMILLION, "lost")
    card.text(546, 64, "kill -9", anchor="start")
    card.text(546, 84, "the launcher ends the rest", size=14, anchor="start")
    card.line((534, 89), (534, 215), dash="6 5")
    card.arrow((450, 174), (450, 237), (534, 237), colour=GREEN)
    card.cell(534, 215, 70, 44, GREY, "start", 0.12)
    card.cell(604, 215, 160, 44, BLUE, "epoch 2")
    card.cell(764, 215, 88, 44, BLUE, "epoch 3")
    card.arrow((764, 215), (764, 174), colour=GREEN)
    card.cell(694, 130, 140, 44, GREEN, "checkpoint 3")
    card.arrow((130, 282), (872, 282))
    card.text(862, 302, "time", size=15, anchor="end", colour=GREY)


@picture(356, "One training step in mixed precision")
def mixed_precision_step(card):
    """The weights are float32. A copy in 16 bits goes through convolutions and dense layers, and
    softmax and loss are float32 again. The loss is multiplied by the loss scale, backward runs in
    16 bits, and its gradients become float32 and are divided by the scale. If all of them are
    finite, the Trainer updates the float32 weights, else it skips the step and halves the scale."""
    for x, y, w, own, name, words in (
        (28, 40, 180, GREY, "weights", "float32"),
        (320, 40, 240, PURPLE, "forward", "convolution, dense: 16 bits"),
        (680, 40, 192, GREY, "softmax, loss", "float32"),
        (320, 226, 240, PURPLE, "backward", "convolution, dense: 16 bits"),
        (28, 226, 180, GREY, "update", "float32"),
    ):
        card.node(x, y, w, 90, own, name, words)
    for y, (start, end), words in (
        (85, (208, 320), "cast"),
        (85, (560, 680), "cast"),
        (271, (320, 208), "cast,\nunscale"),
    ):
        card.arrow((start, y), (end, y))
        card.text((start + end) / 2, y - (32 if "\n" in words else 14), words, size=15)
    card.arrow((776, 130), (776, 271), (560, 271), colour=PURPLE)
    card.text(700, 257, "scaled loss", size=15)
    card.arrow((118, 226), (118, 130), colour=GREY)
    card.text(134, 174, "if all gradients are finite;", size=15, anchor="start")
    card.text(134, 192, "else skip, and halve the scale", size=15, anchor="start")


@picture(380, "Two ways to add gradients up: a ring of workers, and servers")
def ring_and_servers(card):
    """Left, a ring: four workers pass pieces of the gradient to their right-hand neighbour, first
    to add them up, then to hand the sums round. Right, servers: every worker pushes a piece of its
    gradient to each server, each server adds its pieces up, and all workers pull the sums."""
    card.bold(210, 52, "all-reduce in a ring (PyTorch)")
    card.bold(665, 52, "servers (MXNet)")
    places = (28, 96), (252, 96), (252, 236), (28, 236)
    for i, (x, y) in enumerate(places):
        card.node(x, y, 140, 68, WORKERS[i], f"worker {i}", "adds up a piece")
    card.arrow((168, 130), (252, 130))
    card.arrow((322, 164), (322, 236))
    card.arrow((252, 270), (168, 270))
    card.arrow((98, 236), (98, 164))
    card.text(210, 350, "a piece at a time, to the neighbour", size=15)
    for i in range(4):
        x = 454 + 108 * i
        for j, far in enumerate((508, 724)):
            card.arrow((x + 34 + 20 * j, 148), (far + 28 + 25 * i, 260), colour=WORKERS[i])
        card.box(x, 96, 98, 52, WORKERS[i])
        card.bold(x + 49, 128, f"worker {i}")
    for j, x in enumerate((508, 724)):
        card.node(x, 260, 132, 56, GREEN, f"server {j}", "adds up a half")
    card.text(665, 350, "push to every server, pull the sums back", size=15)


@picture(444, "Four ways to split a training over two devices")
def ways_to_split(card):
    """Two devices, a network of four layers and a batch of two images, split in four ways. Data
    parallel: each device has the whole network and one image; gradients travel. Sharded state: each
    has half of each layer and one image; weights and gradients travel. Tensor parallel: each has
    half of each layer and both images; activations travel in each layer. Pipeline: each has two
    layers, the images enter at the first device; activations travel at the cut."""
    ways = (
        ("data parallel", "gradients", (4, 7), GREEN),
        ("sharded state", "weights, gradients", (4, 7), GREEN),
        ("tensor parallel", "activations,\nin each layer", (47, 47), SKY),
        ("pipeline", "activations,\nat the cut", (47, None), SKY),
    )
    for column, (name, travels, images, colour) in enumerate(ways):
        x = 28 + 215 * column
        card.bold(x + 100, 46, name)
        for device, (own, y) in enumerate(zip(OWN, (66, 244))):
            card.panel(x, y, 200, 134, own, f"device {device}")
            for i, digit in enumerate(map(int, str(images[device] or ""))):
                card.image(x + 12, y + 42 + 41 * i, digit, own)
            for layer in range(4):
                kept = {"fill": own, "tint": 0.6, "stroke": own}
                left, top = x + 62 + 32 * layer, y + 42
                card.rect(left, top, 24, 76, PAPER, stroke=GREY, stroke_dasharray="3 3")
                if column == 0 or (column == 3 and layer // 2 == device):
                    card.rect(left, top, 24, 76, **kept)
                elif column < 3:
                    card.rect(left, top + 38 * device, 24, 38, **kept)
        card.arrow((x + 90, 202), (x + 90, 242), colour=colour)
        card.arrow((x + 110, 242), (x + 110, 202), colour=colour)
        card.text(x + 100, 404, travels, size=15)


@picture(452, "Reading and training: one after the other, and read ahead")
def read_ahead(card):
    """Three pairs of time lines, reader above device. One after the other: each batch is read, then
    trained, and the device waits during each reading. Read ahead: while a batch is trained the next
    is read, and the device waits for the first batch only. Read ahead, but reading takes longer
    than training: the device waits for every batch."""
    titles = "one after the other", "read ahead", "read ahead, but reading takes longer"
    for title, y, read, train in zip(titles, (20, 156, 292), (70, 70, 105), (105, 105, 70)):
        card.bold(28, y + 20, title, anchor="start")
        card.text(28, y + 55, "reader", anchor="start")
        card.text(28, y + 99, "device", anchor="start")
        may_read = free = 130
        for number in "1234":
            there = may_read + read
            card.cell(may_read, y + 32, read, 36, GREY, f"read {number}", 0.12)
            start = max(there, free)
            if start > free:
                card.cell(free, y + 76, start - free, 36, VERMILLION, "", 0.12)
            card.cell(start, y + 76, train, 36, BLUE, f"train {number}", 0.25)
            free = start + train
            may_read = free if y == 20 else start
    card.cell(640, 188, 35, 36, VERMILLION, "", 0.12)
    card.text(690, 211, "the device waits", anchor="start")
    card.arrow((130, 422), (872, 422))
    card.text(862, 442, "time", size=15, anchor="end", colour=GREY)


@picture(458, "Which store, how many servers, which batch size, which type")
def which_store(card):
    """Left, the store. One process: device. Workers of very different speed: dist_async. If not,
    and each has several GPUs: dist_device_sync. With one device each: dist_sync. Right, the
    servers: one on each host. The batch size: the global batch, divided by the workers; a larger
    global batch needs another learning rate. The type: first float32, then 16 bits."""
    questions = (
        ("more than one process?", "no", "device"),
        ("workers of very different speed?", "yes", "dist_async"),
        ("several GPUs in each worker?", "yes", "dist_device_sync"),
    )
    for i, (question, answer, store) in enumerate(questions):
        y = 40 + 114 * i
        card.box(28, y, 276, 64, GREY, 0.06)
        card.text(40, y + 37, question, size=14, anchor="start")
        card.arrow((304, y + 32), (384, y + 32))
        card.text(352, y + 22, answer, size=15)
        card.box(384, y + 8, 172, 48, GREEN)
        card.code(470, y + 37, store)
        card.arrow((166, y + 64), (166, y + 114))
        card.text(182, y + 92, "yes" if answer == "no" else "no", size=15, anchor="start")
    card.box(80, 382, 172, 48, GREEN)
    card.code(166, 411, "dist_sync")
    card.text(270, 411, "if in doubt, this one", size=15, anchor="start", colour=GREY)
    for y, name, words in (
        (
            40,
            "how many servers?",
            "one on each host",
        ),
        (
            184,
            "which batch size?",
            "global batch / workers; a larger\none needs another rate (07)",
        ),
        (328, "which type?", "float32; once that trains well,\ntry 16 bits (09)"),
    ):
        card.panel(590, y, 282, 102, BLUE, name)
        card.text(604, y + 58, words, size=14, anchor="start")


@picture(440, "A job started over ssh on two hosts")
def job_over_ssh(card):
    """The launcher logs in to each host by ssh and starts a supervisor there, which starts the
    processes of its host: a server and a worker, on the first host the scheduler too. Workers and
    servers of both hosts exchange gradients and sums by TCP connections of their own."""
    card.panel(28, 150, 190, 120, GREY, "where you launch", 0.06)
    card.code(123, 212, "launch.py -n 2")
    card.code(123, 238, "-H hosts")
    card.text(262, 132, "ssh", anchor="end")
    for i, (y, row) in enumerate(((28, 118), (262, 280))):
        card.panel(330, y, 542, 150, GREY, f"gpu{i + 1}", 0.06)
        card.arrow((218, 210), (274, 210), (274, y + 80), (350, y + 80), colour=SKY)
        card.node(350, y + 48, 140, 64, SKY, "supervisor", "starts and ends")
        card.arrow((490, y + 80), (540, y + 80))
        card.box(540, y + 14, 316, 122, PAPER, 0)
        card.cell(556, row, 124, 40, GREEN, f"server {i}")
        card.cell(716, row, 124, 40, OWN[i], f"worker {i}")
        card.line((680, row + 20), (716, row + 20))
    card.cell(556, 58, 124, 40, GREY, "scheduler")
    card.line((634, 158), (762, 280))
    card.line((762, 158), (634, 280))
    card.text(530, 216, "TCP, any port:", size=15)
    card.text(530, 236, "gradients and sums", size=15)


def main(folder):
    """Write all pictures into a folder."""
    for draw, height, title in PICTURES:
        card, name = Card(height), draw.__name__.replace("_", "-")
        draw(card)
        desc = " ".join(draw.__doc__.split())
        Path(folder, f"{name}.svg").write_bytes(card.svg(name, title, desc).encode())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
