// The model of time and memory, as in course_tools/estimate: counted sums in, seconds and bytes out.

/** @typedef {import("./question.js").Question} Question */
/** @typedef {import("./answer.js").Row} Row */

/**
 * A chip by its data sheet, with peaks in TFLOP/s by precision and the share that is achieved.
 * @typedef {{name: string, vendor: string, peaks: Record<string, number>,
 *   achieved: Record<string, number>, bandwidth: number, capacity: number, link: number | null,
 *   price: number | null, date: string | null}} Chip
 */

/**
 * One step of a model on one device, counted.
 * @typedef {object} Work
 * @property {number} batch
 * @property {boolean} training
 * @property {boolean} half whether it was counted in 16 bits
 * @property {{flops: number, bytes: number}} convolution
 * @property {{flops: number, bytes: number}} other all other kinds of operation together
 * @property {number} recurrent FLOPs of recurrent layers
 * @property {number} kernels
 * @property {number} parameters numbers whose gradients several devices exchange
 * @property {number | null} needed bytes of memory, or null where they are not known
 */

/**
 * A model of the list. Images have sums at one batch; language models those of one sample and of
 * one more, and a shape; see page_data.py.
 * @typedef {object} Model
 * @property {number} [tokens] of a sample
 * @property {Record<string, number>} [shape]
 * @property {Record<string, string>} steps
 * @property {Record<string, string>} [memory] pairs of bytes held and bytes a sample, by task
 */

const DATA = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
/** @type {Record<string, number>} */
const NUMBERS = DATA.numbers;
/** @type {Record<string, {factor: number, about: string, assumed?: boolean, kind?: string,
 *   checked?: string[]}>} */
const FACTORS = DATA.factors;
const UNBOUNDED = 1e9;
const LONGEST_JSON = 200_000;

/** @type {Map<string, Chip>} */
export const CHIPS = new Map(DATA.chips.map((/** @type {Chip} */ chip) => [chip.name, chip]));
/** @type {Map<string, Model>} */
export const MODELS = new Map(Object.entries(DATA.models));
/** Numbers that page_data.py wrote as text. @param {string} text */
function numbersIn(text) {
  return text.split(",").map(Number);
}

/** @type {{name: string, devices: string[], session_hours: number, week_hours: number | null}[]} */
export const FREE = DATA.free;

/** The device's own 16 bits for "amp", or the precision itself. @param {Chip} chip @param {string} name */
function precisionOf(chip, name) {
  if (name !== "amp") return name;
  return "bf16" in chip.peaks ? "bf16" : "fp16";
}

/**
 * The parts of the time of a step, in seconds; see step_time.py.
 * @param {Work} work
 * @param {Chip} chip
 * @param {string} precision
 */
function stepTime(work, chip, precision) {
  const key = precision === "fp32" ? "fp32" : "16 bits";
  const peak = chip.peaks[precision] * 1e12 * (chip.achieved[key] ?? NUMBERS.achieved);
  const bandwidth = chip.bandwidth * 1e9;
  const again = work.training ? NUMBERS.convolution_training : 1;
  const ofConvolutions = precision === "fp32" ? NUMBERS.convolution_fp32 : NUMBERS.arithmetic;
  const moved =
    NUMBERS.memory * work.other.bytes + again * NUMBERS.convolution_memory * work.convolution.bytes;
  const calculated =
    NUMBERS.arithmetic * work.other.flops + ofConvolutions * work.convolution.flops;
  const oneLaunch = chip.vendor === "Google";
  const share = oneLaunch ? 1 : Math.min(1, Math.max(1, work.kernels) / NUMBERS.step_kernels);
  const launches = oneLaunch ? 1 : work.kernels;
  const launch = share * NUMBERS.step_s + NUMBERS.launch_s * launches;
  const memory = moved / bandwidth;
  const arithmetic = calculated / peak;
  let limit = memory > arithmetic ? "memory" : "arithmetic";
  if (launch > memory + arithmetic) limit = "launches";
  return { total: Math.hypot(launch, memory + arithmetic), limit };
}

/**
 * The time of a step of several devices that exchange gradients in a ring; see parallel.py.
 * @param {number} one seconds of one device's step
 * @param {Work} work
 * @param {Chip} chip
 * @param {number} count
 */
function togetherTime(one, work, chip, count) {
  if (count === 1 || !work.training) return one;
  const rounds = 2 * (count - 1);
  const rate = (chip.link ?? 0) * 1e9 * NUMBERS.link;
  const exchange = ((rounds / count) * 4 * work.parameters) / rate + rounds * NUMBERS.round_s;
  return one * NUMBERS.doubling ** Math.log2(count) + Math.max(0, exchange - (one * 2) / 3);
}

/** What kind of checked work this is like. @param {Work} work @param {string} precision */
function kindOf(work, precision) {
  const flops = work.convolution.flops + work.other.flops;
  const step = work.training ? "training" : "inference";
  if (work.convolution.flops > 0.5 * flops) return `convolutions, ${step}`;
  return `matrix products, ${precision === "fp32" ? "fp32" : "16 bits"}`;
}

/**
 * The keys of the factors of error that apply; see evidence.py.
 * @param {Work} work
 * @param {Chip} chip
 * @param {string} precision
 * @param {string} limit
 */
function errorKeys(work, chip, precision, limit) {
  const kind = kindOf(work, precision);
  const keys = [kind];
  if (limit === "launches") keys.push("launches");
  let compared = FACTORS[kind].checked;
  if (chip.vendor === "AMD") {
    keys.push("AMD");
    compared = kind === FACTORS.AMD.kind ? FACTORS.AMD.checked : [];
  } else if (chip.vendor !== "NVIDIA") {
    keys.push("vendor");
    compared = [chip.name]; // the factor of the vendor says that none was
  }
  if (!compared?.includes(chip.name)) keys.push("cards");
  if (work.recurrent > 0.1 * (work.convolution.flops + work.other.flops)) keys.push("recurrent");
  return keys;
}

/** Bytes that a GPU needs for tensors of this size; see memory_model.py. @param {number} tensors */
function withFramework(tensors) {
  return DATA.memory.context_bytes + (1 + DATA.memory.gaps) * tensors;
}

/**
 * The counted step of the question's model, or a sentence on what is missing.
 * @param {Question} question
 * @param {number} batch
 * @returns {Work | {problem: string}}
 */
function workOf(question, batch) {
  if (question.model === "own") return ownWork(/** @type {OwnStep} */ (question.own));
  const model = /** @type {Model} */ (MODELS.get(question.model));
  return model.shape ? languageWork(question, model, batch) : imageWork(question, model, batch);
}

/**
 * @param {Question} question
 * @param {Model} model
 * @param {number} batch
 * @returns {Work | {problem: string}}
 */
function imageWork(question, model, batch) {
  const step = model.steps[question.task];
  if (!step) return { problem: `Of this network only ${Object.keys(model.steps)[0]} was counted.` };
  const [counted, convFlops, convBytes, flops, bytes, kernels, parameters = 0, trained = 0] =
    numbersIn(step);
  const factor = batch / counted;
  const training = question.task === "training";
  const adam = training ? 28 * trained : 0;
  const memory = numbersIn(model.memory?.[question.task] ?? "");
  /** @type {[number, number][]} */
  const lines = [];
  for (let at = 0; at + 1 < memory.length; at += 2) lines.push([memory[at], memory[at + 1]]);
  return {
    batch,
    training,
    half: true,
    convolution: { flops: factor * convFlops, bytes: factor * convBytes },
    other: { flops: factor * flops, bytes: factor * bytes + adam },
    recurrent: 0,
    kernels: kernels + (training ? 1 : 0),
    parameters,
    needed: lines.length ? withFramework(highest(lines, batch)) : null,
  };
}

/** The highest of some lines at a batch. @param {[number, number][]} lines @param {number} batch */
function highest(lines, batch) {
  return Math.max(...lines.map(([held, perSample]) => held + perSample * batch));
}

/**
 * @param {Question} question
 * @param {Model} model
 * @param {number} batch
 * @returns {Work}
 */
function languageWork(question, model, batch) {
  const shape = /** @type {Record<string, number>} */ (model.shape);
  const training = question.task === "training";
  const method = training ? question.tuning : "inference";
  const [flops, bytes, kernels, moreFlops, moreBytes] = numbersIn(model.steps[method]);
  const full = method === "full" || method === "inference";
  return {
    batch,
    training,
    half: true,
    convolution: { flops: 0, bytes: 0 },
    other: { flops: flops + (batch - 1) * moreFlops, bytes: bytes + (batch - 1) * moreBytes },
    recurrent: 0,
    kernels,
    parameters: full ? shape.linear + shape.rest : shape.adapters,
    needed: training ? languageMemory(shape, method, batch) : null,
  };
}

/**
 * Bytes of a step of fine-tuning with checkpointing and Adam; see finetuning.py.
 * @param {Record<string, number>} shape
 * @param {string} method
 * @param {number} batch
 */
function languageMemory(shape, method, batch) {
  const { logit, nf4, adam } = DATA.finetuning;
  const all = shape.linear + shape.rest;
  const trained = method === "full" ? all : shape.adapters;
  /** @type {Record<string, number>} */
  const weights = { full: 4 * all, lora: 2 * all, "4-bit": nf4 * shape.linear + 2 * shape.rest };
  const held = weights[method] + (method === "full" ? 0 : 4 * trained) + 4 * trained * (1 + adam.state);
  const block = Math.max(shape.block * batch, shape.logits * batch * logit);
  const activations = shape.kept * batch + block;
  return withFramework(held + Math.max(activations, 4 * adam.update * trained));
}

/**
 * A counted step that somebody pasted, after `readOwn` has looked at it.
 * @typedef {{batch: number, training: boolean, half: boolean, precision: string,
 *   parameters: number, convolution: number[], other: number[], recurrent: number,
 *   lines: [number, number][]}} OwnStep
 */

/** @param {OwnStep} own @returns {Work} */
function ownWork(own) {
  return {
    batch: own.batch,
    training: own.training,
    half: own.half,
    convolution: { flops: own.convolution[0], bytes: own.convolution[1] },
    other: { flops: own.other[0], bytes: own.other[1] },
    recurrent: own.recurrent,
    kernels: own.other[2] + own.convolution[2],
    parameters: own.parameters,
    needed: own.lines.length ? withFramework(highest(own.lines, own.batch)) : null,
  };
}

/** Whether a value is a number that a count can be. @param {unknown} value */
function isCount(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 && value < 1e30;
}

/**
 * Read a counted step: the JSON of `estimate(...).to_json()`, or what this page put into an address.
 * @param {string} text
 * @returns {{own: OwnStep} | {problem: string}}
 */
export function readOwn(text) {
  if (text.length > LONGEST_JSON) return { problem: "This text is too long." };
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    return { problem: "This is not the whole JSON: copy all of it, from { to }." };
  }
  if (data === null || typeof data !== "object") return { problem: "This JSON holds no estimate." };
  const own = data.counted ? fromEstimate(data) : data;
  const numbers = [own?.batch, own?.parameters, own?.recurrent];
  const sums = [own?.convolution, own?.other];
  const isSums = (/** @type {unknown} */ sum) =>
    Array.isArray(sum) && sum.length === 3 && sum.every(isCount);
  const isLine = (/** @type {unknown} */ line) =>
    Array.isArray(line) && line.length === 2 && line.every(Number.isFinite);
  const whole =
    numbers.every(isCount) && sums.every(isSums) && Array.isArray(own.lines) &&
    own.lines.length < 100 && own.lines.every(isLine) && own.batch >= 1;
  if (!whole) return { problem: "This JSON is not what the estimate writes." };
  const { batch, parameters, recurrent, convolution, other, lines } = own;
  const precision = ["fp32", "tf32"].includes(own.precision) ? "fp32" : "fp16";
  const half = precision === "fp16";
  const training = Boolean(own.training);
  const counts = { batch, parameters, recurrent, convolution, other, lines };
  return { own: { ...counts, training, half, precision } };
}

/** @param {any} data what `Estimate.to_dict` wrote */
function fromEstimate(data) {
  const counted = data.counted ?? {};
  const kinds = ["convolution", "matrix", "attention", "recurrent", "other"];
  const sums = (/** @type {string} */ kind) => {
    const one = counted[kind] ?? {};
    return [one.flops, one.bytes_moved, one.kernels];
  };
  const rest = kinds.slice(1).map(sums);
  const memory = data.memory ?? {};
  const lines = Array.isArray(memory.lines) ? memory.lines : [];
  return {
    batch: counted.batch,
    training: counted.training,
    precision: counted.precision,
    parameters: counted.parameters,
    convolution: sums("convolution"),
    other: [0, 1, 2].map((place) => rest.reduce((total, one) => total + one[place], 0)),
    recurrent: sums("recurrent")[0],
    lines: lines.map((/** @type {any} */ line) => [line?.held, line?.per_sample]),
  };
}

/** The chips of a question, one's own among them. @param {Question} question @returns {Chip[]} */
function chipsOf(question) {
  const chips = question.devices.map((name) => /** @type {Chip} */ (CHIPS.get(name)));
  if (!question.chip) return chips;
  const { name, peak, bandwidth, memory } = question.chip;
  const peaks = { fp32: peak, tf32: peak, fp16: peak, bf16: peak };
  const capacity = memory * 2 ** 30;
  const own = { vendor: "NVIDIA", achieved: {}, link: null, price: null, date: null };
  return [...chips, { ...own, name, peaks, bandwidth, capacity }];
}

/**
 * The largest batch that fits one chip, or null where the memory is not known.
 * @param {Question} question
 * @param {Chip} chip
 */
function largestOn(question, chip) {
  const fits = (/** @type {number} */ batch) => {
    const work = workOf(question, batch);
    return "needed" in work && work.needed !== null && work.needed <= chip.capacity;
  };
  const one = workOf(question, 1);
  if ("problem" in one || one.needed === null) return null;
  let [low, high] = [0, 1];
  while (high < UNBOUNDED && fits(high)) [low, high] = [high, 2 * high];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * What is wrong with the question as a whole, beside which field, or null.
 * @param {Question} question
 * @returns {{field: string, problem: string} | null}
 */
export function problemOf(question) {
  const work = workOf(question, question.batch ?? 1);
  if ("problem" in work) return { field: "task", problem: work.problem };
  const asksHalf = ["amp", "bf16", "fp16"].includes(question.precision);
  if (asksHalf !== work.half) {
    const counted = work.half ? "16 bits" : "32 bits";
    return { field: "precision", problem: `This model was counted in ${counted} only.` };
  }
  if (question.batch === null && (question.model === "own" || work.needed === null)) {
    return { field: "batch", problem: "Its memory is not known: give a batch." };
  }
  return null;
}

/**
 * What the job would take on each chip, and on one's own machine where a step was measured.
 * @param {Question} question for which `problemOf` found nothing
 * @returns {Row[]}
 */
export function answerRows(question) {
  /** @type {Row[]} */
  const rows = [];
  for (const chip of chipsOf(question)) {
    const precision = precisionOf(chip, question.precision);
    if (!(precision in chip.peaks)) continue;
    if (question.count > 1 && question.task === "training" && !chip.link) continue;
    const batch = question.batch ?? Math.max(1, largestOn(question, chip) ?? 1);
    const work = workOf(question, batch);
    if ("problem" in work) continue;
    rows.push(rowOf(question, work, chip, precision));
  }
  if (question.cpu !== null) rows.push(ownRow(question, question.cpu));
  return rows;
}

/** Names of chosen chips that have no row, and why. @param {Question} question */
export function leftOut(question) {
  const sentences = [];
  for (const chip of chipsOf(question)) {
    const precision = precisionOf(chip, question.precision);
    if (!(precision in chip.peaks)) sentences.push(`The ${chip.name} does not compute in ${precision}.`);
    else if (question.count > 1 && question.task === "training" && !chip.link) {
      sentences.push(`The ${chip.name} has no link to a second one.`);
    }
  }
  return sentences;
}

/**
 * @param {Question} question
 * @param {Work} work
 * @param {Chip} chip
 * @param {string} precision
 * @returns {Row}
 */
function rowOf(question, work, chip, precision) {
  const { total, limit } = stepTime(work, chip, precision);
  const step = togetherTime(total, work, chip, question.count);
  const keys = errorKeys(work, chip, precision, limit);
  const factor = Math.exp(Math.hypot(...keys.map((key) => Math.log(FACTORS[key].factor))));
  const compared = !keys.includes("cards") && !keys.some((key) => FACTORS[key].assumed);
  const batch = work.batch * question.count;
  const seconds = (question.samples * question.epochs * step) / batch;
  const price = question.prices[chip.name] ?? chip.price;
  const hourly = price === null ? null : (price * question.count) / 3600;
  return {
    device: chip.name,
    count: question.count,
    own: false,
    precision,
    batch,
    step,
    seconds: [seconds / factor, seconds, seconds * factor],
    cost: hourly === null ? null : [(seconds / factor) * hourly, seconds * hourly, seconds * factor * hourly],
    needed: work.needed,
    capacity: chip.capacity,
    fits: work.needed === null || work.needed <= chip.capacity,
    limit,
    checked: compared && question.count === 1,
  };
}

/** @param {Question} question @param {number} step @returns {Row} */
function ownRow(question, step) {
  const batch = question.model === "own" ? /** @type {OwnStep} */ (question.own).batch : question.batch ?? 1;
  const seconds = (question.samples * question.epochs * step) / batch;
  return {
    device: "your own machine",
    count: 1,
    own: true,
    precision: "",
    batch,
    step,
    seconds: [seconds, seconds, seconds],
    cost: null,
    needed: null,
    capacity: null,
    fits: true,
    limit: "",
    checked: true,
  };
}

/**
 * How sure the answer is, in sentences.
 * @param {Question} question
 * @param {Row[]} rows its answer
 * @returns {string[]}
 */
export function evidence(question, rows) {
  const about = new Set();
  for (const chip of chipsOf(question)) {
    const precision = precisionOf(chip, question.precision);
    const work = workOf(question, question.batch ?? 1);
    if ("problem" in work || !(precision in chip.peaks)) continue;
    for (const key of errorKeys(work, chip, precision, stepTime(work, chip, precision).limit)) {
      about.add(FACTORS[key].about);
    }
  }
  const share = Math.round(100 * DATA.share);
  const cards = rows.filter((row) => !row.own);
  const names = (/** @type {boolean} */ checked) =>
    cards.filter((row) => row.checked === checked).map((row) => row.device).join(", ");
  const [known, unknown] = [names(true), names(false)];
  const sentences = [];
  if (known) {
    const where = "of published measurements of such work the truth lay within such an interval";
    sentences.push(`In ${share} of 100 ${where} (${known}).`);
  }
  if (unknown) sentences.push(`The intervals of these are assumed, not checked: ${unknown}.`);
  if (question.count > 1) sentences.push("Several cards together were not checked.");
  sentences.push("Reading data is not included.");
  return [...sentences, ...[...about].map((text) => `${text[0].toUpperCase()}${text.slice(1)}.`)];
}

/** The call of the package that asks the same. @param {Question} question */
export function toPython(question) {
  const lines = ["from course_tools.estimate import estimate", ""];
  const known = question.model === "own" ? "your model" : question.model;
  const list = (/** @type {string[]} */ names) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
  lines.push(`# model: ${known.replace(/[\r\n]/g, " ")}; inputs: one example of its input`);
  lines.push("estimate(", "    model,", "    inputs,");
  if (question.batch !== null) lines.push(`    batch=${question.batch},`);
  lines.push(`    precision=${JSON.stringify(question.precision)},`);
  if (question.task === "inference") lines.push("    training=False,");
  lines.push(`    samples=${question.samples},`, `    epochs=${Math.max(1, Math.round(question.epochs))},`);
  if (question.deadline !== null) lines.push(`    deadline_hours=${question.deadline},`);
  if (question.count > 1) lines.push(`    count=${question.count},`);
  lines.push(`    devices=${list(question.devices)},`);
  const prices = Object.entries(question.prices).filter(([name]) => CHIPS.has(name));
  if (prices.length) {
    lines.push(`    prices={${prices.map(([name, price]) => `${JSON.stringify(name)}: ${price}`).join(", ")}},`);
  }
  lines.push(")");
  return `${lines.join("\n")}\n`;
}
