/* The page of the step to play with: controls, state in the address, timeline and efficiency.
   Needs step_model.js and step_data.js before it, and an element with the id step-to-play. */

(function () {
  const root = document.getElementById("step-to-play");
  if (!root) return;

  // ---- The state, and the address that holds it ----

  const DEFAULT = {
    network: "resnet-50", weights: 0, flop: 0,
    device: "v100", speed: 0, memory: 0,
    link: "10-gbit-s", rate: 0, latency: 0,
    batch: 32, hosts: 8, servers: 0, ring: 0, overlap: 1, bits: 32, slow: 1, buckets: 5, adds: 1e9,
  };
  const OWN = "own";
  const LISTS = {
    network: { entries: stepData.networks, fields: ["weights", "flop"] },
    device: { entries: stepData.devices, fields: ["speed", "memory"] },
    link: { entries: stepData.links, fields: ["rate", "latency"] },
  };
  const LIMITS = { // least, most, must it be whole
    weights: [1e4, 1e10, false], flop: [1e6, 1e14, false], speed: [1e6, 1e15, false],
    memory: [1e9, 1e13, false], rate: [1e6, 1e12, false], latency: [0, 0.1, false],
    batch: [1, 4096, true], hosts: [1, 256, true], servers: [0, 256, true], ring: [0, 1, true],
    overlap: [0, 1, true], slow: [1, 4, false], buckets: [1, 50, true], adds: [1e8, 1e12, false],
  };

  function fill(state, list) {
    const entry = LISTS[list].entries.find((e) => e.key === state[list]);
    if (entry) for (const field of LISTS[list].fields) state[field] = entry[field];
  }

  function complete(state) {
    for (const list of Object.keys(LISTS)) fill(state, list);
    return state;
  }

  const start = complete({ ...DEFAULT });
  let state = { ...start };

  /* Return [state, what is wrong]. An address without "=" is a place on the page. */
  function read(hash) {
    const words = hash.replace(/^#/, "");
    if (!words.includes("=")) return [{ ...start }, ""];
    const found = { ...start };
    const own = {};
    for (const pair of words.split("&")) {
      const [name, ...rest] = pair.split("=");
      const value = rest.join("=");
      const wrong = [{ ...start }, pair.slice(0, 40)];
      if (!Object.prototype.hasOwnProperty.call(DEFAULT, name)) return wrong;
      if (name in LISTS) {
        if (value !== OWN && !LISTS[name].entries.some((e) => e.key === value)) return wrong;
        found[name] = value;
      } else {
        const number = /^[\d.e+-]+$/i.test(value) ? Number(value) : NaN;
        const [least, most, isWhole] = LIMITS[name] || [2, 32, true];
        if (!(number >= least && number <= most)) return wrong;
        if (isWhole && !Number.isInteger(number)) return wrong;
        if (name === "bits" && number !== 2 && number !== 32) return wrong;
        own[name] = number;
      }
    }
    complete(found);
    for (const name of Object.keys(own)) {
      const list = Object.keys(LISTS).find((l) => LISTS[l].fields.includes(name));
      if (!list || found[list] === OWN) found[name] = own[name];
    }
    return [found, ""];
  }

  function write() {
    const words = [];
    for (const name of Object.keys(DEFAULT)) {
      const list = Object.keys(LISTS).find((l) => LISTS[l].fields.includes(name));
      if (!list || state[list] === OWN) words.push(`${name}=${state[name]}`);
    }
    return `#${words.join("&")}`;
  }

  function setup(s) {
    const computing = (s.batch * s.flop) / s.speed;
    return {
      weights: s.weights, forward: computing / 3, backward: (computing * 2) / 3,
      update: (stepData.updateBytes * s.weights) / s.memory, hosts: s.hosts, rate: s.rate,
      latency: s.latency, servers: s.servers, is_ring: !!s.ring, overlap: !!s.overlap,
      buckets: s.buckets, two_bits: s.bits === 2 && !s.ring, slow: s.slow, adds: s.adds,
    };
  }

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
    `<label class="row"><span>${label}</span><output data-of="${name}"></output>
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
    <p class="status" role="status"></p>
    <div class="view">
      <div class="now"><p class="numbers"></p><div class="timeline"></div></div>
      <div class="curve"></div>
    </div>
    <div class="results">
      <p class="advice" aria-live="polite"></p>
      <div class="remedies" role="group" aria-label="Changes to try" tabindex="-1"></div>
    </div>
    <form class="controls" aria-label="Settings">
      <fieldset><legend>Network and device</legend>
        ${select("network", "Network")} ${range("weights", "Weights")}
        ${select("device", "Device of a worker")} ${range("example", "An example takes")}
        ${range("batch", "Batch of a worker")} ${range("memory", "Device memory")}</fieldset>
      <fieldset><legend>Hosts and links</legend>
        ${range("hosts", "Hosts, a worker each")} ${select("link", "Link of a host")}
        ${range("rate", "Rate, each way")} ${range("latency", "Latency")}
        ${range("slow", "Slow worker")}</fieldset>
      <fieldset><legend>Exchange</legend>
        <fieldset class="bare"><legend>Who adds up</legend>
        <label class="check"><input type="radio" name="step-way" data-ring="0"> servers</label>
        <label class="check"><input type="radio" name="step-way" data-ring="1"> a ring</label></fieldset>
        ${range("servers", "Servers")} ${range("adds", "Adding up")}
        ${range("buckets", "Buckets")}
        ${box("overlap", "send while computing")} ${box("bits", "two-bit pushes")}</fieldset>
      <div class="wide" role="group" aria-label="Measurements">
        <b>Show what we measured:</b> ${buttons(MEASURED, "measured")}</div>
      <p class="wide"><button type="button" data-reset>Back to the start</button></p>
    </form>`;

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

  function drawTimeline(s, step) {
    const width = Math.max(280, one(".timeline").clientWidth);
    const intervals = joined(stepModel.timeline(s));
    const isSlow = s.slow > 1 && s.hosts > 1;
    const lanes = LANES.filter(([lane]) => (isSlow || !lane.startsWith("slow")) &&
      (s.hosts > 1 || lane === "worker"));
    const left = isSlow ? 96 : 78;
    const row = 24;
    const scale = (width - left - 12) / step;
    const alone = s.forward + s.backward + s.update;
    const bottom = 20 + lanes.length * row;
    let inner = "";
    for (const at of ticks(step, width / 90)) {
      const x = left + at * scale;
      inner += line(x, 18, x, bottom + 4, "grid");
      const isLast = x > width - 24;
      inner += text(isLast ? width - 2 : x, bottom + 18, at ? time(at) : "0", `text-anchor="${isLast ? "end" : "middle"}"`);
    }
    lanes.forEach(([lane, words], i) => {
      const y = 20 + i * row;
      inner += text(left - 6, y + 15, s.is_ring && lane === "server" ? "adds" : words, 'text-anchor="end"');
      for (const part of intervals) {
        const room = (part.end - part.start) * scale;
        if (part.lane !== lane || !(room > 0)) continue;
        const x = left + part.start * scale;
        const shown = Math.max(0.7, room - (room > 3 ? 1 : 0));
        const of = part.bucket < 0 ? "" : `, bucket ${part.bucket + 1}`;
        inner += `<rect class="${part.kind}" x="${x.toFixed(2)}" y="${y + 2}" width="${shown.toFixed(2)}" height="${row - 4}">` +
          `<title>${part.kind}${of}: ${time(part.end - part.start)}</title></rect>`;
        if (part.bucket >= 0 && room > (part.bucket < 9 ? 11 : 19)) {
          inner += text((x + room / 2).toFixed(2), y + 16, part.bucket + 1, `class="on-${part.kind}" text-anchor="middle"`);
        }
      }
    });
    if (alone < step * 0.995) {
      const x = left + alone * scale;
      const isRight = x > width / 2;
      inner += line(x, 4, x, bottom + 4, "ideal");
      inner += text(x + (isRight ? -5 : 5), 13, "one worker alone", isRight ? 'text-anchor="end"' : "");
    }
    const sum = (kind, lane) => time(intervals.filter((i) => i.kind === kind && i.lane === lane)
      .reduce((all, i) => all + i.end - i.start, 0));
    let description = `Forward ${time(s.forward)}, backward ${time(s.backward)}, update ${time(s.update)}.`;
    if (s.hosts > 1) {
      description += ` The link of host 1 sends pushes for ${sum("push", "sends")} and sums for ` +
        `${sum("pull", "sends")}; adding up takes ${sum("sum", "server")}.`;
    }
    one(".timeline").innerHTML =
      svg("step-time", width, bottom + 24, `Timeline of a step of ${time(step)}`, description, inner) +
      `<p class="legend">${KINDS.map((k) => `<span><i class="${k}"></i>${k}</span>`).join(" ")}</p>`;
  }

  const near = (a, b) => Math.abs(a - b) <= 0.02 * Math.abs(b);

  function pointsOf() {
    const found = stepData.measured.find((series) =>
      Object.keys(series.state).every((name) => name === "flop" || name === "speed" || near(state[name], series.state[name])) &&
      near(state.flop / state.speed, series.state.flop / series.state.speed));
    return found ? found.points : [];
  }

  const PLOTTED = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

  function drawCurve(s, share) {
    const width = Math.max(280, one(".curve").clientWidth);
    const [left, top, height] = [46, 10, 128];
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
    const other = { ...s, is_ring: !s.is_ring, two_bits: false };
    inner += `<path class="other" d="${path(other)}"/><path class="this" d="${path(s)}"/>`;
    inner += `<circle class="now" cx="${x(s.hosts)}" cy="${y(share)}" r="6"/>`;
    const alone = s.forward + s.backward + s.update;
    const points = pointsOf();
    for (const [w, seconds] of points) {
      const at = [x(w), y(alone / seconds)];
      inner += `<path class="measured" d="M${at[0]} ${at[1] - 6}l6 6l-6 6l-6 -6z"><title>measured, ${w} hosts: ${time(seconds)}</title></path>`;
    }
    const shares = stepModel.efficiencies(s, [2, 8, 64]).map(stepModel.percent);
    const description = `With these settings ${shares[0]} % with 2 hosts, ${shares[1]} % with 8, ${shares[2]} % with 64.` +
      (points.length ? ` ${points.length} measured runs are drawn as diamonds.` : "");
    one(".curve").innerHTML =
      svg("step-curve", width, top + height + 42, "Efficiency over the number of hosts", description, inner) +
      `<p class="legend"><span><i class="this"></i>efficiency, these settings</span>
        <span><i class="other"></i>${s.is_ring ? "with servers" : "with a ring"}</span>` +
      (points.length ? `<span><i class="measured"></i>measured, each run</span>` : "") + "</p>";
  }

  function showRemedies(s, share) {
    const found = s.hosts > 1 && share < 0.95 ? stepModel.remedies(s).slice(0, 5) : [];
    one(".remedies").innerHTML = (found.length ? "<b>Try:</b> " : "") + found.map((r) =>
      `<button type="button" data-remedy="${r.name}">${capital(r.name)}: ${stepModel.percent(r.efficiency)} %</button>`).join(" ");
  }

  function draw() {
    const s = setup(state);
    const step = stepModel.seconds(s);
    const share = stepModel.efficiency(s);
    const times = digits(s.hosts * share, 2);
    one(".numbers").innerHTML = `<span><b>${time(step)}</b> a step</span>
      <span><b>${stepModel.percent(share)} %</b> efficiency</span>
      <span><b>${times}</b> × one host</span>`;
    one(".advice").textContent = stepModel.advice(s);
    showRemedies(s, share);
    drawTimeline(s, step);
    drawCurve(s, share);
  }

  let isDamaged = false;
  let saving = 0;
  function update(changes, said) {
    Object.assign(state, changes);
    if (said !== undefined || isDamaged) one(".status").textContent = said || "";
    isDamaged = false;
    showControls();
    draw();
    clearTimeout(saving);
    saving = setTimeout(() => history.replaceState(null, "", write()), 250);
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
    update(changed);
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
        const [least, most] = LIMITS[field];
        changed[field] = Math.min(most, Math.max(least, changes[field]));
        if (field === "rate" || field === "latency") changed.link = OWN;
      }
    }
    return changed;
  }

  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { example, measured, remedy } = button.dataset;
    if (example) update({ ...EXAMPLES[example][1] }, EXAMPLES[example][2]);
    else if (measured) update({ ...MEASURED[measured][1] }, `The diamonds are our measured runs: ${MEASURED[measured][0]}.`);
    else if (remedy) {
      update(remedied(remedy));
      (one(".remedies button") || one(".remedies")).focus();
    } else update({ ...start }, "");
  });
  one("form").addEventListener("submit", (event) => event.preventDefault());

  function open() {
    const [found, wrong] = read(location.hash);
    state = found;
    showControls();
    draw();
    isDamaged = !!wrong;
    one(".status").textContent = wrong
      ? `This link is damaged at "${wrong}". You see the start instead.` : "";
  }

  window.addEventListener("hashchange", () => { if (location.hash !== write()) open(); });
  let drawn = 0;
  function fit() {
    if (root.clientWidth === drawn) return;
    drawn = root.clientWidth;
    const isWide = window.matchMedia("(min-width: 45em)").matches; // as in step.css
    if (isWide) one(".view").append(one(".curve"));
    else one(".results").prepend(one(".curve"));
    draw();
  }
  open();
  fit();
  new ResizeObserver(fit).observe(root);
})();
