// The page itself: from its fields to a question, from the question to an answer, at each change.

import {
  advise, doubts, header, inOrder, jobWords, onFreeNotebooks, recommended, table, toMarkdown, toldApart,
} from "./answer.js";
import {
  CHIPS, FREE, MODELS, PROVIDERS, RUNTIMES, evidence, leftOut, listPrice, offerOf, priceOf, problemOf,
} from "./model.js";
import { readNumber, readPrice, say, sayBytes, sayCount } from "./numbers.js";
import {
  cardIn, freeOf, inLargerBatches, memoryOf, offerFor, problemOfTexts, rendererName, rowsOf, shorten, withoutRent,
} from "./offers.js";
import { addressOfPasted, readOwn } from "./pasted.js";
import { draw } from "./picture.js";
import { toPython } from "./python.js";
import {
  LONGEST_TEXT, USUAL_JOBS, defaultQuestion, fromAddress, isName, kindOfJob, takeOwn, toAddress,
} from "./question.js";
import { searchNames } from "./search.js";

/** @typedef {import("./question.js").Question} Question */

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);
/** The names to search: of a network in several sizes, first that which was counted in training. */
const NAMES = [...MODELS.keys()].sort((one, other) => trained(other) - trained(one));
const known = {
  models: new Set(NAMES),
  language: new Set(NAMES.filter((name) => MODELS.get(name)?.shape)),
  devices: new Set(CHIPS.keys()),
  providers: [...PROVIDERS.keys()],
  runtimes: Object.keys(RUNTIMES),
  usual: (/** @type {string} */ name) => MODELS.get(name)?.usual ?? {},
  readOwn,
};
const MOST_CHOICES = 8;
const OFTEN = [
  "resnet50 (224)", "vit_base_patch16_224 (224)", "efficientnet_b0 (224)", "GPT-2", "Llama 3.1 8B",
  "Qwen3 8B", "Mistral 7B", "Stable Diffusion 1.5 U-Net, 512 x 512",
];
const FIELDS = /** @type {const} */ ({
  batch: { least: 1, most: 1e7, whole: true },
  epochs: { least: 1, most: 1e6, whole: true },
  count: { least: 1, most: 100_000, whole: true },
  deadline: { least: 1e-3, most: 1e7, optional: true },
  cpu: { least: 1e-9, most: 1e9, optional: true },
  length: { least: 1, most: LONGEST_TEXT, whole: true },
  prompt: { least: 1, most: LONGEST_TEXT, whole: true },
  generated: { least: 1, most: LONGEST_TEXT, whole: true },
});

const CHOICES = /** @type {const} */ (["task", "precision", "tuning", "bits", "runtime"]);
const WHOLE = "Each card holds the whole model here: one that is split over several cards is not estimated.";
const NEAREST = "No model here is called that. The nearest here, or count your own below:";
const NOT_LISTED = "No model here is called that, but you can count your own:";

/** @type {Question} the last question without a mistake, which the answer belongs to */
let question = defaultQuestion();

/** Whether training is known: 1 or 0. @param {string} name */
function trained(name) {
  const model = MODELS.get(name);
  return model?.shape || model?.steps.training ? 1 : 0;
}

/** The kind of a question's job. @param {Question} asked */
function jobKind(asked) {
  return kindOfJob(known.language.has(asked.model), asked.task);
}

/** What is asked by default about the model of a question. @param {Question} asked */
function usualQuestion(asked) {
  return defaultQuestion(jobKind(asked), known.usual(asked.model));
}

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
  for (const name of CHOICES) Object.assign(next, { [name]: at(name).value });
  takeCountedTask(next);
  readAmount(next);
  readCards(next);
  shorten(next, question);
  const changed = takeUsualJob(next) || next.length !== question.length;
  const problem = problemOf(next) ?? problemOfTexts(next);
  for (const name of ["task", "precision"]) mark(name, "");
  if (problem) mark(problem.field, problem.problem);
  if (!problem) question = next;
  if (!problem && changed && at("unit").value === "samples") writeJob();
}

/** @param {Question} next */
function readModel(next) {
  const text = at("own").value.trim();
  for (const id of ["own", "model"]) mark(id, "");
  at("choices").replaceChildren();
  if (text) {
    const read = readOwn(text);
    if ("own" in read) return takeOwn(next, read.own);
    return mark("own", read.problem);
  }
  const typed = at("model").value.trim();
  const found = searchNames(typed, NAMES);
  const best = MODELS.has(typed) ? typed : found.find((one) => one.exact)?.name;
  if (best) Object.assign(next, { model: best, own: null });
  else mark("model", found.length ? (found[0].near ? NEAREST : "Choose one of these:") : NOT_LISTED);
  const often = (/** @type {string} */ name) => (OFTEN.includes(name) ? 0 : 1);
  const listed = found.map((one) => one.name);
  if (!found[0]?.near) listed.sort((one, other) => often(one) - often(other));
  const names = typed ? listed : OFTEN;
  const first = best ? [best] : []; // Enter takes the first
  if (!MODELS.has(typed)) offerChoices([...new Set([...first, ...names])].slice(0, MOST_CHOICES));
}

/** Offer models to choose, or the way to count one's own. @param {string[]} names */
function offerChoices(names) {
  const buttons = names.map((name) => button(name, () => chooseModel(name)));
  if (!names.length) buttons.push(button("My own model", openOwnModel));
  at("choices").replaceChildren(...buttons);
}

/** @param {string} text @param {() => void} act */
function button(text, act) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  made.addEventListener("click", act);
  return made;
}

/** @param {string} name */
function chooseModel(name) {
  at("model").value = name;
  at("model").focus();
  change();
}

function openOwnModel() {
  at("own-box").open = true;
  at("own").focus();
}

/**
 * Ask about the usual job of another model, where the job was the usual one so far.
 * @param {Question} next
 * @returns {boolean} whether something changed
 */
function takeUsualJob(next) {
  if (next.model === "own") return false;
  const [before, now] = [usualQuestion(question), usualQuestion(next)];
  const names = /** @type {(keyof import("./question.js").UsualJob)[]} */ (Object.keys(USUAL_JOBS.images));
  const taken = names.filter((name) => next[name] === before[name] && before[name] !== now[name]);
  for (const name of taken) Object.assign(next, { [name]: now[name] });
  return taken.length > 0 || jobKind(question) !== jobKind(next);
}

/** The task that alone was counted of a network, or null. @param {string} name */
function onlyTask(name) {
  const counted = /** @type {Question["task"][]} */ (Object.keys(MODELS.get(name)?.steps ?? {}));
  return counted.length === 1 ? counted[0] : null;
}

/** Ask what was counted of another network. @param {Question} next */
function takeCountedTask(next) {
  const only = onlyTask(next.model);
  if (only && next.model !== question.model) next.task = at("task").value = only;
}

/** @param {Question} next */
function readAmount(next) {
  const kind = jobKind(next);
  const unit = kind === "answers" ? "samples" : at("unit").value;
  const amount = numberFrom("amount", { least: 1e-6, most: 1e15 });
  const rate = unit === "hours" ? numberFrom("rate", { least: 1e-6, most: 1e12 }) : 1;
  const tokens = unit === "tokens" && kind === "tuning" ? next.length : 1;
  if (amount == null || rate == null) return;
  const samples = Math.max(1, Math.round((amount * rate) / tokens));
  if (samples > 1e15) mark("amount", "This number is too large.");
  else next.samples = samples;
}

/** @param {Question} next */
function readCards(next) {
  next.devices = [];
  next.mine = [];
  next.free = at("free-too").checked;
  next.provider = at("provider").value;
  next.prices = {};
  for (const box of document.querySelectorAll("input[data-card]")) {
    const input = /** @type {HTMLInputElement} */ (box);
    const name = String(input.dataset.card);
    if (at(`${input.id}-mine`).checked) {
      input.checked = true;
      next.mine.push(name);
    }
    if (input.checked) next.devices.push(name);
    const id = `${input.id}-price`;
    const read = at(id).value.trim() === "" ? { value: null } : readPrice(at(id).value);
    mark(id, "problem" in read ? read.problem : "");
    const before = question.prices[name];
    const price = "value" in read ? read.value : before;
    const listed = listPrice(next.provider, name)?.price ?? null;
    if (price !== undefined && price !== listed) next.prices[name] = price;
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
  const listed = CHIPS.has(name) ? `The ${name} is in the list under “More cards”: tick it there.` : "";
  const allowed = isName(name) && !listed;
  mark("chip-name", allowed ? "" : listed || "Give it a name of its own, in letters and digits.");
  const [peak, bandwidth, memory] = figures.map((id) => numberFrom(id, { least: 1e-3, most: 1e8 }));
  if (allowed && peak && bandwidth && memory) next.chip = { name, peak, bandwidth, memory };
}

/** A number as a field shows it. @param {number | null} value */
function asText(value) {
  return value === null ? "" : String(value);
}

/** Show the job in its fields. */
function writeJob() {
  for (const name of CHOICES) at(name).value = question[name];
  at("largest").checked = question.batch === null;
  for (const name of Object.keys(FIELDS)) {
    at(name).value = asText(question[/** @type {keyof typeof FIELDS} */ (name)]);
  }
  at("unit").value = "samples";
  at("amount").value = asText(question.samples);
}

/** The amount of data in the other unit. */
function amountNote() {
  const kind = jobKind(question);
  if (kind === "answers") return "";
  if (at("unit").value !== "samples") return `${say(question.samples)} samples`;
  return kind === "tuning" ? `${sayCount(question.samples * question.length)} tokens` : "";
}

/**
 * Show the fields that a kind of job has, and call them by its words.
 * @param {import("./question.js").Kind} kind
 */
function showFields(kind) {
  at("tuning-field").hidden = at("length-field").hidden = kind !== "tuning";
  at("precision-field").hidden = kind !== "images";
  at("unit-field").hidden = at("epochs-field").hidden = kind === "answers";
  at("rate-field").hidden = kind === "answers" || at("unit").value !== "hours";
  for (const field of document.querySelectorAll(".answers")) {
    field.toggleAttribute("hidden", kind !== "answers");
  }
  at("batch-label").textContent = kind === "answers" ? "Requests at once" : "Batch on each device";
  at("amount-label").textContent = kind === "answers" ? "Requests" : "Data in an epoch";
  at("batch").disabled = at("largest").checked;
}

/** Show the question in the fields. */
function writeFields() {
  at("model").value = question.model === "own" ? "" : question.model;
  at("own").value = question.own ? JSON.stringify(question.own) : "";
  at("own-box").open = question.own !== null;
  writeJob();
  for (const [id, key] of /** @type {const} */ ([
    ["chip-name", "name"],
    ["chip-peak", "peak"],
    ["chip-bandwidth", "bandwidth"],
    ["chip-memory", "memory"],
  ])) {
    at(id).value = question.chip ? question.chip[key] : "";
  }
  at("chip-box").open = question.chip !== null;
  at("free-too").checked = question.free;
  listCards();
}

/** Write the list of cards: the chosen ones first, all others under "More cards". */
function listCards() {
  at("chosen").replaceChildren();
  at("cards").replaceChildren();
  let number = 0;
  const free = [...CHIPS.keys()].filter((name) => freeAt(name).length);
  for (const name of new Set([...free, ...CHIPS.keys()])) {
    const chosen = question.devices.includes(name);
    at(chosen ? "chosen" : "cards").append(cardLine(name, `card-${number++}`, chosen));
  }
  writePrices();
}

/** Show the prices of the list that was chosen, or what the user typed. */
function writePrices() {
  at("provider").value = question.provider;
  for (const box of document.querySelectorAll("input[data-card]")) {
    const name = /** @type {HTMLInputElement} */ (box).dataset.card ?? "";
    at(`${box.id}-price`).value = asText(priceOf(question, name)?.price ?? null);
  }
  const dates = [...PROVIDERS.values()].map((one) => one.date).sort();
  const asked = PROVIDERS.get(question.provider);
  const unlike = question.devices.flatMap((name) => {
    const price = priceOf(question, name);
    return price && price.kind > 0 ? [`${name} (${offerOf(price)})`] : [];
  });
  const others = unlike.length && unlike.length < question.devices.length ? `. Not compared by cost with them: ${unlike.join(", ")}` : "";
  const list = asked
    ? `List prices of ${asked.date}; ${asked.what}.`
    : `List prices of ${dates[0]} to ${dates[dates.length - 1]}, the cheapest on demand in a data centre${others}.`;
  at("price-note").textContent = `${list} Change them to yours.`;
}

/** Take the list prices of the provider that was chosen, in place of what was typed. */
function takeProvider() {
  question = { ...question, provider: at("provider").value, prices: {} };
  writePrices();
}

/** @param {string} name @param {string} id @param {boolean} chosen */
function cardLine(name, id, chosen) {
  const line = document.createElement("div");
  line.className = "card";
  const box = Object.assign(document.createElement("input"), { type: "checkbox", id, checked: chosen });
  box.dataset.card = name;
  const label = Object.assign(document.createElement("label"), { htmlFor: id, textContent: name });
  const memory = document.createElement("span");
  memory.className = "note";
  const size = `${CHIPS.get(name)?.sold} GB`;
  const notes = /\d ?GB/.test(name) ? freeAt(name) : [size, ...freeAt(name)];
  memory.textContent = notes.length ? ` ${notes.join(", ")}` : "";
  label.append(memory);
  const mine = document.createElement("label");
  mine.className = "note";
  const [has, owned] = [question.mine.includes(name), `${id}-mine`];
  mine.append(Object.assign(document.createElement("input"), { type: "checkbox", id: owned, checked: has }), "mine");
  mine.setAttribute("aria-label", `I have the ${name}`);
  const price = document.createElement("span");
  price.className = "price";
  const input = Object.assign(document.createElement("input"), {
    id: `${id}-price`,
    inputMode: "decimal",
  });
  input.setAttribute("aria-label", `Dollars an hour for the ${name}`);
  input.setAttribute("aria-describedby", `${id}-price-problem`);
  const problem = Object.assign(document.createElement("span"), { id: `${id}-price-problem` });
  problem.className = "problem wide";
  price.append("$/h", input);
  line.append(box, label, mine, price, problem);
  return line;
}

/** Where a card is free: "free on Colab and Kaggle", or nothing. @param {string} name */
function freeAt(name) {
  const offers = FREE.filter((offer) => offer.devices.includes(name)).map((offer) => offer.name);
  return offers.length ? [`free on ${offers.join(" and ")}`] : [];
}

/** Show only the cards whose name holds what was typed. */
function filterCards() {
  const wanted = new Set(searchNames(at("filter").value, [...CHIPS.keys()]).map((one) => one.name));
  for (const box of at("cards").querySelectorAll("input[data-card]")) {
    box.parentElement.hidden = !wanted.has(box.dataset.card);
  }
}

/** The field that is wrong, which the answer does not know, in a sentence. */
function sayStale() {
  const wrong = document.querySelector('#form [aria-invalid="true"]');
  if (!wrong) return "";
  const name = document.querySelector(`label[for="${wrong.id}"]`)?.textContent ?? wrong.ariaLabel ?? "";
  const problem = at(`${wrong.id}-problem`).textContent.replace(/:$/, ".");
  return `${name.trim().split(":")[0]}: ${problem} This is the answer before that.`;
}

/** Add the card of this machine to the question, as far as the browser names it. */
function findCard() {
  const named = rendererName();
  const card = cardIn(named, [...CHIPS.keys()]);
  const shown = named ? `Your browser says “${named.slice(0, 90)}”` : "Your browser does not say";
  at("card-found").textContent = card ? `Found: ${card}` : `${shown}. Tick “mine” beside your card.`;
  if (!card) return;
  const devices = [...new Set([...question.devices, card])];
  question = { ...question, devices, mine: [...new Set([...question.mine, card])] };
  listCards();
  change();
}

/** Offer a lighter question. @param {import("./answer.js").Row[]} rows @param {import("./answer.js").Row[]} free */
function offerLighter(rows, free) {
  const near = offerFor(question, rows, free);
  at("offer").hidden = near === null;
  if (!near) return;
  at("take-offer").textContent = near.words;
  at("take-offer").onclick = () => {
    question = near.question;
    writeJob();
    change();
  };
}

/** Compute and show the answer to the question. @param {string[]} notes on its address */
function show(notes = []) {
  const free = freeOf(question);
  const rows = rowsOf(question);
  const all = inOrder([...free, ...rows], question.deadline);
  at("stale").textContent = sayStale();
  at("job").textContent = jobWords(question, jobKind(question));
  at("close").textContent = toldApart(rows).join("");
  offerLighter(rows, free);
  const best = recommended([...rows, ...free], question.deadline);
  const aside = inLargerBatches(question, best);
  at("advice").textContent = advise(rows, question.deadline, free, aside);
  const split = jobKind(question) === "answers" && !all.some((row) => row.fits) ? WHOLE : "";
  at("unchecked").textContent = best ? doubts(best, question.batch === null) : split;
  const [largest] = [...rows].sort((one, two) => (two.capacity ?? 0) - (one.capacity ?? 0));
  showMemory(best ?? largest ?? null);
  draw(at("picture"), all, question.deadline, Math.max(320, at("picture").clientWidth));
  at("table").replaceChildren(...tableRows(all));
  at("free").textContent = onFreeNotebooks(free, question.deadline);
  at("evidence").replaceChildren(...evidence(question, rows).map(paragraph));
  showFields(jobKind(question));
  const counted = question.own ? `, counted at batch ${question.own.batch}` : "";
  const { note = "" } = MODELS.get(question.model) ?? {};
  at("model-note").textContent = question.own ? `your own step${counted}` : note;
  at("amount-note").textContent = amountNote();
  at("problems").textContent = [...notes, ...leftOut(question)].join(" ");
  const address = `#${toAddress(question, usualQuestion(question))}`;
  if (location.hash !== address) history.replaceState(null, "", address);
}

/** Show what fills the memory of a card, each part as a bar. @param {import("./answer.js").Row | null} row */
function showMemory(row) {
  const parts = memoryOf(question, row);
  const whole = Math.max(row?.needed ?? 0, row?.capacity ?? 0);
  const room = row?.capacity ? ` of ${sayBytes(row.capacity)}` : "";
  const caption = document.createElement("caption");
  const needed = sayBytes(row?.needed ?? 0);
  const short = `Memory that it needs: ${needed}, and the ${row?.device} has ${sayBytes(row?.capacity ?? 0)}`;
  caption.textContent = row?.fits ? `Memory on the ${row.device}: ${needed}${room}` : short;
  const lines = parts.map(({ name, bytes }) => {
    const line = document.createElement("tr");
    const head = Object.assign(document.createElement("th"), { scope: "row", textContent: name });
    const size = Object.assign(document.createElement("td"), { textContent: sayBytes(bytes) });
    const bar = document.createElement("div");
    bar.style.width = `${(100 * bytes) / whole}%`;
    const cell = document.createElement("td");
    cell.append(bar);
    line.append(head, size, cell);
    return line;
  });
  at("memory").replaceChildren(...(parts.length ? [caption, ...lines] : []));
}

/** @param {string} text */
function paragraph(text) {
  return Object.assign(document.createElement("p"), { textContent: text });
}

/** @param {import("./answer.js").Row[]} rows */
function tableRows(rows) {
  const head = document.createElement("tr");
  for (const name of header(rows)) {
    head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: name }));
  }
  const best = recommended(rows, question.deadline);
  const body = table(rows, question.deadline).map((cells, index) => {
    const line = document.createElement("tr");
    if (!rows[index].fits) line.className = "no";
    if (rows[index] === best) line.className = "best";
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

/** Take over the question of an address. */
function load(address = location.hash.slice(1)) {
  const read = fromAddress(address, known);
  question = read.question;
  if (!/(^|&)length=/.test(address)) shorten(question, defaultQuestion());
  const problem = problemOfTexts(question);
  if (problem) {
    read.problems.push(problem.problem);
    question = { ...defaultQuestion("tuning", known.usual(question.model)), model: question.model };
    shorten(question, defaultQuestion());
  }
  const only = onlyTask(question.model);
  if (only && question.task !== only) {
    read.problems.push(problemOf(question)?.problem ?? "");
    question.task = only;
  }
  writeFields();
  readFields();
  show(read.problems);
}

/** Answer the question that the fields hold now. */
function change() {
  readFields();
  show();
}

/** Take over the job of a pasted estimate, not its step alone; return whether there was one. */
function takePastedJob() {
  const text = at("own").value.trim();
  const read = readOwn(text);
  const address = "own" in read ? addressOfPasted(text, read.own) : null;
  if (address !== null) load(address);
  return address !== null;
}

function start() {
  for (const name of known.providers) at("provider").append(new Option(name, name));
  for (const name of known.runtimes) at("runtime").append(new Option(name, name));
  at("provider").addEventListener("input", takeProvider);
  at("own").addEventListener("input", (/** @type {Event} */ event) => {
    if (takePastedJob()) event.stopPropagation();
  });
  at("form").addEventListener("input", change);
  at("form").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  at("model").addEventListener("focus", () => at("model").select());
  at("model").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !MODELS.has(at("model").value)) at("choices").firstChild?.click();
  });
  at("find-card").addEventListener("click", findCard);
  at("filter").addEventListener("input", filterCards);
  at("copy-link").addEventListener("click", () => copy(location.href, "Address"));
  at("copy-markdown").addEventListener("click", () => {
    const rows = inOrder([...freeOf(question), ...rowsOf(question)], question.deadline);
    const answer = ["job", "advice", "unchecked"].map((id) => at(id).textContent).join(" ").trim();
    copy(toMarkdown(rows, answer, location.href, question.deadline), "Table");
  });
  at("copy-python").addEventListener("click", () => copy(toPython(withoutRent(question)), "Python"));
  window.addEventListener("hashchange", () => load());
  window.addEventListener("resize", () => show());
  load();
}

start();
