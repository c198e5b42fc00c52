"""Why the right answer of each exercise is right: a sentence that its check says."""

REASONS = {
    "00": (
        "Three workers with 32 images each take 96 a step, and the 11th step has the 40 that are "
        "left.",
        "Worker 3 ended first, by itself, because its disk was full; the launcher then ended the "
        "other workers.",
        "One worker with twice the batch has the same global batch, so it resumes with the same "
        "steps.",
    ),
    "01": (
        "Each step takes the rate of its own moment, and divides the sum of the gradients by its "
        "own number of examples.",
        "Without that wait Python reads during the device's work of 9.4 ms, which is longer than "
        "reading.",
        "Python runs once to record a graph, which holds for every batch size until hybridize() "
        "throws it away.",
    ),
    "02": (
        "Gradients are added up over the pieces and devices, and one step divides by the size of "
        "the whole batch.",
        "Device 2 has no part of that batch: its old gradient is added in again, and its own "
        "update is skipped.",
        "Weights, gradients and the optimizer's state are on every device, and the first one "
        "holds the outputs of the largest part.",
    ),
    "03": (
        "All workers push in every round, and a number beside the gradient counts those that had "
        "one, so all stop together.",
        "At the largest rate the swings neither grow nor shrink: with gradients 4 updates late it "
        "is 0.35, with fresh ones 2.",
        "21 is 1 + 10 + 10: rank 1 pushed twice in step 2, so rank 2 stays one sum behind.",
    ),
    "04": (
        "Each example is seen once, and 1, 2 and 3 workers end with the same parameters.",
        "A and B differ in a number of one worker, C has lost an example, and in D two wait for a "
        "gradient.",
        "An uneven batch and one that leaves a worker without an example are the cases that break "
        "programs.",
    ),
    "05": (
        "Worker 0 waits for all in a call that only it makes, and all the rest wait for its "
        "gradient in the next epoch.",
        "slots= gives four and two workers of two GPUs each, and gpu2 has its own port and user.",
        "The fourth server takes the first place on gpu1 again, so worker 0 starts on gpu2.",
    ),
    "06": (
        "The checkpoint was on the disk, and who wrote it does not matter.",
        "Six epochs were saved, the seventh and 300 steps were not, and a job that was stopped "
        "and has saved ends with 75.",
        "Near √(2CM) saving costs as much as computing again does, so a longer or shorter period "
        "gains little.",
    ),
    "07": (
        "The slowest link that reaches 0.9 is enough, and a smaller batch or a larger network "
        "needs a faster one.",
        "The slow worker waits least; its own waiting is the exchange, which stays when the "
        "next slowest sets the pace.",
        "What was not sent is kept and added to the next gradient, so nothing is lost for ever.",
    ),
    "08": (
        "Each file has its index, so each of the two workers reads its own half of the records.",
        "Reading alone is as slow as the real run, and training alone is faster, so only faster "
        "reading helps.",
        "A thread reads the next batch while this one is trained, and no further, so the order "
        "stays.",
    ),
    "09": (
        "The gradient becomes float32 before it is divided, so what the scale saved is not lost "
        "again.",
        "The scale is halved until scale times gradient is below 65,504, and each new scale takes "
        "effect one step late.",
        "All workers have the same weights and only rank 2's loss is not a number, so what rank 2 "
        "reads is to blame.",
    ),
    "10": (
        "The rate is inside MXNet's velocity, so the velocity is scaled with it.",
        "Batch size counts the four GPUs of a worker, the global batch is the same, and so is the "
        "mean over it.",
        "A agrees until the rate falls, B differs before the first step, and each of C's steps is "
        "twice as large.",
    ),
}
