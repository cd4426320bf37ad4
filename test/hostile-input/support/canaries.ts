import { expect } from 'vitest';
import { CANARY_ADDRESS, type HostileWorld } from './world.js';

/** In the spellings that a careless line would have. */
function spellingsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  // Base64 of a text inside another depends on where it begins; without its ends it is found in one of three.
  const shifted = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, -4),
  );
  return [text, encodeURIComponent(text), bytes.toString('hex'), ...shifted];
}

/** After all that was sent: nothing of the secrets and of the payloads is in a log line, a metric or a row of the database. */
export async function expectNoCanaries(world: HostileWorld): Promise<void> {
  await world.settled();
  const places = { logs: world.lines.join(''), metrics: await world.metrics(), rows: await world.storedText() };
  expect(places.rows.length).toBeGreaterThan(10_000);
  for (const [place, text] of Object.entries(places)) {
    for (const canary of [...spellingsOf(CANARY_ADDRESS), ...world.secretSpellings().flatMap(spellingsOf)]) {
      expect(text.includes(canary), `${canary} is in the ${place}`).toBe(false);
    }
  }
}
