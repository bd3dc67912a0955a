// Numbers and times as text. A unit of a count or of bytes is not broken from its number.

const NONE = "–";

/** A count or a rate: 0, 0.4, 12, 1,234, 12.3 k, 4.5 M. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toFixed(1)}\u00a0G`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}\u00a0M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(1)}\u00a0k`;
  if (size >= 10 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(1);
}

/** Milliseconds: 0.4 ms, 12 ms, 1.25 s, 2 min. */
export function milliseconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  if (value === 0) return "0 ms";
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(2)} s`;
  return `${(value / 60_000).toFixed(1)} min`;
}

/** The same without trailing zeros, for axes. */
export const shortMilliseconds = (value) => milliseconds(value).replace(/\.0+(?= )/, "").replace(/(\.[1-9])0(?= )/, "$1");

/** Bytes in units of 1024. */
export function bytes(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)}\u00a0${unit}`;
  }
  return `${Math.round(value)}\u00a0B`;
}

/** Seconds in the two largest units: 3d 4h, 5m 12s. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  const whole = Math.floor(seconds);
  const parts = [["d", 86_400], ["h", 3_600], ["m", 60], ["s", 1]];
  const first = parts.findIndex(([, size]) => whole >= size);
  if (first < 0) return "0s";
  const [unit, size] = parts[first];
  const rest = parts[first + 1];
  const more = rest ? ` ${Math.floor((whole % size) / rest[1])}${rest[0]}` : "";
  return `${Math.floor(whole / size)}${unit}${more}`;
}

/** A time of day, optionally with milliseconds. */
export function clock(ms, exact = false) {
  const time = new Date(ms);
  const two = (value) => String(value).padStart(2, "0");
  const shown = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return exact ? `${shown}.${String(time.getMilliseconds()).padStart(3, "0")}` : shown;
}

/** A share in per cent. */
export function percent(part, whole) {
  if (!whole) return NONE;
  const share = (100 * part) / whole;
  return `${share >= 10 || share === 0 ? share.toFixed(0) : share.toFixed(1)} %`;
}
