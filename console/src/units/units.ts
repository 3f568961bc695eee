/** Formatting of numbers with units, the same as in the CLI. */

const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];

/** `1.23 Gbit/s`, from bits per second. */
export function bitRate(bitsPerS: number): string {
  return scaleDecimal(bitsPerS, "bit/s");
}

/** `1.23 Mfps`, from frames per second. */
export function frameRate(framesPerS: number): string {
  return scaleDecimal(framesPerS, "fps");
}

/** `1.23 MB`, from bytes, with decimal prefixes as for network traffic. */
export function bytes(value: number): string {
  return scaleDecimal(value, "B");
}

/** `1.20 GiB`, from bytes, with binary prefixes as for disk sizes. */
export function size(value: number): string {
  return scaleTo(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

/** `7.81 MiB/s`, from bytes per second. */
export function sizeRate(value: number): string {
  return `${size(value)}/s`;
}

/** `85.0 µs`, from nanoseconds. */
export function latency(ns: number): string {
  return scaleTo(ns, 1000, ["ns", "µs", "ms", "s"]);
}

/** `12.3 k IOPS`, from operations per second. */
export function iops(perS: number): string {
  return `${count(perS)} IOPS`;
}

/** `1.23 M`, from a count; exact below 10 000. */
export function count(value: number): string {
  const whole = Math.round(value);
  return whole < 10_000 ? String(whole) : scaleDecimal(whole, "").trimEnd();
}

/** `1.23`, from a measured value of the lab, formatted as in its reports. */
export function labValue(value: number, digits?: number | null): string {
  if (!Number.isFinite(value)) return "–";
  const magnitude = Math.abs(value);
  const text = magnitude.toFixed(digits ?? (magnitude === 0 || magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3));
  const [whole = "", fraction = ""] = text.split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  const significant = fraction.replace(/0+$/, "");
  const formatted = significant === "" ? grouped : `${grouped}.${significant}`;
  return value < 0 && /[1-9]/.test(formatted) ? `−${formatted}` : formatted;
}

/** `12.3 %`, from parts per million. */
export function percent(ppm: number): string {
  return `${(Math.round(ppm / 1000) / 10).toFixed(1)} %`;
}

/** `42.3 W`, from milliwatts. */
export function watts(milliwatts: number): string {
  return `${(Math.round(milliwatts / 100) / 10).toFixed(1)} W`;
}

/** `10.0 Gbit/s`, from megabits per second. */
export function speed(mbps: number): string {
  return bitRate(mbps * 1_000_000);
}

/** `2.40 GHz`, from kilohertz. */
export function frequency(khz: number): string {
  return scaleDecimal(khz * 1000, "Hz");
}

/** `2 h 05 min`, from seconds. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(s / 60);
  const hours = Math.floor(s / 3600);
  const twoDigits = (value: number) => String(value).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${minutes} min ${twoDigits(s % 60)} s`;
  if (s < 86_400) return `${hours} h ${twoDigits(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${twoDigits(hours % 24)} h`;
}

/** `2026-03-01 12:30:05`, in the local time zone, from milliseconds since 1970. */
export function dateTime(unixMs: number): string {
  const time = new Date(unixMs);
  const twoDigits = (value: number) => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())}`;
  return `${day} ${timeOfDay(unixMs)}`;
}

/** `12:30:05`, in the local time zone, from milliseconds since 1970. */
export function timeOfDay(unixMs: number): string {
  const time = new Date(unixMs);
  return [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((value) => String(value).padStart(2, "0"))
    .join(":");
}

const SIZE_UNITS: Record<string, number> = {
  "": 1, b: 1,
  kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40,
  kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12,
};

/** Parses a size of the API, a number of bytes or a text such as `2 GiB`. Returns `undefined` if it is invalid. */
export function parseBytes(value: number | string | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "number") return value;
  const match = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*$/.exec(value);
  const unit = SIZE_UNITS[(match?.[2] ?? "?").toLowerCase()];
  return match?.[1] !== undefined && unit !== undefined ? Number(match[1]) * unit : undefined;
}

/** Formats a value with three significant digits and a decimal prefix. */
function scaleDecimal(value: number, unit: string): string {
  return scaleTo(value, 1000, DECIMAL.map((prefix) => `${prefix}${unit}`));
}

/** Formats a value with three significant digits and one of the units, each `step` times the previous one. */
function scaleTo(value: number, step: number, units: string[]): string {
  if (!Number.isFinite(value)) return "–";
  let divisor = 1;
  let index = 0;
  while (value >= step && value >= (divisor * (2 * step - 1)) / 2 && index + 1 < units.length) {
    divisor *= step;
    index += 1;
  }
  const unit = units[index] ?? "";
  if (divisor === 1) return `${Math.round(value)} ${unit}`;
  const scaled = value / divisor;
  return `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)} ${unit}`;
}

/** Replaces repeated labels of a chart axis with empty texts, for example ticks between whole numbers. */
export function blankRepeats(texts: string[]): string[] {
  return texts.map((text, index) => (text === texts[index - 1] ? "" : text));
}
