/** Times as people read them. */

/** A time from the API in this machine's time zone: 2026-01-31 12:00:00. */
export function localTime(isoTime: string): string {
  return new Date(isoTime).toLocaleString("sv");
}

const UNITS = [
  { seconds: 86_400, name: "d" },
  { seconds: 3600, name: "h" },
  { seconds: 60, name: "min" },
] as const;

/** How long ago, in the largest unit that fits. */
export function age(isoTime: string, now: Date = new Date()): string {
  const seconds = Math.max(0, (now.getTime() - Date.parse(isoTime)) / 1000);
  const unit = UNITS.find((one) => seconds >= one.seconds);
  return unit === undefined ? `${Math.floor(seconds)} s ago` : `${Math.floor(seconds / unit.seconds)} ${unit.name} ago`;
}

/** 0:07, 12:03, 1:02:03. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  const rest = String(seconds % 60).padStart(2, "0");
  return hours === 0 ? `${minutes}:${rest}` : `${hours}:${String(minutes).padStart(2, "0")}:${rest}`;
}
