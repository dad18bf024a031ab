// Reading numbers as people type them, and writing quantities as people say them.

/** @typedef {{value: number} | {problem: string}} Reading */

const SUFFIXES = { k: 1e3, K: 1e3, M: 1e6, G: 1e9 };
const LARGEST = 1e15;

/**
 * Read a number: "1.5", "1,5", "10 000", "50k", "2e6". What could be read in two ways is not guessed.
 * @param {string} text
 * @param {{least?: number, whole?: boolean, most?: number}} [limits] `least` itself is allowed
 * @returns {Reading}
 */
export function readNumber(text, limits = {}) {
  const typed = text.trim().slice(0, 40);
  const parts = /^([+-]?)([\d.,\s'_]+)(e[+-]?\d{1,3})?\s*([kKMG]?)$/i.exec(typed);
  if (!parts || !/\d/.test(parts[2])) {
    return { problem: typed ? "This is not a number." : "A number is missing." };
  }
  const [, sign, body, exponent, suffix] = parts;
  const digits = body.replace(/[\s'_]/g, "");
  const ambiguous = /^([1-9]\d{0,2})([.,])(\d{3})$/.exec(digits);
  if (ambiguous && !exponent) {
    const [, whole, , rest] = ambiguous;
    const small = Number(`${whole}.${rest}`);
    return { problem: `Do you mean ${whole}${rest} or ${small}? Please write it like that.` };
  }
  const plain = withPoint(digits);
  if (plain === null) {
    return { problem: "This is not a number." };
  }
  const factor = SUFFIXES[/** @type {keyof typeof SUFFIXES} */ (suffix)] ?? 1;
  const value = Number(`${sign}${plain}${exponent ?? ""}`) * factor;
  return checked(value, limits);
}

/**
 * Read a price of an hour; nobody asks thousands, so a point has but one meaning.
 * @param {string} text
 * @returns {Reading}
 */
export function readPrice(text) {
  const typed = text.replace("$", "").trim();
  const limits = { most: 1e6 };
  return /^\d+\.\d+$/.test(typed) ? checked(Number(typed), limits) : readNumber(typed, limits);
}

/**
 * Return the digits with a point for the decimals and nothing between groups, or null.
 * @param {string} digits
 */
function withPoint(digits) {
  const points = digits.split(".").length - 1;
  const commas = digits.split(",").length - 1;
  if (points + commas === 0) return digits;
  if (points + commas === 1) return digits.replace(",", ".");
  const last = digits.lastIndexOf(".") > digits.lastIndexOf(",") ? "." : ",";
  const group = last === "." ? "," : ".";
  const decimals = (last === "." ? points : commas) === 1 && points > 0 && commas > 0;
  const whole = decimals ? digits.slice(0, digits.lastIndexOf(last)) : digits;
  const separator = decimals ? group : last;
  if (!decimals && points > 0 && commas > 0) return null;
  const groups = whole.split(separator);
  const even = groups.slice(1).every((part) => part.length === 3) && groups[0].length <= 3;
  if (!even || groups[0] === "") return null;
  const fraction = decimals ? digits.slice(digits.lastIndexOf(last) + 1) : "";
  return fraction ? `${groups.join("")}.${fraction}` : groups.join("");
}

/**
 * @param {number} value
 * @param {{least?: number, whole?: boolean, most?: number}} limits
 * @returns {Reading}
 */
function checked(value, { least = 0, whole = false, most = LARGEST }) {
  if (!Number.isFinite(value)) return { problem: "This number is too large." };
  if (value < least) return { problem: `This has to be ${say(least)} or more.` };
  if (value > most) return { problem: `This has to be ${say(most)} or less.` };
  if (whole && !Number.isInteger(value)) return { problem: "This has to be a whole number." };
  return { value };
}

/**
 * Write a number with two or three digits that count: 0.35, 7.2, 33, 1,240.
 * @param {number} value
 */
export function say(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(1);
  if (size >= 10) return Math.round(value).toLocaleString("en-US");
  if (size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(2)));
}

const DURATIONS = /** @type {[string, number][]} */ ([
  ["years", 365 * 86400],
  ["days", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
  ["ms", 1e-3],
  ["µs", 1e-6],
]);

/** The unit in which a person says so many seconds. @param {number} seconds */
function unitOf(seconds) {
  return DURATIONS.find(([, size]) => seconds >= 2 * size) ?? DURATIONS[DURATIONS.length - 1];
}

/** Write a duration: "25 s", "3 min", "9 h", "12 days". @param {number} seconds */
export function sayTime(seconds) {
  const [unit, size] = unitOf(seconds);
  return `${say(seconds / size)} ${unit}`;
}

/** A unit, its seconds, and how many of it a person would say, at least and at most; as row.py. */
const UNITS = /** @type {[string, number, number, number][]} */ ([
  ["year", 365 * 86400, 1, Infinity],
  ["day", 86400, 2, 365],
  ["hour", 3600, 1, 96],
  ["minute", 60, 1, 120],
  ["second", 1, 1, 120],
  ["millisecond", 1e-3, 1, 1000],
  ["microsecond", 1e-6, 0, 1000],
]);

const LARGE_COUNTS = /** @type {[number, string][]} */ ([
  [1e12, "trillion"],
  [1e9, "billion"],
  [1e6, "million"],
]);

/** Two digits, or all digits before the point. @param {number} value */
export function digits(value) {
  if (value >= 9.95) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(2)));
}

/** @param {string} count @param {string} unit */
function withUnit(count, unit) {
  return `${count} ${unit}${count === "1" ? "" : "s"}`;
}

/**
 * Write an interval of seconds, in one unit where one suits both ends: "9 to 20 hours".
 * @param {number} low
 * @param {number} high
 * @returns {string}
 */
export function sayTimes(low, high) {
  for (const [unit, size, least, most] of UNITS) {
    if (low / size >= least && high / size <= most) {
      const [first, last] = [digits(low / size), digits(high / size)];
      return first === last ? withUnit(first, unit) : `${first} to ${withUnit(last, unit)}`;
    }
  }
  return `${sayTimes(low, low)} to ${sayTimes(high, high)}`;
}

/** Write an interval of money: "$15 to $33". @param {number} low @param {number} high */
export function sayMoney(low, high) {
  if (high === 0) return "free";
  const write = (/** @type {number} */ cost) => {
    if (cost > 0 && cost < 0.005) return "less than $0.01";
    return `$${cost < 9.995 ? cost.toFixed(2) : Math.round(cost).toLocaleString("en-US")}`;
  };
  if (low < 0.005 && high >= 0.005) return `up to ${write(high)}`;
  return write(low) === write(high) ? write(low) : `${write(low)} to ${write(high)}`;
}

/** Write bytes, as the command in the terminal does: "16 GB". @param {number} bytes */
export function sayBytes(bytes) {
  return `${digits(bytes / 1e9)} GB`;
}

/** Write how many: "50,000", "1.28 million". @param {number} count */
export function sayCount(count) {
  const [size, name] = LARGE_COUNTS.find(([least]) => count >= least) ?? [1, ""];
  return name ? `${Number((count / size).toPrecision(3))} ${name}` : count.toLocaleString("en-US");
}
