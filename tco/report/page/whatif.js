// The what-if: sliders and fields that move inputs, the table that follows, and the address and the command that hold what was moved.
const DATA = JSON.parse(document.getElementById("whatif-data").textContent);
const ENGINE = new Engine(DATA.program);
const LEAVES = ENGINE.values.slice();
const WAYS = DATA.program.ways.map(own => Object.fromEntries(Object.entries(own).map(([who, some]) => [who, some.map(one => new Way(ENGINE, { ...one, plans: DATA.program.plans[one.plans] }))])));
DATA.controls = DATA.controls.path.map((_, at) => Object.fromEntries(Object.entries(DATA.controls).map(([key, values]) => [key, values[at]])));
const CONTROLS = new Map(DATA.controls.map(control => [control.path, control]));
const moved = new Map(); // path -> value, in the unit of its control
let who = ""; // who pays; nothing: as in the report
const rows = new Map(); // path -> the elements of its slider
const shown = []; // the cells of the table
const STEPS = 1000;
const find = id => document.getElementById(id);
const element = (name, text = "", look = "") => Object.assign(document.createElement(name), { textContent: text, className: look });

const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

// ---------------------------------------------------------------- numbers as words
const WORDS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 12 });
function significant(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size && (size < 1e-4 || size >= 1e15)) return rounded.toExponential(digits - 1);
  return WORDS.format(rounded);
}

function threeDigits(value) { // as many down a column, zeros at the end among them
  return Math.abs(value) >= 1000 || Math.abs(value) < 1e-4 ? significant(value, 3) : value.toPrecision(3);
}

const printedUnit = unit => unit === "ratio" || unit === "count" ? "" : unit;

function exact(value) { // short enough for its field
  const rounded = Number(value.toPrecision(12));
  return rounded && Math.abs(rounded) < 1e-3 ? rounded.toExponential() : String(rounded);
}

function change(now, before) {
  const share = now / before - 1;
  if (!Number.isFinite(share) || Math.abs(share) < 5e-5) return "";
  const shown = Math.abs(share) < 0.0995 ? (share * 100).toFixed(1) : significant(share * 100, 3);
  return `${share > 0 ? "+" : "−"}${shown.replace("-", "")} %`;
}

// ---------------------------------------------------------------- what inputs come to
const way = at => { // a price for a chip that is built up is another way to pay for it
  const own = WAYS[at][who || DATA.asked[at]];
  return own && (own[Number(moved.has(DATA.priced[at]))] ?? own[0]);
};
function told() { // of each scenario, its metrics and their ratios to those of the baseline
  const found = DATA.scenarios.map((_, at) => ({ ...(way(at)?.metrics ?? { why: ["none", "nobody can pay for it so"] }) }));
  for (const { metric, formula, of } of DATA.ratios) {
    for (const one of found) if (Number.isFinite(one[of]) && Number.isFinite(found[DATA.baseline][of])) one[metric] = FORMULAS[formula](found[DATA.baseline][of], one[of]);
  }
  return found;
}
const BASE = told();
let NOW = BASE;
const WHY = {
  speed: (most, asked) => `no plan is as quick as ${significant(asked)} tokens/s per user, the quickest gives ${significant(most)}`,
  wait: (least, allowed) => `a prompt takes at least ${significant(least)} s, ${significant(allowed)} s are allowed`,
  memory: (least, usable) => `the leanest plan needs ${significant(least / 1e9, 3)} GB per chip, ${significant(usable / 1e9, 3)} GB are usable`,
  power: (draws, takes) => `a rack draws ${significant(draws / 1e3)} kW, its position takes ${significant(takes / 1e3)} kW`,
  none: words => words,
};
const impossible = () => NOW.flatMap(({ why }, at) => why ? [` Not possible with ${DATA.scenarios[at]}: ${WHY[why[0]](...why.slice(1))}.`] : []).join("");
const baseOf = control => control.values[Math.max(0, control.cells.findIndex(cell => DATA.scenarios.some((_, at) => way(at)?.reads.has(cell))))];

function settle() {
  ENGINE.values.set(LEAVES.subarray(0, ENGINE.first));
  for (const [path, value] of moved) {
    const { cells, factor } = CONTROLS.get(path);
    for (const cell of cells) ENGINE.values[cell] = value * factor;
  }
  NOW = told();
  show();
}

let waiting = false;
function soon() { // at most once a frame, however often a slider speaks
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; settle(); });
}

// ---------------------------------------------------------------- the answer
function order(found) {
  const known = DATA.scenarios.map((_, at) => at).filter(at => Number.isFinite(found[at][DATA.rank.metric]));
  return known.sort((one, other) => found[one][DATA.rank.metric] - found[other][DATA.rank.metric]);
}

function say() {
  const now = order(NOW), before = order(BASE);
  if (!now.length || !DATA.rank.fair) return ""; // costs of several workloads are not held against each other
  const names = now.map(at => DATA.scenarios[at]).join(", ");
  const cost = `${significant(NOW[now[0]][DATA.rank.metric] / DATA.rank.size, 3)} ${DATA.rank.unit}`;
  if (now.length === 1) return `${DATA.rank.words} about ${cost} in the base case.`;
  const same = now.length === before.length && now.every((at, place) => at === before[place]);
  const lead = `${DATA.rank.words} least on ${DATA.scenarios[now[0]]}, about ${cost} in the base case.`;
  if (!moved.size && !who) return lead;
  return same ? `${lead} The order is as in the report.` : `${lead} The order is now ${names}.`;
}

function build() {
  const head = element("tr");
  head.append(element("th", "", "left"), ...DATA.scenarios.map(name => element("th", name, "right")));
  head.firstChild.append(element("span", "metric", "unseen"));
  [...head.children].forEach(cell => { cell.scope = "col"; });
  find("whatif-table").tHead.append(head);
  for (const row of DATA.rows) {
    const line = element("tr");
    const label = element("th", row.label, "left");
    label.scope = "row";
    line.append(label, ...DATA.scenarios.map((_, scenario) => {
      const cell = element("td", "", "right");
      Object.assign(cell.dataset, { scenario, metric: row.metric });
      const value = element("span", "", "now"), beside = element("span", "", "change");
      cell.append(value, beside);
      shown.push({ value, beside, cell, row, scenario });
      return cell;
    }));
    find("whatif-table").tBodies[0].append(line);
  }
  const plans = element("tr");
  plans.append(element("th", "plan that decodes", "left"), ...DATA.scenarios.map(() => element("td", "", "right plan")));
  plans.firstChild.scope = "row";
  if (WAYS.some(own => Object.values(own)[0][0].plans.length)) find("whatif-table").tBodies[0].append(plans);
  find("whatif-unit").textContent = `${DATA.rank.words}, ${DATA.rank.unit}; the line marks the figure of the report.`;
  for (const [scenario, name] of DATA.scenarios.entries()) {
    const bar = element("div", "", "bar");
    bar.dataset.scenario = scenario;
    bar.append(element("span", name, "name"), element("span", "", "room"), element("span", "", "value"));
    bar.children[1].append(element("i", "", "before"), element("i", "", "now"));
    bar.children[1].lastChild.style.background = `var(--series-${DATA.colours[scenario]})`;
    find("whatif-bars").append(bar);
  }
}

function show() {
  for (const { value, beside, cell, row, scenario } of shown) {
    const [now, before] = [NOW, BASE].map(found => Number.isFinite(found[scenario][row.metric]) ? found[scenario][row.metric] : undefined);
    cell.dataset.value = now ?? "";
    const side = now === undefined || before === undefined ? 0 : Math.sign(now - before) * row.better;
    put(value, now === undefined ? "–" : `~${threeDigits(now / row.size)}`);
    put(beside, now === undefined ? (NOW[scenario].why ? "not possible" : "") : before === undefined ? "" : change(now, before));
    beside.className = `change ${side > 0 ? "better" : side < 0 ? "worse" : ""}`;
  }
  document.querySelectorAll("#whatif-table .plan").forEach((cell, at) => {
    const { plan, batch } = NOW[at];
    put(cell, plan ? plan + (batch ? `, batch ${significant(batch, 3)}` : "") : "–");
  });
  const costs = DATA.scenarios.map((_, at) => [NOW, BASE].map(found => found[at][DATA.rank.metric]));
  const most = Math.max(...costs.flat().filter(Number.isFinite));
  for (const bar of find("whatif-bars").children) {
    const [now, before] = costs[bar.dataset.scenario], [, room, value] = bar.children;
    room.children[0].style.width = `${100 * (Number.isFinite(before) ? before : 0) / most}%`;
    room.children[1].style.width = Number.isFinite(now) ? `${100 * now / most}%` : "0";
    put(value, Number.isFinite(now) ? `~${threeDigits(now / DATA.rank.size)}` : "–");
  }
  put(find("whatif-verdict"), (say() + impossible()).trim());
  put(find("whatif-command"), command());
  find("what-if").classList.toggle("moved", moved.size > 0 || who !== "");
  for (const [path, row] of rows) row.box.classList.toggle("moved", moved.has(path));
}

// ---------------------------------------------------------------- sliders
const share = (control, value) => control.geometric
  ? Math.log(value / control.begin) / Math.log(control.end / control.begin)
  : (value - control.begin) / (control.end - control.begin);

function valueAt(control, place) {
  if (place === Math.round(share(control, baseOf(control)) * STEPS)) return baseOf(control);
  const part = place / STEPS;
  const value = control.geometric ? control.begin * (control.end / control.begin) ** part : control.begin + (control.end - control.begin) * part;
  return Number(value.toPrecision(4));
}

function move(path, value) { // the one way an input is moved; a value it cannot have moves nothing
  const control = CONTROLS.get(path);
  if (!control || !Number.isFinite(value) || value < control.least || value > control.most) return false;
  if (control.values.every(base => base === value)) moved.delete(path);
  else moved.set(path, value);
  display(path);
  soon();
  remember();
  return true;
}

function release(path) {
  moved.delete(path);
  display(path);
  soon();
  remember();
}

function pay(name) { // the one way to say who pays
  who = name;
  find("who").value = name;
  rows.forEach((_, path) => display(path));
  soon();
  remember();
}

function reset() {
  moved.clear();
  pay("");
}

function display(path) {
  const row = rows.get(path), control = CONTROLS.get(path);
  if (!row) return;
  const value = moved.has(path) ? moved.get(path) : baseOf(control);
  row.range.value = Math.round(share(control, value) * STEPS);
  row.range.setAttribute("aria-valuetext", `${significant(value)} ${control.unit}`.trim());
  if (document.activeElement !== row.number) row.number.value = exact(value);
  row.number.removeAttribute("aria-invalid");
}

function open(path) {
  if (rows.has(path)) return rows.get(path);
  const control = CONTROLS.get(path);
  const box = find("slider").content.firstElementChild.cloneNode(true);
  const range = box.querySelector("[type=range]"), number = box.querySelector("[type=number]");
  const label = box.querySelector("label"), hint = box.querySelector(".hint");
  range.id = `move-${path}`;
  label.htmlFor = range.id;
  label.textContent = control.what || path;
  label.title = path;
  number.setAttribute("aria-label", `${path}, exact value${control.unit ? ` in ${control.unit}` : ""}`);
  box.querySelector(".back").setAttribute("aria-label", `${path}: back to the value of the report`);
  box.querySelector(".unit").textContent = printedUnit(control.unit);
  const known = control.low !== null && control.high !== null;
  const cells = DATA.scenarios.map((_, at) => control.cells.filter(cell => way(at)?.reads.has(cell)));
  const readers = DATA.scenarios.filter((_, at) => cells[at].length);
  hint.textContent = [
    control.description,
    known && control.high > control.low ? `P5 to P95 ${significant(control.low)} to ${significant(control.high)}` : "",
    control.from,
    !readers.length ? "moves no figure shown with this buyer" : readers.length < DATA.scenarios.length ? `read by ${readers.join(", ")}` : "",
    new Set(cells.flat()).size > 1 ? "differs between scenarios: moving it makes them alike" : "",
    control.own ? "your own value" : "",
  ].filter(Boolean).join(" · ");
  const belief = box.querySelector(".belief i");
  if (known && control.high > control.low) {
    const at = [control.low, control.high].map(end => Math.min(Math.max(share(control, end), 0), 1));
    belief.style.left = `${100 * at[0]}%`;
    belief.style.width = `${100 * (at[1] - at[0])}%`;
  } else belief.parentElement.remove();
  range.addEventListener("input", () => move(path, valueAt(control, Number(range.value))));
  number.addEventListener("input", () => {
    const fine = number.value.trim() !== "" && move(path, Number(number.value));
    if (!fine) number.setAttribute("aria-invalid", "true");
  });
  number.addEventListener("change", () => { number.blur(); display(path); });
  box.querySelector(".back").addEventListener("click", () => release(path));
  find("sliders").append(box);
  const row = { box, range, number };
  rows.set(path, row);
  display(path);
  return row;
}

// ---------------------------------------------------------------- search
function search() {
  const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const list = find("found");
  list.replaceChildren();
  if (!words.length) { find("found-count").textContent = ""; return; }
  const hits = DATA.controls.filter(control => words.every(word => `${control.path} ${control.what} ${control.description} ${control.also}`.toLowerCase().includes(word)));
  for (const control of hits.slice(0, 8)) {
    const button = element("button");
    button.type = "button";
    button.append(element("span", control.path, "path"), element("span", `${significant(baseOf(control))} ${printedUnit(control.unit)}`.trim(), "is"));
    button.addEventListener("click", () => {
      const row = open(control.path);
      find("search").value = "";
      search();
      row.range.focus();
    });
    const item = element("li");
    item.append(button);
    list.append(item);
  }
  find("found-count").textContent = hits.length > 8 ? `8 of ${hits.length}: add a word` : hits.length ? "" : "no such input";
}

// ---------------------------------------------------------------- address and command
const quoted = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
const setting = ([path, value]) => `${path}=${value}${CONTROLS.get(path).unit ? ` ${CONTROLS.get(path).unit}` : ""}`;
const inOrder = () => [...moved].sort(([one], [other]) => one < other ? -1 : 1);
const settings = () => [...(who ? [`${DATA.who.path}=${who}`] : []), ...inOrder().map(setting)];
const command = () => [...DATA.command, ...settings().flatMap(one => ["--set", one])].map(quoted).join(" ");
const field = value => /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
function csv() {
  const names = DATA.rows.map(row => row.metric);
  const lines = NOW.map((found, at) => [DATA.scenarios[at], settings().join("; "), ...names.map(name => found[name] ?? ""), found.plan ?? "", found.why ? WHY[found.why[0]](...found.why.slice(1)) : ""]);
  return [["scenario", "set", ...names, "plan", "not_possible"], ...lines].map(line => line.map(field).join(",") + "\n").join("");
}

let remembering = 0;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const state = [...(who ? [[DATA.who.path, who]] : []), ...inOrder()].map(([path, value]) => `${encodeURIComponent(path)}=${value}`).join("&");
    if (state || location.hash.includes("=")) history.replaceState(null, "", state ? `#${state}` : location.pathname + location.search);
  }, 150);
}

function recall() {
  if (location.hash && !location.hash.includes("=")) return; // the anchor of a section
  reset();
  for (const [path, text] of new URLSearchParams(location.hash.slice(1))) {
    if (path === DATA.who.path && [...find("who").options].some(one => one.value === text)) pay(text);
    else if (text.trim() !== "" && move(path, Number(text))) open(path);
  }
  settle();
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    find("copied").textContent = `${what} copied`;
  } catch { // a page that was opened from a file may not write there
    const all = document.createRange();
    all.selectNodeContents(find("whatif-command"));
    getSelection().removeAllRanges();
    getSelection().addRange(all);
    find("copied").textContent = what === "Link" ? "copy the address of the page" : "selected: copy it with the keyboard";
  }
}

build();
DATA.controls.filter(control => control.open).forEach(control => open(control.path));
find("search-count").textContent = DATA.controls.length;
find("search").addEventListener("input", search);
find("reset").addEventListener("click", reset);
find("who").append(...[["", "as in the report"], ...DATA.who.options].map(([value, text]) => Object.assign(element("option", text), { value })));
find("who").addEventListener("change", () => pay(find("who").value));
find("who").parentElement.hidden = DATA.who.options.length < 2;
find("download").addEventListener("click", () => {
  const link = Object.assign(element("a"), { download: "what-if.csv", href: URL.createObjectURL(new Blob([csv()], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
find("copy-command").addEventListener("click", () => copy(command(), "Command"));
find("copy-link").addEventListener("click", () => copy(location.href, "Link"));
addEventListener("hashchange", recall);
find("bench").hidden = false;
recall();
