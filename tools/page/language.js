// Language models by their shapes: what fine-tuning and answering take on a chip, as in
// finetuning.py, finetuning_step.py and inference.py of course_tools/estimate.

/** @typedef {import("./question.js").Question} Question */

/**
 * The shape of a language model; `between` is the width of the feed-forward part that a token
 * meets, `attention` and `expert` are weights of a layer, `adapters` those of LoRA, `context` the
 * longest sample where it is known, and an encoder writes no answers.
 * @typedef {{layers: number, hidden: number, query: number, kv: number, between: number,
 *   gated: boolean, vocabulary: number, rest: number, attention: number, expert: number,
 *   experts: number, used: number, adapters: number, context: number | null, encoder: boolean}} Shape
 */

/**
 * @typedef {{devices: string[] | null, about: string, method?: string | null, tokens?: number,
 *   length?: number, parameters?: number, bits?: number, dense?: boolean, assumed?: boolean, slower?: number, factor: number, decode: number, prefill: number}} LanguageEvidence
 * @typedef {{hidden: number, query: number, kv: number, intermediate: number, kernels: number}} OfLayer
 * @typedef {{logit: number, nf4: number, master: number, adam: {state: number, update: number},
 *   step: {full: OfLayer, adapted: OfLayer, without_gate: number, logits: number,
 *   dequantized: number, launch_s: number}, evidence: LanguageEvidence[]}} FineTuning
 * @typedef {{bytes: Record<string, [number, number]>, bandwidth_share: number,
 *   arithmetic_share: number, layer_s: number, host_s: Record<string, number>, kv_times: number,
 *   kv_spread: number, byte_flops: number, unpack_flops?: Record<string, number>, expert_layer_s?: number,
 *   evidence: LanguageEvidence[]}} Runtime
 */

/** Weights of the linear layers, of some experts in each. @param {Shape} shape @param {number} experts */
function linearWeights(shape, experts) {
  return shape.layers * (shape.attention + experts * shape.expert);
}

/** All weights. @param {Shape} shape */
function allWeights(shape) {
  return linearWeights(shape, shape.experts) + shape.rest;
}

/** Numbers that are trained. @param {Shape} shape @param {string} method */
export function trainedNumbers(shape, method) {
  return method === "full" ? allWeights(shape) : shape.adapters;
}

/**
 * FLOPs, bytes and kernels of a step of fine-tuning; see finetuning_step.py.
 * @param {Shape} shape
 * @param {string} method
 * @param {number} batch
 * @param {number} length tokens of a sample
 * @param {FineTuning} numbers
 */
export function fineTuningWork(shape, method, batch, length, { step, adam, master }) {
  const [full, tokens] = [method === "full", batch * length];
  const [headPasses, reads] = [full ? 3 : 2, 3];
  const head = shape.vocabulary * shape.hidden;
  const [linear, used] = [shape.experts, shape.used].map((experts) => linearWeights(shape, experts));
  const adapters = full ? 0 : 4 * shape.adapters;
  const ofHead = 2 * tokens * headPasses * head;
  const unaligned = shape.vocabulary % 2 ? ofHead : 0;
  const products = 2 * tokens * ((headPasses + 1) * used + adapters) + ofHead;
  const attention = 2 * tokens * length * shape.layers * shape.query * 4.5;
  const each = full ? master : 2;
  const unpacked = method === "4-bit" ? reads * step.dequantized * linear : 0;
  const weights = reads * each * linear + 2 * each * head + unpacked;
  const update = 4 * trainedNumbers(shape, method) * (3 + 2 * adam.state);
  const layer = full ? step.full : step.adapted;
  const width =
    layer.hidden * shape.hidden + layer.query * shape.query + layer.kv * shape.kv +
    layer.intermediate * shape.between * (shape.gated ? 1 : step.without_gate);
  const moved = tokens * (shape.layers * width + shape.vocabulary * step.logits);
  const bytes = weights + moved + update;
  const kernels = layer.kernels * shape.layers;
  return { flops: products + attention, attention, unaligned, bytes, kernels };
}

/**
 * What fills the memory in a step of fine-tuning with checkpointing and Adam; see finetuning.py.
 * @param {Shape} shape
 * @param {string} method
 * @param {number} batch
 * @param {number} length
 * @param {FineTuning} numbers
 * @returns {Record<string, number>} bytes at the peak
 */
export function fineTuningMemory(shape, method, batch, length, { logit, nf4, adam }) {
  const [tokens, trained] = [batch * length, trainedNumbers(shape, method)];
  const linear = linearWeights(shape, shape.experts);
  /** @type {Record<string, number>} */
  const frozen = { full: 0, lora: 2 * allWeights(shape), "4-bit": nf4 * linear + 4 * shape.rest };
  const results = shape.gated ? 4 : 2;
  const kept = 12 * shape.hidden + 4 * shape.query + 4 * shape.kv + 2 * results * shape.between;
  const block = tokens * Math.max(kept, shape.vocabulary * logit);
  const stream = method === "4-bit" ? 4 : 2; // bytes from block to block, as PEFT has them
  const activations = tokens * stream * shape.layers * shape.hidden + block;
  const update = 4 * trained * adam.update;
  const inUpdate = update > activations; // when the peak comes
  return {
    weights: frozen[method] + 4 * trained,
    gradients: 4 * trained,
    optimizer: 4 * trained * adam.state + (inUpdate ? update : 0),
    activations: inUpdate ? 0 : activations,
  };
}

/**
 * The evidence for fine-tuning on a chip.
 * @param {FineTuning} numbers
 * @param {Shape} shape
 * @param {string} method
 * @param {string} chip
 * @param {number} batch
 * @param {number} length tokens of a sample
 */
export function fineTuningEvidence(numbers, shape, method, chip, batch, length) {
  return /** @type {LanguageEvidence} */ (numbers.evidence.find(
    (one) =>
      [null, method].includes(one.method ?? null) &&
      (one.devices === null || one.devices.includes(chip)) &&
      batch * length >= (one.tokens ?? 0) && length >= (one.length ?? 0) &&
      allWeights(shape) >= (one.parameters ?? 0),
  ));
}

/**
 * What fills the memory while requests are answered.
 * @param {Shape} shape
 * @param {Question} asked
 * @param {number} batch
 * @param {Runtime} runtime
 * @returns {Record<string, number>} bytes at the end of the answers
 */
export function inferenceMemory(shape, asked, batch, runtime) {
  const [ofLinear, elsewhere] = runtime.bytes[asked.bits];
  const weights = linearWeights(shape, shape.experts) * ofLinear + shape.rest * elsewhere;
  const ofToken = 4 * shape.layers * shape.kv;
  return { weights, "keys and values": batch * (asked.prompt + asked.generated) * ofToken };
}

/**
 * Seconds to read the prompts of some requests, and to make one token of each answer; see inference.py.
 * @param {Shape} shape
 * @param {Question} asked
 * @param {number} batch
 * @param {Runtime} runtime
 * @param {number} bandwidth bytes a second of the data sheet
 * @param {number} peak operations a second that products reach
 * @param {number} plain operations a second of the data sheet in fp32
 * @param {number} slowness of the host: 1 of one of 2021
 */
export function inferenceTimes(shape, asked, batch, runtime, bandwidth, peak, plain, slowness) {
  const { prompt, generated, bits } = asked;
  const rate = bandwidth * runtime.bandwidth_share;
  const host = shape.layers * runtime.host_s[bits] * slowness;
  const ofLayer = (shape.experts > 1 && runtime.expert_layer_s) || runtime.layer_s;
  const arithmetic = peak * runtime.arithmetic_share;
  const [ofLinear, elsewhere] = runtime.bytes[bits];
  const head = shape.vocabulary * shape.hidden;
  const used = linearWeights(shape, shape.used);
  const read = (/** @type {number} */ tokens) => {
    const met = shape.experts * (1 - (1 - shape.used / shape.experts) ** tokens);
    return linearWeights(shape, met) * ofLinear + head * elsewhere;
  };
  const seconds = (/** @type {number} */ bytes, /** @type {number} */ flops) => {
    const calculated = Math.max(flops / arithmetic, (bytes * runtime.byte_flops) / plain);
    return Math.hypot(host, shape.layers * ofLayer + bytes / rate + calculated);
  };
  const attention = 2 * shape.layers * shape.query * prompt ** 2;
  const copies = runtime.kv_times + (runtime.kv_spread * shape.query) / shape.kv;
  const cache = copies * batch * (prompt + generated / 2) * 4 * shape.layers * shape.kv;
  return {
    prefill: seconds(read(batch * prompt), batch * (2 * used * prompt + attention)),
    decode: seconds(read(batch) + cache, 2 * batch * (used + head)),
  };
}

/**
 * The evidence for answering on a chip.
 * @param {Runtime} runtime
 * @param {string} chip
 * @param {Shape} shape
 * @param {number} bits of a weight
 */
export function inferenceEvidence(runtime, chip, shape, bits) {
  const size = allWeights(shape);
  return /** @type {LanguageEvidence} */ (runtime.evidence.find(
    (one) => (one.devices === null || one.devices.includes(chip)) &&
      size >= (one.parameters ?? 0) && bits >= (one.bits ?? 0) &&
      (shape.experts === 1 || !one.dense),
  ));
}
