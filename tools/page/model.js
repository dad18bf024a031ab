// The model of time and memory, as in course_tools/estimate: counted sums in, seconds and bytes out.

import {
  fineTuningEvidence, fineTuningMemory, fineTuningWork, inferenceEvidence, inferenceMemory,
  inferenceTimes, trainedNumbers,
} from "./language.js";
import { BITS, TUNINGS, YOURS } from "./question.js";

/** @typedef {import("./question.js").Question} Question */
/** @typedef {import("./answer.js").Row} Row */
/** @typedef {import("./language.js").Shape} Shape */
/** @typedef {import("./pasted.js").OwnStep} OwnStep */

/**
 * A chip by its data sheet, with peaks in TFLOP/s by precision and the share that is achieved.
 * @typedef {{name: string, vendor: string, peaks: Record<string, number>,
 *   achieved: Record<string, number>, bandwidth: number, capacity: number, sold: number, link: number | null,
 *   throughHost?: number, family: string, oldHost?: number, lowPower?: number}} Chip
 */

/**
 * One step of a model on one device, counted.
 * @typedef {object} Work
 * @property {number} batch
 * @property {boolean} training
 * @property {boolean} half whether it was counted in 16 bits
 * @property {{flops: number, bytes: number}} convolution
 * @property {number} depthwise bytes of depthwise convolutions, which are among those above
 * @property {{flops: number, bytes: number}} volume convolutions in three dimensions
 * @property {{flops: number, bytes: number}} other all other kinds of operation together
 * @property {number} attention FLOPs of fused attention, which are among those of `other`
 * @property {number} recurrent FLOPs of recurrent layers, likewise
 * @property {boolean} channelsLast
 * @property {boolean} [detects] whether boxes that overlap are left out
 * @property {number} deepFlops FLOPs of depthwise convolutions, likewise
 * @property {number} unaligned FLOPs of products whose rows do not begin at multiples of 4 bytes
 * @property {number} kernels
 * @property {number} parameters numbers whose gradients several devices exchange
 * @property {Record<string, number> | null} tensors bytes by what they are for, or null where they
 *   are not known
 */

/**
 * A model of the list: a network with sums at one batch, or a language model's shape; see
 * page_data.py.
 * @typedef {object} Model
 * @property {Shape} [shape]
 * @property {Record<string, string>} steps
 * @property {Record<string, string>} [memory] pairs of bytes held and bytes a sample, by task
 * @property {string[]} [lines] of Python that make it, where timm does not
 * @property {string} [note] what a sample is
 * @property {string} [source] what its counted sums were compared with
 * @property {boolean} [detects]
 * @property {string} [why] the other task was not counted
 * @property {Partial<import("./question.js").UsualJob>} [usual] job, where it is not ImageNet's
 */

const DATA = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
/** @type {Record<string, number>} */
const NUMBERS = DATA.numbers;
/**
 * Where a rule begins to hold: constants of course_tools/estimate, which say there what they are.
 * @type {Record<string, number>}
 */
export const LIMITS = DATA.limits;
/** @type {string} */
export const BATCHING = DATA.batching; // it gathers requests
/**
 * @typedef {{factor: number, about: string, slower?: number, kind?: string, kinds?: string[],
 *   devices?: Record<string, string[]>, precision?: string, training?: boolean, compiled?: boolean,
 *   measurements?: number, sources?: string[],
 *   off?: Record<string, string[]>}} Evidence
 */
/** @type {Record<string, Evidence>} */
const FACTORS = DATA.factors;
/** @type {Evidence[]} */
const EVIDENCE = DATA.evidence;
const CHECKPOINTED = "Counted with gradient checkpointing: without it, the activations need several times as much.";
const COUNTED = "The course counted this network from its public configuration; published beside it:";
const ALWAYS_BUSY = "The card is taken to be busy all the time: idle hours cost as much.";
/** @type {Record<string, import("./language.js").Runtime>} */
export const RUNTIMES = DATA.runtimes;
const NOTHING = /** @type {[number, number, number]} */ ([0, 0, 0]);

/** @type {Map<string, Chip>} */
export const CHIPS = new Map(DATA.chips.map((/** @type {Chip & {corrected?: number}} */ chip) => {
  const capacity = chip.sold * 2 ** 30 * (1 - (chip.corrected ?? 0) / 16); // see memory_model.py
  return [chip.name, { ...chip, capacity }];
}));
/** @type {Map<string, Model>} */
export const MODELS = new Map(Object.entries(DATA.models));
/** Numbers that page_data.py wrote as text. @param {string} text */
function numbersIn(text) {
  return text.split(",").map(Number);
}

/** @type {import("./answer.js").Offer[]} */
export const FREE = DATA.free;
/**
 * Who rents out cards, how they bill, and at what price of an hour; the second number is the place of
 * its kind in the list of kinds.
 * @typedef {{name: string, what: string, prices: Record<string, [number, number]>, date: string}} Provider
 */
/** @type {Map<string, Provider>} */
export const PROVIDERS = new Map(DATA.providers.map((/** @type {Provider} */ one) => [one.name, one]));

/** The shape of the question's model, where it is a language model. @param {Question} question */
function shapeOf(question) {
  return MODELS.get(question.model)?.shape;
}

/** Whether the question is about answers of a language model. @param {Question} question */
export function isAnswering(question) {
  return question.task === "inference" && shapeOf(question) !== undefined;
}

/**
 * What a chip computes in: its own 16 bits for language models and for "amp", else as was asked.
 * @param {Question} question
 * @param {Chip} chip
 */
function precisionOf(question, chip) {
  if (!shapeOf(question) && question.precision !== "amp") return question.precision;
  return ["bf16", "fp16", "fp32"].find((name) => name in chip.peaks) ?? "fp16";
}

/** The share of the peak that products reach; see chips.py. @param {Chip} chip @param {string} name */
function achieved(chip, name) {
  const key = name === "fp32" || (name === "tf32" && "tf32" in chip.achieved) ? name : "16 bits";
  return chip.achieved[key] ?? NUMBERS.achieved;
}

/** @typedef {{step: number, launch: number}} Host */
const OLD_HOST = { step: NUMBERS.step_s, launch: NUMBERS.launch_s };
const TUNING_HOST = { step: 0, launch: DATA.finetuning.step.launch_s };
const NEW_HOST = {
  step: (NUMBERS.step_s * NUMBERS.launch_new_s) / NUMBERS.launch_s,
  launch: NUMBERS.launch_new_s,
};

/**
 * The parts of the time of a step, in seconds; see step_time.py.
 * @param {Work} work
 * @param {Chip} chip
 * @param {string} precision
 * @param {Host} host
 */
function stepTime(work, chip, precision, host = chip.oldHost ? OLD_HOST : NEW_HOST) {
  const half = precision === "fp16" || precision === "bf16";
  const peak = chip.peaks[precision] * 1e12 * achieved(chip, precision);
  const bandwidth = chip.bandwidth * 1e9;
  let again = 1;
  if (work.training) again = half ? NUMBERS.convolution_training : NUMBERS.convolution_training_32;
  const once = work.channelsLast && precision !== "fp32" ? 1 : again;
  const imageBytes =
    once * (work.convolution.bytes - work.depthwise) +
    again * (work.depthwise + NUMBERS.convolution3d * work.volume.bytes);
  const memory =
    (NUMBERS.memory * work.other.bytes + NUMBERS.convolution_memory * imageBytes) / bandwidth;
  const ofConvolutions = precision === "fp32" ? NUMBERS.convolution_fp32 : NUMBERS.arithmetic;
  const deep = half ? 0 : work.deepFlops;
  const flops =
    work.other.flops + (half ? NUMBERS.attention - 1 : 0) * work.attention +
    NUMBERS.convolution3d * work.volume.flops;
  const slower = half && chip.vendor === "NVIDIA" ? (NUMBERS.unaligned - 1) * work.unaligned : 0;
  const calculated =
    NUMBERS.arithmetic * (flops + slower) + ofConvolutions * (work.convolution.flops - deep);
  const oneLaunch = chip.vendor === "Google";
  const share = oneLaunch ? 1 : Math.min(1, Math.max(1, work.kernels) / NUMBERS.step_kernels);
  const launches = oneLaunch ? 1 : work.kernels;
  const launch = share * host.step + host.launch * launches;
  const plain = (chip.peaks.fp32 ?? chip.peaks[precision]) * 1e12 * NUMBERS.depthwise;
  const arithmetic = calculated / peak + deep / plain;
  let limit = memory > arithmetic ? "memory" : "arithmetic";
  if (launch > memory + arithmetic) limit = "launches";
  return { total: Math.hypot(launch, memory + arithmetic), limit, launch, device: memory + arithmetic };
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
  const hidden = chip.throughHost ? 0 : (one * 2) / 3;
  return one * NUMBERS.doubling ** Math.log2(count) + Math.max(0, exchange - hidden);
}

/** Which kind of work this is; see error_factor.py. @param {Work} work */
function kindOf(work) {
  if (work.detects) return "detection";
  const images = work.convolution.flops + work.volume.flops;
  const flops = images + work.other.flops;
  if (work.recurrent > 0.1 * flops) return "recurrent layers";
  if (work.volume.flops > 0.1 * flops) return "3-D convolutions";
  if (images > 0.1 * flops && work.attention > 0.01 * flops) return "convolutions with attention";
  if (images > 0.5 * flops) {
    const deep = work.depthwise > 0.2 * work.convolution.bytes;
    return deep ? "depthwise convolutions" : "2-D convolutions";
  }
  if (images > 0.0005 * flops) return "vision transformers";
  return work.attention ? "transformers, fused attention" : "matrix products";
}

/**
 * The sources that measured a chip or one of its family, of those in a map from chips to sources.
 * @param {Record<string, string[]>} devices
 * @param {Chip} chip
 */
function whoMeasured(devices, { name, family }) {
  const alike = (/** @type {string} */ other) => family !== "" && CHIPS.get(other)?.family === family;
  return Object.keys(devices).flatMap((other) => (other === name || alike(other) ? devices[other] : []));
}

/** "fp32", "tf32" or "16 bits". @param {string} precision */
function bitsOf(precision) {
  return precision === "fp32" || precision === "tf32" ? precision : "16 bits";
}

/** Whether it is a transformer in 16 bits on a V100. @param {Work} work @param {Chip} chip @param {string} precision */
function isVolta(work, chip, precision) {
  const kinds = FACTORS.Volta.kinds ?? [];
  return chip.family === "Volta" && bitsOf(precision) === "16 bits" && kinds.includes(kindOf(work));
}

/**
 * Whether such work was checked on such a card, and the factor for it; see `compared` in
 * error_factor.py.
 * @param {Work} work
 * @param {Chip} chip
 * @param {string} precision
 * @returns {{entry: Evidence, checked: boolean, near: boolean}}
 */
function compared(work, chip, precision) {
  const kind = kindOf(work);
  const alike = EVIDENCE.filter((one) => one.kind === kind);
  const sameStep = alike.filter((one) => one.training === work.training);
  const onIt = sameStep.filter((one) => whoMeasured(one.devices ?? {}, chip).length);
  const who = EVIDENCE.flatMap((one) => whoMeasured({ ...one.devices, ...one.off }, chip));
  const near = onIt.length > 0 || new Set(who).size > 1;
  const sources = new Set(alike.flatMap((one) => one.sources ?? []));
  const off = isVolta(work, chip, precision) || alike.some((one) => chip.name in (one.off ?? {}));
  if (near && sources.size > 1 && !off) {
    const about = comparedWith(kind, onIt.length ? onIt : alike);
    return { entry: { ...FACTORS.checked, about }, checked: true, near: true };
  }
  const usual = FACTORS[alike.length ? "usual" : "unlike"];
  const entry = { ...usual, about: `${kind}: ${usual.about}` };
  return { entry, checked: false, near };
}

/** @param {string} kind @param {Evidence[]} groups */
function comparedWith(kind, groups) {
  const count = groups.reduce((total, one) => total + (one.measurements ?? 0), 0);
  const listed = (/** @type {string[]} */ names) => [...new Set(names)].sort().join(", ");
  const sources = listed(groups.flatMap((one) => one.sources ?? []));
  const cards = listed(groups.flatMap((one) => Object.keys(one.devices ?? {})));
  const measurements = `${count.toLocaleString("en-US")} measurement${count > 1 ? "s" : ""}`;
  return `${kind}: compared with ${measurements} of ${sources} on ${cards}`;
}

/**
 * How far the estimate may be off; see `error_factor` in error_factor.py.
 * @param {Work} work
 * @param {Chip} chip
 * @param {string} precision
 * @param {{total: number, limit: string, launch: number, device: number}} time
 */
function errorOf(work, chip, precision, { total, limit, launch, device }) {
  const { entry, near, ...known } = compared(work, chip, precision);
  let { checked } = known;
  const used = [entry];
  if (chip.vendor === "AMD") used.push(FACTORS.AMD);
  else if (chip.vendor !== "NVIDIA") used.push(FACTORS.vendor);
  if (!near) used.push(FACTORS.cards);
  if (chip.lowPower) used.push(FACTORS["low power"]);
  if (isVolta(work, chip, precision)) used.push(FACTORS.Volta);
  const down = used.map((one) => Math.log(one.factor));
  const up = used.map((one) => Math.log(one.slower ?? one.factor));
  const large = kindOf(work) === "transformers, fused attention" && work.parameters >= LIMITS.large;
  if (work.training && !large) {
    used.push(FACTORS.loops);
    up.push(Math.log(FACTORS.loops.factor));
  }
  const [chipDown, chipUp] = [down, up].map((logs) => Math.exp(Math.hypot(...logs)));
  let [hostDown, hostUp] = [chipDown, chipUp]; // on a TPU all is one launch
  if (chip.vendor !== "Google") {
    const host = FACTORS[work.training ? "hosts training" : "hosts"];
    [hostDown, hostUp] = [host.factor, host.slower ?? host.factor];
    if (launch > LIMITS.small_launches * total) used.push(host);
  }
  if (limit === "launches" && chip.vendor !== "Google") checked = false;
  const fast = Math.hypot(launch / hostDown, device / chipDown);
  const slow = Math.hypot(launch * hostUp, device * chipUp);
  return {
    faster: total / fast,
    slower: slow / total,
    checked,
    reasons: used.map((one) => one.about),
  };
}

/** The sum of some amounts. @param {Record<string, number>} amounts */
function sumOf(amounts) {
  return Object.values(amounts).reduce((total, one) => total + one, 0);
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
  return model.shape ? languageWork(question, model.shape, batch) : imageWork(question, model, batch);
}

const NO_VOLUME = { flops: 0, bytes: 0 };
const PLAIN = { depthwise: 0, deepFlops: 0, unaligned: 0, volume: NO_VOLUME, attention: 0, channelsLast: false };

/**
 * @param {Question} question
 * @param {Model} model
 * @param {number} batch
 * @returns {Work | {problem: string}}
 */
function imageWork(question, model, batch) {
  const step = model.steps[question.task];
  if (!step) {
    const counted = `Of this network only ${Object.keys(model.steps)[0]} was counted.`;
    return { problem: model.why ? `${counted} ${model.why}.` : counted };
  }
  const [counted, convFlops, convBytes, depthwise, attention, recurrent, flops, bytes, kernels,
    deepFlops, volumeFlops, volumeBytes, unaligned, ...rest] = numbersIn(step);
  const [parameters = 0, trained = 0] = rest;
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
    ...PLAIN,
    depthwise: factor * depthwise,
    deepFlops: factor * deepFlops,
    volume: { flops: factor * volumeFlops, bytes: factor * volumeBytes },
    unaligned: factor * unaligned,
    other: { flops: factor * flops, bytes: factor * bytes + adam },
    attention: factor * attention,
    recurrent: factor * recurrent,
    kernels: kernels + (training ? 1 : 0),
    parameters,
    detects: model.detects,
    tensors: tensorsOf(lines, batch, 4 * parameters, 8 * trained),
  };
}

/**
 * What fills the memory of a network at a batch, by its lines: bytes held and bytes a sample.
 * @param {[number, number][]} lines of which the highest counts
 * @param {number} batch
 * @param {number} ofWeights bytes, as far as they are known
 * @param {number} optimizer bytes of its state
 * @returns {Record<string, number> | null}
 */
function tensorsOf(lines, batch, ofWeights, optimizer) {
  if (!lines.length) return null;
  const size = (/** @type {[number, number]} */ [held, perSample]) => held + perSample * batch;
  const [held, perSample] = lines.reduce((most, one) => (size(one) > size(most) ? one : most));
  const activations = perSample * batch;
  if (!ofWeights) return { weights: held, activations };
  const weights = Math.min(ofWeights, held - optimizer); // the counts have four digits
  const others = { "gradients and temporary tensors": held - optimizer - weights };
  return { weights, ...others, optimizer, activations };
}

/**
 * A step of fine-tuning.
 * @param {Question} question
 * @param {Shape} shape
 * @param {number} batch
 * @returns {Work}
 */
function languageWork(question, shape, batch) {
  const { tuning, length } = question;
  const { flops, bytes, attention, unaligned, kernels } =
    fineTuningWork(shape, tuning, batch, length, DATA.finetuning);
  return {
    batch,
    training: true,
    half: true,
    ...PLAIN,
    convolution: { flops: 0, bytes: 0 },
    unaligned,
    other: { flops, bytes },
    attention,
    recurrent: 0,
    kernels,
    parameters: trainedNumbers(shape, tuning),
    tensors: fineTuningMemory(shape, tuning, batch, length, DATA.finetuning),
  };
}

/** @param {OwnStep} own @returns {Work} */
function ownWork(own) {
  return {
    batch: own.batch,
    training: own.training,
    half: own.half,
    convolution: { flops: own.convolution[0], bytes: own.convolution[1] },
    depthwise: own.depthwise,
    volume: { flops: own.volume[0], bytes: own.volume[1] },
    other: { flops: own.other[0], bytes: own.other[1] },
    attention: own.attention,
    recurrent: own.recurrent,
    channelsLast: own.channelsLast,
    deepFlops: own.deepFlops,
    unaligned: own.unaligned,
    detects: own.detects,
    kernels: own.other[2] + own.convolution[2] + own.volume[2],
    parameters: own.parameters,
    tensors: tensorsOf(own.lines, own.batch, 0, 0),
  };
}

/** The chips of a question, one's own among them. @param {Question} question @returns {Chip[]} */
function chipsOf(question) {
  const chips = question.devices.map((name) => /** @type {Chip} */ (CHIPS.get(name)));
  if (!question.chip) return chips;
  const { name, peak, bandwidth, memory } = question.chip;
  const peaks = { fp32: peak, tf32: peak, fp16: peak, bf16: peak };
  const capacity = memory * 2 ** 30;
  const here = { family: "" };
  const own = { vendor: "NVIDIA", achieved: {}, link: null, ...here };
  return [...chips, { ...own, name, peaks, bandwidth, capacity, sold: memory }];
}

/**
 * The tensors of a step by what they are for, in bytes, or null where that is not known.
 * @param {Question} question
 * @param {number} batch
 */
function tensorsIn(question, batch) {
  const shape = shapeOf(question);
  if (shape && isAnswering(question)) {
    return inferenceMemory(shape, question, batch, RUNTIMES[question.runtime]);
  }
  const work = workOf(question, batch);
  if ("problem" in work) return null;
  if (shape || question.count === 1 || !work.training || !work.tensors) return work.tensors;
  // DistributedDataParallel keeps the gradients a second time
  return { ...work.tensors, "gradients to exchange": 4 * work.parameters };
}

/**
 * What fills the memory of a card in a step, in bytes, or null where that is not known; see
 * memory_model.py.
 * @param {Question} question
 * @param {number} batch
 * @returns {Record<string, number> | null}
 */
export function memoryParts(question, batch) {
  const tensors = tensorsIn(question, batch);
  const { context_bytes: context, gaps } = DATA.memory;
  return tensors && { ...tensors, framework: context + gaps * sumOf(tensors) };
}

/**
 * Bytes of memory that a step needs, or null where that is not known.
 * @param {Question} question
 * @param {number} batch
 */
function neededBy(question, batch) {
  const parts = memoryParts(question, batch);
  return parts && sumOf(parts);
}

/**
 * Whether a step fits, by the margin of memory.json.
 * @param {Question} question
 * @param {Chip} chip
 * @param {number} batch
 */
function fitsOn(question, chip, batch) {
  const { margin, formula_margin: wider } = DATA.memory;
  return (neededBy(question, batch) ?? 0) * (1 + (shapeOf(question) ? wider : margin)) <= chip.capacity;
}

/**
 * The largest batch that fits one chip, or null where the memory is not known.
 * @param {Question} question
 * @param {Chip} chip
 */
function largestOn(question, chip) {
  const fits = (/** @type {number} */ batch) => fitsOn(question, chip, batch);
  if (neededBy(question, 1) === null || question.model === "own") return null;
  let [low, high] = [0, 1];
  while (high < LIMITS.unbounded && fits(high)) [low, high] = [high, 2 * high];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * The form of a question, and its lighter ones: adapters, then fewer bits.
 * @param {Question} question
 * @returns {Partial<Question>[]}
 */
export function lighterForms(question) {
  if (!shapeOf(question)) return [{}];
  if (isAnswering(question)) return BITS.slice(BITS.indexOf(question.bits)).map((bits) => ({ bits }));
  const ways = /** @type {Question["tuning"][]} */ (TUNINGS.slice(TUNINGS.indexOf(question.tuning)));
  return ways.map((tuning) => ({ tuning }));
}

/**
 * A question near to one that fits no card: with a smaller batch, else with less to train.
 * @param {Question} question
 * @returns {{question: Question, device: string} | null}
 */
export function thatFits(question) {
  for (const lighter of lighterForms(question)) {
    const asked = /** @type {Question} */ ({ ...question, ...lighter });
    const able = chipsOf(asked).map((chip) => ({ chip, batch: largestOn(asked, chip) ?? 0 }));
    const { chip, batch } = able.reduce((best, one) => (one.batch > best.batch ? one : best));
    const round = 2 ** Math.floor(Math.log2(Math.min(batch, asked.batch ?? batch)));
    if (batch >= 1) return { question: { ...asked, batch: round }, device: chip.name };
  }
  return null;
}

/**
 * What is wrong with the question as a whole, beside which field, or null.
 * @param {Question} question
 * @returns {{field: string, problem: string} | null}
 */
export function problemOf(question) {
  if (shapeOf(question)) return null;
  const work = workOf(question, question.batch ?? 1);
  if ("problem" in work) return { field: "task", problem: work.problem };
  const asksHalf = ["amp", "bf16", "fp16"].includes(question.precision);
  if (asksHalf !== work.half) {
    const counted = work.half ? "16 bits" : "32 bits";
    return { field: "precision", problem: `This model was counted in ${counted} only.` };
  }
  if (question.batch === null && (question.model === "own" || work.tensors === null)) {
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
    if (!(precisionOf(question, chip) in chip.peaks)) continue;
    if (question.count > 1 && question.task === "training" && !chip.link) continue;
    const batch = question.batch ?? Math.max(1, largestOn(question, chip) ?? 1);
    rows.push(rowOf(question, chip, batch));
  }
  if (question.cpu !== null) rows.push(ownRow(question, question.cpu));
  return rows;
}

/**
 * The same job on each free offer whose device has the precision: a network on all of its devices
 * where one was asked about, a language model on one; where several were, on one that gives as many.
 * @param {Question} question
 * @returns {Row[]}
 */
export function freeRows(question) {
  const offers = FREE.filter(({ count }) => question.count === 1 || count === question.count);
  return offers.flatMap((offer) => {
    const count = shapeOf(question) ? question.count : offer.count;
    const asked = { ...question, devices: offer.devices, chip: null, count, cpu: null };
    return answerRows(asked).map((row) => ({ ...row, offer, cost: NOTHING }));
  });
}

/**
 * What an hour of a device costs: who asks it, and the place of its kind of offer in the list.
 * @typedef {{price: number, kind: number, provider: string}} Price
 */

/**
 * The list price of a device, as `list_prices` of course_tools/estimate/prices.py chooses it, or null.
 * @param {string} provider "" for all
 * @param {string} device
 * @returns {Price | null}
 */
export function listPrice(provider, device) {
  const lists = [...PROVIDERS.values()].filter((list) => !provider || list.name === provider);
  const has = lists.filter((list) => Object.hasOwn(list.prices, device));
  const found = has.map(({ name, prices: { [device]: [price, kind] } }) => ({ price, kind, provider: name }));
  return found.sort((one, other) => one.kind - other.kind || one.price - other.price)[0] ?? null;
}

/**
 * The price of an hour: the user's own, else of the list.
 * @param {Question} question
 * @param {string} device
 * @returns {Price | null}
 */
export function priceOf(question, device) {
  if (!Object.hasOwn(question.prices, device)) return listPrice(question.provider, device);
  const price = question.prices[device];
  return price === null ? null : { price, kind: YOURS, provider: "" };
}

/** What is offered, and by whom. @param {Price} price */
export function offerOf({ kind, provider }) {
  return provider ? `${provider}, ${DATA.kinds[kind]}` : "your price";
}

/** Names of chosen chips that have no row, and why. @param {Question} question */
export function leftOut(question) {
  const sentences = [];
  for (const chip of chipsOf(question)) {
    const precision = precisionOf(question, chip);
    if (!(precision in chip.peaks)) sentences.push(`The ${chip.name} does not compute in ${precision}.`);
    else if (question.count > 1 && question.task === "training" && !chip.link) {
      sentences.push(`The ${chip.name} has no link to a second one.`);
    }
  }
  return sentences;
}

/**
 * A step on a chip: its seconds from low to high, what limits it, how sure that is and why, the
 * tokens per second of answers, and the operations (null where they are not known).
 * @typedef {{seconds: [number, number, number], limit: string, checked: boolean, reasons: string[],
 *   tokens: [number, number] | null, flops: number | null}} StepOn
 */

/**
 * A step of training, or of inference of a network for images.
 * @param {Question} question for which `problemOf` found nothing
 * @param {Chip} chip
 * @param {number} batch
 * @returns {StepOn}
 */
function stepOn(question, chip, batch) {
  const shape = shapeOf(question);
  if (shape && isAnswering(question)) return answersOn(question, shape, chip, batch);
  const work = /** @type {Work} */ (workOf(question, batch));
  const precision = precisionOf(question, chip);
  const time = stepTime(work, chip, precision, shape && TUNING_HOST);
  const { total, limit } = time;
  const step = togetherTime(total, work, chip, question.count);
  let error = errorOf(work, chip, precision, time);
  if (shape) {
    const { tuning, length } = question;
    const known = fineTuningEvidence(DATA.finetuning, shape, tuning, chip.name, batch, length);
    const [faster, slower] = [known.factor, known.slower ?? known.factor];
    error = { faster, slower, checked: !known.assumed, reasons: [known.about] };
  }
  const { faster, slower, checked, reasons } = error;
  const flops = work.convolution.flops + work.volume.flops + work.other.flops;
  return { seconds: [step / faster, step, step * slower], limit, checked, reasons, tokens: null, flops };
}

/**
 * A batch of requests to a language model, from the prompts to the ends of the answers.
 * @param {Question} question
 * @param {Shape} shape
 * @param {Chip} chip
 * @param {number} batch
 * @returns {StepOn}
 */
function answersOn(question, shape, chip, batch) {
  const known = RUNTIMES[question.runtime];
  const unpacking = question.bits === "4" ? known.unpack_flops?.[chip.family] : undefined;
  const runtime = { ...known, byte_flops: unpacking ?? known.byte_flops };
  const precision = precisionOf(question, chip);
  const peak = chip.peaks[precision] * 1e12 * achieved(chip, precision);
  const plain = (chip.peaks.fp32 ?? chip.peaks[precision]) * 1e12;
  const slowness = chip.oldHost ? 1 : NEW_HOST.launch / OLD_HOST.launch;
  const times = inferenceTimes(shape, question, batch, runtime, chip.bandwidth * 1e9, peak, plain, slowness);
  const error = inferenceEvidence(runtime, chip.name, shape, Number(question.bits));
  const [prompt, answer] = [times.prefill, question.generated * times.decode];
  const rate = (question.count * batch) / times.decode;
  return {
    seconds: [
      prompt / error.prefill + answer / error.decode,
      prompt + answer,
      prompt * error.prefill + answer * error.decode,
    ],
    limit: "",
    checked: !error.assumed,
    reasons: [error.about],
    tokens: [rate / error.decode, rate * error.decode],
    flops: null,
  };
}

/** Steps of the whole job; an epoch takes one at least. @param {Question} question @param {number} batch */
function stepsOf(question, batch) {
  const epochs = isAnswering(question) ? 1 : question.epochs;
  return epochs * Math.max(1, question.samples / batch);
}

/**
 * @param {Question} question
 * @param {Chip} chip
 * @param {number} batch
 * @returns {Row}
 */
function rowOf(question, chip, batch) {
  const { seconds, limit, checked, tokens, flops } = stepOn(question, chip, batch);
  const together = batch * question.count;
  const steps = stepsOf(question, together);
  const price = priceOf(question, chip.name);
  const hourly = price === null ? null : (price.price * question.count) / 3600;
  const job = /** @type {[number, number, number]} */ (seconds.map((each) => each * steps));
  return {
    device: chip.name,
    offer: null,
    count: question.count,
    own: false,
    precision: precisionOf(question, chip),
    batch: together,
    step: seconds[1],
    seconds: job,
    cost: hourly === null ? null : [job[0] * hourly, job[1] * hourly, job[2] * hourly],
    kind: price?.kind ?? YOURS,
    seller: price && offerOf(price),
    needed: neededBy(question, batch),
    capacity: chip.capacity,
    fits: fitsOn(question, chip, batch),
    limit,
    tokens,
    flops: flops && flops * steps * question.count,
    checked,
  };
}

/** @param {Question} question @param {number} step @returns {Row} */
function ownRow(question, step) {
  const batch = question.model === "own" ? /** @type {OwnStep} */ (question.own).batch : question.batch ?? 1;
  const seconds = step * stepsOf(question, batch);
  return {
    device: "your own machine",
    offer: null,
    count: 1,
    own: true,
    precision: "",
    batch,
    step,
    seconds: [seconds, seconds, seconds],
    cost: null,
    kind: YOURS,
    seller: null,
    needed: null,
    capacity: null,
    fits: true,
    limit: "",
    tokens: null,
    flops: null,
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
  /** @type {Map<string, string[]>} */
  const about = new Map();
  const able = chipsOf(question).filter((chip) => precisionOf(question, chip) in chip.peaks);
  for (const chip of able) {
    for (const reason of stepOn(question, chip, question.batch ?? 1).reasons) {
      about.set(reason, [...(about.get(reason) ?? []), chip.name]);
    }
  }
  const share = Math.round(100 * DATA.share);
  const cards = rows.filter((row) => !row.own);
  const names = (/** @type {boolean} */ checked) =>
    cards.filter((row) => row.checked === checked).map((row) => row.device).join(", ");
  const [known, unknown] = [names(true), names(false)];
  const sentences = [];
  if (known) {
    const where = "published measurements of such work, the truth lay within such an interval";
    sentences.push(`In ${share} of 100 ${where} (${known}).`);
  }
  if (unknown) sentences.push(`The intervals of these are assumed, not checked: ${unknown}.`);
  sentences.push(isAnswering(question) ? ALWAYS_BUSY : "Reading data is not included.");
  if (question.task !== "inference" && shapeOf(question)) sentences.push(CHECKPOINTED);
  const { source } = MODELS.get(question.model) ?? {};
  if (source) sentences.push(`${COUNTED} ${source}.`);
  const reasons = [...about].map(([text, chips]) =>
    chips.length === able.length
      ? `${text[0].toUpperCase()}${text.slice(1)}.`
      : `${chips.join(", ")}: ${text}.`,
  );
  return [...sentences, ...reasons];
}
