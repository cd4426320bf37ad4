import type { ProjectedOperation } from './projected-operation.js';

/** Operations that were written lately and are not final, in the order of a few megabytes: as many as begin within seconds of full load. */
const OPERATIONS_MAX = 1_024;

/**
 * Saves reading back a row that was written a moment ago. What an operation is at a revision is settled for good by its stream, so an
 * entry can't be wrong; but whoever builds on one must write the whole row, since the row itself may have been lost in a crash.
 */
export class RecentOperations {
  private readonly operations = new Map<string, ProjectedOperation>();

  get(operationId: string): ProjectedOperation | undefined {
    return this.operations.get(operationId);
  }

  remember(operationId: string, operation: ProjectedOperation): void {
    this.operations.delete(operationId);
    // Hardly anything follows a final event.
    if (operation.state.status === 'succeeded' || operation.state.status === 'failed_final') return;
    this.operations.set(operationId, operation);
    if (this.operations.size <= OPERATIONS_MAX) return;
    const [oldest] = this.operations.keys();
    this.operations.delete(oldest!);
  }

  forgetAll(): void {
    this.operations.clear();
  }
}
