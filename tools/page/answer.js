// From estimated rows to an answer in words: which card to rent, and what cannot be told apart.

import { say, sayBytes, sayMoney, sayTime, sayTimes } from "./numbers.js";

/**
 * One device and what the job would take on it.
 * @typedef {object} Row
 * @property {string} device
 * @property {number} count devices that work together
 * @property {boolean} own whether it is the reader's own machine, measured
 * @property {string} precision
 * @property {number} batch samples in a step of all devices together
 * @property {number} step seconds
 * @property {[number, number, number]} seconds of the whole job: low, estimate, high
 * @property {[number, number, number] | null} cost in dollars, or null without a price
 * @property {number | null} needed bytes of memory, or null where that is not known
 * @property {number | null} capacity bytes of memory that a program can use
 * @property {boolean} fits false only where it is known not to fit
 * @property {string} limit what limits a step
 * @property {boolean} checked whether estimates for such cards were compared with measurements
 */

const HOUR = 3600;

/** @param {[number, number, number]} one @param {[number, number, number]} other */
function overlap(one, other) {
  return one[0] <= other[2] && other[0] <= one[2];
}

/** @param {Row} row */
export function label(row) {
  return row.count > 1 ? `${row.count} x ${row.device}` : row.device;
}

/**
 * Say in a sentence or two what to do.
 * @param {Row[]} rows
 * @param {number | null} deadlineHours
 * @returns {string[]} sentences
 */
export function advise(rows, deadlineHours) {
  const deadline = deadlineHours === null ? Infinity : deadlineHours * HOUR;
  const own = rows.find((row) => row.own);
  const cards = rows.filter((row) => !row.own && row.fits);
  if (rows.length === 0) return ["Choose at least one card."];
  const sentences = [];
  if (own && own.seconds[1] <= deadline && (deadline < Infinity || own.seconds[1] <= HOUR)) {
    sentences.push(`Your own machine is enough: ${sayTime(own.seconds[1])}, free.`);
  }
  if (cards.length === 0) {
    const asked = rows.filter((row) => !row.own);
    if (asked.length) sentences.push(nothingFits(asked));
    return sentences;
  }
  const priced = cards.filter((row) => row.cost !== null);
  sentences.push(...recommend(priced.length ? priced : cards, deadline, deadlineHours));
  return sentences;
}

/** @param {Row[]} rows */
function nothingFits(rows) {
  const [least] = [...rows].sort((a, b) => (a.needed ?? 0) - (b.needed ?? 0));
  const needed = least.needed ? sayBytes(least.needed) : "more memory";
  return `It fits on none of these cards: a step needs about ${needed}. Try a smaller batch.`;
}

/**
 * @param {Row[]} rows that fit, all with a price or none
 * @param {number} deadline in seconds
 * @param {number | null} deadlineHours
 */
function recommend(rows, deadline, deadlineHours) {
  const worth = (/** @type {Row} */ row) => (row.cost ? row.cost[1] : row.seconds[1]);
  const byWorth = [...rows].sort((a, b) => worth(a) - worth(b));
  const sure = byWorth.filter((row) => row.seconds[2] <= deadline);
  const perhaps = byWorth.filter((row) => row.seconds[0] <= deadline && row.seconds[2] > deadline);
  if (sure.length + perhaps.length === 0) {
    const [fastest] = [...rows].sort((a, b) => a.seconds[1] - b.seconds[1]);
    return [`None of these is in time: the fastest, ${label(fastest)}, takes ${times(fastest)}.`];
  }
  if (sure.length === 0) {
    const [first] = perhaps;
    return [`None is in time for sure. The cheapest that may be: ${label(first)}, ${amounts(first)}.`];
  }
  const [first] = sure;
  const verb = first.cost ? "Rent" : "The fastest is";
  const sentences = [`${verb} ${first.cost ? "the " : "the "}${label(first)}: ${amounts(first)}.`];
  const equals = sure.slice(1).filter((row) => same(row, first));
  if (equals.length) {
    const names = equals.map(label).join(", ");
    sentences.push(`${names} and ${label(first)} cannot be told apart: their intervals overlap.`);
  }
  const cheaper = perhaps.find((row) => row.cost && first.cost && row.cost[1] < first.cost[1]);
  if (cheaper?.cost && first.cost) {
    const share = Math.round((100 * cheaper.cost[1]) / first.cost[1]);
    const late = `may miss your ${say(deadlineHours ?? 0)} h`;
    sentences.push(`${label(cheaper)} costs about ${share} % of that, but ${late}.`);
  }
  return sentences;
}

/** Whether neither time nor cost tells two cards apart. @param {Row} one @param {Row} other */
function same(one, other) {
  const costs = !one.cost || !other.cost || overlap(one.cost, other.cost);
  return costs && overlap(one.seconds, other.seconds);
}

/** @param {Row} row */
export function times(row) {
  return row.own ? sayTime(row.seconds[1]) : sayTimes(row.seconds[0], row.seconds[2]);
}

/** @param {Row} row */
export function costs(row) {
  if (row.own && !row.cost) return "free";
  return row.cost ? sayMoney(row.cost[0], row.cost[2]) : "no price";
}

/** @param {Row} row */
function amounts(row) {
  return row.cost ? `about ${times(row)}, ${costs(row)}` : `about ${times(row)}`;
}

/** @param {Row} row */
export function fit(row) {
  if (row.needed === null) return row.own ? "measured" : "not known";
  const room = row.capacity === null ? "" : ` of ${sayBytes(row.capacity)}`;
  return `${row.fits ? "yes" : "no"}: ${sayBytes(row.needed)}${room}`;
}

/**
 * Say what a job means on free notebooks, or nothing where their card is not among the rows.
 * @param {Row[]} rows
 * @param {{name: string, devices: string[], session_hours: number, week_hours: number | null}[]} free
 */
export function onFreeNotebooks(rows, free) {
  const names = free.flatMap((offer) => offer.devices);
  const row = rows.find((each) => names.includes(each.device) && each.count === 1 && each.fits);
  if (!row) return "";
  const [low, , high] = row.seconds.map((seconds) => seconds / HOUR);
  const parts = free.map((offer) => {
    const sessions = between(low / offer.session_hours, high / offer.session_hours, "session");
    if (offer.week_hours === null) return `${sessions} of ${offer.name}`;
    return `${between(low / offer.week_hours, high / offer.week_hours, "week")} of ${offer.name}'s quota`;
  });
  const one = high < Math.min(...free.map((offer) => offer.session_hours));
  const saved = one ? "" : " It has to go on from a checkpoint after each session.";
  return `On a free ${row.device}: ${parts.join(", or ")}.${saved}`;
}

/** @param {number} low @param {number} high @param {string} what */
function between(low, high, what) {
  const [least, most] = [Math.ceil(low), Math.ceil(high)];
  const plural = most === 1 ? "" : "s";
  return least === most ? `${most} ${what}${plural}` : `${least} to ${most} ${what}${plural}`;
}

/** @param {Row[]} rows @returns {string[][]} the cells of the table */
export function table(rows) {
  return rows.map((row) => [
    label(row),
    row.fits ? times(row) : `(${times(row)})`,
    row.fits ? costs(row) : `(${costs(row)})`,
    fit(row),
    row.own ? "measured by you" : row.limit,
  ]);
}

export const HEADER = ["Device", "Time", "Cost", "Fits", "Limited by"];

/** A table for an issue or a forum. @param {Row[]} rows @param {string} title @param {string} address */
export function toMarkdown(rows, title, address) {
  const clean = (/** @type {string} */ text) => text.replace(/[|`<>\n]/g, " ");
  const lines = [HEADER, HEADER.map(() => "---"), ...table(rows)];
  const body = lines.map((cells) => `| ${cells.map(clean).join(" | ")} |`).join("\n");
  return `${clean(title)}\n\n${body}\n\nEstimated, each with its interval. The question: ${address}\n`;
}
