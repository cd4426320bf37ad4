import { Inject } from '@nestjs/common';
import { Query, QueryHandler, type IQueryHandler } from '@nestjs/cqrs';
import { InvalidCursor, LogUnavailable, type ListPage, type ListQuery } from '#domain';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import { ViewUnavailable } from '../problems/problem-of.js';
import { Problem } from '../problems/problem.js';

/** A page of the status view, which may lag behind the log. */
export class ListOperationsQuery extends Query<ListPage> {
  constructor(readonly list: ListQuery) {
    super();
  }
}

@QueryHandler(ListOperationsQuery)
export class ListOperationsHandler implements IQueryHandler<ListOperationsQuery> {
  constructor(@Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies) {}

  /** @throws Problem query_invalid; ViewUnavailable, LogUnavailable */
  async execute({ list }: ListOperationsQuery): Promise<ListPage> {
    try {
      return await this.deps.view.list(list);
    } catch (error) {
      if (error instanceof InvalidCursor) {
        const rule = 'A next_cursor of an earlier page, unchanged, with the same filters.';
        throw new Problem('query_invalid', { errors: [{ parameter: 'cursor', code: 'parameter_invalid', rule }] });
      }
      if (error instanceof LogUnavailable) throw error;
      throw new ViewUnavailable('The status view did not answer.', { cause: error });
    }
  }
}
