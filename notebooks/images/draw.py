"""Draw the pictures of the notebooks: python notebooks/images/draw.py [FOLDER].

Workers, devices and servers have their colours, and what is added up has the servers' (see
../colours.py). Where one device works, the parts of a step have theirs. A pull is dashed.
"""

import sys
from pathlib import Path

from card import (
    BLUE,
    GREEN,
    GREY,
    NARROW,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    VERMILLION,
    WIDE,
    WORKERS,
    Card,
)

from colours import PARTS

FORWARD, BACKWARD, UPDATE, EXCHANGE = (
    PARTS[part] for part in ("forward", "backward", "update", "exchange")
)
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


def picture(height, narrow, title):
    """Make a function a picture: it draws on the Card it gets, and its docstring tells of it.

    The heights are those of the wide card and of the narrow one, which the site has on a phone.
    """
    return lambda draw: PICTURES.append((draw, {WIDE: height, NARROW: narrow}, title)) or draw


@picture(376, 590, "One command starts all processes of a job")
def one_command(card):
    """The launcher starts a scheduler, two servers and two workers, on this machine or on several
    hosts. Workers send gradients to the servers and get the sums back. The launcher shows what all
    of them print, and ends all of them when one fails."""
    card.node(*card.pick((28, 143), (130, 24)), 190, 90, SKY, "launcher", "tools/launch.py")
    box = card.pick((356, 28, 516, 320), (16, 176, 418, 394))
    card.panel(*box, GREY, "this machine, or your hosts", 0.06)
    near, far, out, back = card.pick((218, 356, 170, 206), (114, 176, 207, 243))
    card.arrow(*card.turns((near, out), (far, out)), colour=SKY)
    at, anchor = card.pick(((287, 154), "middle"), ((195, 150), "end"))
    card.text(*at, "starts, ends", size=15, anchor=anchor)
    card.arrow(*card.turns((far, back), (near, back)), dash="6 5")
    at, anchor = card.pick(((287, 232), "middle"), ((255, 150), "start"))
    card.text(*at, "what they print", size=15, anchor=anchor)
    card.node(*card.pick((376, 154), (150, 222)), 150, 68, GREY, "scheduler", "who is where")
    left, y = card.pick((566, 80), (80, 312))
    for i, x in enumerate((left, left + 160)):
        for j, far in enumerate((left, left + 160)):
            here, there = x + 36 + 34 * j, far + 36 + 34 * i
            card.arrow((here, y + 68), (there, y + 170), colour=OWN[i])
            card.arrow((there + 14, y + 170), (here + 14, y + 68), colour=GREEN, dash=PULL)
        card.node(x, y, 130, 68, OWN[i], f"worker {i}", "trains")
        card.node(x, y + 170, 130, 68, GREEN, f"server {i}", "adds up")


@picture(430, 900, "One training step on one device")
def one_device(card):
    """A loop. Forward: a batch of images passes through the network, which gives scores. The loss
    compares them with the labels. Backward: each weight gets a gradient. The Trainer takes a share
    of the gradients off the weights, and the next batch meets new weights."""
    # Corners of what stands on the card: one loop, or one column.
    corners = card.pick(
        ((28, 92), (266, 92), (650, 92), (650, 302), (266, 302)),
        ((170, 20), (134, 226), (134, 432), (134, 638), (134, 784)),
    )
    (x, y), network, loss, gradients, trainer = corners
    w = card.pick(240, 212)
    card.box(x, y, 140, 156, GREY, 0.06)
    for i, digit in enumerate((4, 1, 7)):
        card.image(x + 16, y + 16 + i * 44, digit, GREY)
        card.bold(x + 106, y + 40 + i * 44, str(digit))
    at = card.pick(((62, 274), (134, 274)), ((132, 104), (346, 104)))
    card.text(*at[0], "images")
    card.text(*at[1], "labels")
    card.arrow(*card.pick(((168, 170), (266, 170)), ((240, 176), (240, 226))), colour=FORWARD)
    card.text(*card.pick((216, 156), (284, 206)), "forward")
    around = (134, 92), (134, 44), (756, 44), (756, 92)
    card.arrow(*card.pick(around, ((310, 130), (400, 130), (400, 510), (346, 510))))
    x, y = network
    card.box(x, y, w, 156, FORWARD)
    card.bold(x + w / 2, y + 28, "network")
    card.code(x + w / 2, y + 52, "scores = net(images)")
    card.bars(x + w / 2, y + 126, "weights", (WEIGHTS, GREY, 1))
    card.arrow(*card.pick(((506, 170), (650, 170)), ((240, 382), (240, 432))), colour=FORWARD)
    card.text(*card.pick((578, 156), (280, 412)), "scores")
    x, y = loss
    card.box(x, y, 212, 156, FORWARD)
    card.bold(x + 106, y + 40, "loss")
    card.code(x + 106, y + 66, "loss(scores, labels)")
    card.text(x + 106, y + 98, "how far the scores\nare from the labels", size=14)
    x, y = gradients
    card.arrow((x + 106, loss[1] + 156), (x + 106, y), colour=BACKWARD)
    at, anchor = card.pick(((740, 280), "end"), ((254, 618), "start"))
    card.text(*at, "backward", anchor=anchor)
    card.panel(x, y, 212, 100, BACKWARD, "gradients")
    card.text(x + 14, y + 54, "one for\neach weight", size=14, anchor="start")
    card.bars(x + 156, y + 82, "", (SUM, BACKWARD, 1))
    card.arrow(*card.pick(((650, 352), (506, 352)), ((240, 738), (240, 784))), colour=BACKWARD)
    card.code(*card.pick((578, 338), (308, 766)), "trainer.step")
    x, y = trainer
    card.panel(x, y, w, 100, UPDATE, "Trainer")
    card.text(x + 14, y + 54, "takes a share\nof them off", size=14, anchor="start")
    taken = (NEW_WEIGHTS, GREY, 1), (TAKEN, BACKWARD, 0.15)
    card.bars(x + w - card.pick(62, 52), y + 82, "", *taken)
    back = ((386, 302), (386, 248)), ((134, 834), (40, 834), (40, 304), (134, 304))
    card.arrow(*card.pick(*back), colour=UPDATE)
    at, words = card.pick(((402, 280), "new weights"), ((50, 560), "new\nweights"))
    card.text(*at, words, anchor="start")


@picture(440, 832, "One training step on two devices")
def data_parallel_step(card):
    """A batch of twelve images is cut in two. Each device has a copy of the weights and computes
    the gradient of its six images. The two gradients are added, both devices receive the sum and
    make the same update, so the copies of the weights stay equal."""
    # Where the parts begin and end on the way through the step, and the devices beside each other.
    batch, work, added, update = card.pick(
        ((40, 144), (206, 474), (528, 640), (712, 852)),
        ((56, 160), (208, 448), (494, 614), (674, 810)),
    )
    middle, middles, size, share = card.pick(
        (240, (146, 334), 136, (324, 120)), (225, (111, 339), 190, (362, 112))
    )

    def part(span, middle, size):
        return card.turn(span[0], middle - size / 2, span[1] - span[0], size)

    headings = "one batch", "forward, backward", "gradients added", "the same update"
    across = (92, 48), (340, 48), (584, 48), (782, 48)
    down = (225, 38), (225, 194), (225, 478), (225, 660)
    for at, words in zip(card.pick(across, down), headings):
        card.bold(*at, words)
    card.box(*part(batch, middle, share[0]), GREY, 0.06)
    card.line(*card.turns((batch[0] - 12, middle), (batch[1] + 12, middle)), dash="5 5")
    card.box(*part(added, middle, share[1]), GREEN)
    both = (GRADIENTS[0], BLUE, 1), (GRADIENTS[1], ORANGE, 1)
    card.bars(*card.pick((584, 264), (225, 578)), "sum", *both)
    # From a panel's corner: the weights, an arrow, the gradient; and the new weights.
    weights, start, end, gradient, new = card.pick(
        ((62, 106), (118, 82), (148, 82), (204, 106), (70, 106)),
        ((95, 98), (95, 126), (95, 150), (95, 206), (95, 106)),
    )
    for device, (own, here, digits) in enumerate(zip(OWN, middles, ("417268", "095316"))):
        for i, digit in enumerate(digits):
            at = card.turn(batch[0] + 15 + i % 2 * 39, here - 56.5 + i // 2 * 39)
            card.image(*at, int(digit), own)
        card.arrow(*card.turns((batch[1], here), (work[0], here)), colour=own)
        x, y, *_ = part(work, here, size)
        card.panel(*part(work, here, size), own, f"device {device}")
        card.bars(x + weights[0], y + weights[1], "weights", (WEIGHTS, GREY, 1))
        card.arrow((x + start[0], y + start[1]), (x + end[0], y + end[1]), colour=own)
        card.bars(x + gradient[0], y + gradient[1], "gradient", (GRADIENTS[device], own, 1))
        center, edge = sum(added) / 2, middle + (-1, 1)[device] * share[1] / 2
        card.arrow(*card.turns((work[1], here), (center, here), (center, edge)), colour=own)
        bend = added[1] + card.pick(34, 18)
        way = (added[1], middle), (bend, middle), (bend, here), (update[0], here)
        card.arrow(*card.turns(*way), colour=GREEN)
        x, y, *_ = part(update, here, size)
        card.panel(*part(update, here, size), own, f"device {device}")
        taken = (NEW_WEIGHTS, GREY, 1), (TAKEN, GREEN, 0.15)
        card.bars(x + new[0], y + new[1], "new weights", *taken)
    for at in card.pick(((268, 247), (782, 247)), ((225, 285), (225, 758))):
        card.text(*at, "=", size=22, font_weight="bold")


@picture(330, 520, "A step of one, two, four and eight workers that share a batch")
def shared_computing(card):
    """Bars of time for a step of one, two, four and eight workers that share one batch. Computing
    takes a half, a quarter and an eighth of the time of one worker. The exchange of gradients is
    absent with one worker, then does not shrink but grows, to nearly twice the time of two
    workers. Eight workers spend most of the step on the exchange."""
    card.bold(*card.pick((110, 48), (44, 44)), "workers")
    first, pitch, thick, begin, scale, letters = card.pick(
        (72, 56, 40, 170, 1, 15), (94, 88, 82, 64, 0.6, 14)
    )
    for place, workers in enumerate((1, 2, 4, 8)):
        at, computing = first + pitch * place, scale * 690 / workers
        card.bold(*card.pick((110, at + 25), (at + 39, 44)), str(workers))
        card.cell(*card.turn(begin, at, computing, thick), FORWARD, "computing", size=letters)
        if workers > 1:
            exchange = scale * 220 * (workers - 1) / workers
            box = card.turn(begin + computing, at, exchange, thick)
            card.cell(*box, EXCHANGE, "exchange", size=letters)
    card.arrow(*card.pick(((170, 302), (872, 302)), ((82, 64), (82, 500))))
    at, words = card.pick(((862, 322), "time of a step"), ((72, 478), "time of\na step"))
    card.text(*at, words, size=15, anchor="end", colour=GREY)


@picture(480, 512, "The processes of a job on two hosts")
def parameter_server(card):
    """Each host runs a worker and a server, the first host the scheduler too. Every worker pushes
    gradients to every server and pulls the sums from it. The scheduler tells all of them who is
    where; no gradients pass through it."""
    hosts = card.pick(
        ((28, 28, 472, 424), (560, 28, 312, 424)), ((8, 20, 434, 256), (8, 306, 434, 186))
    )
    for number, box in enumerate(hosts, 1):
        card.panel(*box, GREY, f"host {number}", 0.06)
    for x in card.pick((370, 716), (222, 396)):
        for y, end in card.pick(((94, 120), (414, 388)), ((16, 36), (434, 414))):
            start = card.pick(((118, 254), (118, y)), ((90, 225), (90, y)))
            card.arrow(*card.turns(*start, (x, y), (x, end)), dash=TELLS)
    box = card.pick((48, 220, 140, 68), (155, 56, 140, 68))
    card.node(*box, GREY, "scheduler", "on the first host")
    card.text(*card.pick((132, 160), (34, 80)), "who is where", size=15, anchor="start")
    near, far, w = card.pick((120, 320, 200), (36, 258, 156))
    edge, step, shift = card.pick((188, (40, 100), 24), (192, (10, 36), 12))
    for i, (x, keys) in enumerate(zip(card.pick((270, 616), (188, 362)), ("0, 2", "1, 3"))):
        for j, other in enumerate(card.pick((270, 616), (188, 362))):
            here, there = x + step[0] + step[1] * j, other + step[0] + step[1] * i
            card.arrow(*card.turns((here, edge), (there, far)), colour=OWN[i])
            back = (there + shift, far), (here + shift, edge)
            card.arrow(*card.turns(*back), colour=GREEN, dash=PULL)
        has, does = card.pick(("a copy of the network", "up keys"), ("the whole network", "keys"))
        card.node(*card.turn(x, near), w, 68, OWN[i], f"worker {i}", has)
        card.node(*card.turn(x, far), w, 68, GREEN, f"server {i}", f"adds {does} {keys}, …")
    at, anchor = card.pick(((298, 250), "end"), ((225, 150), "middle"))
    card.text(*at, "push\ngradients", size=15, anchor=anchor)
    at, anchor = card.pick(((792, 250), "start"), ((225, 450), "middle"))
    card.text(*at, "pull\nsums", size=15, anchor=anchor)


@picture(416, 800, "An epoch of 21 examples, split over two workers")
def split_data(card):
    """All workers put the examples into the same random order. It is cut into global batches of
    eight, the last of five. Each batch is cut into near-equal parts, four and four, the last three
    and two, one for each worker. A step divides by the size of its own batch."""
    start, group, pitch, (w, h), data = card.pick(
        (122, 294, 34, (30, 30), 144), (90, 264, 30, (26, 34), 114)
    )
    whole_set, epoch, lanes, rules = card.pick(
        (44, 170, (250, 310), (160, 362)), (14, 164, (236, 306), (156, 348))
    )
    for step in range(3):
        whole = ORDER[8 * step : 8 * step + 8]
        left, size = start + group * step, len(whole)
        cut, end = (size + 1) // 2, left + pitch * size - (pitch - w)
        middle = (left + end) / 2
        for i, example in enumerate(whole):
            at, worker = left + pitch * i, int(i >= cut)
            for place in (data + pitch * example, whole_set), (at, epoch), (at, lanes[worker]):
                card.cell(*card.turn(*place, w, h), OWN[worker], str(example), size=14)
        centers = middle - pitch / 2 * (size - cut), middle + pitch / 2 * cut
        for own, x, lane in zip(OWN, centers, lanes):
            card.arrow(*card.turns((x, epoch + h + 6), (x, lane - 4)), colour=own)
        at, words = card.pick(
            ((middle, 150), "step {}: {} examples"), ((101, middle - 4), "step {}:\n{} examples")
        )
        card.text(*at, words.format(step, size))
        at, words = card.pick(((middle, 386), " "), ((398, middle - 4), "\n"))
        card.text(*at, f"gradient{words}sum ÷ {size}")
        for y in rules:
            card.line(*card.turns((left, y), (end, y)))
    card.arrow(*card.pick(((499, 80), (499, 126)), ((54, 342), (150, 342))))
    at, anchor, words = card.pick(
        ((514, 108), "start", "shuffled, on every worker alike"),
        ((101, 292), "middle", "shuffled,\non every\nworker alike"),
    )
    card.text(*at, words, size=15, anchor=anchor)
    names = "data set", "epoch 0", "worker 0", "worker 1"
    for name, y, x in zip(names, (65, 191, 271, 331), (31, 181, 253, 323)):
        if card.width == WIDE:
            card.bold(28, y, name, anchor="start")
        else:
            card.bold(x, 50, name.replace(" ", "\n"))


@picture(452, 548, "Which server adds up which array")
def keys_on_servers(card):
    """Six arrays with keys 0 to 5, and two servers. An array of fewer than 1,000,000 numbers goes
    whole to server (key * 9973) % 2: keys 0, 2 and 4 to server 0, keys 1 and 3 to server 1. The
    array of key 5 has 1,638,400 numbers and is cut into halves, one for each server."""
    middle, width, whole, apart, share, letters = card.pick(
        (450, 180, 75, 332, 152, 15), (225, 140, 55, 148, 132, 14)
    )
    top, bottom, first = card.pick((28, 424, 96), (76, 528, 124))
    for server, side in enumerate((-1, 1)):
        x = middle + side * apart
        card.box(x - width / 2, top, width, bottom - top, GREEN)
        card.bold(x, top + 30, f"server {server}")
    card.text(middle, card.pick(54, 36), "fewer than 1,000,000 numbers: whole, to", size=15)
    card.code(middle, card.pick(78, 60), "server (key * 9973) % 2")
    y, words = card.pick(
        (332, "1,000,000 or more: cut, a part to each server"),
        (352, "1,000,000\nor more: cut,\na part to\neach server"),
    )
    card.text(middle, y, words, size=15)
    for key, size in enumerate(SIZES):
        large = size >= 1_000_000
        servers = (0, 1) if large else (key * 9973 % 2,)
        y, height, half = first + 42 * key, 32, whole
        if large:
            y, height, half = card.pick((354, 54, 180), (424, 88, 50))
        words = "" if large else f"key {key}: {('bias', 'weight')[key % 2]}"
        card.cell(middle - half, y, 2 * half, height, SKY, words, size=letters)
        height /= card.pick(1, len(servers))  # cut upright, or across
        for i, server in enumerate(servers):
            side, at = (-1, 1)[server], y + card.pick(0, height * i)
            x, center = middle + side * apart, at + height / 2
            card.arrow((middle + side * half, center), (x - side * share / 2, center))
            words = f"{size // len(servers):,} numbers"
            card.cell(x - share / 2, at, share, height, SKY, words, size=letters)
            if large:
                place, space = card.pick(
                    ((450 + side * 90, center + 5), " "), ((225, center - 4), "\n")
                )
                words = f"key {key}:{space}{('first', 'second')[server]} half"
                card.text(*place, words, size=15)
    card.line(*card.pick(((450, 344), (450, 418)), ((166, 468), (284, 468))), dash="5 5")


@picture(322, 540, "A killed job goes on from its last checkpoint")
def restart(card):
    """The first try trains epoch 0 and epoch 1 and saves a checkpoint after each. It is killed
    within epoch 2: the steps since checkpoint 2 are lost. The second try reads checkpoint 2, trains
    all of epoch 2 again and goes on."""
    (first, files, second), size = card.pick(((45, 130, 215), 44), ((40, 182, 324), 110))
    for words, lane in (("first try", first), ("files", files), ("second try", second)):
        at, anchor = card.pick(((28, lane + 27), "start"), ((lane + 55, 42), "middle"))
        card.bold(*at, words, anchor=anchor)

    def when(x):
        return card.pick(x, 58 + 0.62 * (x - 130))

    def time(x, length, lane, *look):
        card.cell(*card.turn(when(x), lane, when(x + length) - when(x), size), *look)

    def arrow(*points):
        card.arrow(*card.turns(*((when(x), y) for x, y in points)), colour=GREEN)

    for epoch, x in enumerate((130, 290)):
        time(x, 160, first, BLUE, f"epoch {epoch}")
        arrow((x + 160, first + size), (x + 160, files))
        time(x + 90, 140, files, GREEN, f"checkpoint {epoch + 1}")
    time(450, 84, first, VERMILLION, "lost")
    card.text(*card.pick((546, 64), (40, 334)), "kill -9", anchor="start")
    at, words = card.pick(
        ((546, 84), "the launcher ends the rest"), ((40, 354), "the launcher\nends the rest")
    )
    card.text(*at, words, size=14, anchor="start")
    card.line(*card.turns((when(534), first + size), (when(534), second)), dash="6 5")
    bend = second + size / 2
    arrow((450, files + size), (450, bend), (534, bend))
    time(534, 70, second, GREY, "start", 0.12)
    time(604, 160, second, BLUE, "epoch 2")
    time(764, 88, second, BLUE, "epoch 3")
    arrow((764, second), (764, files + size))
    time(694, 140, files, GREEN, "checkpoint 3")
    card.arrow(*card.pick(((130, 282), (872, 282)), ((22, 58), (22, 520))))
    at, anchor = card.pick(((862, 302), "end"), ((32, 518), "start"))
    card.text(*at, "time", size=15, anchor=anchor, colour=GREY)


@picture(356, 440, "One training step in mixed precision")
def mixed_precision_step(card):
    """The weights are float32. A copy in 16 bits goes through convolutions and dense layers, and
    softmax and loss are float32 again. The loss is multiplied by the loss scale, backward runs in
    16 bits, and its gradients become float32 and are divided by the scale. If all of them are
    finite, the Trainer updates the float32 weights, else it skips the step and halves the scale."""
    scored = "softmax, loss", "float32"
    halved = "convolution, dense: 16 bits"
    (left, w), (right, wide), (high, low) = card.pick(
        ((28, 180), (320, 240), (40, 226)), ((14, 142), (216, 220), (36, 316))
    )
    card.node(left, high, w, 90, GREY, "weights", "float32")
    card.node(right, high, wide, 90, PURPLE, "forward", halved)
    card.node(*card.pick((680, 40, 192, 90), (216, 176, 220, 90)), GREY, *scored)
    card.node(right, low, wide, 90, PURPLE, "backward", halved)
    card.node(left, low, w, 90, GREY, "update", "float32")
    edge, middle = left + w, (left + w + right) / 2
    card.arrow((edge, high + 45), (right, high + 45))
    card.text(middle, high + 31, "cast", size=15)
    card.arrow(*card.pick(((560, 85), (680, 85)), ((326, 126), (326, 176))))
    card.text(*card.pick((620, 71), (353, 155)), "cast", size=15)
    card.arrow((right, low + 45), (edge, low + 45))
    card.text(middle, low + 13, "cast,\nunscale", size=15)
    way = card.pick(((776, 130), (776, 271), (560, 271)), ((326, 266), (326, 316)))
    card.arrow(*way, colour=PURPLE)
    card.text(*card.pick((700, 257), (379, 295)), "scaled loss", size=15)
    card.arrow((left + w / 2, low), (left + w / 2, high + 90), colour=GREY)
    words = card.pick(
        ("if all gradients are finite;", "else skip, and halve the scale"),
        ("if all gradients\nare finite;", "else skip, and\nhalve the scale"),
    )
    for y, line in zip(card.pick((174, 192), (196, 232)), words):
        card.text(left + w / 2 + card.pick(16, 10), y, line, size=15, anchor="start")


@picture(380, 724, "Two ways to add gradients up: a ring of workers, and servers")
def ring_and_servers(card):
    """A ring: four workers pass pieces of the gradient to their neighbour, first to add them up,
    then to hand the sums round. Servers: every worker pushes a piece of its gradient to each
    server, each server adds its pieces up, and all workers pull the sums."""
    left, right, top = card.pick((28, 454, 0), (43, 14, 348))
    card.bold(left + 182, 52, "all-reduce in a ring (PyTorch)")
    card.bold(right + 211, top + 52, "servers (MXNet)")
    places = (left, 96), (left + 224, 96), (left + 224, 236), (left, 236)
    for i, (x, y) in enumerate(places):
        card.node(x, y, 140, 68, WORKERS[i], f"worker {i}", "adds up a piece")
    card.arrow((left + 140, 130), (left + 224, 130))
    card.arrow((left + 294, 164), (left + 294, 236))
    card.arrow((left + 224, 270), (left + 140, 270))
    card.arrow((left + 70, 236), (left + 70, 164))
    card.text(left + 182, 350, "a piece at a time, to the neighbour", size=15)
    for i in range(4):
        x = right + 108 * i
        for j, far in enumerate((right + 54, right + 270)):
            start, end = (x + 34 + 20 * j, top + 148), (far + 28 + 25 * i, top + 260)
            card.arrow(start, end, colour=WORKERS[i])
        card.box(x, top + 96, 98, 52, WORKERS[i])
        card.bold(x + 49, top + 128, f"worker {i}")
    for j, x in enumerate((right + 54, right + 270)):
        card.node(x, top + 260, 132, 56, GREEN, f"server {j}", "adds up a half")
    card.text(right + 211, top + 350, "push to every server, pull the sums back", size=15)


@picture(444, 868, "Four ways to split a training over two devices")
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
        x, above = card.pick((28 + 215 * column, 0), (18 + 215 * (column % 2), 424 * (column // 2)))
        card.bold(x + 100, above + 46, name)
        for device, (own, y) in enumerate(zip(OWN, (above + 66, above + 244))):
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
        card.arrow((x + 90, above + 202), (x + 90, above + 242), colour=colour)
        card.arrow((x + 110, above + 242), (x + 110, above + 202), colour=colour)
        card.text(x + 100, above + 404, travels, size=15)


@picture(452, 552, "Reading and training: one after the other, and read ahead")
def read_ahead(card):
    """Three pairs of time lines, reader beside device. One after the other: each batch is read,
    then trained, and the device waits during each reading. Read ahead: while a batch is trained the
    next is read, and the device waits for the first batch only. Read ahead, but reading takes
    longer than training: the device waits for every batch."""
    titles = "one after the other", "read ahead", "read ahead, but reading takes longer"
    narrow = "one after\nthe other", "read ahead", "read ahead,\nbut reading\ntakes longer"
    lines, begin, scale, thick, pitch = card.pick(
        ((20, 156, 292), 130, 1, 36, 44), ((34, 174, 314), 112, 0.6, 62, 66)
    )
    for title, line, read, train in zip(
        card.pick(titles, narrow), lines, (70, 70, 105), (105, 105, 70)
    ):
        reader = line + card.pick(32, 0)
        device = reader + pitch
        at, anchor = card.pick(((28, line + 20), "start"), ((line + 64, 34), "middle"))
        card.bold(*at, title, anchor=anchor)
        for lane, name in (reader, "reader"), (device, "device"):
            at, anchor = card.pick(((28, lane + 23), "start"), ((lane + 31, 98), "middle"))
            card.text(*at, name, anchor=anchor)

        def time(start, length, lane, *look):
            card.cell(*card.turn(begin + scale * start, lane, scale * length, thick), *look)

        may_read = free = 0
        for number in "1234":
            there = may_read + read
            time(may_read, read, reader, GREY, f"read {number}", 0.12)
            start = max(there, free)
            if start > free:
                time(free, start - free, device, VERMILLION, "", 0.12)
            time(start, train, device, BLUE, f"train {number}", 0.25)
            free = start + train
            may_read = free if line == lines[0] else start
    card.cell(*card.pick((640, 188), (200, 470)), 35, 36, VERMILLION, "", 0.12)
    card.text(*card.pick((690, 211), (246, 493)), "the device waits", anchor="start")
    card.arrow(*card.pick(((130, 422), (872, 422)), ((20, 112), (20, 534))))
    at, anchor = card.pick(((862, 442), "end"), ((28, 540), "start"))
    card.text(*at, "time", size=15, anchor=anchor, colour=GREY)


@picture(458, 812, "Which store, how many servers, which batch size, which type")
def which_store(card):
    """The store. One process: device. Workers of very different speed: dist_async. If not, and each
    has several GPUs: dist_device_sync. With one device each: dist_sync. The servers: one on each
    host. The batch size: the global batch, divided by the workers; a larger global batch needs
    another learning rate. The type: first float32, then 16 bits."""
    questions = (
        ("more than one process?", "no", "device"),
        ("workers of very different speed?", "yes", "dist_async"),
        ("several GPUs in each worker?", "yes", "dist_device_sync"),
    )
    left, wide, right, store_wide = card.pick((28, 276, 384, 172), (10, 238, 286, 152))
    for i, (question, answer, store) in enumerate(questions):
        y, edge, middle = 40 + 114 * i, left + wide, left + wide / 2
        card.box(left, y, wide, 64, GREY, 0.06)
        card.text(left + card.pick(12, 8), y + 37, question, size=14, anchor="start")
        card.arrow((edge, y + 32), (right, y + 32))
        card.text((edge + right) / 2 + card.pick(8, 0), y + 22, answer, size=15)
        card.box(right, y + 8, store_wide, 48, GREEN)
        card.code(right + store_wide / 2, y + 37, store)
        card.arrow((middle, y + 64), (middle, y + 114))
        card.text(middle + 16, y + 92, "yes" if answer == "no" else "no", size=15, anchor="start")
    card.box(middle - 86, 382, 172, 48, GREEN)
    card.code(middle, 411, "dist_sync")
    card.text(middle + 104, 411, "if in doubt, this one", size=15, anchor="start", colour=GREY)
    choices = (
        ("how many servers?", "one on each host"),
        ("which batch size?", "global batch / workers; a larger\none needs another rate (07)"),
        ("which type?", "float32; once that trains well,\ntry 16 bits (09)"),
    )
    x, top, pitch = card.pick((590, 40, 144), (84, 460, 114))
    for i, (name, words) in enumerate(choices):
        y = top + pitch * i
        card.panel(x, y, 282, 102, BLUE, name)
        card.text(x + 14, y + 58, words, size=14, anchor="start")


@picture(440, 540, "A job started over ssh on two hosts")
def job_over_ssh(card):
    """The launcher logs in to each host by ssh and starts a supervisor there, which starts the
    processes of its host: a server and a worker, on the first host the scheduler too. Workers and
    servers of both hosts exchange gradients and sums by TCP connections of their own."""
    x, y, w, h = card.pick((28, 150, 190, 120), (130, 20, 190, 100))
    card.panel(x, y, w, h, GREY, "where you launch", 0.06)
    card.code(x + 95, y + h / 2 + 2, "launch.py -n 2")
    card.code(x + 95, y + h / 2 + 28, "-H hosts")
    card.text(*card.pick((262, 132), (76, 60)), "ssh", anchor="end")
    left, wide, inside, size = card.pick((330, 542, 140, 124), (36, 406, 118, 104))
    start = card.pick(((218, 210), (274, 210)), ((130, 70), (20, 70)))
    supervisor = left + card.pick(20, 10)
    frame = supervisor + inside + card.pick(50, 20)
    servers, workers = frame + card.pick(16, 8), frame + card.pick(176, 136)
    tops = card.pick((28, 262), (144, 378))
    rows = tops[0] + 90, tops[1] + 18
    for i, (y, row) in enumerate(zip(tops, rows)):
        card.panel(left, y, wide, 150, GREY, f"gpu{i + 1}", 0.06)
        way = *start, (start[1][0], y + 80), (supervisor, y + 80)
        card.arrow(*way, colour=SKY)
        card.node(supervisor, y + 48, inside, 64, SKY, "supervisor", "starts and ends")
        card.arrow((supervisor + inside, y + 80), (frame, y + 80))
        card.box(frame, y + 14, workers + size + servers - 2 * frame, 122, PAPER, 0)
        card.cell(servers, row, size, 40, GREEN, f"server {i}")
        card.cell(workers, row, size, 40, OWN[i], f"worker {i}")
        card.line((servers + size, row + 20), (workers, row + 20))
    card.cell(servers, tops[0] + 30, size, 40, GREY, "scheduler")
    edges = rows[0] + 40, rows[1]
    for ends in ((servers + 78, workers + 46), (workers + 46, servers + 78)):
        card.line(*zip(ends, edges))
    middle = card.pick(530, 140)
    card.text(middle, edges[0] + 58, "TCP, any port:", size=15)
    card.text(middle, edges[0] + 78, "gradients and sums", size=15)


def drawn(width):
    """Yield the name of each picture, and its text on a card of that width."""
    for draw, heights, title in PICTURES:
        card, name = Card(heights[width], width), draw.__name__.replace("_", "-")
        draw(card)
        yield name, card.svg(name, title, " ".join(draw.__doc__.split()))


def main(folder):
    """Write all wide pictures into a folder."""
    for name, text in drawn(WIDE):
        Path(folder, f"{name}.svg").write_bytes(text.encode())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
