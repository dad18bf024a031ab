// The picture: money against hours, both logarithmic, with the interval of each card.

import { label, otherKind, recommended, stateOf, unlike } from "./answer.js";
import { say, sayTime } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";
const LINE = 18; // the height of a label
const FREE_AT = 104; // where cards without a price stand, in pixels
const SIZES = [1, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400, 3650 * 86400];

/** @typedef {import("./answer.js").Row} Row */

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * Draw the rows into an <svg> element.
 * @param {SVGSVGElement} svg
 * @param {Row[]} rows
 * @param {number | null} deadlineHours
 * @param {number} width in pixels
 */
export function draw(svg, rows, deadlineHours, width) {
  const usual = Math.max(300, Math.min(440, Math.round(0.62 * width)));
  const height = Math.max(usual, 80 + LINE * rows.length);
  const free = rows.some((row) => !hasPrice(row));
  const frame = { left: free ? 176 : 74, right: width - 16, top: 24, bottom: height - 52 };
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", String(height));
  if (!rows.length) return;
  const deadline = deadlineHours === null ? null : deadlineHours * 3600;
  const times = rows.flatMap((row) => row.seconds).concat(deadline === null ? [] : [deadline]);
  const money = rows.flatMap((row) => row.cost ?? []).filter((cost) => cost > 0);
  const y = scale(times, frame.bottom, frame.top);
  const x = scale(money.length ? money : [1, 10], frame.left + 8, frame.right - 60);
  drawAxes(svg, frame, x, y, times, money);
  document.getElementById("strip-key")?.toggleAttribute("hidden", !free);
  if (free) drawStrip(svg, frame, rows);
  if (deadline !== null) drawDeadline(svg, frame, y(deadline), deadline);
  drawRows(svg, rows, x, y, deadlineHours);
  const above = deadline === null ? [] : [{ left: frame.right - 110, right: frame.right, y: y(deadline) - 12 }];
  drawLabels(svg, rows, frame, x, y, above);
}

/**
 * Return a logarithmic scale that shows these values with a margin.
 * @param {number[]} values
 * @param {number} from
 * @param {number} to
 */
function scale(values, from, to) {
  const low = Math.log(Math.min(...values)) - 0.3;
  const high = Math.log(Math.max(...values)) + 0.3;
  return (/** @type {number} */ value) =>
    from + ((Math.log(Math.max(value, 1e-12)) - low) / (high - low)) * (to - from);
}

/** @typedef {{left: number, right: number, top: number, bottom: number}} Frame */

/**
 * @param {SVGSVGElement} svg
 * @param {Frame} frame
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 * @param {number[]} times
 * @param {number[]} money
 */
function drawAxes(svg, frame, x, y, times, money) {
  const [shortest, longest] = [Math.min(...times), Math.max(...times)];
  for (const seconds of timeTicks(shortest, longest)) {
    const at = y(seconds);
    if (at < frame.top || at > frame.bottom) continue;
    svg.append(element("line", { class: "grid", x1: 74, x2: frame.right, y1: at, y2: at }));
    const place = { class: "tick", x: 66, y: at + 5, "text-anchor": "end" };
    svg.append(element("text", place, sayTime(seconds)));
  }
  let last = -Infinity;
  for (const dollars of money.length ? moneyTicks(Math.min(...money), Math.max(...money)) : []) {
    const at = x(dollars);
    if (at < frame.left || at > frame.right || at - last < 46) continue;
    last = at;
    svg.append(element("line", { class: "grid", x1: at, x2: at, y1: frame.top, y2: frame.bottom }));
    const place = { class: "tick", x: at, y: frame.bottom + 20, "text-anchor": "middle" };
    svg.append(element("text", place, `$${say(dollars)}`));
  }
  const middle = (frame.left + frame.right) / 2;
  const under = { class: "axis", x: middle, y: frame.bottom + 42, "text-anchor": "middle" };
  svg.append(element("text", under, "cost in dollars (logarithmic)"));
  svg.append(element("text", { class: "axis", x: 0, y: 12 }, "time (logarithmic)"));
}

/** @param {number} low @param {number} high */
function timeTicks(low, high) {
  const inside = SIZES.filter((size) => size >= low / 1.3 && size <= high * 1.3);
  if (inside.length >= 2) return inside;
  const middle = Math.sqrt(low * high);
  return [middle / 2, middle, middle * 2].map((value) => Number(value.toPrecision(1)));
}

/** @param {number} low @param {number} high */
function moneyTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)); power++) {
    for (const digit of [1, 2, 5]) ticks.push(digit * 10 ** power);
  }
  return ticks;
}

/** Whether a row has a place on the axis of money. @param {Row} row */
function hasPrice(row) {
  return row.cost !== null && row.cost[2] > 0;
}

/** @param {SVGSVGElement} svg @param {Frame} frame @param {Row[]} rows */
function drawStrip(svg, frame, rows) {
  const at = frame.left;
  svg.append(element("line", { class: "strip", x1: at, x2: at, y1: frame.top, y2: frame.bottom }));
  const under = { class: "tick", x: FREE_AT, y: frame.bottom + 20, "text-anchor": "middle" };
  const free = rows.some((row) => row.own || row.cost?.[2] === 0);
  const unpriced = rows.some((row) => !row.own && row.cost === null);
  svg.append(element("text", under, free ? (unpriced ? "free / no price" : "free") : "no price"));
}

/**
 * @param {SVGSVGElement} svg
 * @param {Frame} frame
 * @param {number} at
 * @param {number} deadline
 */
function drawDeadline(svg, frame, at, deadline) {
  svg.append(element("line", { class: "deadline", x1: 74, x2: frame.right, y1: at, y2: at }));
  const place = { class: "deadline-text", x: frame.right - 4, y: at - 7, "text-anchor": "end" };
  svg.append(element("text", place, `deadline ${sayTime(deadline)}`));
}

/** Where the marker of a row stands. @param {Row} row @param {(value: number) => number} x */
function placeOf(row, x) {
  return row.cost && hasPrice(row) ? x(row.cost[1]) : FREE_AT;
}

/**
 * @param {SVGSVGElement} svg
 * @param {Row[]} rows
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 * @param {number | null} deadlineHours
 */
function drawRows(svg, rows, x, y, deadlineHours) {
  const best = recommended(rows, deadlineHours);
  const others = unlike(rows);
  for (const row of rows) {
    const [low, middle, high] = row.seconds.map(y);
    const cost = placeOf(row, x);
    const [cheap, , dear] = row.cost && hasPrice(row) ? row.cost.map(x) : [cost, cost, cost];
    const state = stateOf(row, deadlineHours);
    const mark = row === best ? " best" : others.includes(row) ? " unlike" : "";
    const group = element("g", { class: `row ${row.own ? "own" : state}${mark}` });
    group.append(element("line", { x1: cheap, y1: low, x2: dear, y2: high }));
    group.append(marker(row, state, cost, middle));
    svg.append(group);
  }
}

/**
 * Write each row's name beside its marker, where no other marker or name is.
 * @param {SVGSVGElement} svg
 * @param {Row[]} rows
 * @param {Frame} frame
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 * @param {Box[]} others what stands there already
 */
function drawLabels(svg, rows, frame, x, y, others) {
  const groups = svg.querySelectorAll(".row");
  const markers = rows.map((row) => {
    const at = placeOf(row, x);
    return { left: at - 7, right: at + 7, y: y(row.seconds[1]) };
  });
  const taken = [...others, ...markers];
  rows.forEach((row, index) => {
    const [cost, middle] = [placeOf(row, x), y(row.seconds[1])];
    const words = `${label(row)}${otherKind(row)}`;
    const width = 8.2 * words.length;
    const onLeft = cost + 14 + width > frame.right;
    const left = onLeft ? cost - 14 - width : cost + 14;
    const at = freeLine({ left, right: left + width, y: middle }, taken, frame);
    if (Math.abs(at - middle) > LINE) {
      const end = onLeft ? left + width + 2 : left - 2;
      groups[index].append(element("path", { class: "leader", d: `M${cost} ${middle}L${end} ${at}` }));
    }
    groups[index].append(element("text", { x: left, y: at + 5 }, words));
  });
}

/** @typedef {{left: number, right: number, y: number}} Box of a label, with the middle of its line */

/**
 * The place nearest to a label's own where no other label is.
 * @param {Box} box
 * @param {Box[]} taken the labels that stand already; this one is added
 * @param {Frame} frame
 */
function freeLine(box, taken, frame) {
  const beside = taken.filter((other) => box.left < other.right && other.left < box.right);
  const isFree = (/** @type {number} */ y) =>
    y > frame.top && y < frame.bottom && beside.every((other) => Math.abs(other.y - y) >= LINE);
  const own = Math.round(box.y);
  const touching = beside.flatMap((other) => [other.y - LINE, other.y + LINE]);
  const places = [own, ...touching].filter(isFree);
  const y = places.sort((one, other) => Math.abs(one - own) - Math.abs(other - own))[0] ?? own;
  taken.push({ ...box, y });
  return y;
}

/**
 * @param {Row} row
 * @param {string} state
 * @param {number} x
 * @param {number} y
 */
function marker(row, state, x, y) {
  if (state === "too-large") {
    const path = `M${x - 7} ${y - 7}L${x + 7} ${y + 7}M${x - 7} ${y + 7}L${x + 7} ${y - 7}`;
    return element("path", { class: "cross", d: path });
  }
  if (row.own) return element("circle", { cx: x, cy: y, r: 7 });
  return element("rect", { x: x - 6, y: y - 6, width: 12, height: 12 });
}
