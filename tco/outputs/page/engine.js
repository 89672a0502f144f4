// The engine of the page: the cells of the trace, and the lines that compute them from each other.
class Engine {
  constructor({ leaves, lines }) {
    this.lines = lines;
    this.first = leaves.length; // the cell of the first line
    this.values = new Float64Array(leaves.length + lines.length);
    this.values.set(leaves);
    this.stale = new Uint8Array(this.values.length);
    lines.forEach((line, at) => { this.values[this.first + at] = this.compute(line); });
  }

  compute([formula, ...cells]) {
    return FORMULAS[formula](...cells.map(cell => this.values[cell]));
  }

  // Give some inputs new values, and compute what rests on them: a line none of whose cells has moved is passed by.
  set(changes) {
    this.stale.fill(0);
    for (const [cell, value] of changes) this.move(cell, value);
    this.lines.forEach((line, at) => {
      for (let place = 1; place < line.length; place++) {
        if (this.stale[line[place]]) {
          this.move(this.first + at, this.compute(line));
          return;
        }
      }
    });
  }

  move(cell, value) {
    if (Object.is(this.values[cell], value)) return;
    this.values[cell] = value;
    this.stale[cell] = 1;
  }
}
