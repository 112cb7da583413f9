"use strict";
// Layered drawing after Sugiyama, Tagawa and Toda (1981): long edges are cut by unseen waypoints, one a layer; layers are ordered
// by the mean place of their neighbours, in sweeps; then each is moved as near to its neighbours as its order and widths allow,
// which is an isotonic regression.

const GAP = 26, STEP = 40, SWEEPS = 8, WAYPOINTS = 4000;

// `boxes` have key, width, height and order; `edges` are pairs of keys, of which those against the order count for nothing.
// Gives the centres by key, the corners of each edge in order, and the whole's width and height.
function arrange(boxes, edges) {
  const order = new Map(boxes.map(b => [b.key, b.order]));
  const names = boxes.map(b => b.key).sort((a, b) => order.get(a) - order.get(b));
  const rank = new Map(names.map((name, k) => [name, k]));
  const down = edges.filter(([a, b]) => rank.get(a) < rank.get(b));
  const layer = layersOf(names, down), width = new Map(boxes.map(b => [b.key, b.width]));
  const rows = [], above = new Map(), below = new Map(), chains = new Map();
  const push = (map, key, value) => map.has(key) ? map.get(key).push(value) : map.set(key, [value]);
  for (const name of names) (rows[layer.get(name)] ??= []).push(name);
  const long = down.reduce((sum, [a, b]) => sum + layer.get(b) - layer.get(a) - 1, 0);
  for (const [a, b] of down) {
    const chain = [a];
    for (let depth = layer.get(a) + 1; long <= WAYPOINTS && depth < layer.get(b); depth++) {
      const waypoint = { depth };
      width.set(waypoint, 0);
      rows[depth].push(waypoint);
      chain.push(waypoint);
    }
    chain.push(b);
    for (let k = 1; k < chain.length; k++) { push(below, chain[k - 1], chain[k]); push(above, chain[k], chain[k - 1]); }
    chains.set(`${a}>${b}`, chain);
  }
  sortRows(rows, above, below);
  const x = abscissas(rows, above, below, width);
  const height = new Map(boxes.map(b => [b.key, b.height])), y = new Map();
  let top = 0;
  for (const row of rows) {
    const most = Math.max(...row.map(name => height.get(name) ?? 0));
    for (const name of row) y.set(name, top + most / 2);
    top += most + STEP;
  }
  const left = Math.min(...names.map(n => x.get(n) - width.get(n) / 2)), right = Math.max(...names.map(n => x.get(n) + width.get(n) / 2));
  const point = name => [x.get(name) - left, y.get(name)];
  return {
    centres: new Map(names.map(name => [name, point(name)])),
    corners: edges.map(([a, b]) => (chains.get(`${a}>${b}`) ?? []).slice(1, -1).map(point)),
    width: names.length ? right - left : 0, height: Math.max(0, top - STEP),
  };
}

// Below every predecessor, but as late as its readers allow for what has no more inputs than readers.
function layersOf(names, edges) {
  const before = new Map(names.map(n => [n, []])), after = new Map(names.map(n => [n, []])), layer = new Map();
  for (const [a, b] of edges) { before.get(b).push(a); after.get(a).push(b); }
  for (const n of names) layer.set(n, Math.max(0, ...before.get(n).map(p => layer.get(p) + 1)));
  for (const n of [...names].reverse()) {
    if (after.get(n).length && before.get(n).length <= after.get(n).length) {
      layer.set(n, Math.min(...after.get(n).map(s => layer.get(s))) - 1);
    }
  }
  const used = [...new Set(layer.values())].sort((a, b) => a - b), number = new Map(used.map((depth, k) => [depth, k]));
  for (const n of names) layer.set(n, number.get(layer.get(n)));
  return layer;
}

const mean = (values, otherwise) => values.length ? values.reduce((a, b) => a + b, 0) / values.length : otherwise;

function sortRows(rows, above, below) {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0, neighbours = down ? above : below;
    for (let k = 1; k < rows.length; k++) {
      const depth = down ? k : rows.length - 1 - k;
      const place = new Map(rows[down ? depth - 1 : depth + 1].map((name, i) => [name, i]));
      const wanted = new Map(rows[depth].map((name, i) => [name, mean((neighbours.get(name) ?? []).map(n => place.get(n) ?? 0), i)]));
      rows[depth].sort((a, b) => wanted.get(a) - wanted.get(b));
    }
  }
}

function abscissas(rows, above, below, width) {
  const x = new Map();
  const put = (row, wanted) => spaced(wanted, row.map(n => width.get(n))).forEach((value, i) => x.set(row[i], value));
  for (const row of rows) put(row, row.map(() => 0));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const neighbours = sweep % 2 === 0 ? above : below;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      put(row, row.map(name => mean((neighbours.get(name) ?? []).map(n => x.get(n)), x.get(name))));
    }
  }
  return x;
}

// Centres as near to those wanted as keeps their order and a gap between: pooled adjacent violators.
function spaced(wanted, widths) {
  const offsets = [];
  widths.forEach((w, i) => offsets.push(i ? offsets[i - 1] + (widths[i - 1] + w) / 2 + GAP : 0));
  const pools = [];
  wanted.forEach((value, i) => {
    let pool = { sum: value - offsets[i], size: 1 };
    while (pools.length && pools.at(-1).sum * pool.size >= pool.sum * pools.at(-1).size) {
      const last = pools.pop();
      pool = { sum: pool.sum + last.sum, size: pool.size + last.size };
    }
    pools.push(pool);
  });
  return pools.flatMap(pool => Array(pool.size).fill(pool.sum / pool.size)).map((value, i) => value + offsets[i]);
}

if (typeof module !== "undefined") module.exports = { arrange, GAP };
