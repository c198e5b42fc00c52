/* Push and pull to watch: two workers and two servers, step by step.
   The servers of the first part count and add up by MXNet's rules, so no picture can show a wrong
   sum. The second part draws, on an element with the id push-pull. */

const pushPull = (function () {
  const NUM_WORKERS = 2;

  /* Return what each step of a case shows. An act is
     push worker server value · sum server · update server (dist_async) · pull worker server ·
     does worker words · clock time. A case that breaks the rules is an error. */
  function frames(about) {
    const server = (key) => ({ key, value: about.start, version: 0, got: [] });
    const world = {
      clock: "",
      workers: [0, 1].map(() => ({ does: "", version: 0, pulled: [], stale: [] })),
      servers: about.keys.map(server),
    };
    return about.steps.map(([words, ...acts]) => {
      const arrows = [];
      for (const [act, ...of] of acts) {
        if (act === "push") {
          const [worker, to, value] = of;
          world.servers[to].got.push({ worker, value });
          arrows.push({ worker, server: to, value, isPush: true });
        } else if (act === "sum") {
          const at = world.servers[of[0]];
          if (about.isAsync || at.got.length !== NUM_WORKERS) throw new Error(`no sum: ${words}`);
          const sum = at.got.reduce((all, { value }) => all + value, 0);
          at.version += 1;
          at.value = about.isWeight ? at.version : sum;
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
          world.workers[worker].version = at.version;
          arrows.push({ worker, server: from, value: at.value, isPush: false });
        } else if (act === "does") world.workers[of[0]].does = of[1];
        else if (act === "clock") world.clock = of[0];
        else throw new Error(`${act}: no such act`);
      }
      return { words, arrows, ...JSON.parse(JSON.stringify(world)) };
    });
  }

  const computes = (...workers) => workers.map((w) => ["does", w, "computes"]);
  const waits = (w) => ["does", w, "waits"];
  const has = (...workers) => workers.map((w) => ["does", w, "has the sum"]);

  const CASES = [
    {
      key: "sum", name: "A sum", keys: ["key 0", "key 1"], start: 0,
      steps: [
        ["Two workers compute gradients. Each has two arrays: key 0 lies on server 0, key 1 on server 1.",
          ...computes(0, 1)],
        ["Worker 0 is ready first. It pushes 1 to key 0 and 10 to key 1. Both servers count: one push of two.",
          ["push", 0, 0, 1], ["push", 0, 1, 10], waits(0)],
        ["Worker 0 pulls, and waits: a dist_sync server does not answer before all workers have pushed.",
          waits(0)],
        ["Worker 1 pushes 2 and 20. Now each server has two pushes of two.",
          ["push", 1, 0, 2], ["push", 1, 1, 20], waits(1)],
        ["The servers add up: 3 and 30. A store adds, it does not average.", ["sum", 0], ["sum", 1]],
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
          ["pull", 0, 0], ["pull", 1, 0], ["pull", 0, 1], ["pull", 1, 1], ...has(0, 1)],
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
      key: "many", name: "A push too many", keys: ["key 0", "other keys"], start: 0,
      steps: [
        ["Worker 0 should push 1 in each of three steps, worker 1 should push 2. The right sum is 3.",
          ...computes(0, 1)],
        ["Step 1: both push.", ["push", 0, 0, 1], ["push", 1, 0, 2], waits(0), waits(1)],
        ["The server adds up: 3. Right.", ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ...has(0, 1)],
        ["Now worker 0 pushes 100 by mistake. The server does not know its workers, it counts: one push of two.",
          ["push", 0, 0, 100], waits(0), ...computes(1)],
        ["Worker 1 pushes its 2 of step 2. That makes two.", ["push", 1, 0, 2], waits(1)],
        ["The sum is 102: wrong at once, without an error.",
          ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ...has(0, 1)],
        ["Worker 0 pushes its 1 of step 2, worker 1 its 2 of step 3.",
          ["push", 0, 0, 1], ["push", 1, 0, 2], waits(0), waits(1)],
        ["The sum is 3. It looks right, but mixes the batches of two steps.",
          ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ["does", 0, "has the sum"], ["does", 1, "is done"]],
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
      key: "twice", name: "Two pushes at once", keys: ["key 0", "other keys"], start: 0,
      steps: [
        ["Each worker pushes two arrays to one key, and only then pulls. Worker 0 pushes ones, worker 1 twos, and is quicker.",
          ...computes(0, 1)],
        ["Worker 1 pushes 2. One push of two.", ["push", 1, 0, 2]],
        ["Worker 1 pushes 2 again, without waiting. The server counts two pushes of two, whoever sent them.",
          ["push", 1, 0, 2], waits(1)],
        ["The sum is 4: worker 1 with itself. Worker 1 pulls it.",
          ["sum", 0], ["pull", 1, 0], ["does", 1, "has 4"]],
        ["Worker 0 pushes 1, and 1 again.", ["push", 0, 0, 1], ["push", 0, 0, 1], waits(0)],
        ["The sum is 2. The right sum is 3, and nobody got it. Rule: wait for the answer before you push to the same key again.",
          ["sum", 0], ["pull", 0, 0], ["does", 0, "has 2"]],
      ],
    },
    {
      key: "sync", name: "Slow worker, dist_sync", keys: ["weights", "other keys"], start: 0,
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
          ["sum", 0], ["pull", 0, 0], ["pull", 1, 0], ...computes(0, 1)],
      ],
    },
    {
      key: "async", name: "Slow worker, dist_async", keys: ["weights", "other keys"], start: 0,
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
          ["clock", "4 s"], ["push", 1, 0, "g"]],
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

  return { CASES, frames };
})();

if (typeof module !== "undefined") module.exports = pushPull;

if (typeof document !== "undefined" && document.getElementById("push-pull")) {
  (function (root) {
    const { CASES } = pushPull;
    let [which, at] = [0, 0];

    root.innerHTML = `
      <p class="status" role="status"></p>
      <div class="cases" role="group" aria-label="What to watch">${CASES.map((c, i) =>
        `<button type="button" data-case="${i}">${c.name}</button>`).join(" ")}</div>
      <div class="moves" role="group" aria-label="Steps">
        <button type="button" data-move="-1">◀ Back</button>
        <button type="button" data-move="1">Next ▶</button>
        <button type="button" data-move="0">Restart</button>
        <span class="place"></span></div>
      <p class="words" aria-live="polite"></p>
      <div class="scene"></div>
      <p class="heard"></p>`;
    const one = (selector) => root.querySelector(selector);
    const text = (x, y, words, more) => `<text x="${x}" y="${y}" ${more || ""}>${words}</text>`;
    const middle = 'text-anchor="middle"';

    function workerBox(worker, i, x, y, w, h, isWeight) {
      const computed = isWeight ? `uses version ${worker.version}` : "";
      const idle = worker.does.startsWith("waits") ? "idle" : "";
      return `<rect class="box worker-${i} ${idle}" x="${x}" y="${y}" width="${w}" height="${h}" rx="8"/>` +
        text(x + w / 2, y + 24, `worker ${i}`, `${middle} class="title"`) +
        text(x + w / 2, y + 48, worker.does, middle) + text(x + w / 2, y + 70, computed, middle);
    }

    function serverBox(server, i, x, y, w, h, about) {
      let inner = `<rect class="box ${about.keys[i] === "other keys" ? "idle" : ""}" x="${x}" y="${y}" width="${w}" height="${h}" rx="8"/>` +
        text(x + w / 2, y + 24, `server ${i}`, `${middle} class="title"`) +
        text(x + w / 2, y + 42, server.key, middle);
      if (about.keys[i] === "other keys") return inner;
      const value = about.isWeight ? `version ${server.version}` : server.version ? `keeps ${server.value}` : "no sum yet";
      const slots = about.isAsync ? 1 : 2;
      for (let k = 0; k < slots; k++) {
        const push = server.got[k];
        const left = x + w / 2 + (k - slots / 2) * 46 + 3;
        inner += `<rect class="slot ${push ? `worker-${push.worker}` : ""}" x="${left}" y="${y + 52}" width="40" height="26" rx="4"/>`;
        if (push) inner += text(left + 20, y + 70, push.value, `${middle} class="on"`);
      }
      return inner + text(x + w / 2, y + h - 10, value, `${middle} class="title"`);
    }

    function draw() {
      const about = CASES[which];
      const all = pushPull.frames(about);
      const frame = all[at];
      const width = Math.min(660, Math.max(290, one(".scene").clientWidth));
      const [w, h, gap] = [Math.min(150, width * 0.32), 112, 26];
      const right = width - w - 2;
      let inner = '<defs><marker id="pp-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" ' +
        'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>';
      [0, 1].forEach((i) => {
        const y = 20 + i * (h + gap);
        inner += workerBox(frame.workers[i], i, 2, y, w, h, about.isWeight);
        inner += serverBox(frame.servers[i], i, right, y, w, h, about);
      });
      if (frame.clock) inner += text(width / 2, 14, frame.clock, `${middle} class="title"`);
      const shown = new Set();
      const labels = [];
      for (const arrow of frame.arrows) {
        const name = `${arrow.worker} ${arrow.server} ${arrow.isPush}`;
        const isAgain = shown.has(name); // one arrow for several pushes of a frame
        shown.add(name);
        const lift = (arrow.isPush ? -12 : 12) + (isAgain ? 24 : 0);
        const y1 = 20 + arrow.worker * (h + gap) + h / 2 + lift;
        const y2 = 20 + arrow.server * (h + gap) + h / 2 + lift;
        const [x1, x2] = [w + 6, right - 4];
        const tips = arrow.isPush ? [x1, y1, x2, y2] : [x2, y2, x1, y1];
        inner += `<path class="arrow ${arrow.isPush ? "pushed" : "pulled"}" marker-end="url(#pp-tip)" d="M${tips[0]} ${tips[1]}L${tips[2]} ${tips[3]}"/>`;
        const part = arrow.isPush ? 0.3 : 0.62; // from the worker on: crossing arrows keep labels apart
        const [x, y] = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
        const words = about.isWeight && !arrow.isPush ? `v${arrow.value}` : arrow.value;
        labels.push(`<rect class="label worker-${arrow.worker}" x="${x - 17}" y="${y - 11}" width="34" height="22" rx="11"/>` +
          text(x, y + 4.5, words, `${middle} class="on"`));
      }
      inner += labels.join("");
      const height = 20 + 2 * h + gap + 4;
      one(".scene").innerHTML =
        `<svg width="${width}" height="${height}" role="img" aria-labelledby="pp-title pp-desc">
          <title id="pp-title">${about.name}, step ${at + 1} of ${all.length}</title>
          <desc id="pp-desc">${frame.words}</desc>${inner}</svg>`;
      one(".words").textContent = frame.words;
      one(".place").textContent = `${at + 1} of ${all.length}`;
      const last = frame.workers;
      one(".heard").textContent = about.isAsync
        ? `Staleness of worker 0: ${last[0].stale.join(", ") || "none yet"}; of worker 1: ${last[1].stale.join(", ") || "none yet"}.`
        : about.isWeight
          ? `Updates so far: ${frame.servers[0].version}.`
          : `Worker 0 has pulled: ${last[0].pulled.join(", ") || "nothing yet"}. Worker 1: ${last[1].pulled.join(", ") || "nothing yet"}.`;
      one("[data-move='-1']").disabled = at === 0;
      one("[data-move='1']").disabled = at === all.length - 1;
      for (const button of root.querySelectorAll("[data-case]")) {
        button.setAttribute("aria-pressed", String(Number(button.dataset.case) === which));
      }
    }

    const address = () => `#case=${CASES[which].key}&step=${at + 1}`;

    function open() {
      const words = location.hash.slice(1);
      const found = /^case=([a-z]+)&step=(\d{1,3})$/.exec(words);
      const index = found ? CASES.findIndex((c) => c.key === found[1]) : -1;
      const isRight = index >= 0 && found[2] >= 1 && found[2] <= CASES[index].steps.length;
      [which, at] = isRight ? [index, found[2] - 1] : [0, 0];
      const isDamaged = words.includes("=") && !isRight;
      draw();
      one(".status").textContent = isDamaged ? "This link is damaged. You see the start instead." : "";
    }

    root.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const { case: chosen, move } = button.dataset;
      if (chosen) [which, at] = [Number(chosen), 0];
      else at = Number(move) ? at + Number(move) : 0;
      draw();
      if (button.disabled) one(button.dataset.move === "1" ? "[data-move='0']" : "[data-move='1']").focus();
      one(".status").textContent = "";
      history.replaceState(null, "", address());
    });
    window.addEventListener("hashchange", () => { if (location.hash !== address()) open(); });
    new ResizeObserver(draw).observe(root);
    open();
  })(document.getElementById("push-pull"));
}
