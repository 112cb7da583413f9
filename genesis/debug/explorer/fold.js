"use strict";
// The tree of a program: groups by scope (phase, module, line), in them launches, in them operations. Nothing here draws.

const MOST = 30;  // boxes that a group unfolds to, and that a program opens with

function group(name, kind, parent) {
  return { name, kind, parent, children: [], below: new Map(), order: Infinity, ms: 0, count: 0, open: false };
}

function inside(parent, key, name, kind) {
  if (!parent.below.has(key)) {
    const made = group(name, kind, parent);
    parent.below.set(key, made);
    parent.children.push(made);
  }
  return parent.below.get(key);
}

// What computes nothing stands with its first reader: inputs anywhere, views of a launch within their own scope.
function adopted(nodes) {
  const reader = new Map(), place = new Map();
  for (const node of nodes) for (const i of node.inputs) if (!reader.has(i)) reader.set(i, node.id);
  for (let k = nodes.length - 1; k >= 0; k--) {
    const node = nodes[k], first = place.get(reader.get(node.id));
    let { scope, launch } = node;
    if (first && node.kind === "source") ({ scope, launch } = first);
    else if (first && launch < 0 && first.scope === scope) launch = first.launch;
    place.set(node.id, { scope, launch });
  }
  return place;
}

function tree(program) {
  const root = group(`program ${program.number}`, "program", null), place = adopted(program.nodes);
  root.nodes = new Map();
  for (const node of program.nodes) {
    const { scope, launch } = place.get(node.id);
    let parent = root;
    for (const name of program.scopes[scope]) parent = inside(parent, name, name, "scope");
    if (launch >= 0) {
      parent = inside(parent, launch, program.launches[launch].title, "launch");
      parent.launch = launch;
    }
    const leaf = { ...node, name: node.label, kind: "op", parent, order: node.id, count: 1, op: node.kind };
    parent.children.push(leaf);
    root.nodes.set(node.id, leaf);
  }
  collapse(root);
  bundle(root);
  total(root);
  return root;
}

// A group of one thing is that thing.
function collapse(parent) {
  parent.children = parent.children.map(child => {
    if (child.kind === "op") return child;
    collapse(child);
    if (child.children.length > 1) return child;
    const only = child.children[0];
    if (only.kind === "scope" && child.kind === "scope") only.name = `${child.name}.${only.name}`;
    only.parent = parent;
    return only;
  });
}

// Children past MOST are put into groups of neighbours.
function bundle(parent) {
  for (const child of parent.children) if (child.kind !== "op") bundle(child);
  while (parent.children.length > MOST) {
    const size = Math.max(2, Math.ceil(parent.children.length / MOST)), all = parent.children;
    parent.children = [];
    for (let k = 0; k < all.length; k += size) {
      if (k + 1 === all.length) { parent.children.push(all[k]); continue; }
      const made = group("", "bundle", parent);
      made.children = all.slice(k, k + size);
      for (const child of made.children) child.parent = made;
      made.name = `${made.children[0].name} … ${made.children.at(-1).name}`;
      parent.children.push(made);
    }
  }
}

function total(item) {
  if (item.kind === "op") return;
  const ids = [];
  for (const child of item.children) {
    total(child);
    item.ms += child.ms;
    item.count += child.count;
    ids.push(child.order);
  }
  item.order = ids.sort((a, b) => a - b)[ids.length >> 1];
}

// Level by level from the root, groups that hold groups of the script: the first level as far as MOST boxes allow, others whole.
function openFirst(root) {
  close(root);
  root.open = true;
  const within = item => item.children.filter(c => c.kind === "scope" && c.children.some(d => d.kind === "scope"));
  let shown = root.children.length, level = within(root), first = true;
  while (level.length) {
    const more = level.map(item => item.children.length - 1), all = more.reduce((a, b) => a + b, 0);
    if (!first && shown + all > MOST) break;
    const opened = level.filter((item, k) => shown + more[k] <= MOST && (shown += more[k], item.open = true));
    level = opened.flatMap(within);
    first = false;
  }
  return shown;
}

function close(item) {
  if (item.kind === "op") return;
  item.open = false;
  item.children.forEach(close);
}

function reveal(item) { for (let p = item.parent; p; p = p.parent) p.open = true; }

// The box that stands for an item: its outermost closed group, or itself.
function shown(item) {
  let box = item;
  for (let p = item.parent; p; p = p.parent) if (!p.open) box = p;
  return box;
}

// The boxes that show, and the edges between them, each with the values that run along it.
function visible(root) {
  const boxes = [], edges = new Map();
  (function walk(item) {
    if (item.kind === "op" || !item.open) boxes.push(item);
    else item.children.forEach(walk);
  })(root);
  const number = new Map(boxes.map((box, k) => [box, k]));
  for (const node of root.nodes.values()) {
    const to = shown(node);
    for (const i of node.inputs) {
      const source = root.nodes.get(i), from = shown(source);
      if (from === to) continue;
      const key = number.get(from) * boxes.length + number.get(to);
      if (!edges.has(key)) edges.set(key, { from, to, values: new Set() });
      edges.get(key).values.add(source);
    }
  }
  return { boxes, edges: [...edges.values()] };
}

// Operations whose name, number, type, scope, line, stage or kernel holds every word; `%7` and `#7` are whole numbers.
function find(root, program, text) {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return [...root.nodes.values()].filter(node => {
    const launch = program.launches[node.launch];
    const numbers = new Set([`%${node.id}`, launch ? `#${launch.stage}` : ""]);
    const own = [node.label, node.type, program.scopes[node.scope].join("."), ...program.lines[node.line],
                 launch ? launch.kernel : ""].join(" ").toLowerCase();
    return words.every(word => /^[%#]\d+$/.test(word) ? numbers.has(word) : own.includes(word));
  });
}

if (typeof module !== "undefined") module.exports = { tree, openFirst, reveal, shown, visible, find, MOST };
