// Draws what the ledger says. Texts come from data: they are set as text, never as markup.
"use strict";

const EVERY_MS = 2000;
const embedded = document.getElementById("data");
const $ = (id) => document.getElementById(id);
const state = { views: [], selected: 0, point: "", failed: false };

const number = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const percent = (share) => (share == null ? "–" : (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + "\u00a0%");
const seconds = (value) => (value == null ? "–" : value.toFixed(value < 10 ? 2 : 1) + " s");
const duration = (value) => (value >= 1 ? value.toPrecision(3) + " s" : value >= 1e-3 ? (1e3 * value).toPrecision(3) + " ms" : (1e6 * value).toPrecision(3) + " µs");
const date = (at_s) => new Date(1000 * at_s);
const clock = (at_s) => date(at_s).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text != null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function table(target, header, rows) {
  const head = element("tr");
  header.forEach((cell) => head.append(element("th", cell, { scope: "col" })));
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    row.forEach((cell) => line.append(element("td", cell)));
    body.append(line);
  }
  const top = element("thead");
  top.append(head);
  target.replaceChildren(top, body);
}

// ---- charts ----

function layout(more = {}) {
  const axis = { gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("grid"), automargin: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("ink"), family: colour("font"), size: 12 },
    margin: { l: 46, r: 12, t: 8, b: 34 }, hovermode: "x unified", showlegend: true,
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") }, namelength: -1 },
    legend: { orientation: "h", y: 1.16, x: 0, font: { size: 11 }, bgcolor: "rgba(0,0,0,0)", borderwidth: 0 },
    ...more,
    xaxis: { ...axis, nticks: Math.max(3, Math.round(window.innerWidth / 160)), tickangle: 0, ...(more.xaxis || {}) },
    yaxis: { ...axis, rangemode: "tozero", ...(more.yaxis || {}) },
  };
}

function draw(target, traces, more, label) {
  target.setAttribute("aria-label", label);
  Plotly.react(target, traces, layout(more), { displayModeBar: false, responsive: true });
}

// Text in a chart passes through the library's own small markup: what comes from data must not be read as such.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function wrapped(text, width = 60) {
  const lines = [""];
  for (const word of String(text).split(" ")) {
    if (lines[lines.length - 1].length + word.length > width) lines.push("");
    lines[lines.length - 1] += (lines[lines.length - 1] ? " " : "") + word;
  }
  return lines.slice(0, 6).map(plain).join("<br>");
}

function line(name, x, y, color, more = {}) {
  return { type: "scatter", mode: "lines", name, x, y, line: { color, width: 2, ...(more.line || {}) }, ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "line")) };
}

function rowsChart(view) {
  const series = view.series;
  const names = state.point ? [state.point] : view.points.filter((point) => point.entrance).map((point) => point.name);
  const sum = (by) => series.at_s.map((_, place) => names.reduce((total, name) => total + ((by[name] || [])[place] || 0), 0));
  const x = series.started_s.map(date), seen = sum(series.seen_per_s), kept = sum(series.kept_per_s);
  const causes = Object.fromEntries(view.changes.filter((change) => change.kind === "plan").map((change) => [change.version, change.text]));
  const why = series.plan_version.map((version, place) => {
    const batches = series.first[place] === series.last[place] ? `batch ${series.last[place]}` : `batches ${series.first[place]} to ${series.last[place]}`;
    const cause = version == null ? "no plan was found: every row kept" : causes[version];
    return plain(batches) + (cause ? "<br>" + wrapped(`plan ${version ?? "–"}: ${cause}`) : "");
  });
  draw($("rows"), [
    line("kept", x, kept, colour("kept"), { fill: "tozeroy", fillcolor: colour("kept-fill"), hovertemplate: "%{y:,.0f} kept<extra></extra>" }),
    line("seen; dropped is the area between", x, seen, colour("dropped"), { fill: "tonexty", fillcolor: colour("dropped-fill"), text: why, hovertemplate: "%{y:,.0f} seen<br>%{text}<extra></extra>" }),
  ], { xaxis: { range: span(view) } }, `Rows per second seen and kept at ${names.join(", ")}; last ${Math.round(seen.at(-1) || 0)} seen, ${Math.round(kept.at(-1) || 0)} kept`);
}

function latencyChart(view) {
  const series = view.series, x = series.at_s.map(date);
  const traces = [line("latency", x, series.latency_s, colour("kept"), { mode: "lines+markers", marker: { size: 4, color: series.latency_s.map((value) => (view.bound_s != null && value > view.bound_s ? colour("bad") : colour("kept"))) }, hovertemplate: "%{y:.2f} s<extra></extra>" }),
    line("batch", x, series.duration_s, colour("soft"), { line: { width: 1, dash: "dot" }, hovertemplate: "batch took %{y:.2f} s<extra></extra>" })];
  if (view.bound_s != null) traces.push(line("bound", [x[0], x.at(-1)], [view.bound_s, view.bound_s], colour("bound"), { line: { dash: "dash" }, hoverinfo: "skip" }));
  const over = series.latency_s.filter((value) => view.bound_s != null && value > view.bound_s).length;
  draw($("latency"), traces, { xaxis: { range: span(view) }, yaxis: { ticksuffix: " s" } }, `Latency over time against a bound of ${seconds(view.bound_s)}; ${over} of ${x.length} points lie above it`);
}

const span = (view) => [date(view.series.started_s[0]), date(view.series.at_s.at(-1))];

function modelChart(view) {
  const model = view.model;
  $("model-section").hidden = !model;
  if (!model) return;
  const x = model.at_s.map(date);
  draw($("model"), [
    line("arrive", x, model.arrival_per_s, colour("dropped"), { line: { shape: "hv" }, hovertemplate: "%{y:,.0f} rows/s arrive<extra></extra>" }),
    line("can be processed", x, model.capacity_per_s, colour("good"), { line: { shape: "hv" }, hovertemplate: "%{y:,.0f} rows/s fit<extra></extra>" }),
  ], view.series ? { xaxis: { range: span(view) } } : {}, "Rows per second that arrive and that can be processed, at each change of plan");
  const last = model.at_s.length - 1;
  const noise = model.noise[last] == null ? "" : `, give or take ${percent(model.noise[last])}`;
  $("model-text").textContent = `A batch is taken to cost ${duration(model.fixed_s[last])} + ${duration(model.per_seen_row_s[last])} for each row seen + ${duration(model.per_kept_row_s[last])} for each row kept${noise}. Capacity: rows per second that fit into batches of half the bound.`;
}

function boundsChart(view) {
  const names = view.series ? Object.keys(view.series.bounds) : [];
  $("bounds-section").hidden = !names.length;
  if (!names.length) return;
  const x = view.series.at_s.map(date), colours = ["kept", "dropped", "good", "bound", "soft"];
  const traces = names.flatMap((name, place) => {
    const of = { x, connectgaps: true, legendgroup: String(place) }, ink = colour(colours[place % colours.length]);
    return [
      line(plain(name), x, view.series.bounds[name], ink, { ...of, hovertemplate: "± %{y:.2%} in the median<extra>" + plain(name) + "</extra>" }),
      line("", x, view.series.bounds_p95[name], ink, { ...of, showlegend: false, line: { width: 1, dash: "dot" }, hovertemplate: "± %{y:.2%} in 95 % of answers<extra>" + plain(name) + "</extra>" }),
    ];
  });
  draw($("bounds"), traces, { xaxis: { range: span(view) }, yaxis: { tickformat: ".1%" } }, `Half the width of error bounds over time, of ${names.join(", ")}`);
  $("bounds-text").textContent = `Half the width of the 95 % bounds relative to the answer${view.dry_run ? ", as it would be without the dry run" : ""}: line, in the median of the answers; dots, at most in 95 % of them.`;
}

// ---- panels, by their tag ----

function section(title, note) {
  const made = element("section"), id = "p-" + document.querySelectorAll("#panels section").length;
  made.append(element("h3", title, { id }));
  made.setAttribute("aria-labelledby", id);
  if (note) made.append(element("p", note, { class: "note" }));
  $("panels").append(made);
  return made;
}

function chartIn(parent, kind = "") {
  const made = element("div", null, { class: "chart " + kind, role: "img" });
  parent.append(made);
  return made;
}

function tableIn(parent, header, rows) {
  const box = element("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" });
  const made = element("table");
  table(made, header, rows);
  box.append(made);
  parent.append(box);
}

const SCALE = () => [[0, colour("dropped")], [1, colour("kept")]];

const PANELS = {
  table(panel) {
    const made = section(panel.title, panel.text);
    if (panel.rows.length) tableIn(made, panel.columns, panel.rows);
  },
  windows(panel) {
    const of = { k: 1, d: 0, v: 0.5, "?": null };
    const words = { k: "kept", d: "dropped", v: "can never have an answer", "?": "not on record" };
    const marks = [...panel.marks], gone = marks.filter((mark) => mark === "d").length;
    const gap = panel.max_gap == null ? "" : `; at most ${panel.max_gap} in a row may be missing`;
    const made = section(`Windows of ${panel.query}`, `${number.format(gone)} of the last ${number.format(marks.length)} windows are dropped${gap}.`);
    const x = panel.start_s.length ? panel.start_s.map(date) : marks.map((_, place) => panel.first + place);
    draw(chartIn(made, "low"), [{ type: "heatmap", x, y: ["window"], z: [marks.map((mark) => of[mark])], text: [marks.map((mark) => words[mark])], zmin: 0, zmax: 1, colorscale: SCALE(), showscale: false, xgap: 1, hovertemplate: "%{x}: %{text}<extra></extra>" }],
      { hovermode: "closest", showlegend: false, yaxis: { showticklabels: false } }, `${gone} of ${marks.length} windows dropped`);
    made.append(element("p", "Blue is kept, red is dropped: every window that is delivered is whole.", { class: "note" }));
  },
  groups(panel) {
    const by = panel.columns.length ? `by ${panel.columns.join(", ")}` : "";
    const made = section(`Groups at ${panel.point} ${by}`, `${number.format(panel.named)} groups are thinned in the newest pane on the plan; of all others ${percent(panel.others)} is kept, in new panes ${percent(panel.new)}. A plan names groups by a hash of their key.`);
    if (panel.groups.length) {
      draw(chartIn(made), [{ type: "bar", x: panel.groups.map((group) => plain(group.hash)), y: panel.groups.map((group) => group.keep_fraction), marker: { color: colour("kept") }, hovertemplate: "group %{x}: %{y:.3f} kept<extra></extra>" }],
        { hovermode: "closest", showlegend: false, yaxis: { range: [0, 1], tickformat: ".0%" }, xaxis: { type: "category", tickangle: 40 } }, `Share kept of ${panel.groups.length} groups`);
    }
    if (panel.at_s.length > 1) {
      draw(chartIn(made, "low"), [line("distance", panel.at_s.map(date), panel.distance, colour("bound"), { hovertemplate: "%{y:.3f}<extra></extra>" })], { showlegend: false }, "How far the groups of a pane lie from those of the pane before");
      made.append(element("p", "How far the groups of each pane lie from those of the pane before.", { class: "note" }));
    }
  },
  regions(panel) {
    const rest = panel.averaged_over.length ? ` Over ${panel.averaged_over.join(", ")} the mean by volume is shown.` : "";
    const made = section(`Regions at ${panel.point}`, `Share kept by region; outside of the domain ${percent(panel.outside)}.${rest}`);
    const flat = panel.attributes.length === 1;
    const ticks = (axis) => (panel.values[axis] && panel.values[axis].length ? { tickvals: panel.values[axis].map((_, place) => place + 0.5), ticktext: panel.values[axis].map(plain) } : {});
    draw(chartIn(made, "tall"), [{ type: "heatmap", x: panel.edges[0], y: flat ? [0, 1] : panel.edges[1], z: panel.keep, zmin: 0, zmax: 1, colorscale: SCALE(), colorbar: { tickformat: ".0%", thickness: 12 }, hovertemplate: "%{x:.4g}" + (flat ? "" : ", %{y:.4g}") + ": %{z:.1%} kept<extra></extra>" }],
      { hovermode: "closest", showlegend: false, xaxis: { title: { text: plain(panel.attributes[0]) }, ...ticks(0) }, yaxis: flat ? { showticklabels: false } : { title: { text: plain(panel.attributes[1]) }, rangemode: "normal", ...ticks(1) } }, `Map of shares kept over ${panel.attributes.join(" and ")}`);
  },
  network(panel) {
    const made = section("Network", "Red: rows are dropped on this way, and the share that is kept. Delivered and utility: by the plan.");
    const WIDE = 190, HIGH = 74, x = (node) => 10 + node.x * WIDE, y = (node) => 14 + node.y * HIGH;
    const by = Object.fromEntries(panel.nodes.map((node) => [node.name, node]));
    const width = 140 + WIDE * Math.max(...panel.nodes.map((node) => node.x)), height = 64 + HIGH * Math.max(...panel.nodes.map((node) => node.y));
    const svg = (tag, attributes, text) => {
      const drawn = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) drawn.setAttribute(name, value);
      if (text != null) drawn.textContent = text;
      return drawn;
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
      const words = node.utility != null ? `${percent(node.delivered)}, utility ${node.utility.toFixed(2)}` : at != null && at < 1 ? `keeps ${percent(at)}` : node.kind;
      root.append(svg("text", { x: x(node) + 8, y: y(node) + 33, class: at != null && at < 1 ? "dropping" : "soft" }, words));
    }
    const box = element("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": "network" });
    box.append(root);
    made.append(box);
    const outputs = panel.nodes.filter((node) => node.kind === "output");
    tableIn(made, ["output", "delivered", "utility"], outputs.map((node) => [node.name, percent(node.delivered), node.utility == null ? "–" : node.utility.toFixed(3)]));
  },
  keys(panel) {
    const made = section(`Expensive keys: ${panel.title}`, panel.text);
    if (panel.rows.length) tableIn(made, panel.columns, panel.rows);
    if (panel.at_s.length > 1) {
      const x = panel.at_s.map(date);
      draw(chartIn(made), [
        line("time in the function", x, panel.busy_s, colour("kept"), { hovertemplate: "%{y:.2f} s spent<extra></extra>" }),
        line("spared by drops", x, panel.spared_s, colour("dropped"), { hovertemplate: "%{y:.2f} s spared<extra></extra>" }),
        line("longest wait", x, panel.longest_wait_s, colour("soft"), { line: { dash: "dot" }, hovertemplate: "%{y:.2f} s waited<extra></extra>" }),
      ], { yaxis: { ticksuffix: " s" } }, "Seconds spent and spared in each batch");
    }
    const dropped = Object.entries(panel.dropped_keys);
    if (dropped.length) tableIn(made, ["most dropped keys", "rows dropped"], dropped.map(([key, rows]) => [key, number.format(rows)]));
  },
};

// ---- the page ----

function tiles(view) {
  const over = view.latency_s != null && view.bound_s != null && view.latency_s > view.bound_s;
  const stuck = view.running_batch_s != null && view.bound_s != null && view.running_batch_s > view.bound_s;
  const about = view.estimated_batches ? "about " : "";
  const shares = view.points.filter((point) => point.keep_fraction != null && point.entrance).map((point) => point.keep_fraction);
  const entries = [
    ["Latency", seconds(view.latency_s), (view.bound_s == null ? "" : `of ${seconds(view.bound_s)} allowed`) + (stuck ? `; the batch that runs has taken ${seconds(view.running_batch_s)}` : ""), over || stuck],
    ["Plan keeps", shares.length ? percent(Math.min(...shares)) : "–", shares.length > 1 ? "at the strictest drop point" : view.dry_run ? "dry run: nothing is dropped" : view.policy],
    ["Rows kept", view.seen ? percent(view.kept / view.seen) : "–", `${about}${short.format(view.kept)} of ${short.format(view.seen)}`],
    ["Rows dropped", short.format(view.dropped), `in ${number.format(view.batches)} batches`],
    ["Faults", number.format(Object.values(view.faults).reduce((a, b) => a + b, 0)), Object.entries(view.faults).map(([kind, count]) => `${kind} ${count}`).join(", ") || "none in sight"],
  ];
  $("tiles").replaceChildren(...entries.map(([name, value, note, bad]) => {
    const made = element("div");
    made.append(element("dt", name), element("dd", value, bad ? { class: "over" } : {}));
    if (note) made.lastChild.append(element("small", note));
    return made;
  }));
}

function show(view) {
  document.title = `${view.name} – Jettison`;
  $("title").textContent = view.name;
  $("state").textContent = view.state_text;
  $("state").className = `dot ${view.state}`;
  $("cause").textContent = view.plan_version == null ? "" : `Plan ${view.plan_version}: ${view.cause}${(view.orders ?? []).map((order) => ` Set: ${order}.`).join("")}`;
  tiles(view);
  const select = $("point"), options = ["", ...view.points.map((point) => point.name)];
  if (!options.includes(state.point)) state.point = "";
  if ([...select.options].map((option) => option.value).join("\n") !== options.join("\n")) {
    select.replaceChildren(...options.map((name) => element("option", name || "all at the entrance", { value: name })));
  }
  select.value = state.point;
  if (view.series) { rowsChart(view); latencyChart(view); }
  modelChart(view);
  boundsChart(view);
  table($("points"), ["drop point", "kind", "plan keeps", "of late rows", "last batch", "seen", "kept", "dropped"], view.points.map((point) => [
    point.name, point.setting || "–", percent(point.keep_fraction), percent(point.late_keep_fraction),
    `${short.format(point.last_kept)} of ${short.format(point.last_seen)}`, short.format(point.seen), short.format(point.kept), short.format(point.dropped)]));
  $("answers").textContent = view.answers ? `Answers: ${view.answers}.` : "";
  $("panels").replaceChildren();
  for (const panel of view.panels) {
    (PANELS[panel.panel] ?? PANELS.table)(panel);
    if (panel.note) $("panels").lastChild.append(element("p", panel.note, { class: "note" }));
  }
  const list = $("changes"), top = list.scrollTop;
  list.replaceChildren(...view.changes.toReversed().map((change) => {
    const made = element("li", null, { class: change.kind });
    const shares = Object.entries(change.shares), least = shares.length ? Math.min(...shares.map(([, share]) => share)) : null;
    made.append(element("time", clock(change.at_s), { datetime: date(change.at_s).toISOString() }));
    made.append(element("b", change.kind === "plan" ? `plan ${change.version}${least == null ? "" : " keeps " + percent(least)}` : change.kind));
    made.append(element("span", change.text));
    return made;
  }));
  list.scrollTop = top;
}

function tabs() {
  const nav = $("queries");
  nav.hidden = state.views.length < 2;
  const made = state.views.map((view, place) => {
    const chosen = place === state.selected;
    const tab = element("button", null, { role: "tab", id: `tab-${place}`, "aria-selected": chosen, "aria-controls": "query", tabindex: chosen ? 0 : -1, type: "button" });
    tab.append(element("b", view.name), element("span", `${view.state}, ${seconds(view.latency_s)}${view.bound_s == null ? "" : " of " + seconds(view.bound_s)}, ${view.seen ? percent(view.kept / view.seen) : "–"} kept`));
    tab.addEventListener("click", () => choose(place));
    return tab;
  });
  const focused = nav.contains(document.activeElement);
  nav.replaceChildren(...made);
  if (focused) made[state.selected].focus();
}

async function choose(place) {
  state.selected = (place + state.views.length) % state.views.length;
  history.replaceState(null, "", `#${state.selected}`);
  tabs();
  await refresh();
}

async function fetched(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
}

async function refresh() {
  if (embedded) { show(state.views[state.selected]); return; }
  try {
    state.views = (await fetched("api/queries")).queries;
    state.selected = Math.min(state.selected, state.views.length - 1);
    const view = await fetched(`api/query/${state.selected}`);
    tabs();
    show(view);
    $("fresh").textContent = `${view.batches_shown < view.batches ? `last ${number.format(view.batches_shown)} of ${number.format(view.batches)} batches, ` : ""}updated ${new Date().toLocaleTimeString()}`;
  } catch (error) {
    $("fresh").textContent = `no answer from the server (${error.message}); trying again`;
  }
}

$("queries").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  choose(state.selected + step);
});
$("point").addEventListener("change", (event) => { state.point = event.target.value; refresh(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
state.selected = parseInt(location.hash.slice(1), 10) || 0;

(async () => {
  if (embedded) {
    state.views = JSON.parse(embedded.textContent).queries;
    state.selected = Math.min(state.selected, state.views.length - 1);
    $("fresh").textContent = `as of ${clock(state.views[0].at_s)}`;
    tabs();
    await refresh();
    return;
  }
  for (;;) {
    if (!document.hidden) await refresh();
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
})();
