"""Count the steps to an accuracy on digits, as one to eight workers would take them.

Without BatchNorm, W workers compute the gradient of one worker with W times the batch. So one
process stands for all of them: it shows what is learned, not how fast.
"""

import mxnet as mx

from digits import load_digits
from loader import TrainLoader
from sources.transform import Transform
from training import CrossEntropy, forward_backward

OWN_BATCH, OWN_RATE = 32, 0.05  # of one worker, and a rate that it learns well with
EXAMPLES, TEST_EXAMPLES, MOST_STEPS = 8000, 1000, 400
GREY = Transform(mean=(0.0,), std=(255.0,))
RULES = {"same rate": 0, "square root": 0.5, "linear": 1}  # exponents of the number of workers


class Digits:
    """The digits, and the count of steps on them.

    Attributes
    ----------
    name : str
    """

    def __init__(self):
        digits = load_digits()
        self.name = digits.name
        self._train = digits.train_images[:EXAMPLES, None], digits.train_labels[:EXAMPLES]
        self._images = mx.nd.array(digits.test_images[:TEST_EXAMPLES]) / 255
        self._labels = digits.test_labels[:TEST_EXAMPLES]

    def steps_to(self, target, num_workers, rule, seed, threshold=None):
        """Train two dense layers with plain SGD; return the steps until an accuracy is reached.

        Parameters
        ----------
        target : float
            Accuracy on the test images, which is looked at after each 8 batches of one worker.
        num_workers : int
            1, 2, 4, 8 or more.
        rule : str
            A key of RULES.
        seed : int
        threshold : float, optional
            Send gradients in two bits, with this threshold for sums over the global batch.

        Returns
        -------
        float
            Infinite if MOST_STEPS do not reach it.
        """
        batch_size, lr = OWN_BATCH * num_workers, OWN_RATE * num_workers ** RULES[rule]
        net, loss = _create_net(seed), CrossEntropy()
        loader = TrainLoader(*self._train, batch_size, 1, 0, seed, GREY)
        params = net.collect_params()
        trainer = mx.gluon.Trainer(params, "sgd", {"learning_rate": lr}, kvstore=None)
        send = _create_sender(params, threshold / batch_size) if threshold else None
        steps, epoch, between = 0, 0, max(1, 8 // num_workers)
        while steps < MOST_STEPS:
            for batch in loader.epoch(epoch):
                forward_backward(net, loss, [batch.data], [batch.label], batch.global_size)
                if send:
                    send()
                trainer.step(1)
                steps += 1
                if steps % between == 0 and self._accuracy(net) >= target:
                    return steps
            epoch += 1
        return float("inf")

    def _accuracy(self, net):
        return (net(self._images).asnumpy().argmax(axis=1) == self._labels).mean()


def _create_net(seed):
    mx.random.seed(seed)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Flatten(), mx.gluon.nn.Dense(64, activation="relu", in_units=28 * 28))
    net.add(mx.gluon.nn.Dense(10, in_units=64))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    return net


def _create_sender(params, threshold):
    """Return a function that lets all gradients through in two bits, on a store of this process."""
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": threshold})
    gradients = [param.grad() for param in params.values()]
    for key, gradient in enumerate(gradients):
        store.init(key, gradient)

    def send():
        for key, gradient in enumerate(gradients):
            store.push(key, gradient)
            store.pull(key, out=gradient)

    return send
