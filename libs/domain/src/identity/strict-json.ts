import { pointerTo, type PointerToken } from './json-pointer.js';

/** Why a text is refused before anything is recorded. */
export interface JsonFault {
  readonly code: 'malformed_json' | 'duplicate_member' | 'lone_surrogate' | 'number_out_of_range' | 'too_deep';
  /** RFC 6901 pointer to the faulty value or member; empty for the whole text. */
  readonly pointer: string;
  /** The rule and the way out, in words; never a value of the text. */
  readonly rule: string;
}

export type StrictJson = { readonly value: unknown; readonly fault?: undefined } | { readonly fault: JsonFault };

/** Levels of nesting: far more than any payload of an action needs, and little enough for every recursion after this one. */
export const JSON_DEPTH_MAX = 32;

/**
 * Reads JSON that means the same to every reader (I-JSON, RFC 7493): no duplicate member names, no lone surrogates, no integers that a
 * double cannot tell apart. `JSON.parse` alone takes the last of two members and rounds silently, so that two different payloads
 * would become one (public cases 5 and 6).
 */
export function parseStrictJson(text: string): StrictJson {
  const fault = new Scan(text).firstFault();
  // Told before parsing: nothing after this line meets a nesting that could overflow a stack.
  if (fault?.code === 'too_deep') return { fault };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { fault: malformed(error) };
  }
  return fault ? { fault } : { value };
}

function malformed(error: unknown): JsonFault {
  // Only the number is taken over: the message of the engine quotes the text.
  const at = error instanceof SyntaxError ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  const place = at === undefined ? '' : ` The first fault is at character ${at}.`;
  return { code: 'malformed_json', pointer: '', rule: `The text has to be one JSON value (RFC 8259).${place}` };
}

/** Where the scan is inside one array or object. */
interface Level {
  /** Names met so far, unescaped; null in an array. */
  readonly names: Set<string> | null;
  token: PointerToken;
  /** In an object: whether the next string is a name. */
  nameExpected: boolean;
}

/** Code units of JSON's structure. */
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const LEFT_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const RIGHT_BRACKET = 0x5d;
const SMALL_U = 0x75;
const LEFT_BRACE = 0x7b;
const RIGHT_BRACE = 0x7d;

/** So many digits are always a safe integer, and need no look at their value. */
const SURELY_SAFE_DIGITS = 15;

/**
 * One pass over the text, linear whatever it holds. It judges only what `JSON.parse` lets through; on a text that is not JSON it finds
 * its way to the end somehow, and the parser's verdict counts.
 */
class Scan {
  private at = 0;
  private readonly levels: Level[] = [];
  private fault: JsonFault | null = null;

  constructor(private readonly text: string) {}

  firstFault(): JsonFault | null {
    const { text, levels } = this;
    while (this.at < text.length && this.fault === null) {
      const unit = text.charCodeAt(this.at);
      if (unit === QUOTE) this.string();
      else if (unit === MINUS || (unit >= DIGIT_0 && unit <= DIGIT_9)) this.number();
      else {
        this.at++;
        if (unit === LEFT_BRACE) this.open({ names: new Set(), token: '', nameExpected: true });
        else if (unit === LEFT_BRACKET) this.open({ names: null, token: 0, nameExpected: false });
        else if (unit === RIGHT_BRACE || unit === RIGHT_BRACKET) levels.pop();
        else if (unit === COMMA) this.nextMember();
      }
    }
    return this.fault;
  }

  private open(level: Level): void {
    if (this.levels.length === JSON_DEPTH_MAX) {
      this.refuse('too_deep', `Arrays and objects may be nested ${JSON_DEPTH_MAX} deep; flatten the value.`);
    } else {
      this.levels.push(level);
    }
  }

  private nextMember(): void {
    const level = this.levels.at(-1);
    if (!level) return;
    if (typeof level.token === 'number') level.token++;
    else level.nameExpected = true;
  }

  private string(): void {
    const { text } = this;
    const start = this.at++;
    let escaped = false;
    let unicode = false;
    for (; this.at < text.length; this.at++) {
      const unit = text.charCodeAt(this.at);
      if (unit === QUOTE) break;
      if (unit === BACKSLASH) {
        escaped = true;
        this.at++;
        if (text.charCodeAt(this.at) === SMALL_U) unicode = true;
      } else if (unit >= 0xd800 && unit <= 0xdfff) unicode = true;
    }
    this.at++;
    const level = this.levels.at(-1);
    const isName = level?.nameExpected === true;
    if (!isName && !unicode) return;
    const content = escaped ? unescape(text.slice(start, this.at)) : text.slice(start + 1, this.at - 1);
    // Not a JSON string at all: the parser will say so.
    if (content === null) return;
    if (isName) this.name(level, content);
    if (unicode && !isWellFormed(content)) {
      this.refuse(
        'lone_surrogate',
        'Strings have to be Unicode text; half of a surrogate pair is none. Send the whole character or leave it out.',
      );
    }
  }

  private name(level: Level, name: string): void {
    level.nameExpected = false;
    level.token = name;
    if (level.names?.has(name)) this.refuse('duplicate_member', 'A name may occur once in an object; send one of the two.');
    level.names?.add(name);
  }

  private number(): void {
    const { text } = this;
    const start = this.at++;
    let plain = true;
    for (; this.at < text.length; this.at++) {
      const unit = text.charCodeAt(this.at);
      if (unit >= DIGIT_0 && unit <= DIGIT_9) continue;
      if (!isNumberUnit(unit)) break;
      plain = false;
    }
    if (plain && this.at - start <= SURELY_SAFE_DIGITS) return;
    const value = Number(text.slice(start, this.at));
    // Not a number at all: the parser will say so.
    if (Number.isNaN(value)) return;
    if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
      this.refuse('number_out_of_range', 'Integers beyond 9007199254740991 either way lose digits; send such a number as a string.');
    }
  }

  private refuse(code: JsonFault['code'], rule: string): void {
    this.fault ??= { code, pointer: pointerTo(this.levels.map(({ token }) => token)), rule };
  }
}

/** What a number may hold besides digits: `+ - . E e`. */
function isNumberUnit(unit: number): boolean {
  return unit === 0x2b || unit === MINUS || unit === 0x2e || unit === 0x45 || unit === 0x65;
}

function unescape(quoted: string): string | null {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return null;
  }
}

const SURROGATE = /[\ud800-\udfff]/;

/** Whether a string is Unicode text: each surrogate is one half of a pair. */
export function isWellFormed(text: string): boolean {
  // Without the `u` flag, so that halves are looked at; most texts have none and end here.
  if (!SURROGATE.test(text)) return true;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const next = text.charCodeAt(at + 1);
    if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return false;
    at++;
  }
  return true;
}
