// From estimated rows to an answer in words: which card to rent, and what is too close to call.
// The sentences are those of course_tools/estimate/money/advice.py; a test compares them.

import { sayBytes, sayCount, sayMoney, sayTimes } from "./numbers.js";

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
const FREE_S = 600; // whoever is done in so many seconds on their own machine needs no other
const SMALL_S = 120; // launches that take a card no longer are a job that a CPU can probably do
const BRIM = 0.9; // a step that needs more of a memory only just fits
const MOST_GROUPS = 2; // that the answer names of those too close to call

/** @param {Row} row */
export function label(row) {
  return row.count > 1 ? `${row.count} x ${row.device}` : row.device;
}

/** The cost, which is nothing on one's own machine. @param {Row} row */
function costOf(row) {
  return row.own && !row.cost ? [0, 0, 0] : row.cost;
}

/** @param {Row} row */
function dollars(row) {
  return costOf(row)?.[1] ?? Infinity;
}

/** @param {Row[]} rows */
function fastest(rows) {
  return [...rows].sort((one, other) => one.seconds[1] - other.seconds[1])[0];
}

/**
 * Choose a device, as `choose` of course_tools/estimate/money/advice.py does.
 * @param {Row[]} able rows that fit
 * @param {number} limit in seconds
 * @returns {{row: Row, why: string, cheaper: Row | null}}
 */
function choose(able, limit) {
  const inTime = able.filter((row) => row.seconds[2] <= limit);
  const perhaps = able.filter((row) => row.seconds[0] <= limit && limit < row.seconds[2]);
  if (inTime.length === 0) {
    const why = perhaps.length ? "perhaps" : "late";
    return { row: fastest(perhaps.length ? perhaps : able), why, cheaper: null };
  }
  const own = inTime.find((row) => row.own && row.seconds[1] <= FREE_S);
  if (own) return { row: own, why: "cheapest", cheaper: null };
  const priced = able.filter((row) => costOf(row) && row.seconds[0] <= limit);
  priced.sort((one, other) => dollars(one) - dollars(other));
  const sure = priced.find((row) => row.seconds[2] <= limit);
  const row = sure ?? fastest(inTime);
  const cheaper = priced.length && priced[0] !== row ? priced[0] : null;
  return { row, why: sure ? "cheapest" : "fastest", cheaper };
}

/**
 * Say in a sentence or two what to do, as `advice` of course_tools/estimate/money/advice.py does.
 * @param {Row[]} rows
 * @param {number | null} deadlineHours
 * @returns {string}
 */
export function advise(rows, deadlineHours) {
  if (rows.length === 0) return "Choose at least one card.";
  const able = rows.filter((row) => row.fits);
  if (able.length === 0) return nothingFits(rows);
  const quick = fastest(able);
  const launches = quick.limit === "launches" && quick.seconds[2] <= SMALL_S;
  if (launches && !able.some((each) => each.own)) {
    const then = "measure a step on it and fill in its seconds";
    return `The job is small: ${the(quick)} takes ${amounts(quick)}. Your own CPU is probably enough: ${then}.`;
  }
  const { row, why, cheaper } = choose(able, deadlineHours === null ? Infinity : deadlineHours * HOUR);
  let limit = deadlineHours === null ? "" : `your ${deadlineHours} hours`;
  if (deadlineHours === 1) limit = "your hour";
  const [amount, name] = [amounts(row), the(row)];
  if (why === "late") return `None of them makes ${limit}: the fastest is ${name}, ${amount}.`;
  if (why === "perhaps") {
    return `None makes ${limit} with its whole interval. ${capital(name)} may: ${amount}.`;
  }
  if (why === "fastest") return sayFastest(row, cheaper, limit);
  const sentence = row.own ? `Stay on ${name}: ${amount}.` : `Rent ${name}: ${amount}.`;
  if (cheaper) {
    const less = dollars(cheaper) === 0 ? "is free" : `costs less (${costs(cheaper)})`;
    return `${sentence} ${capital(the(cheaper))} ${less} but may miss ${limit}.`;
  }
  const faster = able.filter((each) => costOf(each) && each.seconds[2] < row.seconds[0]);
  if (!row.own || row.seconds[1] <= FREE_S || faster.length === 0) return sentence;
  const [least] = faster.sort((one, other) => dollars(one) - dollars(other));
  return `${sentence} ${capital(the(least))} would take ${times(least)}, ${costs(least)}.`;
}

/** @param {Row} row @param {Row | null} cheaper @param {string} limit */
function sayFastest(row, cheaper, limit) {
  if (!limit) return `${capital(the(row))} is the fastest: ${amounts(row)}.`;
  const sentence = `The whole interval of ${the(row)} is within ${limit}: ${amounts(row)}.`;
  if (cheaper === null) return sentence;
  return `${sentence} ${capital(the(cheaper))} may miss them: ${amounts(cheaper)}.`;
}

/** @param {Row[]} rows */
function nothingFits(rows) {
  const [least] = [...rows].sort((a, b) => (a.needed ?? 0) - (b.needed ?? 0));
  const needed = least.needed ? sayBytes(least.needed) : "more memory";
  return `It fits none of these cards: a step needs about ${needed}.`;
}

/** @param {Row} row */
function the(row) {
  if (row.own) return "your own machine";
  return row.count > 1 ? label(row) : `the ${label(row)}`;
}

/** @param {string} text */
function capital(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}`;
}

/**
 * Say which devices are too close to call, as `told_apart` of course_tools/estimate/money/advice.py does.
 * @param {Row[]} rows
 * @returns {string[]} a sentence, or none
 */
export function toldApart(rows) {
  const able = rows.filter((row) => row.fits).sort((a, b) => a.seconds[1] - b.seconds[1]);
  // for each, all that contain the moment at which its interval begins
  const groups = able.map(({ seconds: [low] }) =>
    able.filter((row) => row.seconds[0] <= low && low <= row.seconds[2]),
  );
  const within = (/** @type {Row[]} */ one, /** @type {Row[]} */ other) =>
    one.length < other.length && one.every((row) => other.includes(row));
  const largest = groups.filter((one) => one.length > 1 && !groups.some((other) => within(one, other)));
  const alike = [...new Set(largest.map((group) => listed(group.map(label))))];
  if (alike.length === 0) return [];
  const more = alike.length - MOST_GROUPS;
  let names = alike.slice(0, MOST_GROUPS).join("; ");
  if (more > 0) names += `; and ${more} more group${more === 1 ? "" : "s"}`;
  return [`Too close to call, because their intervals overlap: ${names}.`];
}

/** Names as "A, B and C". @param {string[]} names */
function listed(names) {
  return `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/** @param {Row} row */
export function times(row) {
  return sayTimes(row.seconds[0], row.seconds[2]);
}

/** @param {Row} row */
export function costs(row) {
  const cost = costOf(row);
  return cost ? sayMoney(cost[0], cost[2]) : "no price";
}

/** @param {Row} row */
function amounts(row) {
  return costOf(row) ? `${times(row)}, ${costs(row)}` : `${times(row)}; no price is known here`;
}

/** @param {Row} row */
export function fit(row) {
  if (row.needed === null) return row.own ? "measured" : "not known";
  const room = row.capacity === null ? "" : ` of ${sayBytes(row.capacity)}`;
  if (!row.fits) return `no: ${sayBytes(row.needed)}${room}`;
  const brim = row.capacity !== null && row.needed > BRIM * row.capacity;
  return `${brim ? "just" : "yes"}: ${sayBytes(row.needed)}${room}`;
}

/**
 * Say what a job means on free notebooks, or nothing where their card is not among the rows.
 * @param {Row[]} rows
 * @param {{name: string, devices: string[], session_hours: number, week_hours: number | null}[]} free
 */
export function onFreeNotebooks(rows, free) {
  const names = free.flatMap((offer) => offer.devices);
  const row = rows.find((each) => names.includes(each.device) && each.count === 1 && each.fits);
  if (!row || row.seconds[1] < HOUR) return "";
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

/** The recommended device, or null where the job fits none. @param {Row[]} rows @param {number | null} deadlineHours */
export function recommended(rows, deadlineHours) {
  const able = rows.filter((row) => row.fits);
  const limit = deadlineHours === null ? Infinity : deadlineHours * HOUR;
  return able.length ? choose(able, limit).row : null;
}

/**
 * Whether a device is in time, even at the slow end, may be late, or cannot hold the job.
 * @param {Row} row
 * @param {number | null} deadlineHours
 * @returns {"fine" | "late" | "too-large"}
 */
export function stateOf(row, deadlineHours) {
  if (!row.fits) return "too-large";
  return deadlineHours !== null && row.seconds[2] > deadlineHours * HOUR ? "late" : "fine";
}

/**
 * Order rows for a reader: the recommended one, others in time, those that may be late, those that
 * cannot hold the job; among these what costs least, then what is fastest.
 * @param {Row[]} rows
 * @param {number | null} deadlineHours
 * @returns {Row[]}
 */
export function inOrder(rows, deadlineHours) {
  const best = recommended(rows, deadlineHours);
  const states = ["fine", "late", "too-large"];
  const rank = (/** @type {Row} */ row) => (row === best ? -1 : states.indexOf(stateOf(row, deadlineHours)));
  const cost = (/** @type {Row} */ row) => Math.min(dollars(row), Number.MAX_VALUE);
  return [...rows].sort(
    (one, other) =>
      rank(one) - rank(other) || cost(one) - cost(other) || one.seconds[1] - other.seconds[1],
  );
}

export const METHODS = { full: "all weights", lora: "LoRA", "4-bit": "LoRA on 4-bit weights" };

/**
 * Say what the answer is about: "resnet50 (224), training, 90 epochs of 1.28 million samples".
 * @param {import("./question.js").Question} question
 * @param {boolean} language whether it is a language model of the list
 */
export function jobWords(question, language) {
  const name = question.model === "own" ? "Your own model" : question.model;
  const training = question.task === "training";
  const how = training && language ? `training ${METHODS[question.tuning]}` : question.task;
  const passes = question.epochs === 1 ? "" : `${sayCount(question.epochs)} epochs of `;
  const samples = `${sayCount(question.samples)} sample${question.samples === 1 ? "" : "s"}`;
  const batch = question.batch === null ? "the largest batch that fits" : `batch ${question.batch}`;
  return `${name}, ${how}, ${passes}${samples}, ${batch}:`;
}

/** @param {Row[]} rows @returns {string[][]} the cells of the table */
export function table(rows) {
  return rows.map((row) => [
    label(row),
    row.fits ? times(row) : `(${times(row)})`,
    row.fits ? costs(row) : `(${costs(row)})`,
    fit(row),
    row.own ? "measured by you" : `${row.limit}${row.checked ? "" : ", unchecked"}`,
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
