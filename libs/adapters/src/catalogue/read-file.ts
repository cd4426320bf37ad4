import { closeSync, openSync, readSync } from 'node:fs';
import { LineCounter, parseDocument } from 'yaml';
import type { FaultList } from '../configuration/faults.js';

/** A catalogue of hundreds of actions takes some 100 KiB; more is a mistake. */
const FILE_BYTES_MAX = 1024 * 1024;
/** Anchors may repeat a part of the file this often: enough to share settings, too few to blow up the memory. */
const ALIASES_MAX = 100;

/** The text of a file of at most 1 MiB; null after a fault under `path`. */
export function readTextFile(file: string, path: string, faults: FaultList): string | null {
  try {
    const bytes = readUpTo(file, FILE_BYTES_MAX + 1);
    if (bytes.length <= FILE_BYTES_MAX) return bytes.toString('utf8');
    faults.add(path, `The file ${file} is larger than 1 MiB.`, 'Split it or remove what is not needed.');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const rule = code === 'ENOENT' ? `There is no file ${file}.` : `The file ${file} can't be read (${code ?? 'unknown error'}).`;
    faults.add(path, rule, 'Check the path and its permissions.');
  }
  return null;
}

/** Never reads more than asked for, also where the name is one of an endless device. */
function readUpTo(file: string, bytesMax: number): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const buffer = Buffer.alloc(bytesMax);
    let length = 0;
    while (length < bytesMax) {
      const read = readSync(descriptor, buffer, length, bytesMax - length, null);
      if (read === 0) break;
      length += read;
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** The value of a YAML 1.2 text; undefined after a fault. Repeated keys and anchors beyond the bound are faults. */
export function parseYaml(text: string, faults: Pick<FaultList, 'add'>): unknown {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: true, stringKeys: true, version: '1.2' });
  for (const { code, pos, message } of document.errors) {
    const { line, col } = lineCounter.linePos(pos[0]);
    const rule = code === 'DUPLICATE_KEY' ? 'The key is there twice.' : `Is not valid YAML: ${message}.`;
    faults.add(`line ${line}, column ${col}`, rule, code === 'DUPLICATE_KEY' ? 'Keep one of the two.' : 'Correct it there.');
  }
  if (document.errors.length > 0) return undefined;
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    faults.add('file', `Its anchors can't be resolved: ${(error as Error).message}.`, 'Write the repeated parts out.');
    return undefined;
  }
}
