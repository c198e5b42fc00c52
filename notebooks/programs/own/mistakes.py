"""The steps of notebook 04 with one mistake put in, to see what it does."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CUT = "start, stop = split_range(len(batch), store.num_workers, store.rank)"
RATE = "        trainer.set_learning_rate(args.lr * 0.7**epoch)\n"
ORDER = "permutation(len(train_set))  # the same on all\n"
SHARE = "    share_weights(trainer)\n"
STEP = "trainer.step(len(batch))"
LOSSES = "losses = [loss(net(a), b) for"
RAISE = """\
        if epoch == 1 and store.rank == 1:
            raise ValueError("a broken image")
"""
KILL = """
            if epoch == 2 and store.rank == 1 and os.environ["LAUNCH_ATTEMPT"] == "1":
                mx.nd.waitall()  # worker 0 has saved epoch 1, and pushed
                os.kill(os.getpid(), 9)"""
STEP_6 = "trainer.step(batch.global_size)"
KILL_WITHIN = KILL.replace("epoch == 2", "epoch == 2 and seen > 200").replace(
    "store.rank", "gd.rank()"
)
CATCH = """\
    try:
        main()
    except Exception:  # at its exit this worker would wait for the others
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
"""
# A delay alone shows this fault too rarely: so the last worker's messages are put in order by hand.
PULL_LATE = """
    late, pushpull = {}, store.pushpull

    def broadcast(key, value, out, priority=0):
        store.init(key, value)
        late[key] = out

    def pushpull_and_then_pull(key, value, out=None, priority=0):
        pushpull(key, value, out, priority)
        if key in late:
            mx.nd.waitall()
            store.pull(key, out=late.pop(key))

    if store.rank == store.num_workers - 1:
        store.broadcast, store.pushpull = broadcast, pushpull_and_then_pull

"""
CHANGES = {
    # Each worker cuts a part of its own into batches.
    "uneven": (
        "step4_right",
        {
            ORDER: f"{ORDER}        order = order[store.rank :: store.num_workers]\n",
            CUT: "start, stop = 0, len(batch)",
        },
    ),
    "usual size": ("step4_right", {STEP: "trainer.step(args.batch_size)"}),
    "mean of means": (
        "step4_right",
        {
            LOSSES: "losses = [loss(net(a), b).mean() for",
            STEP: "trainer.step(len(ctx) * store.num_workers)",
        },
    ),
    "refused": ("step4_right", {", update_on_kvstore=False": ""}),
    "rate": (
        "step3_as_published",
        {RATE: "        trainer.set_learning_rate(args.lr if epoch > 0 else 0)\n"},
    ),
    "stale": (
        "step4_right",
        {
            f"            zero_idle_gradients(net)\n            {STEP}": "            "
            "trainer.step(len(batch), ignore_stale_grad=True)"
        },
    ),
    "overtaken": ("step4_right", {SHARE: PULL_LATE}),
    "raises and waits": ("step4_right", {RATE: RATE + RAISE, CATCH: "    main()\n"}),
    "raises and ends": ("step4_right", {RATE: RATE + RAISE}),
    "killed": ("step5_restartable", {STEP: STEP + KILL}),
    "killed within": (
        "step6_by_the_door",
        {"import argparse\n": "import argparse\nimport os\n", STEP_6: STEP_6 + KILL_WITHIN},
    ),
}


def changed(name):
    """Return the source of a step with a mistake put in, one of ``CHANGES``."""
    step, changes = CHANGES[name]
    source = (FOLDER / f"{step}.py").read_text(encoding="utf-8")
    for old, new in changes.items():
        assert source.count(old) == 1, f"{step}.py has {source.count(old)} times {old!r}"
        source = source.replace(old, new)
    return source
