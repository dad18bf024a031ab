// From estimated rows to an answer in words: which card to rent, and what is too close to call.
// The sentences are those of course_tools/estimate/advice.py; a test compares them.

import { LIMITS } from "./model.js";
import { digits, sayBytes, sayCount, sayMoney, sayTimes } from "./numbers.js";
import { YOURS } from "./question.js";

/** @typedef {import("./question.js").Question} Question */

/**
 * @typedef {{name: string, devices: string[], count: number, session_hours: number,
 *   week_hours: number | null}} Offer
 */

/**
 * One device and what the job would take on it.
 * @typedef {object} Row
 * @property {string} device
 * @property {Offer | null} offer the free offer that these devices belong to
 * @property {number} count devices that work together
 * @property {boolean} own whether it is the reader's own machine, measured
 * @property {boolean} [mine] whether it is a card that the reader has
 * @property {string} precision
 * @property {number} batch samples in a step of all devices together
 * @property {number} step seconds
 * @property {[number, number, number]} seconds of the whole job: low, estimate, high
 * @property {[number, number, number] | null} cost in dollars, or null without a price
 * @property {number} kind of the offer: its place in the list of kinds, or `YOURS`
 * @property {string | null} seller who asks the price for what, or null without one
 * @property {number | null} needed bytes of memory, or null where that is not known
 * @property {number | null} capacity bytes of memory that a program can use
 * @property {boolean} fits false only where it is known not to fit
 * @property {string} limit what limits a step
 * @property {[number, number] | null} tokens that answers get per second, low and high
 * @property {number | null} flops of the whole job, or null where they are not known
 * @property {boolean} checked whether estimates for such cards were compared with measurements
 */

const HOUR = 3600;

/** @param {Row} row */
export function label(row) {
  const name = row.count > 1 ? `${row.count} x ${row.device}` : row.device;
  return row.offer ? `${name} on ${row.offer.name}` : name;
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
 * The row of the least time or cost, as `least` of course_tools/estimate/choice.py finds it.
 * @param {Row[]} rows
 * @param {"seconds" | "cost"} what
 */
function least(rows, what) {
  const weighed = (/** @type {Row} */ row) => (row[what]?.[2] ?? 0) * (row.checked ? 1 : LIMITS.as_much);
  return [...rows].sort((one, other) => weighed(one) - weighed(other))[0];
}

/**
 * The rows whose prices can be compared, as `comparable` of course_tools/estimate/choice.py says.
 * @param {Row[]} rows
 */
function comparable(rows) {
  const priced = rows.filter((row) => costOf(row));
  const first = Math.min(...priced.map((row) => row.kind).filter((kind) => kind !== YOURS));
  return priced.filter((row) => dollars(row) === 0 || [YOURS, first].includes(row.kind));
}

/**
 * The rows whose price is of another kind of offer than those that are compared by cost.
 * @param {Row[]} all with what is free
 */
export function unlike(all) {
  const able = all.filter((row) => row.fits && !row.offer);
  const like = comparable(able);
  return able.filter((row) => costOf(row) && !like.includes(row));
}

/** Whether one device is faster than another for sure. @param {Row} one @param {Row} other */
function surelyFaster(one, other) {
  return one.fits && one.seconds[2] < other.seconds[0];
}

/** Whether a CPU has probably done the job in a minute too. @param {Row} row */
function isSmall(row) {
  const few = row.flops !== null && row.flops <= LIMITS.small_flops;
  return few && row.limit !== "memory" && row.seconds[2] <= LIMITS.small_s;
}

/**
 * Whether a free offer is a plan for a job, as `carries` of course_tools/estimate/free.py says.
 * @param {Row} row
 * @param {number} limit in seconds
 */
function carries(row, limit) {
  const { week_hours, session_hours } = /** @type {Offer} */ (row.offer);
  return row.fits && row.seconds[2] <= Math.min((week_hours ?? session_hours) * HOUR, limit);
}

/**
 * The free offer to take, as `best_free` of course_tools/estimate/free.py says, or null.
 * @param {Row[]} free
 * @param {number} limit in seconds
 */
function bestFree(free, limit) {
  const able = free.filter((row) => carries(row, limit));
  if (able.length === 0) return null;
  const quickest = fastest(able);
  return able[0].seconds[1] - quickest.seconds[1] > LIMITS.launcher_s ? quickest : able[0];
}

/**
 * Choose a device, as `choose` of course_tools/estimate/choice.py does.
 * @param {Row[]} rows
 * @param {number} limit in seconds
 * @param {Row[]} free the same job on what is free
 * @returns {{row: Row | null, why: string, cheaper: Row | null}}
 */
function choose(rows, limit, free) {
  const able = rows.filter((row) => row.fits);
  const own = able.filter((row) => row.own || row.mine);
  const found = (/** @type {Row | null} */ row, /** @type {string} */ why) => ({ row, why, cheaper: null });
  const quick = own.find((row) => row.seconds[1] <= LIMITS.short_s && row.seconds[2] <= limit);
  if (quick) return found(quick, "cheapest");
  if (able.length && !own.length && isSmall(fastest(able))) return found(fastest(able), "small");
  const offer = bestFree(free, limit);
  const better = (/** @type {Row} */ row) => row.mine && row.seconds[2] <= limit;
  if (offer && !own.some((row) => better(row) || surelyFaster(row, offer))) return found(offer, "free");
  if (!able.length) return found(null, "fits none");
  const soon = able.filter((row) => row.seconds[2] <= Math.min(limit, LIMITS.short_s));
  if (soon.length && !own.length) return found(least(soon, "seconds"), "minutes");
  const inTime = able.filter((row) => row.seconds[2] <= limit);
  const perhaps = able.filter((row) => row.seconds[0] <= limit && limit < row.seconds[2]);
  if (inTime.length === 0) {
    return perhaps.length ? found(least(perhaps, "seconds"), "perhaps") : found(fastest(able), "late");
  }
  const priced = comparable(able).filter((row) => row.seconds[0] <= limit);
  const sure = priced.filter((row) => row.seconds[2] <= limit);
  const row = sure.length ? least(sure, "cost") : least(inTime, "seconds");
  const [cheapest] = [...priced].sort((one, other) => dollars(one) - dollars(other));
  const cheaper = sure.includes(cheapest) ? null : cheapest ?? null;
  return { row, why: sure.length ? "cheapest" : "fastest", cheaper };
}

/**
 * Say in a few sentences what to do, as `advice` of course_tools/estimate/advice.py does.
 * @param {Row[]} rows
 * @param {number | null} deadlineHours
 * @param {Row[]} free
 * @param {string} [aside] on the recommended device, said before what is said of others
 * @returns {string}
 */
export function advise(rows, deadlineHours, free, aside = "") {
  const { first, others } = advice(rows, deadlineHours, free);
  if (aside && others.length) others[0] = `As asked, ${others[0][0].toLowerCase()}${others[0].slice(1)}`;
  return [first, aside, ...others].filter(Boolean).join(" ");
}

/**
 * The recommendation, and sentences on other devices.
 * @param {Row[]} rows
 * @param {number | null} deadlineHours
 * @param {Row[]} free
 * @returns {{first: string, others: string[]}}
 */
function advice(rows, deadlineHours, free) {
  const said = (/** @type {string} */ first, /** @type {string[]} */ others = []) => ({ first, others });
  if (rows.length === 0) return said("Choose at least one card.");
  const { row, why, cheaper } = choose(rows, secondsOf(deadlineHours), free);
  if (row === null) return said(nothingFits(rows));
  let limit = deadlineHours === null ? "" : `your ${deadlineHours} hours`;
  if (deadlineHours === 1) limit = "your hour";
  const [amount, name] = [amounts(row), the(row)];
  if (why === "late") {
    return said(`None of them meets ${limit}: the fastest is ${name}, ${amount}.`);
  }
  if (why === "perhaps") {
    return said(`None surely meets ${limit}. ${capital(name)} may: ${amount}.`);
  }
  if (why === "fastest" && !limit) return said(`${capital(name)} is the fastest: ${amount}.`);
  if (why === "fastest") {
    const others = cheaper ? [`${capital(the(cheaper))} may miss them: ${amounts(cheaper)}.`] : [];
    return said(`${capital(name)} meets ${limit} even at the slow end: ${amount}.`, others);
  }
  if (why === "free") return said(sayFree(row), row.seconds[2] >= HOUR ? sayFaster(row, rows) : []);
  if (why === "small") {
    const then = "measure a step on it and fill in its seconds";
    return said(`The job is small: ${name} takes ${amount}. Your own CPU is probably enough: ${then}.`);
  }
  if (why === "minutes") {
    const then = "Before you rent, measure a step on your own machine and fill in its seconds";
    return said(`The job is short: ${name} takes ${amount}. ${then}.`);
  }
  const verb = row.mine ? "Use" : row.own ? "Stay on" : "Rent";
  const others = sayPassedOver(row, rows, secondsOf(deadlineHours));
  if (cheaper) {
    const less = cheaper.mine ? "costs no rent" : dollars(cheaper) === 0 ? "is free" : `costs less (${costs(cheaper)}${doubt(cheaper)})`;
    others.push(`${capital(the(cheaper))} ${less} but may miss ${limit}.`);
  } else if ((row.own || row.mine) && row.seconds[1] > LIMITS.short_s) others.push(...sayFaster(row, rows));
  return said(`${verb} ${name}: ${amount}.`, others);
}

/** @param {number | null} hours */
function secondsOf(hours) {
  return hours === null ? Infinity : hours * HOUR;
}

/** @param {Row} row */
function sayFree(row) {
  const hours = row.seconds[2] / HOUR;
  const sessions = Math.ceil(hours / /** @type {Offer} */ (row.offer).session_hours);
  const takes = row.count === 1 ? `a ${label(row)} takes` : `${label(row)} take`;
  const many = sessions === 1 ? "one session" : `about ${sessions.toLocaleString("en-US")} sessions`;
  return `Free: ${takes} ${timesOf(row)}, in ${many}${doubt(row)}.`;
}

/**
 * Say which of the surely faster devices costs least, if there is one.
 * @param {Row} row
 * @param {Row[]} rows
 */
function sayFaster(row, rows) {
  const faster = comparable(rows).filter((each) => surelyFaster(each, row));
  if (faster.length === 0) return [];
  const [cheapest] = faster.sort((one, other) => dollars(one) - dollars(other));
  return [`${capital(the(cheapest))} would take ${amounts(cheapest)}.`];
}

/**
 * Say what costs less in time, but is another kind of offer or unchecked, as `_passed_over` of
 * course_tools/estimate/advice.py does.
 * @param {Row} best
 * @param {Row[]} rows
 * @param {number} limit in seconds
 */
function sayPassedOver(best, rows, limit) {
  const dearest = (/** @type {Row} */ row) => costOf(row)?.[2] ?? Infinity;
  const less = rows
    .filter((row) => row.fits && row.seconds[2] <= limit && dearest(row) < dearest(best))
    .sort((one, other) => dearest(one) - dearest(other));
  const others = unlike(rows);
  const sentences = [];
  const other = less.find((row) => others.includes(row));
  if (other) {
    const [provider, kind] = (other.seller ?? "").split(", ");
    const cost = `${costs(other)}${doubt(other)}`;
    sentences.push(`${capital(the(other))} costs less (${cost}), but ${kind} (${provider}).`);
  }
  const unchecked = less.find((row) => !others.includes(row));
  if (unchecked) {
    sentences.push(`${capital(the(unchecked))} costs less (${costs(unchecked)}), but is unchecked.`);
  }
  return sentences;
}

/** @param {Row[]} rows */
function nothingFits(rows) {
  const [least] = [...rows].sort((a, b) => (a.needed ?? 0) - (b.needed ?? 0));
  const needed = least.needed ? sayBytes(least.needed) : "more memory";
  return `It fits none of these cards: a step needs about ${needed}.`;
}

/** A device as it is said within a sentence. @param {Row} row */
export function the(row) {
  if (row.own) return "your own machine";
  if (row.mine) return `your ${label(row)}`;
  return row.count > 1 ? label(row) : `the ${label(row)}`;
}

/** @param {string} text */
function capital(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}`;
}

/**
 * Say which devices are too close to call, as `too_close_to_call` of course_tools/estimate/advice.py does.
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
  const more = alike.length - LIMITS.most_groups;
  let names = alike.slice(0, LIMITS.most_groups).join("; ");
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
  if (row.mine) return "no rent";
  const cost = costOf(row);
  return cost ? sayMoney(cost[0], cost[2]) : "no price";
}

/** Time, cost and who asks it, and whether the interval is only assumed. @param {Row} row */
function amounts(row) {
  const cost = costOf(row);
  if (!cost) return `${timesOf(row)}; no price is known here${doubt(row)}`;
  const seller = row.mine || row.own || cost[1] === 0 ? "" : ` (${row.seller})`;
  return `${timesOf(row)}, ${costs(row)}${seller}${doubt(row)}`;
}

/** The time, with the speed of answers. @param {Row} row */
function timesOf(row) {
  return row.tokens ? `${times(row)}, ${row.tokens.map(digits).join(" to ")} tokens/s` : times(row);
}

/** @param {Row} row */
function doubt(row) {
  return row.checked ? "" : ", unchecked";
}

/** @param {Row} row */
export function fit(row) {
  if (row.needed === null) return row.own ? "measured" : "not known";
  const [needs, has] = [sayBytes(row.needed), row.capacity === null ? "" : sayBytes(row.capacity)];
  if (row.fits) {
    const brim = row.capacity !== null && row.needed > LIMITS.brim * row.capacity;
    return `${brim ? "just" : "yes"}: ${needs}${has && ` of ${has}`}`;
  }
  // the estimate may be off by more than the rest
  if (row.needed <= (row.capacity ?? 0)) return `no: about ${needs}, too near its ${has}`;
  return `no: needs ${needs}, has ${has}`;
}

/**
 * Say what to know of the recommended device: that it was not compared, or is nearly too small.
 * @param {Row} row
 * @param {boolean} largest whether its memory was to be filled
 */
export function doubts(row, largest) {
  const compared = `Unchecked on the ${row.device}: no published measurement of such work on it was compared.`;
  const full = !largest && fit(row).startsWith("just");
  const fits = fit(row).replace("just:", "It only just fits:");
  return [row.checked ? "" : compared, full ? `${fits}.` : ""].filter(Boolean).join(" ");
}

/**
 * Say how many sessions or weeks a job takes on what is free, or nothing where one is enough.
 * @param {Row[]} free
 * @param {number | null} [deadlineHours]
 */
export function onFreeNotebooks(free, deadlineHours = null) {
  const unit = (/** @type {Row} */ row) => {
    const { session_hours, week_hours } = /** @type {Offer} */ (row.offer);
    return (week_hours ?? session_hours) * HOUR;
  };
  const long = free.filter((row) => row.fits && row.seconds[2] > unit(row));
  const parts = long.map((row) => {
    const { name, week_hours } = /** @type {Offer} */ (row.offer);
    const [low, , high] = row.seconds.map((seconds) => seconds / unit(row));
    const late = lateness(row, deadlineHours);
    const many = between(low, high, week_hours ? "week" : "session");
    return `${many} of ${name}${week_hours ? "'s quota" : ""}${late && ` (${late})`}`;
  });
  if (!parts.length) return "";
  const saved = long.some((row) => row.tokens) ? "" : " Save a checkpoint before a session ends.";
  return `What is free: ${parts.join(", or ")}.${saved}`;
}

/** @param {number} low @param {number} high @param {string} what */
function between(low, high, what) {
  const [least, most] = [Math.ceil(low), Math.ceil(high)];
  const plural = most === 1 ? "" : "s";
  return least === most ? `${most} ${what}${plural}` : `${least} to ${most} ${what}${plural}`;
}

/**
 * The recommended device, or null where the job fits none.
 * @param {Row[]} all with what is free
 * @param {number | null} deadlineHours
 */
export function recommended(all, deadlineHours) {
  const rows = all.filter((row) => !row.offer);
  return choose(rows, secondsOf(deadlineHours), all.filter((row) => row.offer)).row;
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
 * Whether a device is too late for sure, or may be late, in words; nothing where it is in time.
 * @param {Row} row
 * @param {number | null} deadlineHours
 */
export function lateness(row, deadlineHours) {
  const limit = secondsOf(deadlineHours);
  if (row.seconds[2] <= limit) return "";
  return row.seconds[0] > limit ? "too late" : "may be late";
}

/**
 * Order rows for a reader: the recommended one, what is free, others in time, those that may be
 * late, those that cannot hold the job; among these what costs least, then what is fastest.
 * @param {Row[]} rows with what is free
 * @param {number | null} deadlineHours
 * @returns {Row[]}
 */
export function inOrder(rows, deadlineHours) {
  const best = recommended(rows, deadlineHours);
  const rank = (/** @type {Row} */ row) => {
    const state = row.offer && row.fits ? "free" : stateOf(row, deadlineHours);
    return row === best ? -1 : ["free", "fine", "late", "too-large"].indexOf(state);
  };
  const cost = (/** @type {Row} */ row) => Math.min(dollars(row), Number.MAX_VALUE);
  return [...rows].sort(
    (one, other) =>
      rank(one) - rank(other) || cost(one) - cost(other) || one.seconds[1] - other.seconds[1],
  );
}

export const METHODS = { full: "all weights", lora: "LoRA", "4-bit": "LoRA on 4-bit weights" };

/**
 * Say what the answer is about: "resnet50 (224), training, 90 epochs of 1.28 million samples".
 * @param {Question} question
 * @param {import("./question.js").Kind} kind
 */
export function jobWords(question, kind) {
  const { samples, epochs, batch, bits, runtime, prompt, generated, length } = question;
  const name = question.model === "own" ? "Your own model" : question.model;
  const most = "as many as fit";
  if (kind === "answers") {
    const requests = `${plural(samples, "request")} of ${plural(prompt, "token")}`;
    const answers = `answers of ${plural(generated, "token")}, ${batch ?? most} at once`;
    return `${name} in ${bits} bits with ${runtime}, ${requests} with ${answers}:`;
  }
  const how = kind === "tuning" ? `training ${METHODS[question.tuning]}` : question.task;
  const passes = epochs === 1 ? "" : `${plural(epochs, "epoch")} of `;
  const size = kind === "tuning" ? ` of ${plural(length, "token")}` : "";
  return `${name}, ${how}, ${passes}${plural(samples, "sample")}${size}, batch ${batch ?? most}:`;
}

/** @param {number} count @param {string} what */
function plural(count, what) {
  return `${sayCount(count)} ${what}${count === 1 ? "" : "s"}`;
}

/**
 * The cells of the table.
 * @param {Row[]} rows
 * @param {number | null} [deadlineHours]
 * @returns {string[][]}
 */
export function table(rows, deadlineHours = null) {
  const inWords = (/** @type {Row} */ row) => {
    const late = lateness(row, deadlineHours);
    return late ? `${times(row)}, ${late}` : times(row);
  };
  return rows.map((row) => [
    row.mine ? `${label(row)}, yours` : label(row),
    row.fits ? inWords(row) : `(${times(row)})`,
    row.fits ? costCell(row) : `(${costCell(row)})`,
    fit(row),
    lastCell(row),
  ]);
}

/** The cost, with the kind of offer where it is not on demand. @param {Row} row */
function costCell(row) {
  return `${costs(row)}${otherKind(row)}`;
}

/** A comma and the kind of offer where it is not on demand, as ", in homes". @param {Row} row */
export function otherKind(row) {
  return row.kind > 0 && dollars(row) > 0 ? `, ${row.seller?.split(", ")[1]}` : "";
}

/** What limits a step, or how fast answers are written. @param {Row} row */
function lastCell(row) {
  if (row.own) return "measured by you";
  const words = row.tokens ? row.tokens.map(digits).join(" to ") : row.limit.replace("memory", "bandwidth");
  return row.checked ? words : `${words}, unchecked`;
}

/** The heads of the table's columns. @param {Row[]} rows */
export function header(rows) {
  const last = rows.some((row) => row.tokens) ? "Writes tokens per second" : "Limited by";
  return ["Device", "Time", "Cost", "Fits", last];
}

/**
 * A table for an issue or a forum.
 * @param {Row[]} rows
 * @param {string} title
 * @param {string} address
 * @param {number | null} [deadlineHours]
 */
export function toMarkdown(rows, title, address, deadlineHours = null) {
  const clean = (/** @type {string} */ text) => text.replace(/[|`<>\n]/g, " ");
  const heads = header(rows);
  const lines = [heads, heads.map(() => "---"), ...table(rows, deadlineHours)];
  const body = lines.map((cells) => `| ${cells.map(clean).join(" | ")} |`).join("\n");
  return `${clean(title)}\n\n${body}\n\nEstimated, each with its interval. The question: ${address}\n`;
}
