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
        const [axis, numbers, indices] = leaf;
        this.rows.set(cell, indices.map(index => numbers[index] ?? Infinity));
        this.rests[cell] = axis ? PREFILL : DECODE;
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

// The best of some candidate plans: the highest score of those that fit memory and meet their target; and beside it the leanest, and the quickest that fits.
function best(count, memory, judge) {
  let chosen = { score: 0 }, least = Infinity, quickest = 0;
  for (let row = 0; row < count; row++) {
    const { need, speed = 0, meets = true, score, batch } = judge(row, chosen.score);
    least = Math.min(least, need);
    if (!(need <= memory)) continue;
    quickest = Math.max(quickest, speed);
    if (meets && score > chosen.score) chosen = { row, score, batch };
  }
  return { ...chosen, least, quickest };
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
    const memory = this.at("memory"), wait = this.at("longest wait") || Infinity, speed = this.at("interactivity");
    const prefill = best(this.counts[1], memory, row => {
      this.place(1, row);
      this.engine.run(this.reading);
      return { need: this.at("prompts held"), speed: 1 / this.at("prompt"), meets: this.at("prompt") <= wait, score: this.at("prompts") };
    });
    const decode = best(this.counts[0], memory, (row, score) => this.decoding(row, memory, 1 / speed, score));
    if (decode.row === undefined) return { why: decode.quickest ? ["speed", decode.quickest, speed] : ["memory", decode.least, memory] };
    if (prefill.row === undefined) return { why: prefill.quickest ? ["wait", 1 / prefill.quickest, wait] : ["memory", prefill.least, memory] };
    this.place(0, decode.row);
    this.place(1, prefill.row);
    this.engine.values[this.engine.batch] = decode.batch;
    return decode;
  }

  // A plan that decodes, with the most sequences in time, where these make more than has been made.
  decoding(row, memory, allowed, made) {
    this.place(0, row);
    this.engine.run(this.before);
    const [none, need] = [0, 1].map(batch => { this.with(batch, this.holding); return this.at("held"); });
    if (!(need <= memory)) return { need };
    const most = Math.min(Math.max((memory - none) / (need - none), 1), this.engine.most);
    const batch = this.largest(most, allowed, made);
    if (batch) this.with(batch, this.making);
    return { need, speed: this.quick, meets: batch > 0, score: this.at("tokens"), batch };
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
    const memory = this.at("memory"), wait = this.at("longest wait") || Infinity, asked = this.at("interactivity");
    const found = best(this.counts[0], memory, row => {
      this.place(0, row);
      this.engine.run(this.rest);
      const speed = this.at("tokens_per_s_per_user");
      const meets = this.counts[0] === 1 || this.at("offline") > 0 || (speed >= asked && this.at("ttft_s") <= wait);
      return { need: this.at("needed"), speed, meets, score: this.at("output_tokens_per_s_per_chip") };
    });
    if (found.row === undefined) return { why: found.quickest ? ["speed", found.quickest, asked] : ["memory", found.least, memory] };
    this.place(0, found.row);
    return { row: found.row };
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
    const answers = [];
    for (const choice of this.choices) {
      answers.push(this.answer(choice));
      if (answers.at(-1).why) return answers.at(-1);
    }
    const memory = this.choices[0].at("memory");
    const found = best(answers.length, memory, row => { // plans of training, of which the quickest that fits
      const { step, held } = answers[row];
      return step === undefined ? { need: 0, score: 1 } : { need: held, score: 1 / step };
    });
    return answers[found.row] ?? { why: ["memory", found.least, memory] };
  }

  answer(choice) { // what a scenario comes to on the best of the plans of a choice
    const found = choice.decide();
    if (this.beyond(choice)) return { why: ["power", choice.at("power") / this.racks, choice.at("position")] };
    const names = Object.keys(choice.results).filter(name => !found.why || !this.engine.rests[choice.results[name]]); // what rests on no plan stays
    const told = Object.fromEntries(names.map(name => [name, choice.at(name)]));
    return found.why ? { ...told, why: found.why } : { ...told, plan: this.plans[found.row], batch: found.batch };
  }

  beyond(choice) { // a rack that draws more than its position takes; of domains that share a rack, a single one
    const power = choice.at("power"), position = choice.at("position") * (1 + 1e-9);
    return power / this.racks > position && (this.racks >= 1 || power > position);
  }
}
