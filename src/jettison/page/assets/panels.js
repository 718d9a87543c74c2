// Draws the panels of a query, by their tag. Texts come from data: they are set as text, never as markup.
"use strict";

// A section that is drawn again keeps its parts: the next part is the node that stood there, or a new one.
const panels = new Map();
const pen = { made: null, place: 0 };
let sections = 0;

function part(kind, make) {
  const there = pen.made.children[pen.place++];
  if (there && there.dataset.part === kind) return there;
  const made = make();
  made.dataset.part = kind;
  if (there) remove(there, made); else pen.made.append(made);
  return made;
}

function remove(node, ...instead) {
  for (const chart of node.parentNode.querySelectorAll(".chart")) if (node.contains(chart)) { sizes.unobserve(chart); Plotly.purge(chart); }
  node.replaceWith(...instead);
}

function words(kind, text) {
  const made = part(kind, () => element(kind === "title" ? "h3" : "p", null, kind === "title" ? {} : { class: "note" }));
  if (changed(made, text)) made.textContent = text;
  return made;
}

function section(title, note) {
  const id = words("title", title).id ||= `p-${++sections}`;
  pen.made.setAttribute("aria-labelledby", id);
  if (note) words("note", note);
}

function chartIn(kind = "") {
  return part("chart " + kind, () => element("div", null, { class: "chart " + kind, role: "img" }));
}

function boxIn(label, make) {
  const box = part(label, () => element("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": label }));
  if (!box.firstChild) box.append(make());
  return box;
}

function tableIn(header, rows) {
  table(boxIn("table", () => element("table")).firstChild, header, rows);
}

function panelsOf(view) {
  const parent = $("panels"), keys = [];
  for (const panel of view.panels) {
    let key = JSON.stringify([view.checkpoint, panel.panel, panel.point ?? panel.query ?? panel.title]);
    while (keys.includes(key)) key += "'";
    if (!panels.has(key)) panels.set(key, element("section"));
    pen.made = panels.get(key);
    pen.place = 0;
    if (parent.children[keys.length] !== pen.made) parent.insertBefore(pen.made, parent.children[keys.length] ?? null);
    keys.push(key);
    (PANELS[panel.panel] ?? PANELS.table)(panel);
    if (panel.note) words("note", panel.note);
    while (pen.made.children.length > pen.place) remove(pen.made.lastChild);
  }
  for (const [key, made] of panels) if (!keys.includes(key)) { remove(made); panels.delete(key); }
}

const SCALE = () => [[0, colour("dropped")], [1, colour("kept")]];

const PANELS = {
  table(panel) {
    section(panel.title, panel.text);
    if (panel.rows.length) tableIn(panel.columns, panel.rows);
  },
  windows(panel) {
    const of = { k: 1, d: 0, v: 0.5, "?": null };
    const fate = { k: "kept", d: "dropped", v: "can never have an answer", "?": "not on record" };
    const marks = [...panel.marks], gone = marks.filter((mark) => mark === "d").length;
    const decided = gone + marks.filter((mark) => mark === "k").length;
    const gap = panel.max_gap == null ? "" : `; at most ${panel.max_gap} in a row may be missing`;
    section(`Windows of ${panel.query}`, `${number.format(gone)} of the last ${number.format(decided)} windows are dropped${gap}.`);
    const x = panel.start_s.length ? panel.start_s.map(date) : marks.map((_, place) => panel.first + place);
    draw(chartIn("low"), [{ type: "heatmap", x, y: ["window"], z: [marks.map((mark) => of[mark])], text: [marks.map((mark) => fate[mark])], zmin: 0, zmax: 1, colorscale: SCALE(), showscale: false, xgap: 1, hovertemplate: "%{x}: %{text}<extra></extra>" }],
      { hovermode: "closest", showlegend: false, yaxis: { showticklabels: false } }, `${gone} of ${decided} windows dropped`);
    words("note", "Blue is kept, red is dropped: every window that is delivered is whole.");
  },
  groups(panel) {
    const by = panel.columns.length ? `by ${panel.columns.join(", ")}` : "";
    section(`Groups at ${panel.point} ${by}`, `${number.format(panel.named)} groups are thinned in the newest pane on the plan; of all others ${percent(panel.others)} is kept, in new panes ${percent(panel.new)}. A plan names groups by a hash of their key.`);
    if (panel.groups.length) {
      draw(chartIn(), [{ type: "bar", x: panel.groups.map((group) => plain(group.hash)), y: panel.groups.map((group) => group.keep_fraction), marker: { color: colour("kept") }, hovertemplate: "group %{x}: %{y:.3f} kept<extra></extra>" }],
        { hovermode: "closest", showlegend: false, yaxis: { range: [0, 1], tickformat: ".0%" }, xaxis: { type: "category", tickangle: 40 } }, `Share kept of ${panel.groups.length} groups`);
    }
    if (panel.at_s.length > 1) {
      draw(chartIn("low"), [line("distance", panel.at_s.map(date), panel.distance, colour("bound"), { hovertemplate: "%{y:.3f}<extra></extra>" })], { showlegend: false }, "How far the groups of a pane lie from those of the pane before");
      words("note", "How far the groups of each pane lie from those of the pane before.");
    }
  },
  regions(panel) {
    const rest = panel.averaged_over.length ? ` Over ${panel.averaged_over.join(", ")} the mean by volume is shown.` : "";
    section(`Regions at ${panel.point}`, `Share kept by region; outside of the domain ${percent(panel.outside)}.${rest}`);
    const flat = panel.attributes.length === 1;
    const ticks = (axis) => (panel.values[axis] && panel.values[axis].length ? { tickvals: panel.values[axis].map((_, place) => place + 0.5), ticktext: panel.values[axis].map(plain) } : {});
    draw(chartIn("tall"), [{ type: "heatmap", x: panel.edges[0], y: flat ? [0, 1] : panel.edges[1], z: panel.keep, zmin: 0, zmax: 1, colorscale: SCALE(), colorbar: { tickformat: ".0%", thickness: 12 }, hovertemplate: "%{x:.4g}" + (flat ? "" : ", %{y:.4g}") + ": %{z:.1%} kept<extra></extra>" }],
      { hovermode: "closest", showlegend: false, xaxis: { title: { text: plain(panel.attributes[0]) }, ...ticks(0) }, yaxis: flat ? { showticklabels: false } : { title: { text: plain(panel.attributes[1]) }, rangemode: "normal", ...ticks(1) } }, `Map of shares kept over ${panel.attributes.join(" and ")}`);
  },
  network(panel) {
    section("Network", "Red: rows are dropped on this way, and the share that is kept. Delivered and utility: by the plan.");
    const WIDE = 190, HIGH = 74, x = (node) => 10 + node.x * WIDE, y = (node) => 14 + node.y * HIGH;
    const by = Object.fromEntries(panel.nodes.map((node) => [node.name, node]));
    const width = 140 + WIDE * Math.max(...panel.nodes.map((node) => node.x)), height = 64 + HIGH * Math.max(...panel.nodes.map((node) => node.y));
    const svg = (tag, attributes, text) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      if (text != null) made.textContent = text;
      return made;
    };
    const root = svg("svg", { class: "network", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "The network with its drops" });
    for (const edge of panel.edges) {
      const from = by[edge.source], to = by[edge.target], dropping = edge.keep_fraction < 1 || edge.ranges.length;
      const [x0, y0, x1, y1] = [x(from) + 120, y(from) + 20, x(to), y(to) + 20];
      root.append(svg("path", { d: `M${x0},${y0} C${x0 + 35},${y0} ${x1 - 35},${y1} ${x1},${y1}`, class: dropping ? "dropping" : "" }));
      const kept = edge.ranges.length ? `${percent(edge.keep_fraction)} without ${edge.ranges.map(([low, end]) => `${low}–${end}`).join(", ")}` : percent(edge.keep_fraction);
      if (dropping) root.append(svg("text", { x: (x0 + x1) / 2, y: (y0 + y1) / 2 - 5, class: "dropping", "text-anchor": "middle" }, kept));
    }
    for (const node of panel.nodes) {
      root.append(svg("rect", { x: x(node), y: y(node), width: 120, height: 40, rx: 6, class: node.kind }));
      root.append(svg("text", { x: x(node) + 8, y: y(node) + 17 }, node.name.length > 16 ? node.name.slice(0, 15) + "…" : node.name));
      const at = panel.at_input[node.name];
      const said = node.utility != null ? `${percent(node.delivered)}, utility ${node.utility.toFixed(2)}` : at != null && at < 1 ? `keeps ${percent(at)}` : node.kind;
      root.append(svg("text", { x: x(node) + 8, y: y(node) + 33, class: at != null && at < 1 ? "dropping" : "soft" }, said));
    }
    const box = boxIn("network", () => root);
    if (changed(box, panel)) box.replaceChildren(root);
    const outputs = panel.nodes.filter((node) => node.kind === "output");
    tableIn(["output", "delivered", "utility"], outputs.map((node) => [node.name, percent(node.delivered), node.utility == null ? "–" : node.utility.toFixed(3)]));
  },
  keys(panel) {
    section(`Expensive keys: ${panel.title}`, panel.text);
    if (panel.rows.length) tableIn(panel.columns, panel.rows);
    if (panel.at_s.length > 1) {
      const x = panel.at_s.map(date);
      draw(chartIn(), [
        line("time in the function", x, panel.busy_s, colour("time"), { hovertemplate: "%{y:.2f} s spent<extra></extra>" }),
        line("spared by drops", x, panel.spared_s, colour("dropped"), { hovertemplate: "%{y:.2f} s spared<extra></extra>" }),
        line("longest wait", x, panel.longest_wait_s, colour("soft"), { line: { dash: "dot" }, hovertemplate: "%{y:.2f} s waited<extra></extra>" }),
      ], { yaxis: { ticksuffix: " s" } }, "Seconds spent and spared in each batch");
    }
    const dropped = Object.entries(panel.dropped_keys);
    if (dropped.length) tableIn(["most dropped keys", "rows dropped"], dropped.map(([key, rows]) => [key, number.format(rows)]));
  },
};
