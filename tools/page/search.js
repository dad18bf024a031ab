// Finding a model by what people type: "resnet50", "gpt2", "llama 3 8b", "meta-llama/Llama-3.1-8B".

const LONGEST_SEARCH = 80;

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
 * size, one that begins so, any other; among equals the shorter one.
 * @param {string} text
 * @param {string[]} names
 * @returns {{name: string, exact: boolean}[]} exact where only the size was left out
 */
export function searchNames(text, names) {
  const typed = text.slice(0, LONGEST_SEARCH);
  const found = matches(typed, names);
  if (found.length) return found;
  // an address on the Hub has an owner before the name, and its use behind it
  return matches(typed.replace(/^.*\//, "").replace(/-(instruct|chat|base|hf|it)$/i, ""), names);
}

/** @param {string} text @param {string[]} names */
function matches(text, names) {
  const words = text.split(/[^\p{L}\p{N}.]+/u).map(plain);
  const whole = plain(text);
  const ranked = [];
  for (const name of names) {
    const known = plain(name);
    if (!words.every((word) => known.includes(word))) continue;
    const short = plain(withoutSize(name));
    const rank = [known === whole, short === whole, short.startsWith(whole), true].indexOf(true);
    ranked.push({ name, rank, exact: rank < 2 });
  }
  return ranked.sort((one, other) => one.rank - other.rank || one.name.length - other.name.length);
}
