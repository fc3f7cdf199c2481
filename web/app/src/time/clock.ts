// Times for people: local time zone, 24 hours, the zone's name beside it.

const two = (n: number): string => String(n).padStart(2, '0');

/** clockTime writes HH:MM:SS, with milliseconds when asked. */
export function clockTime(at: number, millis = false): string {
  const d = new Date(at);
  const text = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return millis ? `${text}.${String(d.getMilliseconds()).padStart(3, '0')}` : text;
}

/** dateText writes YYYY-MM-DD. */
export function dateText(at: number): string {
  const d = new Date(at);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

/** dateTime writes the date only when it is not today's. */
export function dateTime(at: number, now = Date.now()): string {
  return dateText(at) === dateText(now) ? clockTime(at) : `${dateText(at)} ${clockTime(at)}`;
}

/** zoneName is the short name of the browser's time zone: "CET", "UTC", "GMT+5:30". */
export function zoneName(at = Date.now()): string {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' }).formatToParts(new Date(at));
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? 'local time';
}

/** spanText writes both ends of a span without saying the same day twice. */
export function spanText(from: number, to: number): string {
  const fine = to - from < 3_600_000;
  const clock = (at: number): string => (fine ? clockTime(at) : clockTime(at).slice(0, 5));
  if (dateText(from) === dateText(to)) {
    const day = dateText(from) === dateText(Date.now()) ? '' : `${dateText(from)} `;
    return `${day}${clock(from)} – ${clock(to)}`;
  }
  return `${dateText(from)} ${clock(from)} – ${dateText(to)} ${clock(to)}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** axisTimes labels the marks of a time axis; the date stands where the day changes. */
export function axisTimes(splits: number[], increment: number): string[] {
  let day = '';
  return splits.map((at, i) => {
    const d = new Date(at);
    const today = `${d.getDate()} ${MONTHS[d.getMonth()]}`;
    const midnight = d.getHours() === 0 && d.getMinutes() === 0 && d.getSeconds() === 0;
    const fresh = day !== '' && day !== today;
    day = today;
    if (increment >= 28 * 86_400_000) return d.getMonth() === 0 ? String(d.getFullYear()) : MONTHS[d.getMonth()];
    if (increment >= 86_400_000) return today;
    if (midnight && (fresh || i > 0)) return today;
    const clock = `${two(d.getHours())}:${two(d.getMinutes())}`;
    if (increment < 60_000) return `${clock}:${two(d.getSeconds())}`;
    return clock;
  });
}
