import type { LoggerService } from '@nestjs/common';
import type { Logger } from '#adapters/observability/logger.js';

/** Nest's own messages as log lines: what it says while it starts is for debugging, what it warns of is not. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.logger.debug({ context: rest.at(-1) }, textOf(message));
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.logger.warn({ context: rest.at(-1) }, textOf(message));
  }

  error(message: unknown, ...rest: unknown[]): void {
    const err = message instanceof Error ? message : undefined;
    this.logger.error({ context: rest.at(-1), ...(err && { err }) }, err ? 'error in the framework' : textOf(message));
  }
}

/** Longer texts of the framework quote what they failed on. */
const TEXT_LENGTH_MAX = 200;

function textOf(message: unknown): string {
  return typeof message === 'string' ? message.slice(0, TEXT_LENGTH_MAX) : 'message of the framework';
}
