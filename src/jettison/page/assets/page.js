// Draws what the ledger says. Texts come from data: they are set as text, never as markup.
"use strict";

const EVERY_MS = 2000;
const embedded = document.getElementById("data");
const $ = (id) => document.getElementById(id);
const state = { views: [], selected: 0, point: "", failed: false };

const number = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
// A share that is not all, or not nothing, never looks like it.
const percent = (share) => (share == null ? "–" : (share >= 0.995 && share < 1 ? "> 99" : share > 0 && share < 5e-4 ? "< 0.1" : (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)) + "\u00a0%");
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

// Nothing that a reader looks at is drawn again without need: the focus, a selected text, a label at the pointer would go.
const drawn = new WeakMap();
function changed(target, ...what) {
  const now = JSON.stringify(what), before = drawn.get(target);
  drawn.set(target, now);
  return now !== before;
}

function table(target, header, rows) {
  if (!changed(target, header, rows)) return;
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
  const axis = { gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("grid"), automargin: true, fixedrange: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("ink"), family: colour("font"), size: 12 },
    margin: { l: 46, r: 12, t: 8, b: 34 }, hovermode: "x unified", showlegend: true,
    dragmode: false,   // and fixed ranges: a finger on a chart scrolls the page
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") }, namelength: -1 },
    legend: { orientation: "h", y: 1.16, x: 0, font: { size: 11 }, bgcolor: "rgba(0,0,0,0)", borderwidth: 0 },
    ...more,
    xaxis: { ...axis, nticks: Math.max(3, Math.round(window.innerWidth / 160)), tickangle: 0, ...(more.xaxis || {}) },
    yaxis: { ...axis, rangemode: "tozero", ...(more.yaxis || {}) },
  };
}

// A card grows when the one beside it goes, and the window stays as it is.
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => { if (target.offsetWidth && target._fullLayout) Plotly.Plots.resize(target); }));

function draw(target, traces, more, label) {
  const all = layout(more);
  sizes.observe(target);
  if (!changed(target, traces, all, label)) return;
  target.setAttribute("aria-label", label);
  Plotly.react(target, traces, all, { displayModeBar: false });
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
  return { type: "scatter", mode: x.length > 1 ? "lines" : "markers", name, x, y, line: { color, width: 2, ...(more.line || {}) }, ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "line")) };
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
  const gone = seen.map((rows, place) => rows - kept[place]), most = Math.max(...seen);
  draw($("rows"), [
    line("kept", x, kept, colour("kept"), { fill: "tozeroy", fillcolor: colour("kept-fill"), hovertemplate: "%{y:,.0f} kept<extra></extra>" }),
    line("seen", x, seen, colour("seen"), { fill: "tonexty", fillcolor: colour("dropped-fill"), text: why, hovertemplate: "%{y:,.0f} seen<br>%{text}<extra></extra>" }),
  ], { showlegend: false, xaxis: { range: span(view) }, annotations: [...named("dropped", x, gone, kept, most), ...named("kept", x, kept, kept.map(() => 0), most)] }, `Rows per second seen and kept at ${names.join(", ")}; last ${Math.round(seen.at(-1) || 0)} seen, ${Math.round(kept.at(-1) || 0)} kept`);
}

// The name of an area, where it is high enough to hold one: in the middle of its highest places that are not at the side.
function named(name, x, height, from, most) {
  const aside = Math.ceil(0.12 * x.length), inner = x.map((_, place) => place).filter((place) => place >= aside && place < x.length - aside);
  const top = Math.max(0, ...inner.map((place) => height[place])), high = inner.filter((place) => height[place] >= 0.8 * top);
  const best = high[high.length >> 1];
  if (top === 0 || top < 0.12 * most) return [];
  return [{ text: name, x: x[best], y: from[best] + height[best] / 2, showarrow: false, font: { color: colour(name), size: 13 } }];
}

// The bound as it was: a line with steps, from the first batch in sight to the last.
const boundAt = (view, at_s) => (view.bounds.findLast(([since_s]) => since_s <= at_s) ?? [])[1] ?? null;
function boundSteps(view) {
  const [first_s, last_s] = [view.series.at_s[0], view.series.at_s.at(-1)];
  const steps = view.bounds.map(([since_s, bound_s]) => [Math.max(since_s, first_s), bound_s]).filter(([since_s]) => since_s <= last_s);
  return steps.length ? [...steps, [last_s, steps.at(-1)[1]]] : [];
}

function latencyChart(view) {
  const series = view.series, x = series.at_s.map(date), steps = boundSteps(view);
  const over = series.at_s.map((at_s, place) => boundAt(view, at_s) != null && series.latency_s[place] > boundAt(view, at_s));
  const top = 1.1 * Math.max(...series.latency_s, ...series.duration_s, ...steps.map(([, bound_s]) => bound_s));
  const traces = [line("latency", x, series.latency_s, colour("time"), { mode: "lines+markers", marker: { opacity: 1, size: over.map((is) => (is ? 7 : 4)), color: over.map((is) => colour(is ? "dropped" : "time")) }, hovertemplate: "%{y:.2f} s<extra></extra>" }),
    line("batch", x, series.duration_s, colour("soft"), { line: { width: 1, dash: "dot" }, hovertemplate: "batch took %{y:.2f} s<extra></extra>" })];
  if (steps.length) traces.push(line("bound", steps.map(([at_s]) => date(at_s)), steps.map(([, bound_s]) => bound_s), colour("bound"), { line: { dash: "dash", shape: "hv" }, hoverinfo: "skip" }));
  const above = steps.slice(0, -1).map(([at_s, bound_s], place) => ({ type: "rect", layer: "below", line: { width: 0 }, fillcolor: colour("over-fill"), x0: date(at_s), x1: date(steps[place + 1][0]), y0: bound_s, y1: top }));
  draw($("latency"), traces, { shapes: above, xaxis: { range: span(view) }, yaxis: { ticksuffix: " s", range: [0, top] } }, `Latency over time against a bound of ${seconds(view.bound_s)}; ${over.filter(Boolean).length} of ${x.length} points lie above the bound of their time`);
}

const span = (view) => [date(view.series.started_s[0]), date(view.series.at_s.at(-1))];

function modelChart(view) {
  const model = view.model;
  $("model-section").hidden = !model;
  if (!model) return;
  const last = model.at_s.length - 1;
  // The last plan stands: its lines go on.
  const x = [...model.at_s, Math.max(model.at_s[last], view.series ? view.series.at_s.at(-1) : 0)].map(date), on = (values) => [...values, values[last]];
  draw($("model"), [
    line("arrive", x, on(model.arrival_per_s), colour("seen"), { line: { shape: "hv" }, hovertemplate: "%{y:,.0f} rows/s arrive<extra></extra>" }),
    line("can be processed", x, on(model.capacity_per_s), colour("good"), { line: { shape: "hv" }, hovertemplate: "%{y:,.0f} rows/s can be processed<extra></extra>" }),
  ], view.series ? { xaxis: { range: span(view) } } : {}, "Rows per second that arrive and that can be processed, at each change of plan");
  const noise = model.noise[last] == null ? "" : `, give or take ${percent(model.noise[last])}`;
  $("model-text").textContent = `A batch is taken to cost ${duration(model.fixed_s[last])} + ${duration(model.per_seen_row_s[last])} for each row seen + ${duration(model.per_kept_row_s[last])} for each row kept${noise}. As each plan took it: the sentence at the top may be newer.`;
}

function lagChart(view) {
  const series = view.series, known = (values) => (values ?? []).some((value) => value != null);
  const lag = known(series?.lag_rows), left = known(series?.waiting_rows);
  $("lag-section").hidden = !lag && !left;
  if (!lag && !left) return;
  const x = series.at_s.map(date), traces = [];
  if (lag) traces.push(line("in no batch yet", x, series.lag_rows, colour("behind"), { text: series.lag_s.map(seconds), hovertemplate: "%{y:,.0f} rows in no batch yet, for %{text}<extra></extra>" }));
  if (left) traces.push(line("left behind when the batch began", x, series.waiting_rows, colour("soft"), { line: { dash: "dot" }, hovertemplate: "%{y:,.0f} rows left behind<extra></extra>" }));
  draw($("lag"), traces, { xaxis: { range: span(view) } }, `Rows that wait in the source at each batch; last ${number.format((lag ? series.lag_rows : series.waiting_rows).at(-1) ?? 0)}`);
}

function boundsChart(view) {
  const names = view.series ? Object.keys(view.series.bounds) : [];
  $("bounds-section").hidden = !names.length;
  if (!names.length) return;
  const x = view.series.at_s.map(date), colours = ["time", "bound", "behind", "good", "soft"];
  const traces = names.flatMap((name, place) => {
    const of = { x, connectgaps: true, legendgroup: String(place) }, ink = colour(colours[place % colours.length]);
    return [
      line(plain(name), x, view.series.bounds[name], ink, { ...of, hovertemplate: "± %{y:.2%} in the median<extra>%{fullData.name}</extra>" }),
      line(plain(name), x, view.series.bounds_p95[name], ink, { ...of, showlegend: false, line: { width: 1, dash: "dot" }, hovertemplate: "± %{y:.2%} in 95 % of answers<extra>%{fullData.name}</extra>" }),
    ];
  });
  draw($("bounds"), traces, { xaxis: { range: span(view) }, yaxis: { tickformat: ".1%" } }, `Half the width of error bounds over time, of ${names.join(", ")}`);
  $("bounds-text").textContent = `Half the width of the bounds relative to the answer${view.dry_run ? ", as it would be without the dry run" : ""}: line, in the median of the answers; dots, at most in 95 % of them.`;
}

// ---- the page ----

function tiles(view) {
  const over = view.latency_s != null && view.bound_s != null && view.latency_s > view.bound_s;
  const stuck = view.running_batch_s != null && view.bound_s != null && view.running_batch_s > view.bound_s;
  const about = view.estimated_batches ? "about " : "";
  const shares = view.points.filter((point) => point.keep_fraction != null && point.entrance).map((point) => point.keep_fraction);
  const entries = [
    ["Latency", seconds(view.latency_s), (view.bound_s == null ? "" : `of ${seconds(view.bound_s)} allowed`) + (stuck ? `; the batch that runs has taken ${seconds(view.running_batch_s)}` : ""), over || stuck],
    ...(view.lag_rows == null && view.waiting_rows == null ? [] : [["Behind the source", short.format(view.lag_rows ?? view.waiting_rows), `rows${view.lag_s == null ? " left by the last batch" : `, for ${seconds(view.lag_s)}`}`]]),
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
  for (const id of ["rows-section", "latency-section"]) $(id).hidden = !view.series;
  $("none").hidden = view.series != null;
  if (view.series) { rowsChart(view); latencyChart(view); }
  modelChart(view);
  lagChart(view);
  boundsChart(view);
  table($("points"), ["drop point", "kind", "plan keeps", "of late rows", "last batch", "seen", "kept", "dropped"], view.points.map((point) => [
    point.name, point.setting || "–", percent(point.keep_fraction), percent(point.late_keep_fraction),
    `${short.format(point.last_kept)} of ${short.format(point.last_seen)}`, short.format(point.seen), short.format(point.kept), short.format(point.dropped)]));
  $("answers").textContent = view.answers ? `Answers: ${view.answers}.` : "";
  panelsOf(view);
  changesOf(view);
}

function changesOf(view) {
  const list = $("changes"), top = list.scrollTop;
  if (!changed(list, view.changes)) return;
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
    const asked = state.selected, view = await fetched(`api/query/${asked}`);
    if (asked !== state.selected) return;   // another was chosen meanwhile
    tabs();
    show(view);
    $("fresh").textContent = `${view.batches_shown < view.batches ? `last ${number.format(view.batches_shown)} of ${number.format(view.batches)} batches, ` : ""}updated ${new Date().toLocaleTimeString([], { hourCycle: "h23" })}`;
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
