const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `500ms`, `10s`, `5m`, `24h` or `7d`; null where the text is no duration. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * MS_PER_UNIT[match[2]!]! : null;
}

/** A duration as the catalogue writes it, in the largest unit that fits without a rest. */
export function formatDuration(ms: number): string {
  const units = ['d', 'h', 'm', 's'] as const;
  const unit = ms === 0 ? undefined : units.find((candidate) => ms % MS_PER_UNIT[candidate]! === 0);
  return unit ? `${ms / MS_PER_UNIT[unit]!}${unit}` : `${ms}ms`;
}
