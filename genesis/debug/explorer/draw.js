"use strict";
// The page: draws what shows of the tree, and answers the mouse, the keyboard and the search.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const drawing = byId("drawing"), scene = byId("scene"), panel = byId("panel");
const SVG = "http://www.w3.org/2000/svg", PAD = 16, HEAD = 26, HEIGHT = 46, CHARACTER = 7.4, LONGEST = 34;
let program, root, graph, chosen = null, hits = [], view = { x: 0, y: 0, scale: 1 };

function make(name, attributes, parent, ...content) {
  const drawn = ["g", "rect", "path", "text", "tspan", "title"].includes(name);
  const element = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...content);
  parent?.append(element);
  return element;
}

const ms = value => value === 0 ? "" : value < 0.001 ? "< 1 µs" : value < 1 ? `${(1e3 * value).toFixed(value < .1 ? 1 : 0)} µs` : `${value.toFixed(2)} ms`;
const share = value => program.ms && value ? `${(100 * value / program.ms).toFixed(value < .1 * program.ms ? 1 : 0)} %` : "";
const cut = text => text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
const heat = item => `color-mix(in srgb, var(--hot) ${(80 * Math.sqrt(item.ms / (hottest() || 1))).toFixed(1)}%, var(--box))`;
const hottest = () => Math.max(...graph.boxes.map(b => b.ms), 0);
const under = item => item.kind === "op" ? item.type : [ms(item.ms), share(item.ms), `${item.count} op${item.count === 1 ? "" : "s"}`].filter(Boolean).join(" · ");

// ---- where things go ----

function measure(item, across) {
  if (item.kind === "op" || !item.open) {
    const name = cut(item.kind === "op" ? `%${item.id} ${item.name}` : item.name);
    item.w = 34 + CHARACTER * Math.max(name.length, 0.85 * under(item).length);
    item.h = HEIGHT;
    return;
  }
  item.children.forEach(child => measure(child, false));
  const boxes = item.children.map((c, k) => ({ key: k, width: across ? c.h : c.w, height: across ? c.w : c.h, order: c.order }));
  const number = new Map(item.children.map((c, k) => [c, k]));
  const found = arrange(boxes, item.links.map(([a, b]) => [number.get(a), number.get(b)]));
  const turned = ([x, y]) => across ? [y, x] : [x, y];
  item.children.forEach((c, k) => [c.dx, c.dy] = turned(found.centres.get(k)));
  item.corners = new Map(item.links.map(([a, b], k) => [`${number.get(a)}>${number.get(b)}`, found.corners[k].map(turned)]));
  item.number = number;
  const [w, h] = turned([found.width, found.height]);
  item.w = Math.max(w, CHARACTER * (item.name.length + 16)) + 2 * PAD;
  item.h = h + 2 * PAD + HEAD;
  item.shift = (item.w - 2 * PAD - w) / 2;
}

function locate(item, x, y) {
  [item.x, item.y] = [x, y];
  if (item.kind === "op" || !item.open) return;
  const left = item.left = x - item.w / 2 + PAD + item.shift, top = item.top = y - item.h / 2 + PAD + HEAD;
  for (const child of item.children) locate(child, left + child.dx, top + child.dy);
}

function chain(item) { const all = []; for (let p = item; p; p = p.parent) all.unshift(p); return all; }

function link() {
  (function clear(item) { if (item.kind !== "op") { item.links = []; item.linked = new Set(); item.children.forEach(clear); } })(root);
  for (const edge of graph.edges) {
    const a = chain(edge.from), b = chain(edge.to);
    let depth = 0;
    while (a[depth + 1] === b[depth + 1]) depth++;
    const lowest = a[depth], pair = [a[depth + 1], b[depth + 1]], key = pair.map(c => c.order).join(">") + pair.map(c => c.name).join(">");
    edge.within = pair[0] === edge.from && pair[1] === edge.to ? lowest : null;
    if (!lowest.linked.has(key)) { lowest.linked.add(key); lowest.links.push(pair); }
  }
}

// ---- drawing ----

function curve(points) {
  let path = `M${points[0]}`;
  for (let k = 1; k < points.length; k++) {
    const [x0, y0] = points[k - 1], [x1, y1] = points[k], middle = (y0 + y1) / 2;
    path += ` C${x0},${middle} ${x1},${middle} ${x1},${y1}`;
  }
  return path;
}

function pathOf(edge) {
  const { from: a, to: b, within } = edge;
  if (within && within !== root || within === root && !root.across) {
    const between = (within.corners.get(`${within.number.get(a)}>${within.number.get(b)}`) ?? []).map(([x, y]) => [within.left + x, within.top + y]);
    const down = a.y < b.y;
    return curve([[a.x, a.y + (down ? a.h : -a.h) / 2], ...between, [b.x, b.y - (down ? b.h + 2 : -b.h - 2) / 2]]);
  }
  const right = a.x < b.x, x0 = a.x + (right ? a.w : -a.w) / 2, x1 = b.x - (right ? b.w + 2 : -b.w - 2) / 2;
  if (Math.abs(a.x - b.x) < (a.w + b.w) / 2) return curve([[a.x, a.y + Math.sign(b.y - a.y) * a.h / 2], [b.x, b.y - Math.sign(b.y - a.y) * b.h / 2]]);
  const middle = (x0 + x1) / 2;
  return `M${x0},${a.y} C${middle},${a.y} ${middle},${b.y} ${x1},${b.y}`;
}

function draw() {
  graph = visible(root);
  link();
  root.across = root.children.length < 8 && root.children.some(c => c.open);
  measure(root, root.across);
  locate(root, 0, 0);
  scene.replaceChildren();
  const frames = make("g", {}, scene), lines = make("g", {}, scene), boxes = make("g", {}, scene);
  (function frame(item) {
    if (item.kind === "op" || !item.open) return;
    if (item !== root) {
      make("rect", { class: "frame", x: item.x - item.w / 2, y: item.y - item.h / 2, width: item.w, height: item.h }, frames);
      const head = item.element = make("text", { class: "head", x: item.x - item.w / 2 + 12, y: item.y - item.h / 2 + 19 }, frames, `− ${item.name}  `);
      make("tspan", { class: "ms" }, head, [ms(item.ms), share(item.ms)].filter(Boolean).join(" · "));
      head.addEventListener("click", () => toggle(item));
    }
    item.children.forEach(frame);
  })(root);
  for (const edge of graph.edges) {
    const values = [...edge.values];
    edge.element = make("path", { class: `edge${edge.within ? "" : " far"}`, d: pathOf(edge), "marker-end": "url(#tip)" }, lines);
    make("title", {}, edge.element, values.slice(0, 12).map(v => `%${v.id} ${v.type}`).join("\n"));
    edge.element.addEventListener("click", () => showEdge(edge));
    if (!edge.within || edge.from.kind === "op") continue;  // an operation shows the type of its value itself
    const label = values.length === 1 ? values[0].type : `${values.length} tensors`;
    make("text", { class: "shape", x: (edge.from.x + edge.to.x) / 2, y: edge.to.y - edge.to.h / 2 - 12 }, lines, label);
  }
  for (const item of graph.boxes) box(item, boxes);
  const most = hottest();
  byId("hot").textContent = `${ms(most) || "0 ms"} a box`;
  mark();
}

function box(item, parent) {
  const classes = ["box", item.kind, item.output ? "output" : ""].join(" ");
  const element = item.element = make("g", { class: classes, transform: `translate(${item.x},${item.y})` }, parent);
  make("rect", { x: -item.w / 2, y: -item.h / 2, width: item.w, height: item.h, style: `fill:${heat(item)}` }, element);
  make("text", { class: "label", y: -5 }, element, cut(item.kind === "op" ? `%${item.id} ${item.name}` : item.name));
  make("text", { class: "ms", y: 13 }, element, under(item));
  make("title", {}, element, item.kind === "op" ? item.text : chain(item).slice(1).map(p => p.name).join(" / "));
  element.addEventListener("click", () => choose(item));
  if (item.kind === "op") return;
  element.addEventListener("dblclick", () => toggle(item));
  make("text", { class: "plus", x: item.w / 2 - 11, y: -8 }, element, "+").addEventListener("click", event => { event.stopPropagation(); toggle(item); });
}

function toggle(item) {
  const before = [item.x, item.y - item.h / 2];
  item.open = !item.open;
  draw();
  view.x += view.scale * (before[0] - item.x);
  view.y += view.scale * (before[1] - (item.y - item.h / 2));
  paint();
  choose(item);
}

function mark() {
  const found = new Set(hits.map(shown)), own = chosen && shown(chosen);
  drawing.classList.toggle("searching", hits.length > 0);
  for (const b of graph.boxes) {
    b.element.classList.toggle("hit", found.has(b));
    b.element.classList.toggle("chosen", b === own);
    b.element.classList.remove("near");
  }
  for (const edge of graph.edges) {
    const near = edge.from === own || edge.to === own;
    edge.element.classList.toggle("near", near);
    edge.element.classList.toggle("above", edge.from.order > edge.to.order);
    if (near) (edge.from === own ? edge.to : edge.from).element.classList.add("near");
  }
}

// ---- the panel ----

function facts(pairs) {
  const list = make("dl", {}, panel);
  for (const [name, value] of pairs) if (value) { make("dt", {}, list, name); make("dd", {}, list, value); }
}

function rate(launch) {
  if (!launch.ms) return "";
  return launch.flops ? `${(launch.flops / launch.ms / 1e6).toFixed(1)} GFlop/s` : `${(launch.bytes / launch.ms / 1e6).toFixed(1)} GB/s`;
}

function table(rows) {
  const body = make("tbody", {}, make("table", {}, panel));
  for (const [cells, go] of rows) {
    const row = make("tr", {}, body);
    cells.forEach((cell, k) => {
      const place = make("td", k && k < cells.length ? { class: "number" } : {}, row);
      if (k === 0 && go) make("a", {}, place, cell).addEventListener("click", go); else place.append(cell);
    });
  }
}

function opsOf(item) { return item.kind === "op" ? [item] : item.children.flatMap(opsOf); }

function launchTable(ops) {
  const times = new Map();
  for (const op of ops) if (op.launch >= 0) times.set(op.launch, (times.get(op.launch) ?? 0) + op.ms);
  const rows = [...times].sort((a, b) => b[1] - a[1]);
  if (!rows.length) return;
  make("h3", {}, panel, `${rows.length} launch${rows.length === 1 ? "" : "es"}, the longest first`);
  table(rows.slice(0, 40).map(([k, time]) => {
    const launch = program.launches[k], first = ops.find(op => op.launch === k);
    return [[`#${launch.stage} ${cut(launch.title)}`, ms(time), rate(launch)], () => go(first)];
  }));
}

function lineTable(ops) {
  const times = new Map();
  for (const op of ops) if (program.lines[op.line][0]) times.set(op.line, (times.get(op.line) ?? 0) + op.ms);
  if (!times.size) return;
  make("h3", {}, panel, "lines");
  table([...times].sort((a, b) => b[1] - a[1]).slice(0, 20).map(([k, time]) => [[program.lines[k].join("  "), ms(time)], null]));
}

function overview() {
  chosen = null;
  mark();
  panel.replaceChildren();
  make("h2", {}, panel, `program ${program.number}`);
  facts([["ran", `${program.runs} time${program.runs === 1 ? "" : "s"}`], ["takes", ms(program.ms)],
         ["holds", `${root.count} operations in ${program.launches.length} launches`]]);
  make("p", { class: "faint" }, panel, "Click a box to read about it, + or a double click to unfold it, a frame's name to fold it. Colour is time.");
  launchTable([...root.nodes.values()]);
  lineTable([...root.nodes.values()]);
  make("h3", {}, panel, "program");
  make("pre", {}, panel, program.instructions.join("\n"));
}

function choose(item) {
  chosen = item;
  mark();
  panel.replaceChildren();
  make("h2", {}, panel, item.kind === "op" ? `%${item.id} ${item.name}` : item.name);
  const place = chain(item).slice(1, -1).map(p => p.name).join(" / "), launch = program.launches[item.launch];
  if (item.kind === "op") {
    const [line, source] = program.lines[item.line];
    facts([["type", item.type], ["in", place], ["stage", launch && `#${launch.stage}`], ["takes", [ms(item.ms), share(item.ms)].filter(Boolean).join(", ")],
           ["result", item.output ? "of the program" : ""]]);
    make("pre", {}, panel, item.text);
    if (line) { make("h3", {}, panel, line); if (source) make("pre", {}, panel, source); }
    neighbours("reads", item.inputs.map(i => root.nodes.get(i)));
    neighbours("read by", [...root.nodes.values()].filter(n => n.inputs.includes(item.id)));
  } else {
    facts([["in", place], ["takes", [ms(item.ms), share(item.ms)].filter(Boolean).join(", ")], ["holds", `${item.count} operations`]]);
    make("a", {}, panel, item.open ? "fold" : "unfold").addEventListener("click", () => toggle(item));
    if (!launch) { launchTable(opsOf(item)); lineTable(opsOf(item)); }
  }
  if (launch) code(launch, program.lines[item.line ?? item.children[0].line][0]);
}

function neighbours(title, items) {
  if (!items.length) return;
  make("h3", {}, panel, title);
  table(items.slice(0, 20).map(other => [[`%${other.id} ${other.name}`, other.type], () => go(other)]));
}

function code(launch, line) {
  make("h3", {}, panel, launch.kernel ? `kernel of stage #${launch.stage}` : `stage #${launch.stage}`);
  const names = values => values.map(v => `%${v}`).join(", ");
  facts([["name", launch.kernel], ["takes", [ms(launch.ms), share(launch.ms)].filter(Boolean).join(", ")], ["rate", rate(launch)],
         ["reads", names(launch.reads)], ["writes", names(launch.writes)]]);
  const text = make("pre", { id: "code" }, panel);
  for (const row of launch.source.split("\n")) text.append(row.endsWith(`# ${line}`) ? make("mark", {}, null, row) : row, "\n");
}

function showEdge(edge) {
  chosen = null;
  mark();
  edge.element.classList.add("near");
  panel.replaceChildren();
  make("h2", {}, panel, `${edge.from.name} → ${edge.to.name}`);
  neighbours(`${edge.values.size} tensor${edge.values.size === 1 ? "" : "s"}`, [...edge.values]);
}

// Unfold to an operation, and look at it.
function go(item) {
  reveal(item);
  draw();
  choose(item);
  centre(item);
}

// ---- view ----

function paint() {
  scene.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
  drawing.classList.toggle("small", view.scale < 0.55);
}

function centre(item, scale = Math.max(view.scale, 0.8)) {
  const frame = drawing.getBoundingClientRect();
  view = { scale, x: frame.width / 2 - scale * item.x, y: frame.height / 2 - scale * item.y };
  paint();
}

function fit() {
  const frame = drawing.getBoundingClientRect();
  centre(root, Math.min(1.3, 0.97 * Math.min(frame.width / root.w, frame.height / root.h)));
}

function zoom(factor, x = drawing.clientWidth / 2, y = drawing.clientHeight / 2) {
  const scale = Math.min(6, Math.max(0.02, view.scale * factor));
  view = { scale, x: x - (x - view.x) * scale / view.scale, y: y - (y - view.y) * scale / view.scale };
  paint();
}

// ---- search and keys ----

function search(text) {
  hits = find(root, program, text);
  byId("found").textContent = text.trim() ? `${hits.length} found` : "";
  mark();
  if (!hits.length) { overview(); return; }
  panel.replaceChildren();
  make("h2", {}, panel, `${hits.length} found`);
  neighbours("operations, the longest first", [...hits].sort((a, b) => b.ms - a.ms));
}

// The nearest box in a direction, so that arrows walk over what is seen.
function step(dx, dy) {
  const from = chosen ? shown(chosen) : null;
  if (!from) { if (graph.boxes.length) choose(graph.boxes[0]); return; }
  let best = null, least = Infinity;
  for (const item of graph.boxes) {
    const ahead = (item.x - from.x) * dx + (item.y - from.y) * dy, aside = Math.abs((item.x - from.x) * dy) + Math.abs((item.y - from.y) * dx);
    if (ahead > 1 && ahead + 2 * aside < least) { best = item; least = ahead + 2 * aside; }
  }
  if (best) { choose(best); centre(best, view.scale); }
}

const KEYS = {
  "/": ["search; Enter goes to the next hit", () => byId("search").focus()],
  ArrowUp: ["to the box above", () => step(0, -1)], ArrowDown: ["below", () => step(0, 1)],
  ArrowLeft: ["left", () => step(-1, 0)], ArrowRight: ["right", () => step(1, 0)],
  Enter: ["unfold or fold the chosen box", () => chosen && chosen.kind !== "op" && toggle(chosen)],
  Backspace: ["fold the group around it", () => chosen?.parent && chosen.parent !== root && toggle(chosen.parent)],
  f: ["show all", fit], "+": ["nearer", () => zoom(1.3)], "-": ["farther", () => zoom(1 / 1.3)],
  0: ["fold as at the start", () => show(data.programs.indexOf(program))], t: ["dark or light", () => theme()],
  n: ["the next program", () => show((data.programs.indexOf(program) + 1) % data.programs.length)],
  Escape: ["choose nothing", () => { byId("search").value = ""; search(""); }], "?": ["these keys", keys],
};

function keys() {
  panel.replaceChildren();
  make("h2", {}, panel, "keys");
  const list = make("dl", {}, panel);
  for (const [key, [meaning]] of Object.entries(KEYS)) { make("kbd", {}, make("dt", {}, list), key); make("dd", {}, list, meaning); }
}

function theme(wanted) {
  const next = wanted ?? (document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  document.documentElement.dataset.theme = next;
}

function show(number) {
  program = data.programs[number];
  byId("program").value = number;
  root = tree(program);
  openFirst(root);
  [chosen, hits] = [null, []];
  draw();
  overview();
  fit();
}

addEventListener("keydown", event => {
  const typing = event.target === byId("search");
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === byId("program")) return;
  if (typing && event.key === "Enter" && hits.length) { go(hits[(hits.indexOf(chosen) + 1) % hits.length]); return; }
  if (typing && event.key === "Escape") drawing.focus();
  else if (typing || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key][1]();
});
drawing.addEventListener("wheel", event => {
  event.preventDefault();
  const frame = drawing.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - frame.left, event.clientY - frame.top);
}, { passive: false });
let grip = null;
drawing.addEventListener("pointerdown", event => { grip = { x: event.clientX - view.x, y: event.clientY - view.y, moved: false }; });
addEventListener("pointermove", event => {
  if (!grip) return;
  const x = event.clientX - grip.x, y = event.clientY - grip.y;
  if (Math.abs(x - view.x) + Math.abs(y - view.y) > 3) grip.moved = true;
  if (grip.moved) { drawing.classList.add("dragging"); [view.x, view.y] = [x, y]; paint(); }
});
addEventListener("pointerup", () => { drawing.classList.remove("dragging"); setTimeout(() => { grip = null; }); });
drawing.addEventListener("click", event => { if (event.target === drawing && !grip?.moved) overview(); });
byId("fit").addEventListener("click", fit);
byId("start").addEventListener("click", () => show(data.programs.indexOf(program)));
byId("theme").addEventListener("click", () => theme());
byId("search").addEventListener("input", event => search(event.target.value));
byId("program").addEventListener("change", event => show(+event.target.value));
addEventListener("resize", () => root && fit());

byId("script").textContent = data.script;
document.title = `genesis graph: ${data.script}`;
theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
data.programs.forEach((p, k) => make("option", { value: k }, byId("program"),
  `program ${p.number}: ${p.nodes.length} operations, ran ${p.runs}×, ${ms(p.ms) || "0 ms"}`));
if (data.programs.length) show(data.programs.reduce((best, p, k) => p.ms * p.runs > data.programs[best].ms * data.programs[best].runs ? k : best, 0));
else make("p", {}, panel, "The script computed nothing.");
