/* The page of the step to play with: controls, timeline, efficiency, and the race of two steps.
   Needs step_model.js, step_data.js and step_link.js before it, and an element with the id
   step-to-play. */

(function () {
  const root = document.getElementById("step-to-play");
  if (!root) return;

  const { DEFAULT, LISTS, LIMITS, OWN, start, fill, complete, clamp, setup } = stepLink;
  let state = { ...start };
  let kept = null; // the step A of a race
  let before = null; // the step before: its setup, and how long it takes
  let mine = null; // the series of measured steps that the address brought

  // ---- Words for numbers ----

  const digits = (x, places) => String(Number(x.toPrecision(Math.max(places, x >= 100 ? 3 : 1))));

  function unit(x, units) {
    const [size, name] = units.find(([least]) => x >= least * 0.9995) || units[units.length - 1];
    return `${digits(x / size, 3)} ${name}`;
  }

  const time = (x) => unit(x, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
  const bytes = (x) => unit(x, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]);
  const count = (x) => unit(x, [[1e9, "billion"], [1e6, "million"], [1e3, "thousand"]]);
  const bits = (x) => unit(8 * x, [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"]]);
  const capital = (words) => words[0].toUpperCase() + words.slice(1);

  // ---- Controls ----

  const HOSTS = [...Array(16).keys()].map((i) => i + 1)
    .concat([20, 24, 32, 48, 64, 96, 128, 192, 256]);
  const BATCHES = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096];
  const logarithmic = (least, most) => ({
    max: 100,
    place: (x) => Math.round((100 * Math.log(x / least)) / Math.log(most / least)),
    value: (i) => Number((least * Math.pow(most / least, i / 100)).toPrecision(2)),
  });
  const linear = (least, most, by) => ({
    max: Math.round((most - least) / by),
    place: (x) => Math.round((x - least) / by),
    value: (i) => Number((least + i * by).toFixed(6)),
  });
  const listed = (values) => ({
    max: values.length - 1,
    place: (x) => values.reduce((b, v, i) => (Math.abs(v - x) < Math.abs(values[b] - x) ? i : b), 0),
    value: (i) => values[i],
  });

  function select(list, label) {
    const options = LISTS[list].entries.map((e) => `<option value="${e.key}">${e.name}</option>`);
    return `<label class="row"><span>${label}</span><select data-list="${list}">${options.join("")}
      <option value="${OWN}">own values</option></select></label>`;
  }
  const range = (name, label) =>
    `<label class="row"><span>${label}</span> <span class="value" data-of="${name}"></span>
      <input type="range" min="0" data-range="${name}"></label>`;
  const box = (name, label, hint) =>
    `<label class="check"><input type="checkbox" data-box="${name}"> ${label}
      <small data-hint="${name}">${hint || ""}</small></label>`;

  const RANGES = {
    weights: { ...logarithmic(1e4, 1e10), words: (s) => count(s.weights),
      set: (s, x) => { s.network = OWN; s.weights = x; } },
    example: { ...logarithmic(1e-5, 10), of: (s) => s.flop / s.speed, words: (s) => time(s.flop / s.speed),
      set: (s, x) => { s.device = OWN; s.speed = s.flop / x; } },
    batch: { ...listed(BATCHES), words: (s) => `${s.batch}` },
    hosts: { ...listed(HOSTS), words: (s) => `${s.hosts}` },
    rate: { ...logarithmic(1.25e6, 1.25e11), words: (s) => bits(s.rate),
      set: (s, x) => { s.link = OWN; s.rate = x; } },
    latency: { ...logarithmic(1e-6, 0.1), of: (s) => Math.max(s.latency, 1e-6), words: (s) => time(s.latency),
      set: (s, x) => { s.link = OWN; s.latency = x; } },
    servers: { max: 0, place: (x) => (x && x < state.hosts ? x : state.hosts) - 1, value: (i) => i + 1,
      words: (s) => (s.ring ? "none" : s.servers && s.servers < s.hosts ? `${s.servers}` : "one on each host"),
      set: (s, x) => { s.servers = x >= s.hosts ? 0 : x; } },
    slow: { ...linear(1, 4, 0.1), words: (s) => (s.slow > 1 ? `${s.slow} × as long` : "none") },
    buckets: { ...linear(1, 50, 1), words: (s) => `${s.buckets} of ${bytes((4 * s.weights) / s.buckets)}` },
    adds: { ...logarithmic(1e8, 1e12), words: (s) => `${bytes(s.adds)}/s` },
    memory: { ...logarithmic(1e9, 1e13), words: (s) => `${bytes(s.memory)}/s`,
      set: (s, x) => { s.device = OWN; s.memory = x; } },
  };

  const EXAMPLES = [
    ["One server for eight", { servers: 1 },
      "Add servers, one at a time. From which number on do more hardly help?"],
    ["Nothing overlaps", { overlap: 0, link: "25-gbit-s", batch: 64, adds: 1e10 },
      "Which lanes are idle, and when? Then send while backward computes, with 1, 5 and 50 buckets."],
    ["One slow worker", { slow: 1.5, link: "100-gbit-s", adds: 1e10 },
      "What do the seven others do meanwhile? Does a faster link help?"],
    ["A large network, a slow link", { network: "vgg-16", link: "1-gbit-s", hosts: 4 },
      "Do four hosts train faster than one? Which batch changes that?"],
    ["A ring, 1000 km apart", { link: "1-gbit-s-1000-km", ring: 1, batch: 512, hosts: 64 },
      "Why do fewer buckets help here, and servers still more?"],
    ["64 hosts that scale", { hosts: 64, batch: 128, link: "100-gbit-s", adds: 1e10, buckets: 10 },
      "What can you take away before the efficiency falls below 90 %?"],
  ].map(([name, changes, question]) => [name, complete({ ...DEFAULT, ...changes }), question]);

  function measuredState(series) {
    const found = { ...start, ...series.state, hosts: series.hosts, network: OWN, device: OWN, link: OWN };
    for (const list of Object.keys(LISTS)) {
      const same = LISTS[list].entries.find((e) =>
        LISTS[list].fields.every((f) => Math.abs(e[f] / found[f] - 1) < 1e-9));
      if (same) found[list] = same.key;
    }
    return found;
  }

  const MEASURED = stepData.measured.map((series) => [series.name, measuredState(series)]);
  const buttons = (list, kind) => list.map(([name], i) =>
    `<button type="button" data-${kind}="${i}">${name}</button>`).join(" ");

  root.innerHTML = `
    <div class="examples" role="group" aria-label="Examples">
      <b>Start from an example:</b> ${buttons(EXAMPLES, "example")}</div>
    <div class="both"><div class="left">
      <p class="status" role="status"></p>
      <div class="view">
        <p class="numbers"></p>
        <div class="race" role="group" aria-label="Race two steps">
          <b class="versus" role="status"></b> <span class="who"></span> <button type="button" data-race="keep"></button>
          <button type="button" data-race="run">Run both</button>
          <button type="button" data-race="forget">Forget A</button>
          <small class="pace" role="status"></small> <span class="difference"></span></div>
        <div class="timeline"></div>
        <p class="advice" aria-live="polite"></p>
      </div>
      <div class="rest">
        <div class="remedies" role="group" aria-label="Changes to try" tabindex="-1"></div>
        <div class="curve"></div>
      </div>
    </div>
    <form class="controls" aria-label="Settings">
      <fieldset><legend>Network and device</legend>
        ${select("network", "Network")} ${range("weights", "Weights")}
        ${select("device", "Device of a worker")} ${range("example", "An example takes")}
        ${range("batch", "Batch of a worker")}</fieldset>
      <fieldset><legend>Hosts and links</legend>
        ${range("hosts", "Hosts, a worker each")} ${select("link", "Link of a host")}
        ${range("rate", "Rate, each way")} ${range("slow", "Slow worker")}</fieldset>
      <fieldset><legend>Exchange</legend>
        <fieldset class="bare"><legend>Who adds up</legend>
        <label class="check"><input type="radio" name="step-way" data-ring="0"> servers</label>
        <label class="check"><input type="radio" name="step-way" data-ring="1"> a ring</label></fieldset>
        ${range("servers", "Servers")} ${range("buckets", "Buckets")}
        ${box("overlap", "send while computing")} ${box("bits", "two-bit pushes")}</fieldset>
      <details><summary>More</summary>
        ${range("latency", "Latency")} ${range("adds", "Adding up")}
        ${range("memory", "Device memory")}</details>
      <details><summary>Show what we measured</summary>
        <div role="group" aria-label="Measurements">${buttons(MEASURED, "measured")}</div></details>
      <p><button type="button" data-reset>Back to the start</button></p>
    </form></div>`;

  const one = (selector) => root.querySelector(selector);
  const all = (selector) => [...root.querySelectorAll(selector)];

  function showControls() {
    for (const list of Object.keys(LISTS)) one(`[data-list=${list}]`).value = state[list];
    RANGES.servers.max = state.hosts - 1;
    for (const name of Object.keys(RANGES)) {
      const about = RANGES[name];
      const input = one(`[data-range=${name}]`);
      const words = about.words(state);
      input.max = about.max;
      input.value = about.place(about.of ? about.of(state) : state[name]);
      input.style.setProperty("--part", `${(100 * input.value) / (about.max || 1)}%`);
      input.setAttribute("aria-valuetext", words);
      one(`[data-of=${name}]`).textContent = words;
    }
    one("[data-range=servers]").disabled = !!state.ring || state.hosts === 1;
    one("[data-range=slow]").disabled = state.hosts === 1;
    one("[data-box=overlap]").checked = !!state.overlap;
    one("[data-box=bits]").checked = state.bits === 2 && !state.ring;
    one("[data-box=bits]").disabled = !!state.ring;
    one("[data-hint=bits]").textContent = state.ring ? "(servers only)" : "";
    for (const radio of all("[data-ring]")) radio.checked = Number(radio.dataset.ring) === state.ring;
  }

  // ---- Pictures ----

  const text = (x, y, words, more) => `<text x="${x}" y="${y}" ${more || ""}>${words}</text>`;
  const line = (x1, y1, x2, y2, name) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${name}"/>`;

  function svg(name, width, height, title, description, inner) {
    return `<svg width="${width}" height="${height}" role="img" aria-labelledby="${name}-t ${name}-d">
      <title id="${name}-t">${title}</title><desc id="${name}-d">${description}</desc>${inner}</svg>`;
  }

  function ticks(most, room) {
    const rough = most / room;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const by = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= rough);
    const found = [];
    for (let i = 0; i * by <= most * 1.0001; i++) found.push(i * by);
    return found;
  }

  const LANES = [
    ["worker", "computes"], ["slow worker", "slow computes"], ["slow sends", "slow sends"],
    ["sends", "sends"], ["receives", "receives"], ["server", "server adds"],
  ];
  const KINDS = ["forward", "backward", "push", "sum", "pull", "update"];

  /* Join what follows at once on the same lane, such as all workers' pushes of a bucket. */
  function joined(intervals) {
    const found = [];
    for (const part of intervals) {
      const last = found.filter((i) => i.lane === part.lane).pop();
      const isSame = last && last.kind === part.kind && last.bucket === part.bucket;
      if (isSame && part.start - last.end < 1e-9) last.end = part.end;
      else found.push({ ...part });
    }
    return found;
  }

  const isStill = window.matchMedia("(prefers-reduced-motion: reduce)");
  const MOVES = { duration: 250, easing: "ease-out" };
  const places = {}; // of what was drawn last, by its key: x and width, or a path

  /* Let what has a key move from where it was drawn last. */
  function moveFrom(picture) {
    const element = one(picture);
    const was = places[picture] || {};
    const now = (places[picture] = {});
    for (const part of element.querySelectorAll("[data-key]")) {
      const { key, x, y = 0, width = 1, path } = part.dataset;
      now[key] = { x, y, width, path };
      const last = was[key];
      if (!last || isStill.matches || (last.x === x && last.y === y && last.width === width && last.path === path)) continue;
      const [first, end] = path ? [{ d: `path("${last.path}")` }, { d: `path("${path}")` }]
        : [{ transform: `translate(${last.x - x}px, ${last.y - y}px) scaleX(${last.width / width})` }, { transform: "none" }];
      part.animate([first, end], MOVES);
    }
  }

  const LEAST = { push: 3, sum: 3, pull: 3, update: 4 }; // pixels: less would look like a mistake

  const isSlowed = (s) => s.slow > 1 && s.hosts > 1;
  const lanesOf = (s) => LANES.filter(([lane]) => (isSlowed(s) || !lane.startsWith("slow")) &&
    (s.hosts > 1 || lane === "worker"));

  /* Draw the lanes of a step from a height on, in rows so high. Only what may move has a key. */
  function bars(s, left, top, row, scale, isNow) {
    const intervals = joined(stepModel.timeline(s));
    const [height, middle] = [row - 7 + (row < ROW ? 3 : 0), row / 2 + (row < ROW ? 3 : 2)];
    let inner = "";
    let numbers = "";
    lanesOf(s).forEach(([lane, words], i) => {
      const y = top + i * row;
      let end = left;
      inner += text(left - 6, y + middle, s.is_ring && lane === "server" ? "adds" : words, 'text-anchor="end"');
      for (const part of intervals) {
        const room = (part.end - part.start) * scale;
        if (part.lane !== lane || !(room > 0)) continue;
        const x = (left + part.start * scale).toFixed(2);
        const shown = Math.max(LEAST[part.kind] || 0.7, room - (room > 3 ? 1 : 0)).toFixed(2);
        const of = part.bucket < 0 ? "" : `, bucket ${part.bucket + 1}`;
        const key = `${lane} ${part.kind} ${part.bucket}`;
        const moves = isNow ? `data-key="${key}" data-x="${x}" data-width="${shown}"` : "";
        const place = `x="${x}" y="${y + 1}" width="${shown}" height="${height}"`;
        inner += `<rect class="bar ${part.kind}" ${moves} ${place}>` +
          `<title>${part.kind}${of}: ${time(part.end - part.start)}</title></rect>`;
        if (part.kind === "pull") { // told from a push without its colour
          inner += `<rect class="stripes" ${moves.replace(key, `${key} stripes`)} ${place}/>`;
        }
        const wide = part.bucket < 9 ? 12 : 21;
        if (part.bucket >= 0 && room > wide) { // on a plain patch: nothing crosses the number
          const at = (Number(x) + room / 2).toFixed(2);
          const [patch, number] = isNow ? [`${key} patch`, `${key} number`].map((k) => `data-key="${k}" data-x="${at}"`) : ["", ""];
          numbers += `<rect class="${part.kind}" ${patch} x="${(at - wide / 2 - 0.5).toFixed(2)}" y="${y + 1}" width="${wide}" height="${height}"/>` +
            text(at, y + middle, part.bucket + 1, `class="on-${part.kind}" text-anchor="middle" ${number}`);
        }
        if (isNow && part.kind === "update" && x - end > 60) numbers += text(x - 5, y + middle, "update", 'class="named" text-anchor="end"');
        end = Number(x) + room;
      }
    });
    return [inner, numbers];
  }

  /* Draw what each lane did in the step before as a thin line below it. */
  function ghost(s, lanes, left, top, scale) {
    const parts = joined(stepModel.timeline(s).map((part) => ({ ...part, bucket: 0 })));
    return parts.filter((part) => part.end > part.start && lanes.some(([lane]) => lane === part.lane))
      .map((part) => {
        const y = top + ROW * lanes.findIndex(([lane]) => lane === part.lane) + ROW - 5;
        return `<rect class="ghost ${part.kind}" x="${(left + part.start * scale).toFixed(1)}" y="${y}" ` +
          `width="${Math.max(0.7, (part.end - part.start) * scale).toFixed(1)}" height="3"/>`;
      }).join("");
  }

  const ROW = 24;
  const RACE_ROW = 18;
  let race = { scale: 1, steps: {} };

  function drawTimeline(s, step) {
    const width = Math.max(280, one(".timeline").clientWidth);
    const a = kept && setup(kept);
    const stepA = a ? stepModel.seconds(a) : 0;
    const isGhost = !a && before && before.step / step < 4 && step / before.step < 4;
    const most = Math.max(step, stepA, isGhost ? before.step : 0);
    const racers = a ? [["a", a, stepA], ["b", s, step]] : [["b", s, step]];
    const left = racers.some(([, of]) => isSlowed(of)) ? 110 : 88;
    const scale = (width - left - 12) / most;
    const [row, top] = [a ? RACE_ROW : ROW, 20];
    const highs = racers.map(([, of]) => lanesOf(of).length * row + (a ? 24 : 0));
    const bottom = top - (a ? 12 : 0) + highs.reduce((all, high) => all + high);
    let inner = '<defs><pattern id="step-stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
      '<path d="M1 0V6" class="stripe"/></pattern></defs>';
    for (const at of ticks(most, width / 90)) {
      const x = left + at * scale;
      inner += line(x, 18, x, bottom + 4, "grid");
      const isLast = x > width - 24;
      inner += text(isLast ? width - 2 : x, bottom + 18, at ? time(at) : "0", `text-anchor="${isLast ? "end" : "middle"}"`);
    }
    const alone = s.forward + s.backward + s.update;
    if (a) {
      racers.forEach(([name, of, length], i) => {
        const y = top - 4 + i * highs[0];
        inner += text(left - 6, y + 4, `${name.toUpperCase()}: ${time(length)}`, 'text-anchor="end" class="name"') +
          `<path class="track" d="M${left} ${y}h${(length * scale).toFixed(1)}"/>` +
          `<circle class="ball" data-ball="${name}" cx="${left}" cy="${y}" r="5"/>` +
          bars(of, left, y + 12, row, scale, name === "b").join("");
      });
    } else {
      const [shapes, numbers] = bars(s, left, top, row, scale, true);
      inner += shapes;
      if (isGhost) inner += ghost(before.s, lanesOf(s), left, top, scale);
      if (alone < step * 0.995) {
        const x = left + alone * scale;
        const isRight = x > width / 2;
        inner += line(x, 4, x, bottom + 4, "ideal") +
          text(x + (isRight ? -5 : 5), 13, "one worker alone", isRight ? 'text-anchor="end"' : "");
      }
      inner += numbers; // over the dashed line
    }
    const intervals = stepModel.timeline(s);
    const sum = (kind, lane) => time(intervals.filter((i) => i.kind === kind && i.lane === lane)
      .reduce((all, i) => all + i.end - i.start, 0));
    let description = `Forward ${time(s.forward)}, backward ${time(s.backward)}, update ${time(s.update)}.`;
    if (s.hosts > 1) {
      description += ` The link of host 1 sends pushes for ${sum("push", "sends")} and sums for ` +
        `${sum("pull", "sends")}; adding up takes ${sum("sum", "server")}.`;
    }
    if (a) description += ` Above it, step A of ${time(stepA)}.`;
    const legend = KINDS.map((k) => `<span><i class="${k}"></i>${k}</span>`).join(" ") +
      (isGhost ? '<span><i class="ghost"></i>thin: before</span>' : "");
    one(".timeline").innerHTML =
      svg("step-time", width, bottom + 24, `Timeline of a step of ${time(step)}`, description, inner) +
      `<p class="legend">${legend}</p>`;
    race = { scale, steps: { a: stepA, b: step } };
    moveFrom(".timeline");
  }

  // ---- The race ----

  const RACE_S = 6; // about so long for the slower step

  function versus(a, b) {
    const [stepA, stepB] = [a, b].map(stepModel.seconds);
    const more = (b.hosts * state.batch * stepA) / (a.hosts * kept.batch * stepB); // examples a second
    const times = Math.abs(more - 1) < 0.01 ? "as many" : `${digits(more, 2)} times as many`;
    return `A ${time(stepA)}, B ${time(stepB)} a step; B trains ${times} examples a second.`;
  }

  // What a step is, in words. Only what differs is always said of the last ones.
  const named = (list, own) => (s) =>
    (s[list] === OWN ? own(s) : LISTS[list].entries.find((e) => e.key === s[list]).name);
  const SETTINGS = [
    named("network", (s) => `${count(s.weights)} weights`),
    named("device", (s) => `${time(s.flop / s.speed)} an example`),
    (s) => `batch ${s.batch}`,
    (s) => (s.hosts > 1 ? `${s.hosts} hosts` : "1 host"),
    named("link", (s) => bits(s.rate)),
    (s) => (s.ring ? "a ring" : s.servers && s.servers < s.hosts ? `servers: ${s.servers}` : "a server on each host"),
    (s) => (s.buckets > 1 ? `${s.buckets} buckets` : "1 bucket"),
    (s) => (s.overlap ? "sent while computing" : "sent after computing"),
  ];
  const MORE = [
    (s) => (s.slow > 1 ? `a worker takes ${s.slow} × as long` : "no slow worker"),
    (s) => (s.bits === 2 ? "two-bit pushes" : "32-bit pushes"),
    (s) => `latency ${time(s.latency)}`,
    (s) => `adds ${bytes(s.adds)}/s`,
    (s) => `memory ${bytes(s.memory)}/s`,
  ];

  /* Say in which settings A and B differ, and which they share. */
  function who() {
    const both = (settings) => settings.map((words) => [words(kept), words(state)]);
    const differ = both([...SETTINGS, ...MORE]).filter(([a, b]) => a !== b);
    const same = both(SETTINGS).filter(([a, b]) => a === b).map(([a]) => a).join(", ");
    if (!differ.length) return `A: ${same}.`;
    const [a, b] = [0, 1].map((i) => differ.map((pair) => pair[i]).join(", "));
    return `<b>A:</b> ${a}. <b>B:</b> ${b}. <span class="same">Both: ${same}.</span>`;
  }

  function showRace(s) {
    const a = kept && setup(kept);
    const isSame = a && Object.keys(kept).every((name) => kept[name] === state[name]);
    one(".who").innerHTML = a ? who() : "";
    const words = isSame ? "This step is A. Change something: that is B." : "";
    one(".versus").textContent = a ? words || versus(a, s) : "";
    one(".pace").textContent = "";
    one("[data-race=keep]").textContent = a ? "New A" : "Keep as A, and race";
    one("[data-race=run]").hidden = one("[data-race=forget]").hidden = !a;
  }

  /* Let a ball run along each step, both on one clock, and say how much slower than in truth. */
  function run() {
    const { scale, steps } = race;
    const slowed = Number((RACE_S / Math.max(steps.a, steps.b)).toPrecision(1));
    for (const name of ["a", "b"]) {
      const length = steps[name] * scale;
      const by = isStill.matches ? 0 : 1e3 * steps[name] * slowed;
      one(`[data-ball=${name}]`).animate(
        [{ transform: "none" }, { transform: `translateX(${length}px)` }], { duration: by, fill: "forwards" });
    }
    const words = slowed >= 1 ? `${slowed} × slower` : `${digits(1 / slowed, 1)} × faster`;
    one(".pace").textContent = `Shown ${words}.`;
  }

  const near = (a, b) => Math.abs(a - b) <= 0.02 * Math.abs(b);

  function seriesOf() {
    const found = (mine ? [mine] : []).concat(stepData.measured).find((series) =>
      Object.keys(series.state).every((name) => name === "flop" || name === "speed" || near(state[name], series.state[name])) &&
      near(state.flop / state.speed, series.state.flop / series.state.speed));
    return found || { points: [] };
  }

  const PLOTTED = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

  const stroke = (name) => `<svg width="28" height="6" aria-hidden="true"><path class="${name}" d="M0 3H28"/></svg>`;

  function drawCurve(s, share) {
    const width = Math.max(280, one(".curve").clientWidth);
    const [left, top, height] = [68, 10, width > 560 && window.innerHeight > 800 ? 210 : 128];
    const x = (w) => left + ((width - left - 16) * Math.log2(w)) / 8;
    const y = (e) => top + height * (1 - e);
    const path = (setup) => stepModel.efficiencies(setup, PLOTTED)
      .map((e, i) => `${i ? "L" : "M"}${x(PLOTTED[i]).toFixed(1)} ${y(e).toFixed(1)}`).join("");
    let inner = "";
    for (const e of [0, 0.25, 0.5, 0.75, 1]) {
      inner += line(left, y(e), width - 16, y(e), "grid");
      inner += text(left - 6, y(e) + 4, `${100 * e} %`, 'text-anchor="end"');
    }
    for (let w = 1; w <= 256; w *= 2) inner += text(x(w), top + height + 17, w, 'text-anchor="middle"');
    inner += text((left + width) / 2, top + height + 35, "hosts", 'text-anchor="middle"');
    inner += text(0, 0, "efficiency", `text-anchor="middle" transform="translate(12 ${top + height / 2}) rotate(-90)"`);
    const other = { ...s, is_ring: !s.is_ring, two_bits: false };
    for (const [name, setup] of [["other", other], ["this", s]]) {
      const way = path(setup);
      inner += `<path class="${name}" data-key="${name}" data-path="${way}" d="${way}"/>`;
    }
    const [cx, cy] = [x(s.hosts).toFixed(1), y(share).toFixed(1)];
    inner += `<circle class="now" data-key="now" data-x="${cx}" data-y="${cy}" cx="${cx}" cy="${cy}" r="6"/>`;
    const alone = s.forward + s.backward + s.update;
    const series = seriesOf();
    const points = series.points;
    for (const [w, seconds] of points) {
      const at = [x(w), y(alone / seconds)];
      inner += `<path class="measured" d="M${at[0]} ${at[1] - 6}l6 6l-6 6l-6 -6z"><title>measured, ${w} hosts: ${time(seconds)}</title></path>`;
    }
    const shares = stepModel.efficiencies(s, [2, 8, 64]).map(stepModel.percent);
    const description = `With these settings ${shares[0]} % with 2 hosts, ${shares[1]} % with 8, ${shares[2]} % with 64.` +
      (points.length ? ` ${points.length} measured runs are drawn as diamonds.` : "");
    one(".curve").innerHTML =
      svg("step-curve", width, top + height + 42, "Efficiency over the number of hosts", description, inner) +
      `<p class="legend"><span>${stroke("this")} efficiency, these settings</span>
        <span>${stroke("other")} ${s.is_ring ? "with servers" : "with a ring"}</span>` +
      (points.length ? `<span><i class="measured"></i>${series === mine ? "your job" : "measured, each run"}</span>` : "") + "</p>";
    moveFrom(".curve");
  }

  function showRemedies(s, share) {
    const found = s.hosts > 1 && share < 0.95 ? stepModel.remedies(s).slice(0, 5) : [];
    one(".remedies").innerHTML = (found.length ? "<b>Try:</b> " : "") + found.map((r) =>
      `<button type="button" data-remedy="${r.name}">${capital(r.name)}: ${stepModel.percent(r.efficiency)} %</button>`).join(" ");
  }

  /* Say how long the step before took, with the difference: 192 → 200 ms (+4 %). */
  function difference(step) {
    if (!before || kept || time(before.step) === time(step)) return "";
    const [was, is] = [time(before.step).split(" "), time(step).split(" ")];
    const percent = Math.round(100 * (step / before.step - 1));
    const sign = percent < 0 ? "−" : "+";
    return `${was[1] === is[1] ? was[0] : was.join(" ")} → ${is.join(" ")} (${sign}${Math.abs(percent)} %)`;
  }

  function draw() {
    const s = setup(state);
    const step = stepModel.seconds(s);
    const share = stepModel.efficiency(s);
    const times = digits(s.hosts * share, 2);
    one(".numbers").innerHTML = `<span><b>${time(step)}</b> a step</span>
      <span><b>${stepModel.percent(share)} %</b> efficiency</span>
      <span><b>${times}</b> × one host</span>`;
    one(".difference").textContent = difference(step);
    one(".advice").textContent = stepModel.advice(s);
    showRemedies(s, share);
    showRace(s);
    drawTimeline(s, step);
    drawCurve(s, share);
  }

  const address = () => stepLink.write(state, kept, mine && seriesOf() === mine ? mine.points : []);

  const AFRESH = "all";
  let isDamaged = false;
  let saving = 0;
  let last = { by: "", at: 0 };

  /* Change the state, by a control, a remedy, or all of it afresh. Moves of one slider, one soon
     after the other, are one change. */
  function update(changes, by, said) {
    const now = performance.now();
    if (by === AFRESH) before = null; // what changed everything is no change to compare
    else if (!by || by !== last.by || now - last.at > 1500) {
      const s = setup(state);
      before = { s, step: stepModel.seconds(s) };
    }
    last = { by, at: now };
    Object.assign(state, changes);
    if (said !== undefined || isDamaged) one(".status").textContent = said || "";
    isDamaged = false;
    showControls();
    draw();
    save();
  }

  function save() {
    clearTimeout(saving);
    saving = setTimeout(() => history.replaceState(null, "", address()), 250);
  }

  function press(kind, number) {
    for (const name of ["example", "measured"]) {
      for (const button of all(`[data-${name}]`)) {
        const is = name === kind && button.dataset[name] === String(number);
        button.setAttribute("aria-pressed", String(is));
      }
    }
  }

  // ---- What the reader does ----

  root.addEventListener("input", (event) => {
    const { list, range: name, box: checked, ring } = event.target.dataset;
    const changed = { ...state };
    if (list) {
      changed[list] = event.target.value;
      fill(changed, list);
    } else if (name) {
      const value = RANGES[name].value(Number(event.target.value));
      if (RANGES[name].set) RANGES[name].set(changed, value);
      else changed[name] = value;
    } else if (checked === "bits") changed.bits = event.target.checked ? 2 : 32;
    else if (checked) changed[checked] = event.target.checked ? 1 : 0;
    else if (ring) changed.ring = Number(ring);
    update(changed, list || name || checked || "ring");
  });

  function remedied(name) {
    const { changes } = stepModel.remedies(setup(state)).find((r) => r.name === name);
    const changed = { ...state };
    for (const field of Object.keys(changes)) {
      if (field === "is_ring") changed.ring = Number(changes.is_ring);
      else if (field === "two_bits") changed.bits = 2;
      else if (field === "overlap") changed.overlap = 1;
      else if (field === "forward") changed.batch = Math.min(4096, 2 * state.batch);
      else if (field !== "backward") {
        changed[field] = clamp(changes[field], LIMITS[field]);
        if (field === "rate" || field === "latency") changed.link = OWN;
      }
    }
    return changed;
  }

  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { example, measured, remedy, race: wanted } = button.dataset;
    if (example || measured) press(example ? "example" : "measured", example || measured);
    if (example) update(EXAMPLES[example][1], AFRESH, EXAMPLES[example][2]);
    else if (measured) update(MEASURED[measured][1], AFRESH, `The diamonds are our measured runs: ${MEASURED[measured][0]}.`);
    else if (remedy) {
      update(remedied(remedy));
      (one(".remedies button") || one(".remedies")).focus();
    } else if (wanted === "run") run();
    else if (wanted) {
      kept = wanted === "keep" ? { ...state } : null;
      before = null;
      draw();
      save();
      if (!kept) one("[data-race=keep]").focus();
    } else {
      press();
      update(start, AFRESH, "");
    }
  });
  one("form").addEventListener("submit", (event) => event.preventDefault());

  function open() {
    const found = stepLink.read(location.hash);
    ({ state, kept } = found);
    before = null;
    mine = found.points.length ? { points: found.points, state: { ...state } } : null;
    if (mine) for (const name of ["hosts", "network", "device", "link"]) delete mine.state[name];
    const isSame = ([, other]) => Object.keys(state).every((name) => state[name] === other[name]);
    press("example", EXAMPLES.findIndex(isSame));
    showControls();
    draw();
    isDamaged = !!found.wrong;
    let said = found.isTimed ? "This is your own step, as a program has timed it." : "";
    if (found.points.length) said += " A diamond is a measured step.";
    one(".status").textContent = found.wrong
      ? `This link is damaged at "${found.wrong}". You see the start instead.` : said;
  }

  window.addEventListener("hashchange", () => { if (location.hash !== address()) open(); });
  let drawn = 0;
  function fit() {
    if (root.clientWidth === drawn) return;
    drawn = root.clientWidth;
    draw();
  }
  open();
  fit();
  new ResizeObserver(fit).observe(root);
})();
