/* The model of a step: when each bucket is computed, sent, added up and fetched. Plain functions
   without a page. Times are in seconds, sizes in bytes, rates in bytes a second.

   It agrees with the formulas of benchmarks/growth_model.py where those hold (a test compares them)
   and goes on from there. What it assumes: hosts are equal, each with one worker, and the first ones
   with a server. Every bucket is cut over all servers. A cable sends and receives at its full rate
   at once. What comes first is sent first, added first: with few servers this is too kind, for
   pushes and pulls share a cable. The update is made on the workers, after the last sum has arrived.

   A setup has all of these fields:
     weights                    of the network; each has a gradient of four bytes
     forward, backward, update  of one worker alone
     hosts                      at least 1
     rate, latency              of a host's cable, each way; of an empty message
     servers                    no more than there are hosts are used; 0: one on each host
     is_ring                    no servers: the workers add up around a ring, in 2 (W - 1) rounds
                                for each bucket
     overlap                    send a bucket as soon as backward has filled it, not after the last
     buckets                    at least 1, of equal size
     two_bits                   pushes carry two bits a number; pulls do not, a ring has no pushes
     slow                       at least 1: the last worker computes so many times as long; a single
                                worker does not
     adds                       bytes/s that a server, or a worker in a ring, receives and adds up */

const stepModel = (function () {
  const FRAMES = 1448 / 1538; // of a cable's rate: the rest is headers of Ethernet, IP and TCP
  const MESSAGE = 30e-6; // besides, of each message to a server: of_many_s of growth.csv
  const PACKED = 32 / 2; // times fewer bytes in two-bit pushes
  const FINE = 0.95; // an efficiency above which nothing is to be mended
  const GAIN = 0.01; // of the efficiency: less is not worth a word

  const change = (s, changes) => Object.assign({}, s, changes);

  /* For how long a bucket holds each cable: before the sum (the usual workers' pushes, and late, the
     slow worker's) and after it. `delay` is between a cable's end and the next act. */
  function partsOf(s) {
    const w = s.hosts;
    const size = (4 * s.weights) / s.buckets;
    const rate = s.rate * FRAMES;
    if (s.is_ring) {
      const half = (w - 1) * (size / w / rate + s.latency); // rounds: each waits for the one before
      const both = { sends: half, receives: half };
      const sumLate = (((w - 1) / w) * size) / s.adds;
      return { before: {}, late: both, after: both, sumEarly: 0, sumLate, delay: 0 };
    }
    const n = Math.min(s.servers || w, w);
    const push = (s.two_bits ? size / PACKED : size) / rate;
    const pull = size / rate;
    const add = size / n / s.adds + MESSAGE;
    const before = { sends: ((n - 1) / n) * push, receives: ((w - 2) / n) * push };
    const late = { receives: push / n };
    const after = { sends: ((w - 1) / n) * pull, receives: ((n - 1) / n) * pull };
    if (n === w) { // the slow worker's host has a server, too
      before["slow receives"] = ((w - 1) / n) * push;
      late["slow sends"] = ((n - 1) / n) * push;
      after["slow sends"] = ((w - 1) / n) * pull;
      after["slow receives"] = ((n - 1) / n) * pull;
    } else {
      late["slow sends"] = push;
      after["slow receives"] = pull;
    }
    return { before, late, after, sumEarly: (w - 1) * add, sumLate: add, delay: s.latency };
  }

  /* The intervals of a step. A lane is who is busy: worker, slow worker, server; sends and receives
     are the cable of the first host, slow sends and slow receives that of the slow worker's. A kind
     is forward, backward, update, push, sum or pull; a bucket counts from 0, or is -1. Without a
     slow worker, the lanes of its host mirror the first host's. */
  function timeline(s) {
    const slow = s.hosts > 1 ? s.slow : 1;
    const found = [];
    const add = (lane, kind, bucket, start, end) => found.push({ lane, kind, bucket, start, end });
    for (const [lane, times] of [["worker", 1], ["slow worker", slow]]) {
      const forward = times * s.forward;
      const backward = times * s.backward;
      add(lane, "forward", -1, 0, forward);
      for (let b = 0; b < s.buckets; b++) {
        const start = forward + backward * (b / s.buckets);
        add(lane, "backward", b, start, forward + backward * ((b + 1) / s.buckets));
      }
    }
    const done = s.forward + s.backward;
    let last = slow * s.forward + slow * s.backward;
    if (s.hosts > 1) last = Math.max(last, exchange(s, slow, add));
    const start = Math.max(done, last);
    add("worker", "update", -1, start, start + s.update);
    add("slow worker", "update", -1, last, last + slow * s.update);
    return found;
  }

  /* Add the intervals of the exchange; return when the last sum has arrived. */
  function exchange(s, slow, add) {
    const parts = partsOf(s);
    const free = {};
    function hold(lanes, kind, bucket, ready) {
      let latest = ready;
      for (const lane of Object.keys(lanes)) {
        const start = Math.max(ready, free[lane] || 0);
        free[lane] = start + lanes[lane];
        add(lane, kind, bucket, start, free[lane]);
        latest = Math.max(latest, free[lane]);
      }
      return latest;
    }
    // [ready, bucket, act]: push of the usual workers, of the slow one, their two sums, pull
    const waiting = [];
    const isBefore = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
    for (let b = 0; b < s.buckets; b++) {
      const part = s.overlap ? (b + 1) / s.buckets : 1;
      waiting.push([s.forward + s.backward * part, b, 0]);
      waiting.push([slow * s.forward + slow * s.backward * part, b, 1]);
    }
    let last = 0;
    const added = {};
    while (waiting.length) {
      let first = 0;
      for (let i = 1; i < waiting.length; i++) {
        if (isBefore(waiting[i], waiting[first]) < 0) first = i;
      }
      const [ready, b, act] = waiting[first];
      waiting[first] = waiting[waiting.length - 1];
      waiting.pop();
      if (act < 2) {
        const end = hold(act ? parts.late : parts.before, "push", b, ready);
        waiting.push([end + parts.delay, b, act + 2]);
      } else if (act < 4) {
        const end = hold({ server: act === 3 ? parts.sumLate : parts.sumEarly }, "sum", b, ready);
        if (b in added) waiting.push([Math.max(end, added[b]), b, 4]);
        added[b] = end;
      } else {
        last = Math.max(last, hold(parts.after, "pull", b, ready) + parts.delay);
      }
    }
    return last;
  }

  // Until the last worker has made its update.
  const seconds = (s) => Math.max(...timeline(s).map((i) => i.end));
  const efficiency = (s) => (s.forward + s.backward + s.update) / seconds(s);
  const efficiencies = (s, hosts) => hosts.map((w) => efficiency(change(s, { hosts: w })));

  /* What costs most: without it, the step would be shortest. */
  function bottleneck(s) {
    if (efficiency(s) >= FINE) return "computing";
    const without = {
      "slow worker": { slow: 1 },
      rate: { rate: Infinity },
      latency: { latency: 0 },
      sums: { adds: Infinity },
    };
    let best = null;
    for (const name of Object.keys(without)) {
      const left = seconds(change(s, without[name]));
      if (!best || left < best.left) best = { name, left };
    }
    return best.name;
  }

  // name, is it free, when does it apply, what does it change
  const REMEDIES = [
    ["sending while computing", true, (s) => !s.overlap, () => ({ overlap: true })],
    [
      "a server on each host",
      true,
      (s) => !s.is_ring && s.servers > 0 && s.servers < s.hosts,
      () => ({ servers: 0 }),
    ],
    ["a ring", true, (s) => !s.is_ring, () => ({ is_ring: true })],
    [
      "a server on each host instead of the ring",
      true,
      (s) => s.is_ring,
      () => ({ is_ring: false, servers: 0 }),
    ],
    ["two-bit pushes", true, (s) => !s.is_ring && !s.two_bits, () => ({ two_bits: true })],
    [
      "twice as many buckets",
      true,
      (s) => s.overlap && s.buckets <= 10,
      (s) => ({ buckets: 2 * s.buckets }),
    ],
    [
      "half as many buckets",
      true,
      (s) => s.buckets > 1,
      (s) => ({ buckets: Math.floor(s.buckets / 2) }),
    ],
    ["mending the slow worker", false, (s) => s.slow > 1, () => ({ slow: 1 })],
    [
      "twice the batch",
      false,
      () => true,
      (s) => ({ forward: 2 * s.forward, backward: 2 * s.backward }),
    ],
    ["a link ten times as fast", false, () => true, (s) => ({ rate: 10 * s.rate })],
    ["a tenth of the latency", false, () => true, (s) => ({ latency: s.latency / 10 })],
    ["sums four times as fast", false, () => true, (s) => ({ adds: 4 * s.adds })],
  ];

  function remedies(s) {
    const now = efficiency(s);
    return REMEDIES.filter((remedy) => remedy[2](s))
      .map(([name, isFree, , changes]) => {
        return { name, isFree, efficiency: efficiency(change(s, changes(s))), changes: changes(s) };
      })
      .filter((remedy) => remedy.efficiency >= now + GAIN)
      .sort((a, b) => b.efficiency - a.efficiency);
  }

  const percent = (share) => Math.floor(100 * share + 0.5);

  const BLAMED = {
    "slow worker": "All wait for the slow worker.",
    rate: "The workers wait for the link: its rate is too low.",
    latency: "The workers wait for the link: its latency is too high.",
    sums: "The workers wait for the sums: adding up is too slow.",
  };

  function advice(s) {
    const now = percent(efficiency(s));
    if (s.hosts === 1) return "A single worker exchanges nothing: its step is all computing.";
    const name = bottleneck(s);
    if (name === "computing") return `Computing is ${now}\u00a0% of the step: this is what you want.`;
    const best = remedies(s).slice(0, 2);
    if (!best.length) return `${BLAMED[name]} No single change would help.`;
    const words = best[0].name[0].toUpperCase() + best[0].name.slice(1);
    let sentence = `${BLAMED[name]} ${words} would raise the efficiency to ${percent(best[0].efficiency)}\u00a0%`;
    if (best.length > 1) sentence += `, ${best[1].name} to ${percent(best[1].efficiency)}\u00a0%`;
    return `${sentence}.`;
  }

  return {
    MESSAGE, timeline, seconds, efficiency, efficiencies, bottleneck, remedies, percent, advice,
  };
})();
