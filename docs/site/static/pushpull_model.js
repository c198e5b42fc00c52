/* Push and pull to watch: what each step shows, by MXNet's rules. The servers count and add up
   themselves, so no picture can show a sum that they would not make. No page is needed here. */

const pushPull = (function () {
  const NUM_WORKERS = 2;
  const UNUSED = "other keys"; // of a server that a case does not need

  /* Return what each step of a case shows. An act is
     push worker server value · sum server [what is wrong] · update server (dist_async) ·
     pull worker server · does worker words · clock time · ask question choices answer (of the world).
     A case that breaks the rules is an error. */
  function frames(about) {
    const server = (key) => ({ key, value: about.start, version: 0, got: [], sum: "", wrong: "" });
    const world = {
      clock: "",
      workers: [0, 1].map(() => ({ does: "", version: 0, pulled: [], isWrong: [], stale: [], ready: [] })),
      servers: about.keys.map(server),
    };
    const found = about.steps.map(([words, ...acts]) => {
      const arrows = [];
      let ask = null;
      for (const [act, ...of] of acts) {
        if (act === "push") {
          const [worker, to, value] = of;
          world.servers[to].got.push({ worker, value });
          arrows.push({ worker, server: to, value, isPush: true });
        } else if (act === "sum") {
          const [number, wrong] = of;
          const at = world.servers[number];
          if (about.isAsync || at.got.length !== NUM_WORKERS) throw new Error(`no sum: ${words}`);
          const sum = at.got.reduce((all, { value }) => all + value, 0);
          const right = about.right ? about.right[number] : sum;
          at.version += 1;
          at.value = about.isWeight ? at.version : sum;
          at.sum = about.isWeight ? "" : at.got.map(({ value }) => value).join(" + ");
          at.wrong = wrong || (about.isWeight || sum === right ? "" : `should be ${right}`);
          at.got = [];
        } else if (act === "update") {
          const at = world.servers[of[0]];
          if (!about.isAsync || at.got.length !== 1) throw new Error(`no update: ${words}`);
          const { worker } = at.got.pop();
          world.workers[worker].stale.push(at.version - world.workers[worker].version);
          at.version += 1;
          at.value = at.version;
        } else if (act === "pull") {
          const [worker, from] = of;
          const at = world.servers[from];
          if (at.got.some((push) => push.worker === worker)) throw new Error(`no answer: ${words}`);
          world.workers[worker].pulled.push(at.value);
          world.workers[worker].isWrong.push(!!at.wrong);
          world.workers[worker].version = at.version;
          arrows.push({ worker, server: from, value: at.value, isPush: false, isWrong: !!at.wrong });
        } else if (act === "does") world.workers[of[0]].does = of[1];
        else if (act === "clock") world.clock = of[0];
        else if (act === "ask") {
          const [question, choices, answer] = of;
          ask = { question, choices, right: answer(world) };
          if (!choices.includes(ask.right)) throw new Error(`${ask.right} cannot be chosen: ${words}`);
        } else throw new Error(`${act}: no such act`);
      }
      return { words, arrows, ask, ...JSON.parse(JSON.stringify(world)) };
    });
    // What a worker will push next lies ready in its box.
    for (const worker of [0, 1]) {
      let next = [];
      for (const frame of [...found].reverse()) {
        frame.workers[worker].ready = /^(waits|was|is)/.test(frame.workers[worker].does) ? [] : next;
        const pushed = frame.arrows.filter((arrow) => arrow.isPush && arrow.worker === worker);
        if (pushed.length) next = pushed.map((arrow) => arrow.value);
      }
    }
    return found;
  }

  const computes = (...workers) => workers.map((w) => ["does", w, "computes"]);
  const waits = (w) => ["does", w, "waits"];
  const has = (...workers) => workers.map((w) => ["does", w, "has the sum"]);

  const CASES = [
    {
      key: "sum", name: "A sum", keys: ["key 0", "key 1"], start: 0, right: [3, 30],
      steps: [
        ["Two workers compute gradients. Each has two arrays: key 0 lies on server 0, key 1 on server 1.",
          ...computes(0, 1)],
        ["Worker 0 is ready first. It pushes 1 to key 0 and 10 to key 1. Both servers count: one push of two.",
          ["push", 0, 0, 1], ["push", 0, 1, 10], waits(0)],
        ["Worker 0 pulls, and waits: a dist_sync server does not answer before all workers have pushed.",
          waits(0)],
        ["Worker 1 pushes 2 and 20. Now each server has two pushes of two.",
          ["push", 1, 0, 2], ["push", 1, 1, 20], waits(1)],
        ["The servers add up: 3 and 30. A store adds, it does not average.", ["sum", 0], ["sum", 1],
          ["ask", "What will the servers keep?", ["1.5 and 15", "2 and 20", "3 and 30"],
            ({ servers }) => `${servers[0].value} and ${servers[1].value}`]],
        ["Both workers pull the same sums, and make the same update.",
          ["pull", 0, 0], ["pull", 1, 0], ["pull", 0, 1], ["pull", 1, 1], ...has(0, 1)],
      ],
    },
    {
      key: "short", name: "A short batch", keys: ["gradients", "examples"], start: 0,
      steps: [
        ["The last batch: worker 0 has 4 examples left, worker 1 only 2.", ...computes(0, 1)],
        ["Each pushes the sum of its examples' gradients to server 0, and how many there were to server 1. Worker 0: 8 of 4 examples.",
          ["push", 0, 0, 8], ["push", 0, 1, 4], waits(0)],
        ["Worker 1: 10 of 2 examples.", ["push", 1, 0, 10], ["push", 1, 1, 2], waits(1)],
        ["The servers add up: 18 of 6 examples.", ["sum", 0], ["sum", 1]],
        ["Both divide: 18 / 6 = 3, as one worker with all six examples would. The mean of both means, (8/4 + 10/2) / 2 = 3.5, would be wrong.",
          ["ask", "By what must both divide 18?", ["2 workers", "6 examples"],
            ({ servers }) => `${servers[1].value} examples`], ["pull", 0, 0], ["pull", 1, 0], ["pull", 0, 1], ["pull", 1, 1], ...has(0, 1)],
        ["Next step: worker 0 has one more example, worker 1 has none. Worker 0 pushes 5 of 1 example.",
          ["push", 0, 0, 5], ["push", 0, 1, 1], waits(0)],
        ["If worker 1 went home now, worker 0 would wait for ever. So it pushes zeros: 0 of 0 examples.",
          ["push", 1, 0, 0], ["push", 1, 1, 0], waits(1)],
        ["The servers add up: 5 of 1 example.", ["sum", 0], ["sum", 1]],
        ["Both make the update 5 / 1. They still have the same weights.",
          ["pull", 0, 0], ["pull", 1, 0], ["pull", 0, 1], ["pull", 1, 1], ...has(0, 1)],
      ],
    },
    {
      key: "many", name: "A push too many", keys: ["key 0", "other keys"], start: 0, right: [3],
      steps: [
        ["Worker 0 should push 1 in each of three steps, worker 1 should push 2. The right sum is 3.",
          ...computes(0, 1)],
        ["Step 1: both push.", ["push", 0, 0, 1], ["push", 1, 0, 2], waits(0), waits(1)],
        ["The server adds up: 3. Right.", ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ...has(0, 1)],
        ["Now worker 0 pushes 100 by mistake. The server does not know its workers, it counts: one push of two.",
          ["push", 0, 0, 100], waits(0), ...computes(1)],
        ["Worker 1 pushes its 2 of step 2. That makes two.", ["push", 1, 0, 2], waits(1)],
        ["The sum is 102: wrong at once, without an error.",
          ["sum", 0], ["ask", "What will the server keep?", ["3", "102"], ({ servers }) => `${servers[0].value}`],
          ["pull", 0, 0], ["pull", 1, 0], ...has(0, 1)],
        ["Worker 0 pushes its 1 of step 2, worker 1 its 2 of step 3.",
          ["push", 0, 0, 1], ["push", 1, 0, 2], waits(0), waits(1)],
        ["The sum is 3. It looks right, but mixes the batches of two steps.",
          ["sum", 0, "mixed steps"], ["pull", 0, 0], ["pull", 1, 0], ["does", 0, "has the sum"], ["does", 1, "is done"]],
        ["Worker 0 pushes its 1 of step 3. Worker 1 has made its three pushes.",
          ["push", 0, 0, 1], waits(0)],
        ["Worker 0 waits for ever: a wait at the end, far from the mistake.", ["does", 0, "waits for ever"]],
        ["Only one push more would end it. In notebook 03 worker 1 pushes a zero after two seconds.",
          ["push", 1, 0, 0], waits(1)],
        ["The sum is 1. Rule: all workers make the same number of pushes.",
          ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ["does", 0, "is done"], ["does", 1, "is done"]],
      ],
    },
    {
      key: "twice", name: "Two pushes at once", keys: ["key 0", "other keys"], start: 0, right: [3],
      steps: [
        ["Each worker pushes two arrays to one key, and only then pulls. Worker 0 pushes ones, worker 1 twos, and is quicker.",
          ...computes(0, 1)],
        ["Worker 1 pushes 2. One push of two.", ["push", 1, 0, 2]],
        ["Worker 1 pushes 2 again, without waiting. The server counts two pushes of two, whoever sent them.",
          ["push", 1, 0, 2], waits(1)],
        ["The sum is 4: worker 1 with itself. Worker 1 pulls it.",
          ["sum", 0], ["ask", "What will the server keep?", ["2", "3", "4"], ({ servers }) => `${servers[0].value}`],
          ["pull", 1, 0], ["does", 1, "has 4"]],
        ["Worker 0 pushes 1, and 1 again.", ["push", 0, 0, 1], ["push", 0, 0, 1], waits(0)],
        ["The sum is 2. The right sum is 3, and nobody got it. Rule: wait for the answer before you push to the same key again.",
          ["sum", 0], ["pull", 0, 0], ["does", 0, "has 2"]],
      ],
    },
    {
      key: "sync", name: "Slow worker, dist_sync", tab: "dist_sync", keys: ["weights", "other keys"], start: 0,
      isWeight: true,
      steps: [
        ["The server keeps weights, of version 0. Both workers compute with them. Worker 0 needs 1 second for a gradient, worker 1 needs 4.",
          ["clock", "0 s"], ...computes(0, 1)],
        ["Worker 0 pushes its gradient, and waits.", ["clock", "1 s"], ["push", 0, 0, "g"], waits(0)],
        ["Worker 0 still waits. Its processors do nothing.", ["clock", "3 s"]],
        ["Worker 1 pushes. All gradients are there.", ["clock", "4 s"], ["push", 1, 0, "g"], waits(1)],
        ["The server makes one update of both: version 1. Both pull it.",
          ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ...computes(0, 1)],
        ["Worker 0 pushes again, and waits again.", ["clock", "5 s"], ["push", 0, 0, "g"], waits(0)],
        ["Worker 1 pushes.", ["clock", "8 s"], ["push", 1, 0, "g"], waits(1)],
        ["Version 2 after 8 seconds: the slowest sets the pace. Every gradient was computed with the newest weights: staleness 0.",
          ["sum", 0], ["ask", "Which version will it be, after 8 seconds?", ["2", "5", "10"],
            ({ servers }) => `${servers[0].version}`],
          ["pull", 0, 0], ["pull", 1, 0], ...computes(0, 1)],
      ],
    },
    {
      key: "async", name: "Slow worker, dist_async", tab: "dist_async", keys: ["weights", "other keys"], start: 0,
      isWeight: true, isAsync: true,
      steps: [
        ["The same workers: 1 and 4 seconds for a gradient. Both begin with version 0. In dist_async each push is an update at once.",
          ["clock", "0 s"], ...computes(0, 1)],
        ["Worker 0 pushes. The server makes version 1 of it, waits for nobody, and worker 0 pulls.",
          ["clock", "1 s"], ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Again: version 2. Worker 1 still computes with version 0.",
          ["clock", "2 s"], ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Again: version 3.", ["clock", "3 s"], ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Worker 1 pushes. Its gradient is of version 0, the weights are of version 3. Three updates by others came between: staleness 3.",
          ["clock", "4 s"], ["push", 1, 0, "g"],
          ["ask", "Worker 1 pushes now. How many versions too old is its gradient?", ["0", "1", "3"],
            ({ servers, workers }) => `${servers[0].version - workers[1].version}`]],
        ["The server uses it all the same: version 4. Worker 1 pulls that.",
          ["update", 0], ["pull", 1, 0]],
        ["Just after it worker 0 pushes a gradient of version 3: staleness 1, and version 5.",
          ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Worker 0 goes on, without waiting: version 6.",
          ["clock", "5 s"], ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Version 7.", ["clock", "6 s"], ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Version 8.", ["clock", "7 s"], ["push", 0, 0, "g"], ["update", 0], ["pull", 0, 0]],
        ["Worker 1 pushes a gradient of version 4 to weights of version 8: staleness 4, as from now on each time.",
          ["clock", "8 s"], ["push", 1, 0, "g"], ["update", 0], ["pull", 1, 0]],
        ["Version 9 after 8 seconds, where dist_sync had 2. More updates, but some are late: lower the momentum and the learning rate.",
          ...computes(0, 1)],
      ],
    },
  ];

  // ---- dist_sync and dist_async on one clock ----

  const [SYNC, ASYNC] = ["sync", "async"].map((key) => CASES.find((c) => c.key === key));
  const END_S = 8;

  /* Return what happens in a case with a clock: each worker's spans, and when each version came. */
  function strip(about) {
    const all = frames(about);
    const spans = [];
    const updates = [];
    const isNew = [false, false]; // after a push, the next gradient begins
    all.forEach((frame, i) => {
      const from = parseFloat(frame.clock);
      const to = i + 1 < all.length ? parseFloat(all[i + 1].clock) : END_S;
      const before = i ? all[i - 1].servers[0].version : 0;
      for (let v = before + 1; v <= frame.servers[0].version; v++) updates.push({ at: from, version: v });
      const pushed = frame.arrows.filter((arrow) => arrow.isPush).map((arrow) => arrow.worker);
      pushed.forEach((worker) => { isNew[worker] = true; });
      if (to > from) frame.workers.forEach(({ does }, worker) => {
        const last = spans.filter((span) => span.worker === worker).pop();
        if (last && last.does === does && !isNew[worker]) last.to = to;
        else spans.push({ worker, does, from, to });
        isNew[worker] = false;
      });
    });
    return { spans, updates };
  }

  const updatesUntil = (about, seconds) => strip(about).updates.filter(({ at }) => at <= seconds).length;

  const STALE = frames(ASYNC).pop().workers[1].stale.join(" and ");
  const plural = (n) => `${n} update${n === 1 ? "" : "s"}`;
  const BOTH = {
    key: "both", name: "Both on one clock", tab: "both on one clock", keys: ["weights", UNUSED], start: 0, isBoth: true,
    steps: [...Array(END_S + 1).keys()].map((s) => {
      if (!s) return ["The same two workers, with dist_sync above and dist_async below. Worker 0 needs 1 second for a gradient, worker 1 needs 4."];
      let words = `After ${s} s: ${plural(updatesUntil(SYNC, s))} with dist_sync, ${updatesUntil(ASYNC, s)} with dist_async.`;
      if (s === 2) words += " Above, worker 0 waits for worker 1. Below, nobody waits.";
      if (s === END_S) words += ` But worker 1's gradients were stale, by ${STALE} versions.`;
      return [words, ["clock", `${s} s`]];
    }),
  };
  CASES.push(BOTH);

  // ---- Break it ----

  const FAULTS = [
    { key: "kill", name: "Kill worker 1", does: "was killed" },
    { key: "slow", name: "Slow worker 1", does: "computes slowly" },
    { key: "cable", name: "Unplug worker 1", does: "is cut off" },
  ];
  const SLOWER = 4; // times as long: meanwhile, worker 0 of dist_async makes one push less

  /* Return the case with a fault after a step (counted from 0): what happens from there on. */
  function broken(about, at, key) {
    const fault = FAULTS.find((f) => f.key === key);
    const start = frames(about)[at];
    const used = [0, 1].filter((k) => about.keys[k] !== UNUSED);
    const got = start.servers.map((s) => s.got.map((push) => push.worker));
    const isDone = start.workers[0].does === "is done";
    const isSlow = key === "slow";

    /* The value that a worker would push next, or pushed last. */
    function valueOf(worker, server) {
      const acts = about.steps.map(([, ...of]) => of);
      const mine = ([act, w, s]) => act === "push" && w === worker && s === server;
      const after = acts.slice(at + 1).flat().find(mine);
      return (after || acts.flat().filter(mine).pop())[3];
    }

    /* Let a worker push to each server, and let a server that then has two pushes add up. */
    function push(worker) {
      const acts = [];
      for (const k of used) {
        acts.push(["push", worker, k, valueOf(worker, k)]);
        if (about.isAsync) acts.push(["update", k], ["pull", worker, k]);
        else got[k].push(worker);
      }
      return acts.concat(sums());
    }

    function sums() {
      const acts = [];
      for (const k of used.filter((k) => got[k].length === NUM_WORKERS)) {
        acts.push(["sum", k]);
        for (const w of isSlow ? new Set(got[k]) : [0]) acts.push(["pull", w, k]);
        got[k] = [];
      }
      return acts;
    }

    const first = {
      kill: "Worker 1 is killed, as when memory runs out.",
      slow: `Worker 1 gets slow: it now needs ${SLOWER} times as long for a gradient.`,
      cable: "Somebody pulls the cable of worker 1's host. No connection is closed.",
    }[key];
    const counted = used.some((k) => got[k].includes(1)) ? " Its push has arrived, and still counts." : "";
    const steps = [[first + (isSlow ? "" : counted), ["does", 1, fault.does], ["clock", ""]]];
    const noError = key === "kill" ? "MXNet reports no error." : "Nobody gets an error, for nobody hung up.";
    if (isDone) {
      steps.push(["Worker 0 has made all its pushes. A training would meet worker 1 at the next barrier, and wait there."]);
    } else if (about.isAsync) {
      if (used.some((k) => got[k].length)) steps.push(["The server makes its update of the push that it has.",
        ...used.flatMap((k) => got[k].map((w) => [["update", k], ...(w && !isSlow ? [] : [["pull", w, k]])]).flat())]);
      if (isSlow) {
        for (let i = 1; i < SLOWER; i++) steps.push([`Worker 0 waits for nobody: update ${i} meanwhile.`, ...push(0)]);
        steps.push(["Worker 1 pushes at last. Its gradient is of old weights: see the staleness below.", ...push(1)]);
      } else {
        steps.push(["Worker 0 goes on alone. Each of its pushes is an update.", ...push(0)]);
        steps.push([`At the end of the epoch worker 0 waits at a barrier, where all workers meet: for ever. ${noError}`,
          ["does", 0, "waits for ever"]]);
      }
    } else {
      const ready = sums();
      if (ready.length) steps.push(["The server had both pushes, and adds them up.", ...ready, ["does", 0, "has the sum"]]);
      if (used.every((k) => got[k].length && !got[k].includes(0))) {
        steps.push(["Worker 0 pushes. With the push that had arrived that makes two, so there is a sum.",
          ...push(0), ["does", 0, "has the sum"]]);
      }
      const isWaiting = used.every((k) => got[k].includes(0));
      const end = isSlow ? "waits" : "waits for ever";
      const words = isWaiting ? "Worker 0 has pushed" : "Worker 0 pushes";
      const why = isSlow ? "and waits for worker 1, as in every step from now on." : `and waits for ever: the server counts one push of two. ${noError}`;
      steps.push([`${words}, ${why}`, ...(isWaiting ? [] : push(0)), ["does", 0, end]]);
      if (isSlow) steps.push(["Worker 1 pushes at last. The sum comes late: the slowest worker sets the pace for all.",
        ...push(1), ["does", 0, "has the sum"]]);
    }
    return { ...about, steps: [...about.steps.slice(0, at + 1), ...steps] };
  }

  return { CASES, FAULTS, frames, broken, strip, updatesUntil, END_S, UNUSED };
})();
