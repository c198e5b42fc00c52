/* Push and pull to watch: the pictures, the buttons and the keys. Needs pushpull_model.js and
   pushpull_data.js before it, and an element with the id push-pull. */

(function () {
  const root = document.getElementById("push-pull");
  if (!root) return;
  const { CASES, FAULTS, END_S, UNUSED } = pushPull;
  const TRAVEL_MS = 400;
  const isStill = window.matchMedia("(prefers-reduced-motion: reduce)");

  // ---- The state, and the address that holds it ----

  let [which, at] = [0, 0];
  let fault = null; // what broke, and after which step
  let verdict = "";

  const shown = () => (fault ? pushPull.broken(CASES[which], fault.from, fault.key) : CASES[which]);

  function address() {
    return `#case=${CASES[which].key}&step=${at + 1}${fault ? `&break=${fault.key}:${fault.from + 1}` : ""}`;
  }

  /* Take the state from the address; return whether it is right. */
  function read() {
    [which, at, fault, verdict] = [0, 0, null, ""];
    const words = location.hash.slice(1);
    if (!words.includes("=")) return true;
    const found = /^case=([a-z]+)&step=(\d{1,3})(?:&break=([a-z]+):(\d{1,3}))?$/.exec(words);
    const index = found ? CASES.findIndex((c) => c.key === found[1]) : -1;
    if (index < 0) return false;
    const [, , step, key, from] = found;
    if (key) {
      const isThere = FAULTS.some((f) => f.key === key) && from >= 1 && from <= CASES[index].steps.length;
      if (!isThere || CASES[index].isBoth) return false;
    }
    which = index;
    fault = key ? { key, from: from - 1 } : null;
    if (step >= 1 && step <= shown().steps.length) {
      at = step - 1;
      return true;
    }
    [which, fault] = [0, null];
    return false;
  }

  // ---- Controls ----

  /* Return tabs for some of the cases. */
  function tabs(label, isIn) {
    const found = CASES.map((c, i) => (isIn(c)
      ? `<button type="button" role="tab" id="pp-tab-${i}" aria-controls="pp-panel" data-case="${i}">${c.tab || c.name}</button>` : ""));
    return `<div class="cases"><b>${label}</b> <div role="tablist" aria-label="${label}">${found.join("")}</div></div>`;
  }

  const key = (name, words) => `<span><svg width="46" height="20" aria-hidden="true"><path class="arrow ${name}" d="M2 10H44"/>` +
    `<rect class="pill ${name}" x="14" y="3" width="18" height="14" rx="${name === "pulled" ? 3 : 7}"/></svg> ${words}</span>`;

  root.innerHTML = `
    <p class="status" role="status"></p>
    <label class="pick"><b>What to watch</b> <select data-pick>${["Pushes and sums", "A slow worker"].map((label, i) =>
      `<optgroup label="${label}">${CASES.map((c, j) => (!!c.tab === !!i ? `<option value="${j}">${c.name}</option>` : "")).join("")}</optgroup>`).join("")}</select></label>
    ${tabs("Pushes and sums", (c) => !c.tab)} ${tabs("A slow worker", (c) => c.tab)}
    <div id="pp-panel" role="tabpanel">
    <div class="moves" role="group" aria-label="Steps">
      <button type="button" data-move="-1">◀ Back</button>
      <button type="button" data-move="1">Next ▶</button>
      <button type="button" data-play></button>
      <button type="button" data-move="0">Restart</button>
      <span class="place"></span></div>
    <div class="break" role="group" aria-label="Break it"><b>Break it:</b>
      ${FAULTS.map((f) => `<button type="button" data-break="${f.key}">${f.name}</button>`).join(" ")}</div>
    <div class="said"><p class="verdict" role="status"></p>
      <p class="words" aria-live="polite"></p></div>
    <div class="scene"></div>
    <p class="line"></p>
    <p class="legend">${key("worker-0", "push of worker 0")} ${key("worker-1", "push of worker 1")} ${key("pulled", "pull")}</p>
    <div class="ask" role="group" aria-label="Guess first"></div>
    <p class="heard"></p>
    <div class="outputs"></div>
    <p class="reading"></p></div>`;
  const one = (selector) => root.querySelector(selector);
  const text = (x, y, words, more) => `<text x="${x}" y="${y}" ${more || ""}>${words}</text>`;
  const middle = 'text-anchor="middle"';

  // ---- The picture of a step ----

  /* A value: round on its way to a server, square on its way back. */
  const pill = (x, y, words, name, more) => {
    const width = 20 + 11 * String(words).length;
    const isPull = name.includes("pulled");
    return `<g ${more || ""}><rect class="pill ${name}" x="${x - width / 2}" y="${y - 14}" width="${width}" height="28" rx="${isPull ? 3 : 14}"/>` +
      `${text(x, y + 6, words, `${middle} class="value ${isPull ? "" : `on-${name}`}"`)}</g>`;
  };

  function workerBox(worker, i, x, y, w, h, about) {
    const isBroken = /^(was killed|is cut off)/.test(worker.does);
    const name = isBroken ? "broken" : worker.does.startsWith("waits") ? "idle" : "";
    let inner = `<rect class="box worker-${i} ${name}" x="${x}" y="${y}" width="${w}" height="${h}" rx="8"/>` +
      text(x + w / 2, y + 24, `${isBroken ? "✗ " : ""}worker ${i}`, `${middle} class="title ${name}"`) +
      text(x + w / 2, y + 45, worker.does, middle);
    if (about.isWeight) inner += text(x + w / 2, y + 68, `uses version ${worker.version}`, middle);
    const { ready } = worker;
    ready.forEach((value, k) => {
      inner += pill(x + w / 2 + (k - (ready.length - 1) / 2) * 52, y + h - 24, value, `worker-${i}`);
    });
    return inner;
  }

  function serverBox(server, i, x, y, w, h, about, fresh) {
    const isIdle = about.keys[i] === UNUSED;
    const name = isIdle ? "idle" : server.wrong ? "wrong" : "server";
    let inner = `<rect class="box ${name}" x="${x}" y="${y}" width="${w}" height="${h}" rx="8"/>` +
      text(x + w / 2, y + 24, `server ${i}`, `${middle} class="title"`) +
      text(x + w / 2, y + 43, server.key, middle);
    if (isIdle) return inner;
    const slots = about.isAsync ? 1 : 2;
    const isAdded = server.sum && !server.got.length;
    if (isAdded) inner += text(x + w / 2, y + 71, `${server.sum} = ${server.value}`, middle);
    for (let k = isAdded ? slots : 0; k < slots; k++) {
      const push = server.got[k];
      const left = x + w / 2 + (k - slots / 2) * 56 + 3;
      inner += `<rect class="slot" x="${left}" y="${y + 51}" width="50" height="28" rx="14"/>`;
      if (push) {
        const isFresh = k >= server.got.length - fresh;
        inner += `<g ${isFresh ? "data-late" : ""}><rect class="pill worker-${push.worker}" x="${left}" y="${y + 51}" width="50" height="28" rx="14"/>` +
          `${text(left + 25, y + 71, push.value, `${middle} class="value on-worker-${push.worker}"`)}</g>`;
      }
    }
    const large = (word, value) => `${word} <tspan class="value">${value}</tspan>`;
    const keeps = about.isWeight ? large("version", server.version) : server.version ? large("keeps", server.value) : "no sum yet";
    inner += text(x + w / 2, y + 104, keeps, middle);
    return inner + (server.wrong ? text(x + w / 2, y + 126, `✗ ${server.wrong}`, `${middle} class="title wrong"`) : "");
  }

  function drawBoxes(about, frame, width) {
    const [w, h, gap] = [Math.min(190, width * 0.36), 136, 20];
    const right = width - w - 2;
    const top = frame.clock ? 20 : 4;
    const tip = (name, shape) => `<marker id="pp-${name}" viewBox="-1 -1 10 10" refX="7" refY="4" markerWidth="14" ` +
      `markerHeight="14" markerUnits="userSpaceOnUse" orient="auto"><path d="${shape}" class="tip ${name}"/></marker>`;
    const [full, open] = ["M0 0L8 4L0 8z", "M1 0L8 4L1 8"];
    let inner = `<defs>${tip("worker-0", full)}${tip("worker-1", full)}${tip("pulled", open)}</defs>`;
    [0, 1].forEach((i) => {
      const y = top + i * (h + gap);
      const fresh = frame.arrows.filter((arrow) => arrow.isPush && arrow.server === i).length;
      inner += workerBox(frame.workers[i], i, 2, y, w, h, about);
      inner += serverBox(frame.servers[i], i, right, y, w, h, about, fresh);
    });
    if (frame.clock) inner += text(width / 2, 14, frame.clock, `${middle} class="title"`);
    for (const [worker, server] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
      if (about.keys[server] === UNUSED) continue;
      const y = [worker, server].map((i) => top + i * (h + gap) + h / 2);
      inner += `<path class="way" d="M${w + 4} ${y[0]}L${right - 2} ${y[1]}"/>`;
    }
    const drawn = new Set();
    const hasPush = frame.arrows.some((arrow) => arrow.isPush);
    const pills = [];
    for (const arrow of frame.arrows) {
      const name = `${arrow.worker} ${arrow.server} ${arrow.isPush}`;
      const isAgain = drawn.has(name); // one arrow for several pushes of a frame
      drawn.add(name);
      const lift = (arrow.isPush ? -16 : 16) + (isAgain ? 32 : 0);
      const y1 = top + arrow.worker * (h + gap) + h / 2 + lift;
      const y2 = top + arrow.server * (h + gap) + h / 2 + lift;
      const [x1, x2] = [w + 6, right - 4];
      const [from, to] = arrow.isPush ? [[x1, y1], [x2, y2]] : [[x2, y2], [x1, y1]];
      const kind = arrow.isPush ? `worker-${arrow.worker}` : "pulled";
      inner += `<path class="arrow ${kind}" marker-end="url(#pp-${kind})" d="M${from}L${to}"/>`;
      const part = arrow.isWrong ? 0.5 : 0.66; // of the way: crossing arrows keep their pills apart
      const [x, y] = [0, 1].map((i) => from[i] + (to[i] - from[i]) * part);
      const words = about.isWeight && !arrow.isPush ? `v${arrow.value}` : `${arrow.isWrong ? "✗ " : ""}${arrow.value}`;
      const way = `data-dx="${from[0] - x}" data-dy="${from[1] - y}" data-after="${!arrow.isPush && hasPush ? TRAVEL_MS : 0}"`;
      pills.push(pill(x, y, words, arrow.isWrong ? "pulled wrong" : kind, way));
    }
    return [top + 2 * h + gap + 4, inner + pills.join("")];
  }

  /* Let each value travel along its arrow; what a server gets is there when it arrives. */
  function travel() {
    if (isStill.matches) return;
    for (const part of root.querySelectorAll("[data-dx]")) {
      const { dx, dy, after } = part.dataset;
      part.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }],
        { duration: TRAVEL_MS, delay: Number(after), fill: "backwards", easing: "ease-in-out" });
      if (Number(after)) part.animate([{ opacity: 0 }, { opacity: 0 }], { duration: TRAVEL_MS });
    }
    for (const part of root.querySelectorAll("[data-late]")) {
      part.animate([{ opacity: 0 }, { opacity: 0 }], { duration: TRAVEL_MS });
    }
  }

  // ---- The picture of both ----

  function drawStrips(seconds, width) {
    const left = 66;
    const height = 272;
    const x = (s) => left + ((width - left - 16) * s) / END_S;
    let [below, above] = ["", ""]; // what the future covers, and what not
    ["sync", "async"].forEach((key, i) => {
      const about = CASES.find((c) => c.key === key);
      const top = i * 128;
      const { spans, updates } = pushPull.strip(about);
      const number = pushPull.updatesUntil(about, seconds);
      above += text(left, top + 14, `dist_${key}`, 'class="title"') +
        text(x(END_S) - 6, top + 14, `updates: ${number}`, 'class="title" text-anchor="end"');
      [0, 1].forEach((w) => { above += text(left - 6, top + 36 + w * 26, `worker ${w}`, 'text-anchor="end"'); });
      above += text(left - 6, top + 89, "server", 'text-anchor="end"');
      for (const { worker, does, from, to } of spans) {
        const isWaiting = does.startsWith("waits");
        const [start, room, y] = [x(from) + 1, x(to) - x(from) - 2, top + 21 + worker * 26];
        below += `<rect class="${isWaiting ? "box idle" : `pill worker-${worker}`}" x="${start}" y="${y}" width="${room}" height="22" rx="3"/>`;
        if (isWaiting) below += text(start + 6, y + 15, "waits");
      }
      below += `<path class="track" d="M${left} ${top + 84}H${x(END_S)}"/>`;
      for (const { at: when, version } of updates.filter((update) => update.at <= seconds)) {
        const same = updates.filter((update) => update.at === when);
        const place = same.findIndex((update) => update.version === version);
        const cx = x(when) + (place - (same.length - 1) / 2) * 19;
        above += `<g ${when === seconds ? "data-late" : ""}><circle class="update" cx="${cx}" cy="${top + 84}" r="9.5"/>` +
          `${text(cx, top + 88.5, version, `${middle} class="on-server"`)}</g>`;
      }
    });
    let grid = "";
    for (let s = 0; s <= END_S; s += 2) {
      grid += `<line class="grid" x1="${x(s)}" y1="18" x2="${x(s)}" y2="${height - 20}"/>`;
      above += text(Math.min(x(s), width - 12), height - 4, `${s} s`, middle);
    }
    const cover = `<g class="cover" data-x="${x(seconds)}"><rect x="${x(seconds)}" y="0" width="${width}" height="${height - 18}"/>` +
      `<path class="cursor" d="M${x(seconds)} 18V96M${x(seconds)} 146V224"/></g>`;
    return [height, below + cover + grid + above];
  }

  let coveredFrom = null;
  function uncover(isMoving) {
    const cover = one(".cover");
    const now = cover ? Number(cover.dataset.x) : null;
    if (cover && isMoving && coveredFrom !== null && !isStill.matches) {
      cover.animate([{ transform: `translateX(${coveredFrom - now}px)` }, { transform: "none" }], TRAVEL_MS);
    }
    coveredFrom = now;
  }

  // ---- Words ----

  const yes = (right) => `✓ Yes: ${right}.`;
  const no = (answer, right) => `✗ Not ${answer}: it is ${right}.`;

  /* Give the sentences of a case the room of the longest: then no step moves the picture. */
  let roomFor = "";
  function makeRoom() {
    const of = `${which} ${root.clientWidth}`;
    if (of === roomFor) return;
    roomFor = of;
    const box = one(".said").cloneNode(true);
    box.className = "said gauge";
    box.style.minHeight = "";
    one(".said").after(box);
    const [said, words] = box.children;
    const about = CASES[which];
    const cases = about.isBoth ? [about] : [about, ...about.steps.flatMap((_, i) =>
      FAULTS.map((f) => pushPull.broken(about, i, f.key)))];
    const longest = (ask) => (ask ? ask.choices.map((c) => no(c, ask.right)).sort((a, b) => b.length - a.length)[0] : "");
    const sentences = new Map(cases.flatMap(pushPull.frames).map((frame) => [frame.words, longest(frame.ask)]));
    const heights = [...sentences].map((pair) => {
      [words.textContent, said.textContent] = pair;
      return box.offsetHeight;
    });
    box.remove();
    one(".said").style.minHeight = `${Math.max(...heights) + 1}px`;
  }

  const list = (worker) => worker.pulled.map((value, i) => (worker.isWrong[i] ? `✗ ${value}` : value)).join(", ");

  function heardOf(about, { workers, servers }) {
    if (about.isBoth) return "";
    if (about.isAsync) {
      const stale = workers.map(({ stale }) => stale.join(", ") || "none yet");
      return `Updates so far: ${servers[0].version}. Staleness of worker 0: ${stale[0]}; of worker 1: ${stale[1]}.`;
    }
    if (about.isWeight) return `Updates so far: ${servers[0].version}.`;
    return `Worker 0 has pulled: ${list(workers[0]) || "nothing yet"}. Worker 1: ${list(workers[1]) || "nothing yet"}.`;
  }

  const READING = "A push is a full line in the worker's colour, with a round value. A pull is a dashed line, with a square " +
    "value. A server's two fields fill with the pushes that it has counted. What a worker has computed and not yet " +
    "pushed lies in its box. A dashed worker waits. ✗ marks a sum that is not the right one, and a worker that is gone.";
  const READING_BOTH = "A full bar is a gradient that a worker computes. A dashed bar is a worker that waits. A circle is " +
    "an update, with its number.";

  const NOTES = {
    kill: "MXNet can neither take a worker out of a running job nor add one. So the launcher names the cause and ends the job. <code>--max-restarts</code> starts all of it again, from the newest checkpoint.",
    slow: "A slow worker is no error: nobody says a word. One that stands still is found by <code>--stall-timeout</code>, which ends a silent job and prints where each process is. Here are three workers. Worker 1 is in another call than the others: it waits for its disk.",
    cable: "The launcher counts a host as lost when it was silent for ten seconds, and ends the job. <code>--max-restarts</code> starts it again, when the host is back.",
  };

  /* What names the fault, at once, below the picture. */
  const NAMES_IT = /\[launch\] .*: (was killed|not heard of)/;

  const safe = (words) => words.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  function showOutputs(about) {
    one(".line").innerHTML = one(".outputs").innerHTML = "";
    if (!fault) return;
    const named = pushPullData[fault.key].flatMap(({ lines }) => lines).find((line) => NAMES_IT.test(line));
    if (named) one(".line").innerHTML = `<code>${safe(named)}</code>`;
    const alone = fault.key === "kill" ? [pushPullData.alone[about.isAsync ? "async" : "sync"]] : [];
    one(".outputs").innerHTML = `<p>${NOTES[fault.key]}</p>` +
      alone.concat(pushPullData[fault.key]).map(({ words, lines, notebook }) =>
        `<figure><figcaption><b>${words}</b>, as <a href="notebooks/${notebook}.html">notebook ${notebook.slice(0, 2)}</a> ran it:</figcaption>
        <pre tabindex="0" aria-label="Output: ${words}">${lines.map(safe).join("\n")}</pre></figure>`).join("");
  }

  function draw(isMoving) {
    const about = shown();
    const all = pushPull.frames(about);
    const frame = all[at];
    if (fault && at > fault.from) { // what went wrong earlier is not what broke
      frame.servers.forEach((server, i) => {
        if (server.version === all[fault.from].servers[i].version) server.wrong = "";
      });
    }
    const width = Math.min(720, Math.max(290, one(".scene").clientWidth));
    makeRoom();
    const [height, inner] = about.isBoth ? drawStrips(at, width) : drawBoxes(about, frame, width);
    one(".scene").innerHTML =
      `<svg width="${width}" height="${height}" role="img" aria-labelledby="pp-title pp-desc">
        <title id="pp-title">${about.name}, step ${at + 1} of ${all.length}</title>
        <desc id="pp-desc">${frame.words}</desc>${inner}</svg>`;
    uncover(isMoving);
    if (isMoving) travel();
    one(".words").textContent = frame.words;
    one(".verdict").textContent = verdict;
    one(".place").textContent = `${at + 1} of ${all.length}`;
    one(".heard").textContent = heardOf(about, frame);
    one(".reading").textContent = about.isBoth ? READING_BOTH : READING;
    const next = all[at + 1];
    one(".ask").innerHTML = next && next.ask
      ? `<b>${next.ask.question}</b> ${next.ask.choices.map((c) => `<button type="button" data-answer="${c}">${c}</button>`).join(" ")}` : "";
    one("[data-move='-1']").disabled = at === 0;
    one("[data-move='1']").disabled = at === all.length - 1;
    one("[data-pick]").value = which;
    one("[data-play]").textContent = timer ? "❚❚ Pause" : "▶ Play";
    one(".break").hidden = !!about.isBoth;
    for (const tab of root.querySelectorAll("[data-case]")) {
      const isChosen = Number(tab.dataset.case) === which;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen || !tab.parentNode.contains(one(`[data-case="${which}"]`)) ? 0 : -1;
      if (isChosen) one("#pp-panel").setAttribute("aria-labelledby", tab.id);
    }
    one(".legend").hidden = !!about.isBoth;
    for (const button of root.querySelectorAll("[data-break]")) {
      button.setAttribute("aria-pressed", String(!!fault && fault.key === button.dataset.break));
    }
    showOutputs(about);
  }

  // ---- What the reader does ----

  /* Go to a step; the next one comes with its values travelling. */
  function go(to, said) {
    const end = shown().steps.length - 1;
    const isMoving = to === at + 1;
    at = Math.min(end, Math.max(0, to));
    verdict = said || "";
    draw(isMoving);
    one(".status").textContent = "";
    history.replaceState(null, "", address());
  }

  let timer = 0;
  const reading = (words) => 1200 + 280 * words.split(" ").length; // ms

  function stop() {
    clearTimeout(timer);
    timer = 0;
  }

  function play(from) {
    const { steps, isBoth } = shown();
    timer = setTimeout(() => {
      if (from + 2 < steps.length) play(from + 1);
      else stop();
      go(from + 1);
    }, isBoth ? 1000 : reading(steps[from][0]));
  }

  function toggle() {
    if (timer) stop();
    else {
      if (at === shown().steps.length - 1) go(0);
      play(at);
    }
    draw();
  }

  function choose(number) {
    stop();
    [which, fault] = [Number(number), null];
    go(0);
  }

  root.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick]")) choose(event.target.value);
  });

  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { case: chosen, move, answer, break: broken, play: wanted } = button.dataset;
    if (wanted !== undefined) {
      toggle();
      return;
    }
    stop();
    if (chosen) {
      choose(chosen);
      if (event.detail) one("[data-move='1']").focus(); // by the mouse: the arrow keys then lead on
    } else if (answer !== undefined) {
      const { right } = pushPull.frames(shown())[at + 1].ask;
      go(at + 1, answer === right ? yes(right) : no(answer, right));
      one(at === shown().steps.length - 1 ? "[data-move='-1']" : "[data-move='1']").focus();
    } else if (broken) {
      const from = fault ? fault.from : at;
      const isAgain = fault && fault.key === broken; // pressed again: mended
      fault = isAgain ? null : { key: broken, from };
      at = from;
      go(from + (isAgain ? 0 : 1));
      for (const part of [".scene", ".said", ".line"]) { // what comes of it, on a small screen
        one(part).scrollIntoView({ block: "nearest" });
      }
    } else {
      if (move === "0") fault = null;
      go(Number(move) ? at + Number(move) : 0);
    }
    if (button.disabled) one(button.dataset.move === "1" ? "[data-move='0']" : "[data-move='1']").focus();
  });

  // Also where nothing has the focus, as after a click on the picture.
  document.addEventListener("keydown", (event) => {
    const isHere = event.target === document.body || root.contains(event.target);
    if (!isHere || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("pre, select")) return;
    const tab = event.target.closest("[data-case]");
    if (tab) { // in tabs, arrow keys choose the tab
      const all = [...tab.parentNode.children];
      const by = { ArrowRight: 1, ArrowLeft: all.length - 1, Home: all.length - all.indexOf(tab) }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const chosen = all[(all.indexOf(tab) + by) % all.length];
      chosen.focus();
      chosen.click();
      return;
    }
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    stop();
    go(to);
  });

  function open() {
    stop();
    const isRight = read();
    draw();
    one(".status").textContent = isRight ? "" : "This link is damaged. You see the start instead.";
  }

  window.addEventListener("hashchange", () => { if (location.hash !== address()) open(); });
  let drawn = 0;
  new ResizeObserver(() => { // the height changes with the words, and needs no new picture
    if (root.clientWidth !== drawn) draw();
    drawn = root.clientWidth;
  }).observe(root);
  open();
})();
