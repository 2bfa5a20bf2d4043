/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots of rates over time, drawn as SVG. */
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 62, BOTTOM = 16, TOP = 8, HEIGHT = 120; // room for words around a plot, and its height; pixels

/* 1234567 as "1.23 M": three digits. */
function short(n) {
	if (!(n > 0))
		return "0";
	if (n < 9.95)
		return String(Math.round(n * 10) / 10);
	if (n < 999.5)
		return n.toFixed(0);
	for (const unit of "kMGTPE") {
		n /= 1000;
		if (n < 999.5 || unit === "E")
			return n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0) + " " + unit;
	}
	return "";
}

/* The least of 1, 2, 5, 10, 20, ... that is not below n. */
function nice(n) {
	const ten = 10 ** Math.floor(Math.log10(Math.max(n, 1)));

	return [1, 2, 5, 10].find((k) => k * ten >= n) * ten;
}

/* Make an element; children may be texts, which stay texts. */
function make(name, attributes = {}, ...children) {
	const e = document.createElement(name);

	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	e.append(...children);
	return e;
}

function shape(name, attributes) {
	const e = document.createElementNS(SVG, name);

	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	return e;
}

/* Set a text, if it is another one: the selection of a reader stays. */
function say(e, text) {
	if (e.textContent !== text)
		e.textContent = text;
}

class Plot {
	/* names: of the lines; unit: of all; small: without words around it */
	constructor(names, unit, small) {
		this.names = names;
		this.unit = unit;
		this.small = small;
		this.svg = shape("svg", {class: small ? "spark" : "plot", role: "img"});
		this.values = names.map(() => make("b"));
		this.figure = small ? this.svg : make("figure", {}, this.svg, make("figcaption", {}, ...names.map((name, i) =>
			make("span", {}, make("span", {class: "key s" + i}), name + " ", this.values[i]))));
	}

	/* samples: [time, [value, ...]]; from, to: times; marks: times of events; gap: seconds that end a line */
	draw(samples, from, to, marks, gap) {
		const shown = samples.filter(([time]) => time >= from);
		const most = this.names.map((_, i) => Math.max(0, ...shown.map(([, v]) => v[i] || 0)));
		const last = shown.length ? shown[shown.length - 1][1] : [];
		const [left, bottom, top] = this.small ? [1, 2, 2] : [LEFT, BOTTOM, TOP];
		const width = this.small ? 144 : Math.max(this.svg.clientWidth, 200), height = this.small ? 27 : HEIGHT;
		const limit = nice(Math.max(...most));
		const x = (time) => (left + (width - left - 2) * (time - from) / (to - from)).toFixed(1);
		const y = (value) => (top + (height - top - bottom) * (1 - value / limit)).toFixed(1);
		const parts = this.small ? [] : this.frame(limit, width, height, from, to, y);

		for (const time of marks.filter((t) => t >= from))
			parts.push(shape("path", {class: "mark", d: `M${x(time)} ${top}V${height - bottom}`}));
		this.names.forEach((_, i) => {
			let before = null;
			const d = shown.map(([time, v]) => {
				const move = before === null || time - before > gap;

				before = time;
				return `${move ? "M" : "L"}${x(time)} ${y(v[i] || 0)}`;
			}).join("");

			parts.push(shape("path", {class: "s" + i, d: d || "M0 0"}));
			say(this.values[i], `${short(last[i])} ${this.unit}`);
		});
		this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
		this.svg.setAttribute("aria-label", this.names.map((name, i) =>
			`${name}: ${short(last[i])} ${this.unit} now, ${short(most[i])} at most`).join("; "));
		this.svg.replaceChildren(...parts);
	}

	/* Lines and words of the axes. */
	frame(limit, width, height, from, to, y) {
		const parts = [], ago = to - from < 99 ? `${Math.round(to - from)} s ago` : `${Math.round((to - from) / 6) / 10} min ago`;

		for (const value of [0, limit / 2, limit]) {
			const text = shape("text", {x: LEFT - 6, y: Number(y(value)) + 4, "text-anchor": "end"});

			say(text, short(value));
			parts.push(shape("path", {class: "grid", d: `M${LEFT} ${y(value)}H${width}`}), text);
		}
		for (const [at, anchor, words] of [[LEFT, "start", ago], [width - 2, "end", "now"]]) {
			const text = shape("text", {x: at, y: height - 3, "text-anchor": anchor});

			say(text, words);
			parts.push(text);
		}
		return parts;
	}
}
