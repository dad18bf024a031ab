// Finding a model by what people type: "resnet50", "gpt2", "llama 3 8b", "meta-llama/Llama-3.1-8B".

const LONGEST_SEARCH = 80;
const ALIKE = 0.4; // a name that shares less with what was typed is no suggestion
const MOST_NEAR = 5;

/** Only letters and digits, in lower case. @param {string} text */
function plain(text) {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** A name without the size of its image or sample. @param {string} name */
function withoutSize(name) {
  return name.replace(/( \(|, ).*$/, "");
}

/**
 * Find names that hold every word of a text, the best first: the name itself, a name but for its
 * size, one whose first word it is, one that begins so, any other; among equals the shorter one.
 * @param {string} text
 * @param {string[]} names
 * @returns {{name: string, exact: boolean, near?: boolean}[]} exact where only the size was left
 *   out, near where no name holds every word
 */
export function searchNames(text, names) {
  const typed = text.slice(0, LONGEST_SEARCH).replace(/-(un)?cased$/i, "");
  const found = matches(typed, names);
  if (found.length) return found;
  // an address on the Hub has an owner before the name, and its use behind it
  const bare = typed.replace(/^.*\//, "").replace(ENDINGS, "").replace(USES, " ").trim();
  const again = matches(bare, names);
  if (again.length) return again;
  const [, like] = OF_ITS_KIND.find(([known]) => known.test(bare)) ?? [];
  const alike = names.filter((name) => like?.test(name));
  const others = nearest(bare, names).filter(({ name }) => !alike.includes(name));
  const close = others.filter(({ score }) => score > 0).slice(0, MOST_NEAR);
  return [...nearest(bare, alike), ...close];
}

// Names that people type, and networks of the list that do such work.
const OF_ITS_KIND = /** @type {[RegExp, RegExp][]} */ ([
  [/yolo|detr\b|efficientdet|detect/i, /^(SSD300|Faster R-CNN|Mask R-CNN)/],
  [/flux|\bsd\b|sd[ -]?\d|midjourney|pixart|diffus/i, /^(Stable Diffusion|DiT)/],
  [/speech|hubert|wavlm|conformer|\basr\b/i, /^(wav2vec|Whisper)/],
  [/deepseek|gpt-?oss|glm|falcon|mamba|kimi/i, /^(Llama 3\.1 8B|Qwen3 32B|Mixtral|Llama 3\.3 70B)/],
]);

// what stands behind a model's name on the Hub without changing its shape
const ENDINGS = /([-_ ](instruct|chat|base|hf|it|uncased|cased|v\d[\d.]*|gguf|awq|gptq))+$/i;

// what is done with a model, and not its name
const USES = /\b(q?lora|fine-?tun\w*|train\w*|pre-?train\w*|inference|serv\w*|from scratch|on imagenet|model)\b/gi;

/** Names by the pairs of letters that they share with a text. @param {string} text @param {string[]} names */
function nearest(text, names) {
  const typed = pairs(plain(text));
  const scored = names.map((name) => {
    const own = pairs(plain(withoutSize(name)));
    const shared = [...typed].filter((pair) => own.has(pair)).length;
    const score = (2 * shared) / (typed.size + own.size || 1);
    return { name, exact: false, near: true, score: score < ALIKE ? 0 : score };
  });
  const longer = (/** @type {string} */ one, /** @type {string} */ other) => one.length - other.length;
  return scored.sort((one, other) => other.score - one.score || longer(one.name, other.name));
}

/** @param {string} text @returns {Set<string>} each two letters that stand beside each other */
function pairs(text) {
  return new Set([...text].slice(1).map((letter, index) => text[index] + letter));
}

/** @param {string} text @param {string[]} names */
function matches(text, names) {
  const words = text.split(/[^\p{L}\p{N}.]+/u).map(plain);
  const whole = plain(text);
  const ranked = [];
  for (const name of names) {
    const known = plain(name);
    const parts = name.split(/[^\p{L}\p{N}]+/u).map(plain);
    // "t5" is in "resnet50" by chance alone
    const isIn = (/** @type {string} */ word) =>
      /^\p{L}.{0,2}$/u.test(word) ? parts.some((part) => part.startsWith(word)) : known.includes(word);
    if (!words.every(isIn)) continue;
    const short = plain(withoutSize(name));
    const rank = [known === whole, short === whole, parts[0] === whole, short.startsWith(whole), true].indexOf(true);
    ranked.push({ name, rank, exact: rank < 2 });
  }
  return ranked.sort((one, other) => one.rank - other.rank || one.name.length - other.name.length);
}
