/* The address of the page of a step. It holds all settings and the step A of a race, and may bring
   a step that a program has timed. Needs step_model.js and step_data.js before it. */

const stepLink = (function () {
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
    memory: [1e8, 1e13, false], rate: [1e6, 1e12, false], latency: [0, 0.1, false],
    batch: [1, 4096, true], hosts: [1, 256, true], servers: [0, 256, true], ring: [0, 1, true],
    overlap: [0, 1, true], bits: [2, 32, true], slow: [1, 4, false], buckets: [1, 50, true],
    adds: [1e8, 1e12, false],
  };
  /* What a program times: seconds of forward and backward, of the update, and of an exchange that
     overlaps with nothing (0 of a single worker); bytes of the gradients. `rate` or `exchange`
     stands for the link. */
  const TIMED = {
    compute: [1e-6, 1e4, false], update: [0, 1e3, false], exchange: [0, 1e4, false],
    bytes: [4e4, 4e10, false],
  };
  const POINT = /^(\d{1,3}):([\d.e+-]{1,25})$/i; // hosts:seconds of a step
  const SPEED = 1e12; // of a timed device: any, for only flop / speed counts

  function fill(state, list) {
    const entry = LISTS[list].entries.find((e) => e.key === state[list]);
    if (entry) for (const field of LISTS[list].fields) state[field] = entry[field];
  }

  function complete(state) {
    for (const list of Object.keys(LISTS)) fill(state, list);
    return state;
  }

  const start = complete({ ...DEFAULT });
  const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
  const clamp = (x, [least, most]) => Math.min(most, Math.max(least, x));

  function numberOf(value, [least, most, isWhole]) {
    const number = /^[\d.e+-]+$/i.test(value) ? Number(value) : NaN;
    return number >= least && number <= most && (!isWhole || Number.isInteger(number)) ? number : NaN;
  }

  function pointsOf(value) {
    const found = value.split(",").map((point) => POINT.exec(point));
    const points = found.map((point) => point &&
      [numberOf(point[1], LIMITS.hosts), numberOf(point[2], TIMED.compute)]);
    return points.every((point) => point && !point.some(Number.isNaN)) ? points : null;
  }

  /* Return what an address says: state, the kept step A or null, the points that were measured,
     whether a program timed it, and what is wrong. Without "=" it is a place on the page. */
  function read(hash) {
    const words = hash.replace(/^#/, "");
    const found = { state: { ...start }, kept: null, points: [], isTimed: false, wrong: "" };
    if (!words.includes("=")) return found;
    const numbers = {};
    for (const pair of words.split("&")) {
      const [name, ...rest] = pair.split("=");
      const value = rest.join("=");
      const wrong = { ...found, state: { ...start }, kept: null, points: [], wrong: pair.slice(0, 40) };
      if (name === "a") {
        const inner = value.includes(":") ? read(value.replace(/:/g, "=").replace(/,/g, "&")) : wrong;
        if (inner.wrong || inner.kept) return wrong;
        found.kept = inner.state;
      } else if (name === "measured") {
        found.points = pointsOf(value);
        if (!found.points) return wrong;
      } else if (has(LISTS, name)) {
        if (value !== OWN && !LISTS[name].entries.some((e) => e.key === value)) return wrong;
        found.state[name] = value;
      } else {
        if (!has(LIMITS, name) && !has(TIMED, name)) return wrong;
        numbers[name] = numberOf(value, LIMITS[name] || TIMED[name]);
        if (Number.isNaN(numbers[name])) return wrong;
        if (name === "bits" && value !== "2" && value !== "32") return wrong;
      }
    }
    complete(found.state);
    found.isTimed = has(numbers, "compute");
    if (found.isTimed) {
      const wrong = timed(numbers);
      if (wrong) return { ...found, state: { ...start }, kept: null, points: [], wrong };
      Object.assign(found.state, { network: OWN, device: OWN, link: OWN });
    }
    for (const name of Object.keys(numbers)) {
      const list = Object.keys(LISTS).find((l) => LISTS[l].fields.includes(name));
      const isSetting = has(LIMITS, name) && (!list || found.state[list] === OWN);
      if (isSetting) found.state[name] = numbers[name];
    }
    if (found.isTimed && found.state.servers >= found.state.hosts) found.state.servers = 0; // on each
    if (numbers.exchange && found.state.hosts > 1) Object.assign(found.state, linkOf(found.state, numbers.exchange));
    return found;
  }

  /* Turn what was timed into settings; return the name of what is missing or out of range, or "". */
  function timed(numbers) {
    const { compute, update, bytes, batch } = { update: 0, batch: start.batch, ...numbers };
    if (!has(numbers, "bytes")) return "bytes, which is missing";
    const flop = (SPEED * compute) / batch;
    if (flop < LIMITS.flop[0] || flop > LIMITS.flop[1]) return `compute=${compute}`;
    const memory = clamp((stepData.updateBytes * bytes) / 4 / (update || 1e-9), LIMITS.memory);
    Object.assign(numbers, { weights: bytes / 4, flop, speed: SPEED, memory });
  }

  /* Return the link with which an exchange takes so long when it overlaps with nothing. What else
     the exchange cost, such as adding up, is in this rate. */
  function linkOf(state, exchange) {
    const found = { ...state, latency: 0, adds: 1e12 };
    let [low, high] = LIMITS.rate;
    for (let i = 0; i < 60; i++) {
      found.rate = Math.sqrt(low * high);
      const s = setup({ ...found, overlap: 0 });
      const least = s.forward + s.backward + s.update;
      if (stepModel.seconds(s) - least > exchange) low = found.rate;
      else high = found.rate;
    }
    return { rate: Number(found.rate.toPrecision(6)), latency: 0, adds: 1e12 };
  }

  function words(state, [equals, and]) {
    const found = [];
    for (const name of Object.keys(DEFAULT)) {
      const list = Object.keys(LISTS).find((l) => LISTS[l].fields.includes(name));
      if (!list || state[list] === OWN) found.push(`${name}${equals}${state[name]}`);
    }
    return found.join(and);
  }

  function write(state, kept, points) {
    const a = kept ? `&a=${words(kept, ":,")}` : "";
    const measured = points.length ? `&measured=${points.map((p) => p.join(":")).join(",")}` : "";
    return `#${words(state, "=&")}${a}${measured}`;
  }

  /* Return the setup of the model. */
  function setup(s) {
    const computing = (s.batch * s.flop) / s.speed;
    return {
      weights: s.weights, forward: computing / 3, backward: (computing * 2) / 3,
      update: (stepData.updateBytes * s.weights) / s.memory, hosts: s.hosts, rate: s.rate,
      latency: s.latency, servers: s.servers, is_ring: !!s.ring, overlap: !!s.overlap,
      buckets: s.buckets, two_bits: s.bits === 2 && !s.ring, slow: s.slow, adds: s.adds,
    };
  }

  return { DEFAULT, LISTS, LIMITS, OWN, start, fill, complete, clamp, read, write, setup };
})();
