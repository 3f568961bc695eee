/** Numbers with units that people can read; the command line writes them the same. */

const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];

/** `1.23 Gbit/s`, from bits per second. */
export function bitRate(bitsPerS: number): string {
  return scaled(bitsPerS, "bit/s");
}

/** `1.23 Mfps`, from frames per second. */
export function frameRate(framesPerS: number): string {
  return scaled(framesPerS, "fps");
}

/** `1.23 MB`, from bytes; decimal, as network people count. */
export function bytes(value: number): string {
  return scaled(value, "B");
}

/** `1.20 GiB`, from bytes; binary, as disks are sized. */
export function size(value: number): string {
  return scaledBy(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

/** `7.81 MiB/s`, from bytes per second. */
export function sizeRate(value: number): string {
  return `${size(value)}/s`;
}

/** `85.0 µs`, from nanoseconds. */
export function latency(ns: number): string {
  return scaledBy(ns, 1000, ["ns", "µs", "ms", "s"]);
}

/** `12.3 k IOPS`, from operations per second. */
export function iops(perS: number): string {
  return `${count(perS)} IOPS`;
}

/** `1.23 M`, from a number of things; exact below ten thousand. */
export function count(value: number): string {
  const whole = Math.round(value);
  return whole < 10_000 ? String(whole) : scaled(whole, "").trimEnd();
}

/** `1.23`, from what the lab measured, as its reports write numbers. */
export function measured(value: number, digits?: number | null): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size.toFixed(digits ?? (size === 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3));
  const [whole = "", fraction = ""] = text.split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  const rest = fraction.replace(/0+$/, "");
  const shown = rest === "" ? grouped : `${grouped}.${rest}`;
  return value < 0 && /[1-9]/.test(shown) ? `−${shown}` : shown;
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
  return scaled(khz * 1000, "Hz");
}

/** `2 h 05 min`, from seconds. */
export function age(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(s / 60);
  const hours = Math.floor(s / 3600);
  const two = (value: number) => String(value).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${minutes} min ${two(s % 60)} s`;
  if (s < 86_400) return `${hours} h ${two(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
}

/** `2026-03-01 12:30:05`, of this computer's time zone, from milliseconds since 1970. */
export function moment(unixMs: number): string {
  const time = new Date(unixMs);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${clock(unixMs)}`;
}

/** `12:30:05`, of this computer's time zone. */
export function clock(unixMs: number): string {
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

/** Bytes, from what the API has as a number or as a text like `2 GiB`. */
export function bytesOf(value: number | string | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "number") return value;
  const parts = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*$/.exec(value);
  const unit = SIZE_UNITS[(parts?.[2] ?? "?").toLowerCase()];
  return parts?.[1] !== undefined && unit !== undefined ? Number(parts[1]) * unit : undefined;
}

/** Three significant digits and a decimal prefix. */
function scaled(value: number, unit: string): string {
  return scaledBy(value, 1000, DECIMAL.map((prefix) => `${prefix}${unit}`));
}

/** Three significant digits and a unit, each of which is `step` times the one before. */
function scaledBy(value: number, step: number, units: string[]): string {
  if (!Number.isFinite(value)) return "–";
  let divisor = 1;
  let at = 0;
  while (value >= step && value >= (divisor * (2 * step - 1)) / 2 && at + 1 < units.length) {
    divisor *= step;
    at += 1;
  }
  const unit = units[at] ?? "";
  if (divisor === 1) return `${Math.round(value)} ${unit}`;
  const shown = value / divisor;
  return `${shown.toFixed(shown < 10 ? 2 : shown < 100 ? 1 : 0)} ${unit}`;
}

/** The same number is not written beside two lines of a chart: what is between whole numbers stays without. */
export function distinct(texts: string[]): string[] {
  return texts.map((text, at) => (text === texts[at - 1] ? "" : text));
}
