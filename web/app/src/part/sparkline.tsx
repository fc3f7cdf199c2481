// A line in the space of a word.

interface Props {
  values: (number | null)[];
  width?: number;
  height?: number;
  /** Upper end of the scale; the largest value when left out. */
  top?: number;
  label: string;
}

export function Sparkline({ values, width = 120, height = 28, top, label }: Props) {
  const numbers = values.filter((value): value is number => value !== null);
  const high = Math.max(top ?? 0, ...numbers) || 1;
  const x = (i: number): number => (values.length < 2 ? width : (i / (values.length - 1)) * width);
  const y = (value: number): number => height - 1 - (Math.max(0, value) / high) * (height - 3);
  let line = '';
  let pen = 'M';
  values.forEach((value, i) => {
    if (value === null) pen = 'M';
    else {
      line += `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = 'L';
    }
  });
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {line !== '' && <path class="sparkline-line" d={line} vector-effect="non-scaling-stroke" />}
    </svg>
  );
}

/** Bars are counts per slice of time. */
export function Bars({ values, width = 120, height = 28, label }: { values: number[]; width?: number; height?: number; label: string }) {
  const high = Math.max(1, ...values);
  const slot = width / values.length;
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.map((value, i) => (
        <rect key={i} class={value === 0 ? 'bar-none' : 'bar'} x={i * slot + 0.5} width={slot - 1} y={height - Math.max(1, (value / high) * (height - 2))} height={Math.max(1, (value / high) * (height - 2))} />
      ))}
    </svg>
  );
}
