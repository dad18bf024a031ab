// Reading what somebody pasted: the JSON of an estimate, or this page's own short form of it.

const LONGEST_JSON = 200_000;
const MOST_ROWS = 100;
const HERE = "this machine"; // the device of a row that was measured; see machine.py

/**
 * A counted step that somebody pasted, after `readOwn` has looked at it.
 * @typedef {{batch: number, training: boolean, half: boolean, precision: string,
 *   parameters: number, convolution: number[], depthwise: number, volume: number[], other: number[],
 *   attention: number, recurrent: number, deepFlops: number, unaligned: number,
 *   channelsLast: boolean, detects: boolean, lines: [number, number][]}} OwnStep
 */

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
  const deepFlops = own?.deepFlops ?? 0; // what an older version wrote has none
  const unaligned = own?.unaligned ?? 0; // nor this
  const numbers = [own?.batch, own?.parameters, own?.recurrent, own?.attention, own?.depthwise];
  numbers.push(deepFlops, unaligned);
  const sums = [own?.convolution, own?.volume, own?.other];
  const isSums = (/** @type {unknown} */ sum) =>
    Array.isArray(sum) && sum.length === 3 && sum.every(isCount);
  const isLine = (/** @type {unknown} */ line) =>
    Array.isArray(line) && line.length === 2 && line.every(Number.isFinite);
  const whole =
    numbers.every(isCount) && sums.every(isSums) && Array.isArray(own.lines) &&
    own.lines.length < 100 && own.lines.every(isLine) && own.batch >= 1;
  if (!whole) return { problem: "This JSON is not what the estimate writes." };
  const { batch, parameters, recurrent, attention, convolution, depthwise, volume, other, lines } = own;
  const precision = ["fp32", "tf32"].includes(own.precision) ? "fp32" : "fp16";
  const half = precision === "fp16";
  const training = Boolean(own.training);
  const channelsLast = Boolean(own.channelsLast);
  const detects = Boolean(own.detects);
  const images = { convolution, depthwise, deepFlops, volume, channelsLast };
  const counts = { batch, parameters, recurrent, attention, unaligned, ...images, other, lines };
  return { own: { ...counts, training, half, precision, detects } };
}

/**
 * Write the job of a pasted estimate as an address, so that it is read with the same care as one.
 * @param {string} text the JSON of an estimate that `readOwn` could read
 * @param {OwnStep} own its step
 * @returns {string | null} null where the text holds the step alone
 */
export function addressOfPasted(text, own) {
  const { question, rows } = JSON.parse(text);
  if (question === null || typeof question !== "object") return null;
  const fields = new URLSearchParams({ own: JSON.stringify(own) });
  for (const name of ["precision", "samples", "epochs", "count"]) {
    if (name in question) fields.set(name, String(question[name]));
  }
  fields.set("deadline", String(question.deadline_hours ?? "none"));
  const known = Array.isArray(rows) ? rows.slice(0, MOST_ROWS).filter((row) => row?.device) : [];
  const cards = known.filter((row) => row.device !== HERE);
  fields.set("devices", cards.map((row) => row.device).join(","));
  for (const { device, price } of cards) {
    const dollars = price?.currency === "$" ? price.per_hour : "none";
    fields.append("price", `${device}:${dollars}`);
  }
  const here = known.find((row) => row.device === HERE);
  if (here) fields.set("cpu", String(here.step_s));
  return fields.toString();
}

/** @param {any} data what `Answers.to_dict` wrote */
function fromEstimate(data) {
  const counted = data.counted ?? {};
  const sums = (/** @type {string} */ kind) => {
    const one = counted[kind] ?? {};
    return [one.flops, one.bytes_moved, one.kernels];
  };
  const rest = ["matrix", "attention", "recurrent", "other"].map(sums);
  const deep = sums("depthwise");
  const memory = data.memory ?? {};
  const lines = Array.isArray(memory.lines) ? memory.lines : [];
  return {
    batch: counted.batch,
    training: counted.training,
    precision: counted.precision,
    parameters: counted.parameters,
    convolution: sums("convolution").map((amount, place) => amount + deep[place]),
    depthwise: deep[1],
    volume: sums("convolution3d"),
    attention: sums("attention")[0],
    channelsLast: counted.channels_last,
    detects: Boolean(counted.detects),
    deepFlops: deep[0],
    unaligned: counted.unaligned,
    other: [0, 1, 2].map((place) => rest.reduce((total, one) => total + one[place], 0)),
    recurrent: sums("recurrent")[0],
    lines: lines.map((/** @type {any} */ line) => [line?.held, line?.per_sample]),
  };
}
