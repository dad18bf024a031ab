// The question as a script of Python that runs.

import { MODELS, isAnswering, priceOf } from "./model.js";

/** @typedef {import("./question.js").Question} Question */

/**
 * Write the question as Python: for a network of timm or another library, a language model, or a
 * model that the reader imports.
 * @param {Question} question
 */
export function toPython(question) {
  if (question.model === "own") return script(OWN_MODEL, estimateCall(question));
  const { shape, lines, detects } = MODELS.get(question.model) ?? {};
  if (shape) return languageScript(question);
  if (lines) {
    const half = question.task === "inference" && !detects ? ["model.half()  # its weights are loaded in 16 bits"] : [];
    return script(["import torch", ESTIMATE, "", ...lines, ...half], estimateCall(question));
  }
  const [, name, side] = /^(.*) \((\d+)\)$/.exec(question.model) ?? [];
  const made = [
    "import timm  # pip install timm",
    "import torch",
    ESTIMATE,
    "",
    `model = timm.create_model(${JSON.stringify(name)})`,
    `inputs = torch.empty(1, 3, ${side}, ${side})`,
  ];
  return script(made, estimateCall(question));
}

const ESTIMATE = "from course_tools.estimate import Chip, estimate";
const OWN_MODEL = [
  ESTIMATE,
  "",
  "from my_model import inputs, model  # yours, as in the estimate that you pasted",
];

/** @param {string[]} made @param {string[]} call */
function script(made, call) {
  const lines = call.map((line) => `    ${line},`);
  return [...made, "", "answer = estimate(", ...lines, ")", "print(answer)", ""].join("\n");
}

/** The arguments of the call, a line each. @param {Question} question */
function estimateCall(question) {
  const text = JSON.stringify;
  const cards = question.devices.map((name) => text(name));
  const { chip } = question;
  if (chip) cards.push(`Chip(${text(chip.name)}, ${chip.peak}, ${chip.bandwidth}, ${chip.memory})`);
  const lines = ["model", "inputs"];
  if (question.batch !== null) lines.push(`batch=${question.batch}`);
  lines.push(`precision=${text(question.precision)}`);
  if (question.task === "inference") lines.push("training=False");
  lines.push(`samples=${question.samples}`, `epochs=${question.epochs}`);
  if (question.deadline !== null) lines.push(`deadline_hours=${question.deadline}`);
  if (question.count > 1) lines.push(`count=${question.count}`);
  if (question.cpu !== null) lines.push(`this_machine=${question.cpu}`);
  lines.push(`devices=[${cards.join(", ")}]`);
  const prices = question.devices.map((name) => ({ name, price: priceOf(question, name) }));
  const priced = prices.filter(({ price }) => price !== null);
  if (Object.keys(question.prices).length) {
    lines.push(`prices={${priced.map(({ name, price }) => `${text(name)}: ${price?.price}`).join(", ")}}`);
  } else if (question.provider) lines.push(`prices=${text(question.provider)}`);
  return lines;
}

/** A language model on each card. @param {Question} question */
function languageScript(question) {
  const { batch, length, samples, epochs, bits, prompt, generated } = question;
  const text = JSON.stringify;
  const step = `batch=${batch ?? 1}, length=${length}, samples=${samples}, epochs=${epochs}`;
  const requests = `batch=${batch ?? 1}, prompt=${prompt}, generated=${generated}`;
  const program = `bits=${bits}, runtime=${text(question.runtime)}`;
  const [name, asked, ...job] = isAnswering(question)
    ? ["estimate_serving", "model", `requests=${samples}`, requests, program]
    : ["estimate_finetuning", `model, ${text(question.tuning)}`, step];
  return [
    `from course_tools.estimate import ${name}`,
    "",
    `model = ${text(question.model)}`,
    `cards = [${question.devices.map((name) => text(name)).join(", ")}]`,
    `answer = ${name}(`,
    ...[asked, "devices=cards", ...job].map((line) => `    ${line},`),
    ")",
    "print(answer)",
    "",
  ].join("\n");
}
