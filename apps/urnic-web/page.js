/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page: it asks for what it does not have yet, and shows it. Names are chosen by others: all of them go into the page
 * as texts, by make(), say() and cell(), and none as HTML.
 */
"use strict";

const KEPT = 300;   // samples for plots
const SHOWN = 200;  // events on the page
const KINDS = {failover: "fail-over", lost: "dataplane", dataplane: "dataplane", port: "port", client: "client", error: "error",
	log: "log", more: "more"};
const LOUD = ["failover", "lost", "port"]; // events that are marked in plots, and read aloud
const STATES = {begins: ["not asked yet", "stale"], up: ["answers", "good"], silent: ["does not answer", "bad"], away: ["not there", "bad"]};

const at = (id) => document.getElementById(id);
const page = {of: "", event: 0, seq: [], samples: [], marks: [], state: null, timer: null, busy: false, paused: false};
const cards = new Map(); // by key: adapters and dataplanes that are on the page
const sparks = new Map(); // by key: plots of wires

/* ---- tables */

/* A cell's text, number or plot. */
function cell(td, value, column) {
	const kind = [column.number && "n", column.wide && "wide", column.folds && "folds", column.bad && column.bad(value) && "bad"].filter(Boolean).join(" ");

	if (td.className !== kind)
		td.className = kind;
	if (value instanceof Element) {
		if (td.firstChild !== value)
			td.replaceChildren(value);
		return;
	}
	if (!td.firstChild || td.firstChild.nodeName !== "BDI")
		td.replaceChildren(make("bdi"));
	say(td.firstChild, column.number && typeof value === "number" ? (column.exact ? String(value) : short(value)) : words(value));
}

function words(value) {
	return value === true ? "yes" : value === false ? "no" : value === undefined || value === "" ? "-" : String(value);
}

/* Show rows in a table whose rows are used again. columns: [head, key or function, {number, exact, wide, folds, bad}] */
function fill(table, caption, columns, rows) {
	const heads = columns.map(([head]) => head).join("|");

	if (table.dataset.heads !== heads) {
		table.dataset.heads = heads;
		table.replaceChildren(make("caption"), make("thead", {}, make("tr", {}, ...columns.map(([head, , how]) =>
			make("th", {scope: "col", class: how && how.number ? "n" : ""}, head)))), make("tbody"));
	}
	const body = table.tBodies[0];

	say(table.caption, caption);
	while (body.rows.length > rows.length)
		body.lastChild.remove();
	while (body.rows.length < rows.length)
		body.append(make("tr", {}, make("th", {scope: "row"}), ...columns.slice(1).map(() => make("td"))));
	rows.forEach((row, i) => columns.forEach(([, key, how], k) =>
		cell(body.rows[i].cells[k], typeof key === "function" ? key(row) : row[key], how || {})));
}

/* "1 program", "2 programs" */
function many(n, word) {
	return `${n} ${word}${n === 1 ? "" : "s"}`;
}

/* All rows of a name, of all dataplanes, each with the dataplane's place. */
function rowsOf(name) {
	return page.state.dataplanes.flatMap((d, i) => (d.view[name] || []).map((row) => ({...row, dataplane: d.socket, place: i})));
}

/* Columns of a table, with the dataplane in front when there are several. */
function columns(...own) {
	const several = page.state.dataplanes.length > 1;

	return several ? [...own.slice(0, 1), ["dataplane", "dataplane"], ...own.slice(1)] : own;
}

/* Words over a table. table: urnicd's name of it */
function caption(rows, none, table) {
	const cut = page.state.dataplanes.some((d) => (d.view.more || []).includes(table));
	const refused = page.state.dataplanes.map((d) => (d.view.refused || {})[table]).filter(Boolean);

	return refused.length ? refused.join("; ") : cut ? `The first ${rows.length} are shown.` : rows.length ? `${rows.length} in all.` : none;
}

const NUMBER = {number: true}, EXACT = {number: true, exact: true};
const SOME = {number: true, bad: (v) => v > 0};
const LINK = {bad: (v) => v !== "up" && v !== "yes"};
const IMPAIRED = {folds: true, bad: (v) => Boolean(v)};
const link = (key) => (row) => row[key] ? "up" : "down";

function showWires(to) {
	const rows = rowsOf("wires"), used = new Set();

	for (const row of rows) {
		const key = `wire/${row.switch}:${row.port}`, plot = `${row.place}/${key}`;

		used.add(plot);
		if (!sparks.has(plot))
			sparks.set(plot, new Plot(["frames to the adapter", "frames from the adapter", "drops"], "per second", true));
		drawOf(sparks.get(plot), row.place, key, to);
		row.plot = sparks.get(plot).svg;
	}
	for (const key of [...sparks.keys()].filter((k) => !used.has(k)))
		sparks.delete(key);
	fill(at("wires"), caption(rows, "There is no switch.", "switch"), columns(["wire", (r) => `${r.switch}:${r.port}`], ["link", link("up"), LINK],
		["frames and drops", "plot"], ["in/s", "rx_packets_per_s", NUMBER], ["out/s", "tx_packets_per_s", NUMBER], ["drops/s", "drops_per_s", SOME],
		["drops", "drops", NUMBER], ["impairments in", "impair_in", IMPAIRED], ["impairments out", "impair_out", IMPAIRED],
		["queue bytes", "queue_bytes", NUMBER], ["at most", "queue_peak", NUMBER], ["marked", "ecn_marked", NUMBER]), rows);
}

function showTables(to) {
	showWires(to);
	const drops = rowsOf("drops"), ports = rowsOf("ports"), clients = rowsOf("clients"), qps = rowsOf("qps"), errors = rowsOf("errors");

	fill(at("drops"), drops.length ? "Those that happen now come first." : "Nothing was dropped.",
		columns(["adapter or port", "of"], ["reason", "reason"], ["per second", "per_s", SOME], ["in all", "total", EXACT]), drops);
	fill(at("ports"), caption(ports, "There is no port.", "port"), columns(["port", "name"], ["adapter", "adapter"], ["link", link("link"), LINK],
		["set to", "state", LINK], ["Mb/s in", "rx_mbps", EXACT], ["Mb/s out", "tx_mbps", EXACT], ["frames/s in", "rx_pps", NUMBER],
		["frames/s out", "tx_pps", NUMBER], ["free packets", (r) => `${r.mbufs_free} of ${r.mbufs}`], ["MAC", "mac"], ["MTU", "mtu", EXACT],
		["device", "device"]), ports);
	fill(at("clients"), caption(clients, "No program is attached.", "client"), columns(["client", "client"], ["program", "program"], ["process", "pid", EXACT],
		["user", "uid", EXACT], ["adapter", "adapter"], ["queue pairs", "qps", EXACT], ["completion queues", "cqs", EXACT], ["regions", "mrs", EXACT],
		["pinned bytes", "pinned_bytes", NUMBER]), clients);
	fill(at("qps"), caption(qps, "There is no queue pair.", "qp"), columns(["queue pair", "qpn"], ["adapter", "adapter"], ["program", "program"],
		["client", "client", EXACT], ["type", "type"], ["state", "state", {bad: (v) => v === "ERR" || v === "SQE"}], ["peer", "peer"],
		["peer's", "peer_qpn", EXACT], ["MTU", "mtu", EXACT], ["sends", "sends", EXACT], ["receives", "receives", EXACT],
		["under way", "outstanding", EXACT]), qps);
	fill(at("errors"), caption(errors, "There was no error.", "errors"), columns(["queue pair", "qpn"], ["adapter", "adapter"], ["process", "pid", EXACT],
		["client", "client", EXACT], ["seconds ago", (r) => Math.round(r.ago_ms / 1000), EXACT], ["name", "vendor_err"], ["why", "why", {wide: true}]), errors);
}

/* ---- cards and plots */

function drawOf(plot, place, key, to) {
	plot.draw(seriesOf(place, key, 0), ...span(place, to));
}

/* The samples of a key, each with the values from one on. */
function seriesOf(place, key, from, end) {
	return page.samples[place].filter((s) => s[2][key]).map((s) => [s[1], s[2][key].slice(from, end)]);
}

/* The rest of what a plot wants: the time at its left, which goes back as far as there are samples; the time at its right; marks. */
function span(place, to) {
	const first = page.samples[place].length ? page.samples[place][0][1] : to, step = page.state.interval;

	return [to - Math.min(Math.max(to - first, 60 * step), KEPT * step), to, page.marks, Math.max(3 * step, 3)];
}

/* The card of a key, made when it is new. */
function card(key, parent, build) {
	if (!cards.has(key)) {
		const c = build();

		cards.set(key, c);
		parent.append(c.root);
	}
	return cards.get(key);
}

function buildAdapter() {
	const c = {title: make("h3"), about: make("p", {class: "hint"}), plots: [
		new Plot(["sent", "received"], "bit/s"), new Plot(["dropped", "sent again", "timeouts"], "per second")]};

	c.root = make("article", {class: "card"}, c.title, c.about, make("div", {class: "plots"}, ...c.plots.map((p) => p.figure)));
	return c;
}

function showAdapter(d, place, a, to) {
	const c = card(`${place}/${a.name}`, at("adapters"), buildAdapter), key = `adapter/${a.name}`;

	say(c.title, `${a.name}, node ${a.node}: link ${a.link ? "up" : "down"}`);
	say(c.about, [page.state.dataplanes.length > 1 && d.socket, a.ipv4 && a.ipv4.replace("::ffff:", ""), many(a.clients, "program"), many(a.qps, "queue pair"),
		`${short(a.tx_packets_per_s)} packets/s sent`, `${short(a.rx_packets_per_s)} received`, a.left_qps && `${many(a.left_qps, "queue pair")} left by sessions`]
		.filter(Boolean).join(" · "));
	c.root.classList.toggle("stale", d.state !== "up");
	c.plots[0].draw(seriesOf(place, key, 0, 2), ...span(place, to));
	c.plots[1].draw(seriesOf(place, key, 2, 5), ...span(place, to));
	return `${place}/${a.name}`;
}

function buildDataplane() {
	const c = {title: make("h3"), word: make("span"), why: make("span"), about: make("p", {class: "hint"})};

	c.root = make("article", {class: "tile"}, c.title, make("p", {}, c.word, " ", c.why), c.about);
	return c;
}

function showDataplane(d, place) {
	const c = card(`${place}`, at("dataplanes"), buildDataplane), [word, kind] = STATES[d.state], v = d.view.version || {};
	const silent = "Is it stopped?" + (d.looked ? ` The figures are ${Math.round(page.state.now - d.looked)} s old.` : "");
	const capture = d.view.capture || {};

	say(c.title, d.socket);
	say(c.word, word);
	c.word.className = `word ${kind}`;
	say(c.why, d.state === "silent" ? silent : d.why ? d.why + "." : "");
	say(c.about, v.urnic ? [`urnic ${v.urnic}`, v.dpdk, many(v.engines, "engine"), many(v.adapters, "adapter"),
		capture.running && !capture.ended && `a capture runs: ${capture.frames} frames, ${capture.dropped} dropped`].filter(Boolean).join(" · ") : "");
	return `${place}`;
}

/* ---- events */

function showEvents(events) {
	const list = at("events"), first = page.event === 0;

	for (const e of events) {
		const time = new Date(e.time * 1000), stamp = make("time", {datetime: time.toISOString()}, time.toLocaleTimeString());

		list.prepend(make("li", {class: KINDS[e.kind] ? e.kind : "log"}, stamp, make("span", {class: "kind"}, KINDS[e.kind] || "event"), make("bdi", {}, e.text),
			make("span", {class: "where"}, make("bdi", {}, e.where))));
		page.event = Math.max(page.event, e.id);
		if (LOUD.includes(e.kind))
			page.marks.push(e.time);
	}
	while (list.children.length > SHOWN)
		list.lastChild.remove();
	page.marks = page.marks.slice(-SHOWN);
	const loud = events.filter((e) => LOUD.includes(e.kind));

	if (!first && loud.length)
		say(at("spoken"), loud.slice(-3).map((e) => e.text).join(". "));
}

/* ---- the whole */

function summary(state) {
	const bad = state.dataplanes.filter((d) => d.state !== "up" && d.state !== "begins");
	const all = (name) => state.dataplanes.reduce((n, d) => n + (d.view[name] || []).length, 0);
	const down = rowsOf("adapters").filter((a) => !a.link).length;

	at("state").className = bad.length || down ? "bad" : "";
	say(at("state"), bad.length ? `${bad.length} of ${state.dataplanes.length} dataplanes: ${STATES[bad[0].state][0]}` :
		down ? `${down} of ${all("adapters")} adapters without a link` : `${many(all("adapters"), "adapter")} with a link, ${many(all("clients"), "program")} attached`);
}

function show() {
	const state = page.state, used = new Set();

	summary(state);
	at("notes").replaceChildren(...state.notes.map((n) => make("p", {class: "note"}, n)));
	state.dataplanes.forEach((d, place) => {
		used.add(showDataplane(d, place));
		for (const a of d.view.adapters || [])
			used.add(showAdapter(d, place, a, state.now));
	});
	for (const [key, c] of [...cards].filter(([k]) => !used.has(k))) {
		c.root.remove();
		cards.delete(key);
	}
	showTables(state.now);
}

function take(state) {
	if (state.of !== page.of) {
		Object.assign(page, {of: state.of, event: 0, marks: [], seq: [], samples: state.dataplanes.map(() => [])});
		at("events").replaceChildren();
	}
	page.state = state;
	state.dataplanes.forEach((d, i) => {
		page.samples[i] = [...page.samples[i], ...d.samples].slice(-KEPT);
		page.seq[i] = page.samples[i].length ? page.samples[i][page.samples[i].length - 1][0] : 0;
	});
	showEvents(state.events);
	show();
}

async function poll() {
	clearTimeout(page.timer);
	if (page.busy)
		return;
	page.busy = true;
	try {
		const reply = await fetch(`state.json?of=${page.of}&after=${[page.event, ...page.seq].join(",")}`, {signal: AbortSignal.timeout(10000)});

		if (!reply.ok)
			throw new Error(await reply.text());
		take(await reply.json());
	} catch (e) {
		at("state").className = "bad";
		say(at("state"), e.name === "TypeError" || e.name === "TimeoutError" ? "urnic-web does not answer: has it ended?" : `The figures can't be shown: ${e.message}`);
	}
	page.busy = false;
	if (!page.paused && !document.hidden)
		page.timer = setTimeout(poll, 1000 * (page.state ? page.state.interval : 1));
}

/* Colours: the reader's choice, else the system's. */
function colours() {
	const dark = matchMedia("(prefers-color-scheme: dark)"), choice = at("theme");
	const set = () => {
		document.documentElement.dataset.theme = choice.value === "auto" ? (dark.matches ? "dark" : "light") : choice.value;
	};

	try {
		choice.value = localStorage.getItem("urnic-theme") || "auto";
	} catch {
		// a browser that keeps nothing
	}
	choice.addEventListener("change", () => {
		try {
			localStorage.setItem("urnic-theme", choice.value);
		} catch {
			// for this page only
		}
		set();
	});
	dark.addEventListener("change", set);
	set();
}

at("pause").addEventListener("click", () => {
	page.paused = !page.paused;
	at("pause").setAttribute("aria-pressed", String(page.paused));
	if (page.paused)
		clearTimeout(page.timer);
	else
		poll();
});
document.addEventListener("visibilitychange", () => document.hidden || page.paused || poll());
addEventListener("resize", () => page.state && show());
colours();
poll();
