// What the page adds to an answer: the reader's own cards, a free way to do the job, limits of a
// language model, and what its memory holds.

import { METHODS, costs, label, lateness, stateOf, the, times } from "./answer.js";
import {
  BATCHING, LIMITS, MODELS, answerRows, freeRows, isAnswering, lighterForms, memoryParts, thatFits,
} from "./model.js";
import { YOURS } from "./question.js";

/** @typedef {import("./question.js").Question} Question */
/** @typedef {import("./answer.js").Row} Row */

/** The rows of a question; a card of the reader's own costs no rent. @param {Question} question */
export function rowsOf(question) {
  const none = /** @type {[number, number, number]} */ ([0, 0, 0]);
  return answerRows(question).map((row) =>
    question.mine.includes(row.device) ? { ...row, mine: true, cost: none, kind: YOURS } : row,
  );
}

/** The question with a price of nothing for the reader's own cards. @param {Question} question */
export function withoutRent(question) {
  const own = Object.fromEntries(question.mine.map((name) => [name, 0]));
  return { ...question, prices: { ...question.prices, ...own } };
}

/** What is free, unless the reader wants none of it. @param {Question} question */
export function freeOf(question) {
  return question.free ? freeRows(question) : [];
}

/**
 * Say what the recommended device takes with more requests at once, where the program gathers them.
 * @param {Question} question
 * @param {Row | null} row
 */
export function inLargerBatches(question, row) {
  if (!row || row.own || !isAnswering(question) || question.runtime !== BATCHING) return "";
  for (let batch = LIMITS.at_once; batch * row.count > row.batch; batch = Math.floor(batch / 2)) {
    const asked = { ...question, batch };
    const rows = row.offer ? freeRows(asked) : rowsOf(asked);
    const found = rows.find((one) => label(one) === label(row));
    if (!found?.fits || found.batch > question.samples) continue;
    const cost = found.cost?.[2] ? ` and costs ${costs(found)}` : "";
    return `Answered ${batch} at a time, it takes ${times(found)} on ${the(row)}${cost}.`;
  }
  return "";
}

const SHORTEST = 256; // tokens of a sample that is still of use

/**
 * A lighter question that fits a card of the reader's own, if none of them holds the job as asked.
 * @param {Question} question
 * @param {Row[]} rows
 */
function onOwnCard(question, rows) {
  const own = rows.filter((row) => row.mine);
  if (!own.length || own.some((row) => row.fits)) return null;
  const { devices, chip } = question;
  const shorter = MODELS.get(question.model)?.shape && !isAnswering(question);
  for (let length = question.length; ; length = Math.floor(length / 2)) {
    const near = thatFits({ ...question, length, devices: question.mine, chip: null });
    if (near) return { question: { ...near.question, devices, chip }, device: near.device };
    if (!shorter || length < 2 * SHORTEST) return null;
  }
}

/**
 * A question near to this one that fits a card of the reader's own, a free card, or else one of the
 * cards asked about; with the words for a button.
 * @param {Question} question
 * @param {Row[]} rows
 * @param {Row[]} free
 * @returns {{question: Question, words: string} | null}
 */
export function offerFor(question, rows, free) {
  const mine = onOwnCard(question, rows);
  if (mine) {
    const words = `It fits your ${mine.device} with ${howOf(mine.question, question)}`;
    return { question: mine.question, words };
  }
  const lighter = question.free && !free.some((row) => row.fits) ? freeWithLess(question) : null;
  if (lighter) {
    const { asked, row } = lighter;
    const late = lateness(row, question.deadline);
    const words = `Free with ${howOf(asked, question)}: ${label(row)}, ${times(row)}${late && `, ${late}`}`;
    return { question: asked, words };
  }
  const near = rows.length && !rows.some((row) => row.fits) ? thatFits(question) : null;
  if (!near) return null;
  return { question: near.question, words: `Try ${howOf(near.question, question)}: it fits the ${near.device}` };
}

/**
 * The mildest change with which a language model fits a free card: one that is in time, if any is.
 * @param {Question} question
 * @returns {{asked: Question, row: Row} | null}
 */
function freeWithLess(question) {
  const found = [];
  for (const form of MODELS.get(question.model)?.shape ? lighterForms(question) : []) {
    for (let batch = question.batch ?? 1; batch >= 1; batch = Math.floor(batch / 2)) {
      const asked = { ...question, ...form, batch };
      const able = freeRows(asked).filter((each) => each.fits);
      const [row] = able.sort((one, other) => one.seconds[1] - other.seconds[1]);
      if (!row) continue;
      found.push({ asked, row });
      break;
    }
  }
  return found.find(({ row }) => stateOf(row, question.deadline) !== "late") ?? found[0] ?? null;
}

/** How a question differs from another one. @param {Question} asked @param {Question} before */
function howOf(asked, before) {
  const parts = [];
  if (asked.tuning !== before.tuning) parts.push(METHODS[asked.tuning]);
  if (asked.bits !== before.bits) parts.push(`${asked.bits}-bit weights`);
  if (asked.batch !== before.batch) parts.push(`batch ${asked.batch}`);
  if (asked.length !== before.length) parts.push(`samples of ${asked.length.toLocaleString("en-US")} tokens`);
  return parts.join(", ");
}

/**
 * What is wrong with the texts of a language model, beside which field, or null.
 * @param {Question} question
 * @returns {{field: string, problem: string} | null}
 */
export function problemOfTexts(question) {
  const shape = MODELS.get(question.model)?.shape;
  if (!shape) return null;
  if (shape.encoder && isAnswering(question)) {
    const instead = "Ask about training, or count its forward pass as a model of your own";
    return { field: "task", problem: `${question.model} reads texts and writes none. ${instead}.` };
  }
  const most = shape.context;
  if (!most) return null;
  const takes = `${question.model} takes ${most.toLocaleString("en-US")} tokens at most`;
  if (isAnswering(question)) {
    const long = question.prompt + question.generated > most;
    return long ? { field: "prompt", problem: `${takes}, its answer included.` } : null;
  }
  return question.length > most ? { field: "length", problem: `${takes}.` } : null;
}

/**
 * Take another model's longest sample where the usual length, or that of the model before, is longer.
 * @param {Question} next
 * @param {Question} before
 */
export function shorten(next, before) {
  const most = MODELS.get(next.model)?.shape?.context;
  if (most && next.model !== before.model) next.length = Math.min(next.length, most);
}

/**
 * What fills the memory of a card, the parts that take nothing left out.
 * @param {Question} question
 * @param {Row | null} row
 * @returns {{name: string, bytes: number}[]} none where that is not known
 */
export function memoryOf(question, row) {
  if (!row || row.own || question.model === "own") return [];
  const batch = row.batch / row.count;
  const samples = isAnswering(question) ? "request" : "sample";
  const growing = batch === 1 ? `of one ${samples}` : `of ${batch.toLocaleString("en-US")} ${samples}s`;
  const parts = Object.entries(memoryParts(question, batch) ?? {}).filter(([, bytes]) => bytes > 0);
  return parts.map(([name, bytes]) => {
    const grows = ["activations", "keys and values"].includes(name);
    if (name === "framework") return { name: "PyTorch, CUDA and gaps", bytes };
    return { name: grows ? `${name} ${growing}` : name, bytes };
  });
}

/**
 * The card that a browser's drawing library names, or null: Firefox names a similar one on purpose,
 * and a laptop's, a Ti or a SUPER is another card.
 * @param {string} renderer such as "ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 Direct3D11 vs_5_0, D3D11)"
 * @param {string[]} names of the cards of the list
 */
export function cardIn(renderer, names) {
  if (/or similar/i.test(renderer)) return null;
  const other = /^ *(ti|super|laptop|max-q|mobile|d|gre|xt|xtx|pro|max|ultra|\d+ ?gb)\b/i;
  const matches = names.filter((name) => {
    const place = renderer.toLowerCase().indexOf(name.toLowerCase());
    const [before, behind] = [renderer[place - 1] ?? " ", renderer.slice(place + name.length)];
    return place >= 0 && !/\w/.test(before) && !/^\w/.test(behind) && !other.test(behind);
  });
  return matches.sort((one, two) => two.length - one.length)[0] ?? null;
}

/** What the browser's drawing library calls the card, or nothing. */
export function rendererName() {
  const gl = document.createElement("canvas").getContext("webgl");
  const more = gl?.getExtension("WEBGL_debug_renderer_info");
  return String((gl && gl.getParameter(more ? more.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) ?? "");
}
