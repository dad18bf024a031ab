// The page itself: from its fields to a question, from the question to an answer, at each change.

import { HEADER, advise, onFreeNotebooks, table, toMarkdown, toldApart } from "./answer.js";
import {
  CHIPS, FREE, MODELS, answerRows, evidence, leftOut, problemOf, readOwn, toPython,
} from "./model.js";
import { readNumber, say } from "./numbers.js";
import { draw } from "./picture.js";
import { defaultQuestion, fromAddress, isName, toAddress } from "./question.js";

/** @typedef {import("./question.js").Question} Question */

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);
const known = { models: new Set(MODELS.keys()), devices: new Set(CHIPS.keys()), readOwn };
const FIELDS = /** @type {const} */ ({
  batch: { least: 1, most: 1e7, whole: true },
  epochs: { least: 1, most: 1e6, whole: true },
  count: { least: 1, most: 100_000, whole: true },
  deadline: { least: 1e-3, most: 1e7, optional: true },
  cpu: { least: 1e-9, most: 1e9, optional: true },
});

const LANGUAGE = "a transformer of this shape; each block is computed again in the backward pass";

/** @type {Question} the last question without a mistake, which the answer belongs to */
let question = defaultQuestion();

/** Show a mistake beside its field, or take it away. @param {string} id @param {string} problem */
function mark(id, problem) {
  at(id).setAttribute("aria-invalid", problem ? "true" : "false");
  at(`${id}-problem`).textContent = problem;
}

/**
 * Read a number from a field; a mistake is shown beside it.
 * @param {string} id
 * @param {{least?: number, most?: number, whole?: boolean, optional?: boolean}} limits
 * @returns {number | null | undefined} null where it is empty and may be, undefined for a mistake
 */
function numberFrom(id, limits) {
  const text = at(id).value;
  if (limits.optional && text.trim() === "") {
    mark(id, "");
    return null;
  }
  const read = readNumber(text, limits);
  mark(id, "problem" in read ? read.problem : "");
  return "value" in read ? read.value : undefined;
}

/** Read the fields into the question; what is wrong in a field leaves its part as it was. */
function readFields() {
  const next = structuredClone(question);
  for (const [name, limits] of Object.entries(FIELDS)) {
    const value = numberFrom(name, limits);
    if (value !== undefined) Object.assign(next, { [name]: value });
  }
  if (at("largest").checked) {
    next.batch = null;
    mark("batch", "");
  }
  readModel(next);
  for (const name of /** @type {const} */ (["task", "precision", "tuning"])) {
    Object.assign(next, { [name]: at(name).value });
  }
  readAmount(next);
  readCards(next);
  const problem = problemOf(next);
  for (const name of ["task", "precision"]) mark(name, problem?.field === name ? problem.problem : "");
  if (problem?.field === "batch") mark("batch", problem.problem);
  if (!problem) question = next;
}

/** @param {Question} next */
function readModel(next) {
  const name = at("model").value.trim();
  const text = at("own").value.trim();
  let problem = "";
  mark("own", "");
  if (text) {
    const read = readOwn(text);
    if ("own" in read) {
      next.own = read.own;
      next.model = "own";
      next.batch = read.own.batch;
      next.task = read.own.training ? "training" : "inference";
      return mark("model", "");
    }
    mark("own", read.problem);
  } else if (MODELS.has(name)) {
    next.model = name;
    next.own = null;
  } else {
    const near = [...MODELS.keys()].filter((each) => each.toLowerCase().includes(name.toLowerCase()));
    problem = near.length ? `Choose one: ${near.slice(0, 4).join("; ")} ...` : "No model is called that.";
  }
  mark("model", problem);
}

/** @param {Question} next */
function readAmount(next) {
  const unit = at("unit").value;
  const amount = numberFrom("amount", { least: 1e-6, most: 1e15 });
  const rate = unit === "hours" ? numberFrom("rate", { least: 1e-6, most: 1e12 }) : 1;
  const tokens = unit === "tokens" ? (MODELS.get(next.model)?.tokens ?? 1) : 1;
  if (amount == null || rate == null) return;
  const samples = Math.max(1, Math.round((amount * rate) / tokens));
  if (samples > 1e15) mark("amount", "This number is too large.");
  else next.samples = samples;
}

/** @param {Question} next */
function readCards(next) {
  next.devices = [];
  next.prices = {};
  for (const box of document.querySelectorAll("input[data-card]")) {
    const input = /** @type {HTMLInputElement} */ (box);
    const name = String(input.dataset.card);
    if (input.checked) next.devices.push(name);
    const price = at(`${input.id}-price`);
    const read = price.value.trim() === "" ? null : readNumber(price.value, { most: 1e6 });
    const wrong = read !== null && "problem" in read;
    price.setAttribute("aria-invalid", String(wrong));
    at(`${input.id}-price-problem`).textContent = wrong ? read.problem : "";
    if (read && "value" in read && read.value !== CHIPS.get(name)?.price) {
      next.prices[name] = read.value;
    } else if (wrong && name in question.prices) {
      next.prices[name] = question.prices[name];
    }
  }
  readOwnChip(next);
}

/** @param {Question} next */
function readOwnChip(next) {
  const name = at("chip-name").value.trim();
  const figures = ["chip-peak", "chip-bandwidth", "chip-memory"];
  const begun = name !== "" || figures.some((id) => at(id).value.trim() !== "");
  if (!begun) {
    ["chip-name", ...figures].forEach((id) => mark(id, ""));
    next.chip = null;
    return;
  }
  const allowed = isName(name) && !CHIPS.has(name);
  mark("chip-name", allowed ? "" : "Give it a name of its own, in letters and digits.");
  const [peak, bandwidth, memory] = figures.map((id) => numberFrom(id, { least: 1e-3, most: 1e8 }));
  if (allowed && peak && bandwidth && memory) next.chip = { name, peak, bandwidth, memory };
}

/** Show the question in the fields. */
function writeFields() {
  const text = (/** @type {number | null} */ value) => (value === null ? "" : String(value));
  at("model").value = question.model === "own" ? "" : question.model;
  at("own").value = question.own ? JSON.stringify(question.own) : "";
  at("own-box").open = question.own !== null;
  for (const name of /** @type {const} */ (["task", "precision", "tuning"])) at(name).value = question[name];
  at("largest").checked = question.batch === null;
  at("batch").value = text(question.batch);
  at("amount").value = text(question.samples);
  at("unit").value = "samples";
  at("epochs").value = text(question.epochs);
  at("deadline").value = text(question.deadline);
  at("cpu").value = text(question.cpu);
  at("count").value = text(question.count);
  for (const [id, key] of /** @type {const} */ ([
    ["chip-name", "name"],
    ["chip-peak", "peak"],
    ["chip-bandwidth", "bandwidth"],
    ["chip-memory", "memory"],
  ])) {
    at(id).value = question.chip ? question.chip[key] : "";
  }
  at("chip-box").open = question.chip !== null;
  listCards();
}

/** Write the list of cards: the chosen ones first, all others under "More cards". */
function listCards() {
  at("chosen").replaceChildren();
  at("cards").replaceChildren();
  let number = 0;
  for (const name of CHIPS.keys()) {
    const chosen = question.devices.includes(name);
    at(chosen ? "chosen" : "cards").append(cardLine(name, `card-${number++}`, chosen));
  }
  const dates = [...CHIPS.values()].flatMap((chip) => chip.date ?? []).sort();
  const examples = `Prices are examples of ${dates[0]} to ${dates[dates.length - 1]}: put in your own.`;
  const note = Object.assign(paragraph(examples), { className: "note" });
  at("chosen").append(note);
}

/** @param {string} name @param {string} id @param {boolean} chosen */
function cardLine(name, id, chosen) {
  const line = document.createElement("div");
  line.className = "card";
  const box = Object.assign(document.createElement("input"), { type: "checkbox", id, checked: chosen });
  box.dataset.card = name;
  const label = Object.assign(document.createElement("label"), { htmlFor: id, textContent: name });
  const price = document.createElement("span");
  price.className = "price";
  const input = Object.assign(document.createElement("input"), {
    id: `${id}-price`,
    inputMode: "decimal",
    value: String(question.prices[name] ?? CHIPS.get(name)?.price ?? ""),
  });
  input.setAttribute("aria-label", `Dollars an hour for the ${name}`);
  input.setAttribute("aria-describedby", `${id}-price-problem`);
  const problem = Object.assign(document.createElement("span"), { id: `${id}-price-problem` });
  problem.className = "problem wide";
  price.append("$/h", input);
  line.append(box, label, price, problem);
  return line;
}

/** Compute and show the answer to the question. @param {string[]} notes on its address */
function show(notes = []) {
  const rows = answerRows(question);
  at("sentences").replaceChildren(
    ...[advise(rows, question.deadline), ...toldApart(rows)].map(paragraph),
  );
  draw(at("picture"), rows, question.deadline, Math.max(320, at("picture").clientWidth));
  at("table").replaceChildren(...tableRows(rows));
  at("free").textContent = onFreeNotebooks(rows, FREE);
  at("evidence").replaceChildren(...evidence(question, rows).map(paragraph));
  const model = MODELS.get(question.model);
  at("tuning-field").hidden = !model?.shape || question.task !== "training";
  at("rate-field").hidden = at("unit").value !== "hours";
  const counted = question.own ? `, counted at batch ${question.own.batch}` : "";
  at("model-note").textContent = question.own ? `your own step${counted}` : (model?.shape ? LANGUAGE : "");
  at("amount-note").textContent = at("unit").value === "samples" ? "" : `${say(question.samples)} samples`;
  at("batch").disabled = at("largest").checked;
  at("problems").textContent = [...notes, ...leftOut(question)].join(" ");
  const address = `#${toAddress(question)}`;
  if (location.hash !== address) history.replaceState(null, "", address);
}

/** @param {string} text */
function paragraph(text) {
  return Object.assign(document.createElement("p"), { textContent: text });
}

/** @param {import("./answer.js").Row[]} rows */
function tableRows(rows) {
  const head = document.createElement("tr");
  for (const name of HEADER) {
    head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: name }));
  }
  const body = table(rows).map((cells, index) => {
    const line = document.createElement("tr");
    if (!rows[index].fits) line.className = "no";
    for (const text of cells) {
      line.append(Object.assign(document.createElement("td"), { textContent: text }));
    }
    return line;
  });
  return [head, ...body];
}

/** @param {string} text @param {string} what */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    at("copied").textContent = `${what} copied.`;
  } catch {
    const box = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    at("copied").textContent = done ? `${what} copied.` : "The browser does not allow copying.";
  }
}

/** Take over the question of the address. */
function load() {
  const read = fromAddress(location.hash.slice(1), known);
  question = read.question;
  writeFields();
  readFields();
  show(read.problems);
}

function start() {
  at("models").append(
    ...[...MODELS.keys()].map((value) => Object.assign(document.createElement("option"), { value })),
  );
  at("form").addEventListener("input", () => {
    readFields();
    show();
  });
  at("form").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  at("copy-link").addEventListener("click", () => copy(location.href, "Address"));
  at("copy-markdown").addEventListener("click", () => {
    const rows = answerRows(question);
    copy(toMarkdown(rows, advise(rows, question.deadline), location.href), "Table");
  });
  at("copy-python").addEventListener("click", () => copy(toPython(question), "Python"));
  window.addEventListener("hashchange", load);
  window.addEventListener("resize", () => show());
  load();
}

start();
