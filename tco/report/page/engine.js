// The engine of the page: the cells of the program, the lines that compute them from each other, and the choice among the plans it carries.
const DECODE = 1, PREFILL = 2, BATCH = 4; // what a cell may rest on: plans on either axis, and the batch of those that decode
const ROUNDS = 80, NEAR = 1e-12; // far more than it takes to find a batch, and how near to the time allowed is near enough

class Engine {
  constructor({ leaves, lines, batch, most }) {
    Object.assign(this, { lines, batch, most, first: leaves.length });
    this.values = new Float64Array(leaves.length + lines.length);
    this.rests = new Uint8Array(this.values.length);
    this.rows = new Map(); // cell -> its number on each plan
    leaves.forEach((leaf, cell) => {
      if (Array.isArray(leaf)) {
        this.rows.set(cell, leaf.slice(1));
        this.rests[cell] = leaf[0] ? PREFILL : DECODE;
      } else this.values[cell] = leaf ?? Infinity; // which JSON has no number for
    });
    if (batch !== null) this.rests[batch] = BATCH;
    lines.forEach(([, ...cells], at) => { this.rests[this.first + at] = cells.reduce((all, cell) => all | this.rests[cell], 0); });
  }

  // The cells that some results rest on, in the order they are computed in.
  reach(wanted) {
    const seen = new Set(), stack = wanted.filter(cell => cell !== undefined);
    while (stack.length) {
      const cell = stack.pop();
      if (seen.has(cell)) continue;
      seen.add(cell);
      if (cell >= this.first) stack.push(...this.lines[cell - this.first].slice(1));
    }
    return [...seen].sort((one, other) => one - other);
  }

  run(cells) { // of lines
    const { values, lines, first } = this;
    for (const cell of cells) {
      const line = lines[cell - first], compute = FORMULAS[line[0]];
      switch (line.length) {
        case 2: values[cell] = compute(values[line[1]]); break;
        case 3: values[cell] = compute(values[line[1]], values[line[2]]); break;
        case 4: values[cell] = compute(values[line[1]], values[line[2]], values[line[3]]); break;
        default: values[cell] = compute(...line.slice(1).map(one => values[one]));
      }
    }
  }
}

// A scenario on plans that share their steps: the best of them wherever its inputs lie, or why there is none.
class Choice {
  constructor(engine, results) {
    Object.assign(this, { engine, results });
    const cells = engine.reach(Object.values(results));
    const lines = names => engine.reach(names.map(name => results[name])).filter(cell => cell >= engine.first);
    const resting = (names, fits) => lines(names).filter(cell => fits(engine.rests[cell]));
    this.inputs = cells.filter(cell => cell < engine.first && !engine.rests[cell]);
    this.fixed = resting(Object.keys(results), rests => !rests);
    this.rest = resting(Object.keys(results), rests => rests);
    this.reading = resting(["prompt", "prompts", "prompts held"], rests => rests);
    this.before = resting(["token", "tokens", "held"], rests => rests && !(rests & BATCH));
    this.timing = resting(["token"], rests => rests & BATCH);
    this.making = resting(["token", "tokens"], rests => rests & BATCH);
    this.holding = resting(["held"], rests => rests & BATCH);
    this.rows = [DECODE, PREFILL].map(axis => cells.filter(cell => engine.rows.has(cell) && engine.rests[cell] === axis));
    this.counts = this.rows.map(some => Math.max(1, ...some.map(cell => engine.rows.get(cell).length)));
  }

  at(name) { return this.engine.values[this.results[name]]; }

  place(axis, row) {
    for (const cell of this.rows[axis]) this.engine.values[cell] = this.engine.rows.get(cell)[row];
  }

  with(batch, cells) {
    this.engine.values[this.engine.batch] = batch;
    this.engine.run(cells);
  }

  decide() {
    this.engine.run(this.fixed);
    const found = "token" in this.results ? this.pools() : "needed" in this.results ? this.loaded() : { row: 0 };
    if (found.row !== undefined) this.engine.run(this.rest);
    return found;
  }

  // Pools in balance: the plan that reads most prompts in time, and the plan that decodes most tokens at the speed asked for.
  pools() {
    const memory = this.at("memory"), wait = this.at("longest wait") || Infinity, allowed = 1 / this.at("interactivity");
    let ready, read = 0, soonest = Infinity;
    for (let row = 0; row < this.counts[1]; row++) {
      this.place(1, row);
      this.engine.run(this.reading);
      if (!(this.at("prompts held") <= memory)) continue;
      soonest = Math.min(soonest, this.at("prompt"));
      if (this.at("prompt") <= wait && this.at("prompts") > read) [ready, read] = [row, this.at("prompts")];
    }
    let best, made = 0, sequences, least = Infinity, quickest = 0;
    for (let row = 0; row < this.counts[0]; row++) {
      this.place(0, row);
      this.engine.run(this.before);
      const [none, one] = [0, 1].map(batch => { this.with(batch, this.holding); return this.at("held"); });
      least = Math.min(least, one);
      if (!(one <= memory)) continue;
      const most = Math.min(Math.max((memory - none) / (one - none), 1), this.engine.most);
      const batch = this.largest(most, allowed, made);
      quickest = Math.max(quickest, this.quick);
      if (!batch) continue;
      this.with(batch, this.making);
      if (this.at("tokens") > made) [best, made, sequences] = [row, this.at("tokens"), batch];
    }
    if (best === undefined || ready === undefined) {
      if (best === undefined) return { why: quickest ? ["speed", quickest, this.at("interactivity")] : ["memory", least, memory] };
      return { why: soonest < Infinity ? ["wait", soonest, wait] : ["memory", this.at("prompts held"), memory] };
    }
    this.place(0, best);
    this.place(1, ready);
    this.engine.values[this.engine.batch] = sequences;
    return { row: best, batch: sequences };
  }

  time(batch) { this.with(batch, this.timing); return this.at("token"); }

  // The most sequences in time, none where one is late, or where what they make is no more than has been made: time rises with them, in steps too.
  largest(most, allowed, made) {
    this.with(1, this.making);
    const one = this.at("token"), each = this.at("tokens") * one; // tokens of a step for each sequence
    this.quick = 1 / one;
    if (one > allowed) return 0;
    const enough = made * allowed / each;
    const time = this.time(Math.min(Math.max(enough, 1), most));
    if (enough >= most) return time <= allowed && each * most / time > made ? most : 0;
    if (time > allowed) return 0;
    if (this.time(most) <= allowed) return most;
    let low = Math.max(enough, 1), high = most, under = this.time(low) / allowed - 1, [left, right] = [under, this.time(high) / allowed - 1];
    for (let round = 0, last = 0; round < ROUNDS && high - low > NEAR * high && under < -NEAR; round++) { // by false position, halved where it stands still
      const middle = low + (high - low) * (round % 3 === 2 ? 0.5 : left / (left - right)), off = this.time(middle) / allowed - 1, now = Math.sign(off) || -1;
      if (now < 0) [low, under, left, right] = [middle, off, off, last < 0 ? right / 2 : right];
      else [high, right, left] = [middle, off, last > 0 ? left / 2 : left];
      last = now;
    }
    return low;
  }

  // Engines with some requests in flight, or a whole queue: the most tokens of those that meet the targets.
  loaded() {
    const memory = this.at("memory"), wait = this.at("longest wait") || Infinity;
    let best, made = 0, least = Infinity, quickest = 0;
    for (let row = 0; row < this.counts[0]; row++) {
      this.place(0, row);
      this.engine.run(this.rest);
      least = Math.min(least, this.at("needed"));
      if (!(this.at("needed") <= memory)) continue;
      quickest = Math.max(quickest, this.at("tokens_per_s_per_user"));
      const meets = this.counts[0] === 1 || this.at("offline") > 0 || (this.at("tokens_per_s_per_user") >= this.at("interactivity") && this.at("ttft_s") <= wait);
      if (meets && this.at("output_tokens_per_s_per_chip") > made) [best, made] = [row, this.at("output_tokens_per_s_per_chip")];
    }
    if (best === undefined) return { why: quickest ? ["speed", quickest, this.at("interactivity")] : ["memory", least, memory] };
    this.place(0, best);
    return { row: best };
  }
}

// A scenario as somebody pays for it: its metrics on the best plan, or why it is not possible.
class Way {
  constructor(engine, { results, plans, racks, none }) {
    Object.assign(this, { engine, plans, racks, none, choices: results.map(one => new Choice(engine, one)) });
    this.reads = new Set(this.choices.flatMap(one => one.inputs));
  }

  get metrics() {
    const now = [...this.reads].map(cell => this.engine.values[cell]);
    if (!this.known || now.some((value, at) => value !== this.seen[at])) [this.seen, this.known] = [now, this.decide()];
    return this.known;
  }

  decide() {
    if (this.none) return { why: ["none", this.none] };
    let best, least;
    for (const choice of this.choices) {
      const found = choice.decide(), held = choice.at("held"), memory = choice.at("memory");
      if (this.beyond(choice)) return { why: ["power", choice.at("power") / this.racks, choice.at("position")] };
      const names = Object.keys(choice.results).filter(name => !found.why || !this.engine.rests[choice.results[name]]); // what rests on no plan stays
      const told = Object.fromEntries(names.map(name => [name, choice.at(name)]));
      if (found.why) return { ...told, why: found.why };
      const late = "step" in choice.results && held > memory;
      if (late) least = Math.min(least ?? Infinity, held);
      else if (!best || told.step < best.step) best = { ...told, plan: this.plans[found.row], batch: found.batch };
    }
    return best ?? { why: ["memory", least, this.choices[0].at("memory")] };
  }

  beyond(choice) { // a rack that draws more than its position takes; of domains that share a rack, a single one
    const power = choice.at("power"), position = choice.at("position") * (1 + 1e-9);
    return power / this.racks > position && (this.racks >= 1 || power > position);
  }
}
