import { Inject } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { handleCommand, isOperationId, streamOf, type OperationCommand } from '#domain';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import type { Caller } from '../http/access.js';
import { problemFromRefusal } from '../problems/from-refusal.js';
import { Problem } from '../problems/problem.js';
import type { FoundOperation } from './plan-operation.js';

/** What a person or an agent wants done with an operation that exists. */
export type Act = Extract<OperationCommand, { readonly type: 'CancelOperation' | 'RequestCheck' | 'DecideReview' }>;

export class ActOnOperationCommand extends Command<FoundOperation> {
  constructor(
    readonly operationId: string,
    readonly act: Act,
    readonly caller: Caller,
    readonly traceparent: string | null,
  ) {
    super();
  }
}

@CommandHandler(ActOnOperationCommand)
export class ActOnOperationHandler implements ICommandHandler<ActOnOperationCommand> {
  constructor(@Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies) {}

  /** @throws Problem for a refusal; LogUnavailable, LogOverloaded, ContentionExceeded */
  async execute({ operationId, act, caller, traceparent }: ActOnOperationCommand): Promise<FoundOperation> {
    if (!isOperationId(operationId)) throw new Problem('operation_not_found');
    const commandId = this.deps.newId();
    const result = await handleCommand(this.deps, {
      stream: streamOf(operationId),
      commands: [act],
      commandId,
      tenant: caller.tenant,
      actor: caller.actor,
      correlation: commandId,
      causation: null,
      traceparent,
    });
    if (result.refusal) throw problemFromRefusal(result.refusal, result.operation, this.deps.clock.nowMs());
    return result.operation;
  }
}
