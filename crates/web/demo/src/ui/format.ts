/** Numbers as people read them. */

/** Bytes in the decimal units of file sizes: `640 MB`. */
export function bytes(count: number): string {
  if (count < 1000) return `${Math.round(count)} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = count;
  let unit = -1;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

/** A count with its noun: `1 step`, `2 steps`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** A loss or a rate, with four digits that matter. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return 'no number';
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)) return value.toExponential(2);
  return value.toPrecision(4);
}

export function seconds(value: number): string {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 90) return `${Math.round(value)} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${(value / 3600).toFixed(1)} h`;
}

export function perSecond(tokens: number, time: number): string {
  return time > 0 ? `${(tokens / time).toFixed(tokens / time < 10 ? 1 : 0)} tokens/s` : '';
}

export function when(time: number): string {
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? date.toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hour12: false })
    : date.toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' });
}
