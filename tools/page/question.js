// The question that the page answers: its fields, and the address that holds them.

/**
 * @typedef {object} Question
 * @property {string} model the name of a counted network or language model, or "own"
 * @property {import("./pasted.js").OwnStep | null} own one's own counted step
 * @property {"training" | "inference"} task
 * @property {"full" | "lora" | "4-bit"} tuning of a language model
 * @property {string} precision of a network for images
 * @property {number} length tokens of a sample that a language model is trained with
 * @property {number} prompt tokens of a request to a language model
 * @property {number} generated tokens of its answer
 * @property {string} bits of a weight while it answers
 * @property {string} runtime what it answers with
 * @property {number | null} batch null stands for the largest that fits
 * @property {number} samples in one epoch, or requests
 * @property {number} epochs
 * @property {number | null} deadline in hours
 * @property {string[]} devices
 * @property {OwnChip | null} chip
 * @property {number} count devices that work together
 * @property {string} provider whose list prices are taken, or "" for the cheapest on demand
 * @property {Record<string, number | null>} prices dollars an hour, or null for none, where they
 *   differ from that list
 * @property {string[]} mine cards that the reader has
 * @property {boolean} free whether what is free takes part
 * @property {number | null} cpu seconds of one step of this batch on one's own machine
 */

/** @typedef {{name: string, peak: number, bandwidth: number, memory: number}} OwnChip */

export const PRECISIONS = ["amp", "bf16", "fp16", "tf32", "fp32"];
export const TUNINGS = ["full", "lora", "4-bit"];
export const BITS = ["16", "8", "4"];
export const YOURS = -1; // the kind of a price that the reader typed
const LONGEST_ADDRESS = 60_000;
export const LONGEST_TEXT = 1e7; // tokens

/** @typedef {"images" | "tuning" | "answers"} Kind of job */
/** @typedef {Pick<Question, "tuning" | "batch" | "samples" | "epochs">} UsualJob */

/** @type {Record<Kind, UsualJob>} the usual job of each kind: ImageNet, instructions, requests */
export const USUAL_JOBS = {
  images: { tuning: "full", batch: 256, samples: 1_281_167, epochs: 90 },
  tuning: { tuning: "lora", batch: 1, samples: 20_000, epochs: 3 },
  answers: { tuning: "lora", batch: 1, samples: 10_000, epochs: 1 },
};

/**
 * The kind of a job.
 * @param {boolean} language whether it is about a language model of the list
 * @param {string | null} task
 * @returns {Kind}
 */
export function kindOfJob(language, task) {
  if (!language) return "images";
  return task === "inference" ? "answers" : "tuning";
}

/**
 * @param {Kind} kind
 * @param {Partial<UsualJob>} usual what is usual for its model alone
 * @returns {Question}
 */
export function defaultQuestion(kind = "images", usual = {}) {
  return {
    ...USUAL_JOBS[kind],
    ...usual,
    model: "resnet50 (224)",
    own: null,
    task: "training",
    precision: "amp",
    length: 2048,
    prompt: 512,
    generated: 256,
    bits: "16",
    runtime: "vLLM",
    deadline: 48,
    devices: ["T4", "L4", "A100 80GB", "H100 SXM", "RTX 4090", "RTX 5090"], // DEVICES of chips.py
    chip: null,
    count: 1,
    provider: "",
    prices: {},
    mine: [],
    free: true,
    cpu: null,
  };
}

/**
 * Write a question as the part of an address after "#". What is as by default is left out.
 * @param {Question} question
 * @param {Question} usual what its model is asked by default
 * @returns {string}
 */
export function toAddress(question, usual) {
  const fields = new URLSearchParams();
  const texts = /** @type {const} */ (["model", "task", "tuning", "precision", "bits", "runtime", "provider"]);
  for (const name of texts) {
    if (question[name] !== usual[name]) fields.set(name, question[name]);
  }
  const numbers = /** @type {const} */ (["samples", "epochs", "count", "length", "prompt", "generated"]);
  for (const name of numbers) {
    if (question[name] !== usual[name]) fields.set(name, String(question[name]));
  }
  if (question.batch !== usual.batch) fields.set("batch", String(question.batch ?? "largest"));
  if (question.deadline !== usual.deadline) {
    fields.set("deadline", String(question.deadline ?? "none"));
  }
  if (question.cpu !== null) fields.set("cpu", String(question.cpu));
  if (question.devices.join() !== usual.devices.join()) {
    fields.set("devices", question.devices.join(","));
  }
  if (question.mine.length) fields.set("mine", question.mine.join(","));
  if (!question.free) fields.set("free", "no");
  for (const [name, price] of Object.entries(question.prices)) {
    fields.append("price", `${name}:${price ?? "none"}`);
  }
  if (question.chip) {
    const { name, peak, bandwidth, memory } = question.chip;
    fields.set("chip", [name, peak, bandwidth, memory].join(","));
  }
  if (question.own) fields.set("own", JSON.stringify(question.own));
  return fields.toString();
}

/**
 * What the page knows: its models, which of them are language models, devices, providers, programs
 * that answer, and how a pasted step is read.
 * @typedef {{models: Set<string>, language: Set<string>, devices: Set<string>, providers: string[],
 *   runtimes: string[], usual: (model: string) => Partial<UsualJob>,
 *   readOwn: (text: string) => {own: import("./pasted.js").OwnStep} | {problem: string}}} Known
 */

/**
 * Read a question from an address. What cannot be read is left as by default, with a sentence.
 * @param {string} address the part after "#"
 * @param {Known} known
 * @returns {{question: Question, problems: string[]}}
 */
export function fromAddress(address, known) {
  if (address.length > LONGEST_ADDRESS) {
    const problems = ["This address is too long to hold a question."];
    return { question: defaultQuestion(), problems };
  }
  const fields = new URLSearchParams(address);
  const model = fields.get("model");
  const language = model !== null && known.language.has(model);
  const usual = model === null ? {} : known.usual(model);
  const question = defaultQuestion(kindOfJob(language, fields.get("task")), usual);
  /** @type {string[]} */
  const problems = [];
  const choices = {
    task: ["training", "inference"],
    tuning: TUNINGS,
    precision: PRECISIONS,
    provider: ["", ...known.providers],
    bits: BITS,
    runtime: known.runtimes,
  };
  for (const [name, allowed] of Object.entries(choices)) {
    const value = fields.get(name);
    if (value === null) continue;
    if (allowed.includes(value)) Object.assign(question, { [name]: value });
    else problems.push(`The address has an unknown ${name}.`);
  }
  const own = fields.get("own");
  if (own !== null) {
    const read = known.readOwn(own);
    if ("own" in read) takeOwn(question, read.own);
    else problems.push(`The address holds a counted step that cannot be read: ${read.problem}`);
  }
  if (model !== null) {
    if (known.models.has(model) || (model === "own" && question.own)) question.model = model;
    else problems.push("The address names a model that is not in this page's list.");
  }
  readNumbers(fields, question, problems);
  readDevices(fields, question, problems, known.devices);
  return { question, problems: [...new Set(problems)] };
}

/** Ask about a step of one's own. @param {Question} question @param {import("./pasted.js").OwnStep} own */
export function takeOwn(question, own) {
  const task = own.training ? "training" : "inference";
  Object.assign(question, { own, task, model: "own", batch: own.batch });
}

/**
 * @param {URLSearchParams} fields
 * @param {Question} question
 * @param {string[]} problems
 */
function readNumbers(fields, question, problems) {
  const limits = {
    samples: [1, 1e15],
    epochs: [1, 1e6],
    count: [1, 100_000],
    length: [1, LONGEST_TEXT],
    prompt: [1, LONGEST_TEXT],
    generated: [1, LONGEST_TEXT],
    batch: [1, 1e7],
    deadline: [1e-3, 1e7],
    cpu: [1e-9, 1e9],
  };
  for (const [name, [least, most]] of Object.entries(limits)) {
    const text = fields.get(name);
    if (text === null) continue;
    const none = { batch: "largest", deadline: "none" };
    if (Object.hasOwn(none, name) && none[/** @type {"batch"} */ (name)] === text) {
      Object.assign(question, { [name]: null });
      continue;
    }
    const value = Number(text);
    const whole = !["deadline", "cpu"].includes(name);
    if (text !== "" && value >= least && value <= most && (!whole || Number.isInteger(value))) {
      Object.assign(question, { [name]: value });
    } else {
      problems.push(`The address has a value for ${name} that cannot be used.`);
    }
  }
}

/**
 * @param {URLSearchParams} fields
 * @param {Question} question
 * @param {string[]} problems
 * @param {Set<string>} devices
 */
function readDevices(fields, question, problems, devices) {
  const chip = (fields.get("chip") ?? "").split(",");
  if (fields.has("chip")) {
    const [name, ...figures] = chip;
    const [peak, bandwidth, memory] = figures.map(Number);
    const usable = [peak, bandwidth, memory].every((figure) => figure > 0 && figure < 1e9);
    if (chip.length === 4 && usable && isName(name)) {
      question.chip = { name, peak, bandwidth, memory };
    } else {
      problems.push("The address has a card of your own that cannot be read.");
    }
  }
  const named = fields.get("devices");
  if (named !== null) {
    const names = named === "" ? [] : named.split(",");
    const unknown = names.some((name) => !devices.has(name));
    const ours = [...new Set(names.filter((name) => devices.has(name)))];
    if (ours.length || !unknown) question.devices = ours;
    if (unknown) problems.push("The address names a card that is not in this page's list.");
  }
  question.mine = (fields.get("mine") ?? "").split(",").filter((name) => question.devices.includes(name));
  question.free = fields.get("free") !== "no";
  for (const text of fields.getAll("price").slice(0, 200)) {
    const cut = text.lastIndexOf(":");
    const name = text.slice(0, cut);
    const amount = text.slice(cut + 1);
    const price = amount === "none" ? null : Number(amount);
    const usable = price === null || (price >= 0 && price < 1e6 && amount !== "");
    if (usable && (devices.has(name) || name === question.chip?.name)) {
      question.prices[name] = price;
    } else {
      problems.push("The address has a price that cannot be used.");
    }
  }
}

/** Whether a text can be the name of a card of one's own. @param {string} name */
export function isName(name) {
  return /^[\p{L}\p{N} .()+-]{1,40}$/u.test(name) && !["__proto__", "constructor"].includes(name);
}
